"""A campaign's folder: its database, and the failing inputs beside it.

campaign.db holds everything (SQLite); failed/ has each failing input as a sound or a text, with a JSON file that says
what it is, seeds/ the seeds that they are made of, and abstract.model the model, for whoever looks at them later. A
step is written whole: first the files, then the database, in one transaction; what was told is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import numpy as np

from deepcruiser.atomic import atomic_write
from deepcruiser.campaign.database import DATABASE as DATABASE
from deepcruiser.campaign.database import SCHEMA, connect, locked, pack, to_read, unpack, usable
from deepcruiser.campaign.events import Event, Ran, Seeded, Step
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.serialise import as_json as as_json
from deepcruiser.campaign.serialise import from_json, to_json
from deepcruiser.campaign.state import Plan
from deepcruiser.campaign.territory import Ground, Who
from deepcruiser.errors import DeepCruiserError, FileError, MismatchError

VERSION = 1
MODEL = "abstract.model"


class Store:
    """An open campaign folder. `Store.open` makes it if there is none, and lets no second process in."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: Any) -> None:
        self.folder = folder
        self._db = connection
        self._lock = lock

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, write: bool) -> Store:
        """Open a campaign's folder: to go on in it, or to read what is there, even while it goes on elsewhere."""
        path = Path(folder)
        if not write:
            return cls(path, to_read(path / DATABASE), None)
        if path.exists() and not path.is_dir():
            raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: it is a file")
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = open(path / "lock", "w")  # noqa: SIM115
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: {said}") from None
        if not locked(lock):
            lock.close()
            raise FileError(f"another process is at work in {os.fspath(folder)!r}: wait for it or give another folder")
        try:
            connection = connect(path / DATABASE, SCHEMA)
            for left in (*path.glob("failed/.*"), *path.glob("seeds/.*")):  # being written when the process was killed
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
        """Whether some process is going on with the campaign at this moment."""
        try:
            with open(self.folder / "lock", "rb") as file:
                return not locked(file, shared=True)
        except OSError:
            return False

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def meta(self, key: str) -> Any:
        """What is stored under a key, None if nothing is."""
        with self._usable():
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return json.loads(row[0]) if row else None

    def configure(self, configuration: dict[str, Any]) -> None:
        """Note what a new campaign is made of; one that has begun must be of the same."""
        configuration = json.loads(json.dumps({"version": VERSION, **configuration}))
        known = self.meta("configuration")
        if known is None or self.meta("random") is None:
            self.put("configuration", configuration)
        elif known != configuration:
            differ = [
                _difference(key, known.get(key), configuration.get(key))
                for key in sorted({*known, *configuration})
                if known.get(key) != configuration.get(key)
            ]
            raise MismatchError(
                f"the campaign in {os.fspath(self.folder)!r} was begun otherwise: {'; '.join(differ)}. "
                "Go on as it was begun, or give another folder"
            )

    def keep_seed(self, position: int, read: Callable[[], Any]) -> None:
        """Put a seed beside the failing tests that are made of it, where they can be compared."""
        if not any((self.folder / "seeds").glob(f"{position:06}.*")):
            with contextlib.suppress(DeepCruiserError):  # it may be gone by now; the failing test is what matters
                _write_input(self.folder / "seeds" / f"{position:06}", read())

    def save(
        self,
        step: Step,
        mutations: Mutations,
        history: dict[str, Any],
        about: dict[int, dict[str, Any]],
        territory: Mapping[Who, Ground],
    ) -> None:
        """Write a step, whole; `about` describes its failures, by number, `territory` is what it was first to visit."""
        for event, value in zip(step.events, step.inputs, strict=True):
            if isinstance(event, Ran) and event.number in about:
                _write_failed(self.folder / "failed", event.number, value, about[event.number])
        with self._usable(), self._db:
            for event in step.events:
                self._put_event(event, mutations)
            self._put("plan", [[number, mutations.to_dict(change)] for number, change in step.plan])
            self._put("random", step.random)
            self._db.executemany(
                "INSERT INTO territory VALUES (?, ?, ?)",
                [(history["runs"], who, pack((ground,))) for who, ground in territory.items()],
            )
            self._db.execute(
                "INSERT OR REPLACE INTO history VALUES (:runs, :seconds, :queue, :executed)",
                {key: json.dumps(value) if isinstance(value, list) else value for key, value in history.items()},
            )

    def events(self, mutations: Mutations, *, after: int = -1) -> Iterator[Event]:
        """Everything that happened, in order; or only the runs after the one of that number."""
        with self._usable():
            for row in self._db.execute("SELECT * FROM seeds WHERE ? < 0 ORDER BY position", (after,)):
                position, seed, outcome, reason, output, reference, score, digest, visited, news = row
                said = json.loads(output), from_json(json.loads(reference)), score, digest
                yield Seeded(position, seed, outcome, reason, *said, unpack(visited)[0][0], unpack(news))
            for row in self._db.execute("SELECT * FROM runs WHERE number > ? ORDER BY number", (after,)):
                number, parent, change, outcome, reason, output, score, digest, visited, news, executed = row
                change = mutations.from_dict(json.loads(change))
                arrays = unpack(visited)[0][0], unpack(news), unpack(executed)
                yield Ran(number, parent, change, outcome, reason, json.loads(output), score, digest, *arrays)

    def plan(self, mutations: Mutations) -> Plan:
        """The mutants that are to be made next."""
        return tuple((number, mutations.from_dict(change)) for number, change in self.meta("plan"))

    def history(self) -> list[dict[str, Any]]:
        """Coverage over runs: of the queue, and of everything that ran without failing."""
        with self._usable():
            return [
                {"runs": runs, "seconds": seconds, "queue": json.loads(queue), "executed": json.loads(executed)}
                for runs, seconds, queue, executed in self._db.execute("SELECT * FROM history ORDER BY runs")
            ]

    def territory(self, *, after: int = -1) -> Iterator[tuple[int, Who, Ground]]:
        """What was visited for the first time: after how many runs, by whom, and what; old campaigns noted nothing."""
        with self._usable():
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'territory'").fetchone():
                return
            for runs, who, news in self._db.execute("SELECT * FROM territory WHERE runs > ? ORDER BY runs", (after,)):
                states, transitions, choices, outside = unpack(news)[0]
                yield runs, who, (states, transitions, choices, outside)

    def put(self, key: str, value: Any) -> None:
        """Store a value under a key."""
        with self._usable(), self._db:
            self._put(key, value)

    def _usable(self) -> AbstractContextManager[None]:
        return usable(self.folder / DATABASE)

    def _put(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def _put_event(self, event: Event, mutations: Mutations) -> None:
        output, visited, news = json.dumps(as_json(event.output)), pack(((event.visited,),)), pack(event.news)
        if isinstance(event, Seeded):
            reference = json.dumps(to_json(event.reference))
            row: tuple[Any, ...] = (event.position, event.seed, event.outcome, event.reason, output, reference)
            self._db.execute(
                "INSERT INTO seeds VALUES (?,?,?,?,?,?,?,?,?,?)", (*row, event.score, event.digest, visited, news)
            )
        else:
            change = json.dumps(mutations.to_dict(event.transformation))
            row = (event.number, event.parent, change, event.outcome, event.reason, output, event.score, event.digest)
            self._db.execute(
                "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", (*row, visited, news, pack(event.executed))
            )


def _difference(key: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list):
        changes = {"gone": sorted({*was} - {*now}), "new": sorted({*now} - {*was})}
        said = [f"{how}: {', '.join(some[:3])}{', ...' * (len(some) > 3)}" for how, some in changes.items() if some]
        return f"{key} ({', '.join(said) or 'in another order'})"
    return f"{key} was {json.dumps(was)} and is {json.dumps(now)}"


def _write_failed(folder: Path, number: int, value: Any, about: dict[str, Any]) -> None:
    stem = folder / f"{number:06}"
    _write_input(stem, value)
    with atomic_write(stem.with_suffix(".json")) as file:
        file.write(json.dumps(about, indent=2, ensure_ascii=False).encode(errors="backslashreplace"))


def _write_input(stem: Path, value: Any) -> None:
    stem.parent.mkdir(exist_ok=True)
    if hasattr(value, "write") and hasattr(value, "samples"):
        if len(value.samples):
            value.write(stem.with_suffix(".flac"))
    elif isinstance(value, str):
        with atomic_write(stem.with_suffix(".txt")) as file:
            file.write(value.encode(errors="backslashreplace"))
    elif isinstance(value, np.ndarray):
        with atomic_write(stem.with_suffix(".npy")) as file:
            np.save(file, value, allow_pickle=False)
