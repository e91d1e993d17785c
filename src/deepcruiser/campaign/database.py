"""SQLite as campaigns use it: opened whole, read while it is written to, and damage as a clear error."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.errors import FileError

DATABASE = "campaign.db"

SCHEMA = """
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seeds (
    position INTEGER PRIMARY KEY, seed TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, output TEXT,
    reference TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL, news BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, transformation TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, output TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL,
    news BLOB NOT NULL, executed BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS history (
    runs INTEGER PRIMARY KEY, seconds REAL NOT NULL, queue TEXT NOT NULL, executed TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS territory (
    runs INTEGER NOT NULL, who TEXT NOT NULL, news BLOB NOT NULL, PRIMARY KEY (runs, who)
);
CREATE INDEX IF NOT EXISTS failed ON runs (number) WHERE outcome = 'failed';
COMMIT;
"""


def connect(path: Path, script: str, *, readonly: bool = False) -> sqlite3.Connection:
    """Open the database and run the script."""
    with usable(path), ExitStack() as opened:
        uri = path.resolve().as_uri() + ("?mode=ro&immutable=1" if readonly else "")
        connection = opened.enter_context(closing(sqlite3.connect(uri, timeout=30, uri=True)))
        connection.executescript("PRAGMA synchronous = NORMAL;" + script)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        opened.pop_all()
    return connection


def to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read what it holds at this moment, whatever is written to it meanwhile."""
    if not path.is_file():
        raise FileError(f"there is no campaign in {os.fspath(path.parent)!r}: no {DATABASE} is there")
    # SQLite wants to write beside a database in WAL mode, unless it is told that nobody does.
    at_rest = not os.access(path.parent, os.W_OK) and not path.with_name(f"{DATABASE}-wal").exists()
    connection = connect(path, "BEGIN", readonly=at_rest)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        connection.close()
        raise FileError(f"there is no campaign in {os.fspath(path.parent)!r} yet: its {DATABASE} is empty")
    return connection


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """What a damaged database, or a full disk, makes of using it, as a clear error."""
    try:
        yield
    except (sqlite3.Error, zlib.error, struct.error, json.JSONDecodeError) as error:
        raise FileError(f"cannot use the campaign's database {os.fspath(path)!r}: {error}") from error


def locked(file: Any, *, shared: bool = False) -> bool:
    """Take the lock of a folder, which the system takes back when the process ends, however it ends.

    Those who only look share it with one another.
    """
    try:
        import fcntl
    except ImportError:  # on Windows the open file itself keeps others from deleting it, which is all there is
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def pack(groups: tuple[tuple[IntArray, ...], ...]) -> bytes:
    """Arrays of ascending numbers, a few to a group, in few bytes."""
    parts = [struct.pack("<I", len(groups))]
    for group in groups:
        parts.append(struct.pack(f"<I{len(group)}I", len(group), *map(len, group)))
        parts += [np.diff(array, prepend=0).astype("<i8").tobytes() for array in group]
    return zlib.compress(b"".join(parts), 1)


def unpack(data: bytes) -> tuple[tuple[IntArray, ...], ...]:
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
