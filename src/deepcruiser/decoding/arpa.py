"""Language models in the ARPA format: plain text, as SRILM, KenLM and many others write it."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.atomic import atomic_write
from deepcruiser.decoding.ngram_building import SPECIAL
from deepcruiser.errors import FileError

Array = npt.NDArray[Any]


def read_arpa(path: str | os.PathLike[str]) -> tuple[list[str], list[Array], list[Array], list[Array]]:
    """The words, keys, logarithms and backoffs of a file, plain or compressed with gzip.

    Without an <unk> in the file an unknown word is ten times as improbable as the most improbable known one.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="utf-8") if packed else open(path, encoding="utf-8") as file:
            return _read(Lines(name, file))
    except UnicodeDecodeError as error:
        raise FileError(f"{name!r} is no ARPA file: {error.reason} at byte {error.start}") from None
    except (OSError, EOFError) as error:
        raise FileError(f"cannot read {name!r}: {(getattr(error, 'strerror', None) or str(error)).lower()}") from None


class Lines:
    """The lines of a file with their numbers, for errors."""

    def __init__(self, name: str, lines: Iterator[str]) -> None:
        self.name, self.number, self._lines = name, 0, lines

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            if line := line.strip():
                yield line

    def wrong(self, what: str) -> FileError:
        return FileError(f"{self.name!r} is no sound ARPA file: {what} (line {self.number})")


def _read(lines: Lines) -> tuple[list[str], list[Array], list[Array], list[Array]]:
    source = iter(lines)
    if not any(line == "\\data\\" for line in source):
        raise lines.wrong("there is no line '\\data\\'")
    announced: list[int] = []
    heading = ""
    for line in source:
        if not (match := re.fullmatch(r"ngram\s+(\d+)\s*=\s*(\d+)", line)):
            heading = line
            break
        announced.append(int(match[2]))
    numbers = {name: number for number, name in enumerate(SPECIAL)}
    keys: list[Array] = []
    logs: list[Array] = []
    backoffs: list[Array] = []
    for order, count in enumerate(announced, start=1):
        if heading != f"\\{order}-grams:":
            raise lines.wrong(f"'\\{order}-grams:' is needed instead of {heading!r}")
        grams, values, left, heading = _section(lines, source, order, numbers)
        if len(values) != count:
            raise lines.wrong(f"{count} {order}-grams are announced and {len(values)} are there")
        if order == 1:
            size = len(numbers)
            keys.append(np.arange(size))
            lowest = min((log for log in values if log > -90), default=-6.0)
            row = np.full(size, lowest - 1, dtype=np.float32)
            row[1] = -99
            row[grams[:, 0]] = values
            logs.append(row)
            row = np.zeros(size, dtype=np.float32)
            row[grams[:, 0]] = left
            backoffs.append(row)
            continue
        found = _keys(grams, keys, size, lines)
        sort = np.argsort(found, kind="stable")
        if (np.diff(found[sort]) == 0).any():
            raise lines.wrong(f"a {order}-gram is there twice")
        keys.append(found[sort])
        logs.append(np.array(values, dtype=np.float32)[sort])
        backoffs.append(np.array(left, dtype=np.float32)[sort])
    if not announced or heading != "\\end\\":
        raise lines.wrong("there is no '\\end\\'")
    return list(numbers), keys, logs, backoffs


def _section(
    lines: Lines, source: Iterator[str], order: int, numbers: dict[str, int]
) -> tuple[Array, list[float], list[float], str]:
    """The n-grams of one order as numbers of words, their logarithms and backoffs, and the next heading."""
    grams: list[int] = []
    logs: list[float] = []
    left: list[float] = []
    heading = ""
    for line in source:
        if line.startswith("\\"):
            heading = line
            break
        parts = line.split()
        try:
            logs.append(float(parts[0]))
            left.append(float(parts[order + 1]) if len(parts) == order + 2 else 0.0)
            if order == 1:
                grams.append(numbers.setdefault(parts[1], len(numbers)))
            else:
                grams.extend([numbers[word] for word in parts[1 : order + 1]])
        except (ValueError, IndexError, KeyError):
            raise lines.wrong(f"{line[:60]!r} is no {order}-gram of known words with its logarithm") from None
        if len(grams) != order * len(logs) or len(parts) > order + 2:
            raise lines.wrong(f"{line[:60]!r} is no {order}-gram")
    return np.array(grams, dtype=np.int64).reshape(-1, order), logs, left, heading


def _keys(grams: Array, keys: list[Array], size: int, lines: Lines) -> Array:
    """The keys of n-grams whose beginnings are all known."""
    nodes = grams[:, 0]
    for column in range(1, grams.shape[1] - 1):
        wanted = nodes * size + grams[:, column]
        nodes = np.searchsorted(keys[column], wanted)
        there = nodes < len(keys[column])
        there[there] = keys[column][nodes[there]] == wanted[there]
        if not there.all():
            raise lines.wrong(f"the beginning of a {grams.shape[1]}-gram is not among the {column + 1}-grams")
    return np.asarray(nodes * size + grams[:, -1])


def write_arpa(
    path: str | os.PathLike[str],
    words: Sequence[str],
    keys: Sequence[Array],
    logs: Sequence[Array],
    backoffs: Sequence[Array],
) -> None:
    """Write a model as plain text, compressed if the name ends in .gz."""
    with atomic_write(path) as raw:
        file = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if os.fspath(path).endswith(".gz") else raw
        header = "".join(f"ngram {order}={len(level)}\n" for order, level in enumerate(keys, start=1))
        file.write(f"\\data\\\n{header}".encode())
        texts: list[str] = []
        for order, level in enumerate(keys, start=1):
            ends = [words[number] for number in (level % len(words)).tolist()]
            if order == 1:
                texts = ends
            else:
                parents = (level // len(words)).tolist()
                texts = [f"{texts[parent]} {end}" for parent, end in zip(parents, ends, strict=True)]
            file.write(f"\n\\{order}-grams:\n".encode())
            for text, log, left in zip(texts, logs[order - 1].tolist(), backoffs[order - 1].tolist(), strict=True):
                tail = f"\t{left:.7g}" if left and order < len(keys) else ""
                file.write(f"{log:.7g}\t{text}{tail}\n".encode())
        file.write(b"\n\\end\\\n")
        if file is not raw:
            file.close()
