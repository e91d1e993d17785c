"""The campaign's SQLite database: opening, reading while another process writes, and clear errors for damage.

The last column of every row is a checksum of the others: SQLite notices damage to its own structure alone.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.errors import DeepCruiserError, FileError, described
from deepcruiser.files.reading import read_bytes

DATABASE = "campaign.db"

#: The version of the folder's format.
FORMAT = 3

#: At the end of a journal that belongs to several databases. SQLite deletes the file that such a journal names.
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")

#: The column of a seed or a run that holds its visits, and about how many bytes of them are unpacked together.
_VISITS, _TOGETHER = 9, 2**15
#: The most bytes that the visits of one run may take when they are unpacked; a number takes about one.
MOST_VISITS = 2**25

SCHEMA = """
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seeds (
    position INTEGER PRIMARY KEY, seed TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, output TEXT,
    reference TEXT, score REAL NOT NULL, doubt REAL, digest BLOB NOT NULL, visits BLOB,
    distance REAL, checksum INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, changes TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, output TEXT, score REAL NOT NULL, doubt REAL, digest BLOB NOT NULL, visits BLOB,
    distance REAL, reference TEXT, checksum INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS moments (runs INTEGER PRIMARY KEY, seconds REAL NOT NULL, checksum INTEGER NOT NULL);
COMMIT;
"""


def connect(path: Path, script: str, *, readonly: bool = False) -> sqlite3.Connection:
    """Open the database and run the script."""
    with usable(path), ExitStack() as opened:
        _check_journal(path.resolve().with_name(f"{path.resolve().name}-journal"))
        uri = path.resolve().as_uri() + ("?mode=ro&immutable=1" if readonly else "")
        connection = opened.enter_context(closing(sqlite3.connect(uri, timeout=30, uri=True)))
        connection.executescript("PRAGMA synchronous = NORMAL;" + script)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        opened.pop_all()
    return connection


def to_write(path: Path) -> sqlite3.Connection:
    """Open a database for writing; create it if it does not exist."""
    connection = connect(path, "")
    with usable(path):
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            connection.executescript(SCHEMA)
    _check_format(path.parent, connection)
    return connection


def to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read what it holds at this moment, whatever is written to it meanwhile."""
    folder = os.fspath(path.parent)
    if not path.is_file():
        inside = ", ".join(os.fspath(each.parent) for each in sorted(path.parent.glob(f"*/{DATABASE}")))
        others = f"; there are some in {inside}" if inside else ""
        raise FileError(f"there is no campaign in {folder!r}: it has no {DATABASE}{others}")
    # SQLite writes files beside a database in WAL mode, unless it knows that no process is writing.
    at_rest = not os.access(path.parent, os.W_OK) and not path.with_name(f"{DATABASE}-wal").exists()
    connection = connect(path, "BEGIN", readonly=at_rest)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        connection.close()
        raise FileError(f"there is no campaign in {folder!r} yet: its {DATABASE} is empty")
    _check_format(path.parent, connection)
    return connection


def _check_format(folder: Path, connection: sqlite3.Connection) -> None:
    """Refuse a campaign in another format, and a database with anything but tables."""
    with usable(folder / DATABASE):
        schema = _schema(connection)
        if any(kind not in ("table", "index") for kind, *_ in schema):
            raise ValueError("it is damaged (a view or a trigger is in it)")
        row = connection.execute("SELECT * FROM meta WHERE key = 'format'").fetchone()
        started = connection.execute("SELECT 1 FROM meta").fetchone()
        version = json.loads(row[1]) if row else 1
    if started and version != FORMAT:
        connection.close()
        raise FileError(
            f"the campaign in {os.fspath(folder)!r} has format {version!r} and this version reads format {FORMAT}: "
            "read it with the version of deepcruiser that wrote it, or start a new campaign in another folder"
        )
    with usable(folder / DATABASE), closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(SCHEMA)
        if schema != _schema(ours):
            raise ValueError("it is damaged (its tables are not those of a campaign)")


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


def _check_journal(path: Path) -> None:
    if path.is_file() and read_bytes(path).endswith(_SUPER_JOURNAL):
        raise FileError(f"{os.fspath(path)!r} would make SQLite delete a file somewhere else: delete this journal")


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Turn errors of a damaged database or a full disk into a clear error."""
    try:
        yield
    except DeepCruiserError:
        raise
    except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
        raise FileError(f"cannot use the campaign's database {os.fspath(path)!r}: {error}") from error
    except (LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError) as error:  # from damaged rows
        message = f"it is damaged ({described(error)})"
        raise FileError(f"cannot use the campaign's database {os.fspath(path)!r}: {message}") from error


def insert(connection: sqlite3.Connection, table: str, row: tuple[Any, ...], *, replace: bool = False) -> None:
    """Add a row, or replace the one with its key."""
    marks, verb = ",".join("?" * (len(row) + 1)), "REPLACE" if replace else "INSERT"
    connection.execute(f"{verb} INTO {table} VALUES ({marks})", (*row, checksum(row)))


def select(connection: sqlite3.Connection, table: str, rest: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
    """The rows of a table as they were added; one that has changed since is an error."""
    for *row, stored in connection.execute(f"SELECT * FROM {table} {rest}", values):
        if checksum(row) != stored:
            raise ValueError(f"row {row[0]!r} of the {table} has changed since it was written: its checksum differs")
        yield row


def checksum(row: Iterable[Any]) -> int:
    """CRC-32 of a row."""
    return zlib.crc32(b"".join([(each if isinstance(each, bytes) else repr(each).encode()) + b"\0" for each in row]))


def locked(file: Any, *, shared: bool = False) -> bool:
    """Take the lock of a folder; the operating system releases it when the process ends, however it ends.

    Those who only look share it with one another.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBRLCK if shared else msvcrt.LK_NBLCK, 1)
            if shared:  # readers release it at once, because Windows does not share locks
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def with_visits(rows: Iterator[list[Any]], model: AbstractModel | None) -> Iterator[list[Any]]:
    """The rows with their visits unpacked, many at once, which takes less time."""
    for chunk in _chunks(rows):
        packed = [] if model is None else [row[_VISITS] for row in chunk if row[_VISITS] is not None]
        try:
            arrays = iter(unpack(packed, 4))
        except Exception:  # one of them is damaged; those before it can be read
            arrays = (unpack([each], 4)[0] for each in packed)
        for row in chunk:
            row[_VISITS] = None if model is None or row[_VISITS] is None else _visits(model, next(arrays))
            yield row


