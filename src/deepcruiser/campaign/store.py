"""A campaign's folder: its database, and the failing inputs beside it.

campaign.db holds everything (SQLite); failed/ has each failing input as a sound or a text, with a JSON file that says
what it is. A step is written whole: first the files, then the database, in one transaction; what was told is there.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.campaign.events import Event, Ran, Seeded, Step
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.state import Plan
from deepcruiser.errors import FileError, MismatchError
from deepcruiser.writing import whole_file

VERSION = 1
DATABASE = "campaign.db"

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE seeds (
    position INTEGER PRIMARY KEY, seed TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, output TEXT,
    reference TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL, news BLOB NOT NULL
);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, transformation TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, output TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL,
    news BLOB NOT NULL, executed BLOB NOT NULL
);
CREATE TABLE history (runs INTEGER PRIMARY KEY, seconds REAL NOT NULL, queue TEXT NOT NULL, executed TEXT NOT NULL);
CREATE INDEX failed ON runs (number) WHERE outcome = 'failed';
"""


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
            if not (path / DATABASE).is_file():
                raise FileError(f"there is no campaign in {os.fspath(folder)!r}: no {DATABASE} is there")
            return cls(path, _connect(path / DATABASE), None)
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = open(path / "lock", "w")  # noqa: SIM115
        except OSError as error:
            raise FileError(f"cannot write to the folder {os.fspath(folder)!r}: {error.strerror}") from None
        if not _locked(lock):
            lock.close()
            raise FileError(f"another process is at work in {os.fspath(folder)!r}: wait for it or give another folder")
        try:
            connection = _connect(path / DATABASE)
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                connection.executescript("PRAGMA journal_mode = WAL; BEGIN;" + SCHEMA + "COMMIT;")
        except BaseException:
            lock.close()
            raise
        return cls(path, connection, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def meta(self, key: str) -> Any:
        """What is stored under a key, None if nothing is."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def configure(self, configuration: dict[str, Any]) -> None:
        """Note what a new campaign is made of; one that is there already must be of the same."""
        configuration = json.loads(json.dumps({"version": VERSION, **configuration}))
        known = self.meta("configuration")
        if known is None:
            self.put("configuration", configuration)
        elif known != configuration:
            differ = [
                f"{key} was {json.dumps(known.get(key))} and is {json.dumps(configuration.get(key))}"
                for key in sorted({*known, *configuration})
                if known.get(key) != configuration.get(key)
            ]
            raise MismatchError(
                f"the campaign in {os.fspath(self.folder)!r} was begun otherwise: {'; '.join(differ)}. "
                "Go on as it was begun, or give another folder"
            )

    def save(self, step: Step, mutations: Mutations, history: dict[str, Any], about: dict[int, dict[str, Any]]) -> None:
        """Write a step, whole; `about` describes its failures, by number."""
        for event, value in zip(step.events, step.inputs, strict=True):
            if isinstance(event, Ran) and event.number in about:
                _write_failed(self.folder / "failed", event.number, value, about[event.number])
        with self._db:
            for event in step.events:
                self._put_event(event, mutations)
            self._put("plan", [[number, mutations.to_dict(change)] for number, change in step.plan])
            self._put("random", step.random)
            self._db.execute(
                "INSERT OR REPLACE INTO history VALUES (:runs, :seconds, :queue, :executed)",
                {key: json.dumps(value) if isinstance(value, list) else value for key, value in history.items()},
            )

    def events(self, mutations: Mutations) -> Iterator[Event]:
        """Everything that happened, in order."""
        for row in self._db.execute("SELECT * FROM seeds ORDER BY position"):
            position, seed, outcome, reason, output, reference, score, digest, visited, news = row
            values = json.loads(output), json.loads(reference), score, digest, _unpack(visited)[0][0], _unpack(news)
            yield Seeded(position, seed, outcome, reason, *values)
        for row in self._db.execute("SELECT * FROM runs ORDER BY number"):
            number, parent, change, outcome, reason, output, score, digest, visited, news, executed = row
            change = mutations.from_dict(json.loads(change))
            arrays = _unpack(visited)[0][0], _unpack(news), _unpack(executed)
            yield Ran(number, parent, change, outcome, reason, json.loads(output), score, digest, *arrays)

    def plan(self, mutations: Mutations) -> Plan:
        """The mutants that are to be made next."""
        return tuple((number, mutations.from_dict(change)) for number, change in self.meta("plan"))

    def history(self) -> list[dict[str, Any]]:
        """Coverage over runs: of the queue, and of everything that ran without failing."""
        rows = self._db.execute("SELECT runs, seconds, queue, executed FROM history ORDER BY runs")
        return [
            {"runs": runs, "seconds": seconds, "queue": json.loads(queue), "executed": json.loads(executed)}
            for runs, seconds, queue, executed in rows
        ]

    def put(self, key: str, value: Any) -> None:
        """Store a value under a key."""
        with self._db:
            self._put(key, value)

    def _put(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def _put_event(self, event: Event, mutations: Mutations) -> None:
        output, visited, news = json.dumps(as_json(event.output)), _pack(((event.visited,),)), _pack(event.news)
        if isinstance(event, Seeded):
            reference = json.dumps(as_json(event.reference))
            row: tuple[Any, ...] = (event.position, event.seed, event.outcome, event.reason, output, reference)
            self._db.execute(
                "INSERT INTO seeds VALUES (?,?,?,?,?,?,?,?,?,?)", (*row, event.score, event.digest, visited, news)
            )
        else:
            change = json.dumps(mutations.to_dict(event.transformation))
            row = (event.number, event.parent, change, event.outcome, event.reason, output, event.score, event.digest)
            self._db.execute(
                "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", (*row, visited, news, _pack(event.executed))
            )


def as_json(value: Any) -> Any:
    """An answer as JSON holds it; of what is too large or strange for that, what tells it from others."""
    if isinstance(value, np.ndarray) and value.size > 256:
        from deepcruiser.campaign.workshop import digest_of

        return {"shape": list(value.shape), "sha256": digest_of(value)}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool) or value is None else repr(value)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=30)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        raise FileError(f"{os.fspath(path)!r} is not a campaign's database, or it is damaged ({error})") from None
    return connection


def _locked(file: Any) -> bool:
    """Take the lock of a folder, which the system takes back when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # on Windows the open file itself keeps others from deleting it, which is all there is
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write_failed(folder: Path, number: int, value: Any, about: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    stem = folder / f"{number:06}"
    if hasattr(value, "write") and hasattr(value, "samples"):
        value.write(stem.with_suffix(".flac"))
    elif isinstance(value, str):
        with whole_file(stem.with_suffix(".txt")) as file:
            file.write(value.encode())
    elif isinstance(value, np.ndarray):
        with whole_file(stem.with_suffix(".npy")) as file:
            np.save(file, value, allow_pickle=False)
    with whole_file(stem.with_suffix(".json")) as file:
        file.write(json.dumps(about, indent=2, ensure_ascii=False).encode())


def _pack(groups: tuple[tuple[IntArray, ...], ...]) -> bytes:
    """Arrays of ascending numbers, a few to a group, in few bytes."""
    parts = [struct.pack("<I", len(groups))]
    for group in groups:
        parts.append(struct.pack(f"<I{len(group)}I", len(group), *map(len, group)))
        parts += [np.diff(array, prepend=0).astype("<i8").tobytes() for array in group]
    return zlib.compress(b"".join(parts), 1)


def _unpack(data: bytes) -> tuple[tuple[IntArray, ...], ...]:
    raw, groups, at = zlib.decompress(data), [], 4
    for _ in range(*struct.unpack_from("<I", raw)):
        (count,) = struct.unpack_from("<I", raw, at)
        lengths = struct.unpack_from(f"<{count}I", raw, at + 4)
        at += 4 + 4 * count
        arrays = []
        for length in lengths:
            arrays.append(np.cumsum(np.frombuffer(raw, "<i8", length, at)).astype(np.int64))
            at += 8 * length
        groups.append(tuple(arrays))
    return tuple(groups)
