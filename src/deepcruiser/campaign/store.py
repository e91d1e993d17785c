"""A campaign's folder: its database, and the failing inputs beside it.

campaign.db holds everything (SQLite). failed/ has each failing input as a sound, a text or an array, with a JSON file
that describes it; seeds/ has the seeds that they were made from, and abstract.model is the model. A step is written
whole: first the files, then the database, in one transaction.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.database import (
    DATABASE,
    FORMAT,
    insert,
    locked,
    pack,
    select,
    to_read,
    to_write,
    usable,
    with_visits,
)
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.failed_test import InputFile
from deepcruiser.campaign.loop import Step
from deepcruiser.campaign.scheduler import Plan
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.errors import DeepCruiserError, FileError, MismatchError, reason
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import open_regular
from deepcruiser.serialise import decode, encode, summarise
from deepcruiser.transformations import to_dict

MODEL = "abstract.model"
#: The libraries that determine the samples of a mutant.
_PACKAGES = ("deepcruiser", "numpy", "scipy", "torch", "soxr", "python-stretch")
#: The fields of a spec that must stay the same when a campaign is resumed; paths and budgets may change.
_FIXED = (
    "guide",
    "oracle",
    "mutations",
    "scheduler",
    "severity",
    "seed",
    "batch_size",
    "window",
    "validity",
    "keep_failing_seeds",
)
#: For a key of the settings, the keys that are stored with it or earlier.
_TOGETHER = {
    "spec": ("format", "identity", "directory", "stopped"),
    "random": ("spec", "versions", "pending", "moments"),
}
#: The names of unfinished files of `atomic_write` in `failed` and `seeds`; other hidden files are not ours.
_TEMPORARY = re.compile(r"\.\d{6,}\..+\.[a-z0-9_]{8}")
#: Makes a change from its JSON data.
ReadChange = Callable[[Mapping[str, Any]], Any]


class Store:
    """An open campaign folder. `Store.open` makes it if there is none, and lets no second process in."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: Any) -> None:
        self.folder = folder
        self._db = connection
        self._lock = lock
        self._kept_seeds: set[int] = set()
        #: The plans that were pending last, as JSON, by the number of their first run and their length.
        self._pending: dict[tuple[int, int], str] = {}

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, write: bool) -> Store:
        """Open a campaign's folder for writing, or for reading, even while another process is writing."""
        path = Path(folder)
        if not write:
            return cls(path, to_read(path / DATABASE), None)
        if path.exists() and not path.is_dir():
            raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: it is a file")
        try:
            path.mkdir(parents=True, exist_ok=True)
            if link := next((name for name in ("lock", "failed", "seeds") if (path / name).is_symlink()), None):
                raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: its {link} is a link to elsewhere")
            if (path / "lock").exists() and not (path / "lock").is_file():
                raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: its lock is not a file")
            lock = open(path / "lock", "a")  # noqa: SIM115
        except OSError as error:
            raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: {reason(error)}") from None
        if not locked(lock):
            lock.close()
            raise FileError(f"another process is writing to {os.fspath(folder)!r}: wait for it or use another folder")
        try:
            connection = to_write(path / DATABASE)
            for left in (*path.glob("failed/.*"), *path.glob("seeds/.*")):  # the process was killed while it wrote them
                if _TEMPORARY.fullmatch(left.name) and left.is_file():
                    left.unlink()
        except BaseException:
            lock.close()
            raise
        return cls(path, connection, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_at_work(self) -> bool:
        """Whether a process is running the campaign at this moment."""
        try:
            with open_regular(self.folder / "lock") as file:
                return not locked(file, shared=True)
        except (OSError, FileError):
            return False

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def meta(self, key: str) -> Any:
        """The value of a key; None if there is none."""
        with self.usable():
            rows = dict(select(self._db, "meta", ""))  # all rows, because a damaged key would not be found
            needed = {name for first, names in _TOGETHER.items() if first in rows for name in names}
            if missing := needed - set(rows):
                raise ValueError(f"the {min(missing)} of the campaign is missing")
            return json.loads(rows[key]) if key in rows else None

    def configure(self, spec: CampaignSpec, identity: Mapping[str, Any]) -> None:
        """Store the settings of a new campaign; those of a resumed campaign must be the same.

        `identity` is what the spec cannot hold: the fingerprints of the system, the model and the seeds.
        """
        identity, fixed = json.loads(json.dumps(identity)), json.loads(json.dumps(spec.to_dict()))
        started = self.meta("spec") is not None
        if started and self.meta("random") is not None:
            with self.usable():
                was = {
                    **CampaignSpec().to_dict(),
                    "seeds left out": [],
                    "other system": "",
                    **self.meta("spec"),
                    **self.meta("identity"),
                }
            now = {**fixed, **identity}
            names = (*_FIXED, *identity)
            differ = [
                _difference(name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)
            ]
            if was.get("system") and now["system"] and was["system"] != now["system"]:
                raise MismatchError(
                    f"the network changed since the campaign in {os.fspath(self.folder)!r} began (its weights, or the "
                    "choice of its state): resume it with the original network, or use another folder"
                )
            if differ:
                raise MismatchError(
                    f"the campaign in {os.fspath(self.folder)!r} was started with different settings: "
                    f"{'; '.join(differ)}. Use the original settings, or another folder"
                )
        with self.usable(), self._db:
            self._put("format", FORMAT)
            self._put("spec", fixed)
            self._put("identity", identity)
            self._put("directory", _directory(self.folder))
            if not started:
                self._put("stopped", "")

    def keep_seed(self, position: int, read: Callable[[], Any]) -> None:
        """Save a seed next to the failing tests made from it, so that they can be compared."""
        if position in self._kept_seeds:
            return
        self._kept_seeds.add(position)
        if not any((self.folder / "seeds").glob(f"{position:06}.*")):
            with contextlib.suppress(DeepCruiserError):  # the seed may be gone; the failing test matters more
                _write_input(self.folder / "seeds" / f"{position:06}", InputFile.of(read()))

    def save(
        self,
        step: Step,
        *,
        runs: int,
        seconds: float,
        failures: Mapping[int, tuple[InputFile | None, Mapping[str, Any]]],
    ) -> None:
        """Write a step completely; `failures` are the files of its failing inputs and their descriptions, by number."""
        for number, (file, description) in failures.items():
            _write_failed(self.folder / "failed", number, file, description)
        with self.usable(), self._db:
            for event in step.events:
                self._put_event(event)
            insert(self._db, "meta", ("pending", self._as_json(step.pending)), replace=True)
            self._put("random", step.random)
            insert(self._db, "moments", (runs, float(round(seconds, 3))), replace=True)
            self._put("moments", self._db.execute("SELECT count(*) FROM moments").fetchone()[0])

    def _as_json(self, pending: Sequence[Plan]) -> str:
        """Plans as `pending` reads them; most were pending before, and are not encoded again."""
        known, self._pending = self._pending, {}
        for plan in pending:
            key = plan[0].number, len(plan)
            self._pending[key] = known.get(key) or json.dumps(
                [[mutant.parent, [to_dict(change) for change in mutant.changes]] for mutant in plan]
            )
        return f"[{', '.join(self._pending.values())}]"

    def seeds(self, model: AbstractModel | None) -> Iterator[Seeded]:
        """The events of the seeds, in order; visits are included only if the model is given."""
        with self.usable():
            for row in with_visits(select(self._db, "seeds", "ORDER BY position"), model):
                position, seed, outcome, reason, output, reference, score, doubt, digest, visits, distance = row
                _check_types((position, int), (outcome, str), (reason, str), (score, float))
                _check_types((doubt, float | None), (distance, float | None), (json.loads(seed), str))
                judged = json.loads(output), decode(json.loads(reference)), score, doubt, bytes(digest).hex()
                yield Seeded(position, json.loads(seed), outcome, reason, *judged, visits, distance)

    def runs(self, model: AbstractModel | None, read_change: ReadChange, *, after: int = 0) -> Iterator[Ran]:
        """The events of the mutants after run `after`, in order; visits are included only if the model is given."""
        with self.usable():
            rows = select(self._db, "runs", "WHERE number > ? ORDER BY number", (after,))
            for expected, row in enumerate(with_visits(rows, model), after + 1):
                if row[0] != expected:
                    raise ValueError(f"run {expected:,} is missing")
                number, parent, changes, outcome, reason, output, score, doubt, digest, visits, distance, moved = row
                _check_types((parent, int), (outcome, str), (reason, str), (score, float))
                _check_types((doubt, float | None), (distance, float | None))
                made = tuple(map(read_change, json.loads(changes)))
                judged = json.loads(output), score, doubt, bytes(digest).hex()
                reference = None if moved is None else decode(json.loads(moved))
                yield Ran(number, parent, made, outcome, reason, *judged, visits, distance, reference)

    def pending(self, read_change: ReadChange) -> list[list[tuple[int, tuple[Any, ...]]]]:
        """The plans that were made and not yet run, as (parent, changes)."""
        return [
            [(parent, tuple(map(read_change, changes))) for parent, changes in plan] for plan in self.meta("pending")
        ]

    def moments(self) -> list[tuple[int, float]]:
        """For each step, the number of runs and the seconds that had passed by then."""
        with self.usable():
            moments = [(runs, seconds) for runs, seconds in select(self._db, "moments", "ORDER BY runs")]
            _check_types(*((seconds, float) for _, seconds in moments))
            if len(moments) != (self.meta("moments") or 0):
                raise ValueError("some of the steps of the campaign are missing")
            return moments

    def put(self, key: str, value: Any) -> None:
        """Store a value under a key."""
        with self.usable(), self._db:
            self._put(key, value)

    def usable(self) -> AbstractContextManager[None]:
        """Turn errors of a damaged database into a clear error."""
        return usable(self.folder / DATABASE)

    def _put(self, key: str, value: Any) -> None:
        insert(self._db, "meta", (key, json.dumps(value)), replace=True)

    def _put_event(self, event: Event) -> None:
        output, digest = json.dumps(summarise(event.output)), bytes.fromhex(event.digest)
        visits = None if event.visits is None else pack(event.visits.arrays)
        doubt, distance = (None if each is None else float(each) for each in (event.doubt, event.distance))
        judged = float(event.score), doubt, digest, visits, distance
        reason = event.reason.encode(errors="backslashreplace").decode()  # it may quote a name that is not UTF-8
        if isinstance(event, Seeded):
            reference = json.dumps(encode(event.reference))
            seed = event.position, json.dumps(event.seed), event.outcome, reason, output, reference
            insert(self._db, "seeds", (*seed, *judged))
        else:
            changes = json.dumps([to_dict(change) for change in event.changes])
            run = event.number, event.parent, changes, event.outcome, reason, output
            moved = None if event.reference is None else json.dumps(encode(event.reference))
            insert(self._db, "runs", (*run, *judged, moved))


def _check_types(*pairs: tuple[Any, Any]) -> None:
    """Refuse values of a row with a wrong type."""
    for value, kind in pairs:
        if not isinstance(value, kind) or value == math.inf or value == -math.inf:
            raise ValueError(f"a row holds {value!r}")


def _directory(folder: Path) -> dict[str, str]:
    """The working directory that the paths of the spec are relative to.

    It is noted twice: as seen from the folder, so that both can be moved together, and as it is, so that the folder
    can be moved alone.
    """
    here = os.path.abspath(os.curdir)
    try:
        relative = os.path.relpath(here, os.path.realpath(folder))
    except ValueError:  # on another drive
        relative = here
    return {"relative": relative, "absolute": here}


def _difference(name: str, was: Any, now: Any) -> str:
    names_only = all(isinstance(each, list) and all(isinstance(item, str) for item in each) for each in (was, now))
    if names_only:
        gone, new = sorted({*was} - {*now}), sorted({*now} - {*was})
        parts = [f"{word}: {_some(names)}" for word, names in (("gone", gone), ("new", new)) if names]
        return f"{name} ({', '.join(parts) or 'in another order'})"
    if isinstance(was, dict) and isinstance(now, dict):
        names = [key for key in {**was, **now} if was.get(key) != now.get(key)]
        return ", ".join(_difference(f"{name}.{key}", was.get(key), now.get(key)) for key in names)
    return f"{name} was {json.dumps(was)} and is {json.dumps(now)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], "..."] if len(names) > 3 else names)


def _write_failed(folder: Path, number: int, file: InputFile | None, description: Mapping[str, Any]) -> None:
    stem = folder / f"{number:06}"
    _write_input(stem, file)
    with atomic_write(stem.with_suffix(".json")) as about:
        about.write(json.dumps(description, indent=2, ensure_ascii=False).encode(errors="backslashreplace"))


def _write_input(stem: Path, file: InputFile | None) -> None:
    try:
        stem.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to the folder {os.fspath(stem.parent)!r}: {reason(error)}") from None
    if file is not None:
        file.write(stem)


def versions() -> dict[str, str]:
    """The versions of Python and of the installed libraries, by name."""
    result = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:  # run from a source folder
            continue
    return result


def changed_since(before: Mapping[str, str]) -> str:
    """What differs between the versions then and now, in words; empty if nothing does."""
    now = versions()
    return ", ".join(
        f"{name} was {before.get(name, 'not installed')} and is now {now.get(name, 'not installed')}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    )