def _chunks(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    """Rows whose packed visits take some kilobytes together, up to one that cannot be read."""
    chunk: list[list[Any]] = []
    size = 0
    try:
        for row in rows:
            chunk.append(row)
            size += len(row[_VISITS] or b"")
            if size >= _TOGETHER:
                yield chunk
                chunk, size = [], 0
    except Exception:
        yield chunk
        raise
    yield chunk


def _visits(model: AbstractModel, arrays: Sequence[IntArray]) -> Visits:
    visits = Visits(model, *arrays)
    for numbers, items in ((visits.states, model.states), (visits.transitions, model.transitions)):
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < len(items):
            raise ValueError("it names states or transitions that the model does not have")
    if len(visits.choices) and not 0 <= visits.choices[0] <= visits.choices[-1] < len(model.choices):
        raise ValueError("it names choices that the model does not have")
    return visits


def pack(arrays: Sequence[IntArray]) -> bytes:
    """Pack ascending arrays into few bytes: their differences as variable-length numbers, seven bits per byte."""
    lengths = [len(array) for array in arrays]
    differences = [np.diff(array, prepend=0) for array in arrays]
    values = np.concatenate([np.array(lengths, np.int64), *differences])
    values = (values << 1) ^ (values >> 63)  # zigzag: 0, -1, 1, -2 ..., because the first cell outside may be negative
    return zlib.compress(_varints(values.astype(np.uint64)), 1)


def unpack(packed: Sequence[bytes], count: int) -> list[list[IntArray]]:
    """For each of `packed` the `count` arrays that `pack` was given; many at once take less time."""
    held = [_decompressed(each) for each in packed]
    data = np.frombuffer(b"".join(held), np.uint8)
    values = _from_varints(data)
    signed = (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)
    ends = np.append(0, (data < 128).cumsum())[np.cumsum([len(each) for each in held])]
    return [_split(signed[start:end], count) for start, end in pairwise([0, *ends.tolist()])]


def _decompressed(data: bytes) -> bytes:
    unpacked = zlib.decompressobj()
    held = unpacked.decompress(data, MOST_VISITS)
    if not unpacked.eof:
        raise ValueError(f"the visits of a run are incomplete, or take more than {MOST_VISITS:,} bytes")
    return held


def _split(numbers: IntArray, count: int) -> list[IntArray]:
    """The arrays whose lengths come first."""
    lengths = numbers[:count].tolist()
    if len(lengths) < count or sum(lengths) != len(numbers) - count or min(lengths) < 0:
        raise ValueError("the visits of a run do not fit together")
    return [numbers[start:end].cumsum() for start, end in pairwise(accumulate(lengths, initial=count))]


def _varints(values: npt.NDArray[np.uint64]) -> bytes:
    widths = np.ones(len(values), np.int64)
    for bits in range(7, 64, 7):
        widths += values >> np.uint64(bits) > 0
    starts = np.cumsum(widths) - widths
    data = np.zeros(int(widths.sum()), np.uint8)
    for place in range(int(widths.max(initial=0))):
        wide = widths > place
        chunk = (values[wide] >> np.uint64(7 * place)) & np.uint64(127)
        more = (widths[wide] > place + 1).astype(np.uint64) << np.uint64(7)
        data[starts[wide] + place] = chunk | more
    return data.tobytes()


def _from_varints(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    (last,) = (data < 128).nonzero()
    starts = np.concatenate([[0], last[:-1] + 1])[: len(last)]
    places = np.arange(len(data)) - np.repeat(starts, last - starts + 1)
    parts = (data.astype(np.uint64) & np.uint64(127)) << (np.uint64(7) * places.astype(np.uint64))
    return np.add.reduceat(parts, starts) if len(starts) else np.empty(0, np.uint64)
