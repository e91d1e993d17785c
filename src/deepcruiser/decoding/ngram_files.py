"""The file of an n-gram model: a ZIP archive of arrays of bytes, a list of words and one JSON text.

A model is a tree: under every n-gram the words that were seen behind it. For each order the file has the number of
branches of every n-gram, the words of the branches as differences from their neighbours, and their logarithms, all of
which are small numbers that compress well.
"""

from __future__ import annotations

import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.atomic import atomic_write
from deepcruiser.decoding.ngram_building import SPECIAL
from deepcruiser.errors import FileError

Array = npt.NDArray[Any]
FORMAT, VERSION = "deepcruiser language model", 1

#: Logarithms are rounded to so many parts of 1 (which changes a probability by 7 % at most, and up as often as down).
PARTS = 16


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether this is a file of ours by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"PK"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"cannot read the language model {os.fspath(path)!r}: {reason}") from None


def save(
    path: str | os.PathLike[str],
    words: Sequence[str],
    keys: Sequence[Array],
    logs: Sequence[Array],
    backoffs: Sequence[Array],
    rare: int,
) -> None:
    """Write a model, whole or not at all."""
    about = {"format": FORMAT, "version": VERSION, "rare": rare, "ngrams": [len(level) for level in keys]}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:

        def write(name: str, data: bytes) -> None:
            member = zipfile.ZipInfo(name)  # its date is 1980: equal models are equal files
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, data)

        write("about.json", json.dumps(about).encode())
        write("words.txt", "\n".join(words).encode())
        for order, level in enumerate(keys):
            write(f"logs-{order + 1}", rounded(-logs[order]).tobytes())
            if order:
                branches = np.bincount(level // len(words), minlength=len(keys[order - 1]))
                heads = branches > 0
                write(f"branches-{order + 1}", planes(branches))
                write(f"words-{order + 1}", planes(differences(level, len(words))))
                write(f"backoffs-{order}", rounded(backoffs[order - 1][heads] + 8).tobytes())


def load(path: str | os.PathLike[str]) -> tuple[list[str], list[Array], list[Array], list[Array], int]:
    """What `save` was given, with its logarithms rounded."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("about.json"))
            if about.get("format") != FORMAT:
                raise FileError(f"{os.fspath(path)!r} is a {about.get('format')}, but a language model is needed")
            if about.get("version") != VERSION:
                raise FileError(
                    f"{os.fspath(path)!r} has version {about.get('version')} of the format of language models, "
                    f"and this DeepCruiser reads version {VERSION}: build it again"
                )
            words = archive.read("words.txt").decode().split("\n")
            size = len(words)
            if tuple(words[: len(SPECIAL)]) != SPECIAL or about["ngrams"][0] != size:
                raise ValueError("its words do not fit")
            keys, logs, backoffs = [np.arange(size)], [numbers(archive, "logs-1", size, -1)], []
            for order, count in enumerate(about["ngrams"][1:], start=2):
                below = len(keys[-1])
                branches = whole(archive.read(f"branches-{order}"), below)
                if branches.sum() != count:
                    raise ValueError(f"{count} n-grams were announced and {branches.sum()} are there")
                level = whole(archive.read(f"words-{order}"), count)
                keys.append(restored(level, branches, size))
                logs.append(numbers(archive, f"logs-{order}", count, -1))
                left = np.zeros(below, dtype=np.float32)
                left[branches > 0] = numbers(archive, f"backoffs-{order - 1}", int((branches > 0).sum()), 1) - 8
                backoffs.append(left)
            backoffs.append(np.zeros(len(keys[-1]), dtype=np.float32))
            return words, keys, logs, backoffs, int(about["rare"])
    except (
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
    ) as error:
        raise FileError(
            f"{os.fspath(path)!r} is not a language model of DeepCruiser, or it is damaged or cut short ({error}): "
            "build it again, or copy it again from where it came"
        ) from None


def rounded(values: Array) -> Array:
    """Parts of 1 as bytes."""
    return np.asarray(np.clip(np.rint(values * PARTS), 0, 255), dtype=np.uint8)


def numbers(archive: zipfile.ZipFile, name: str, count: int, sign: int) -> Array:
    """The logarithms of a member."""
    found = np.frombuffer(archive.read(name), dtype=np.uint8)
    if len(found) != count:
        raise ValueError(f"{name} has {len(found)} numbers instead of {count}")
    return np.asarray(sign * found.astype(np.float32) / PARTS, dtype=np.float32)


def differences(keys: Array, size: int) -> Array:
    """Each n-gram's last word, less that of the one before it under the same n-gram, and 1 more than that."""
    first = np.empty(len(keys), dtype=bool)
    first[:1] = True
    first[1:] = keys[1:] // size != keys[:-1] // size
    result = np.diff(keys, prepend=0) - 1
    result[first] = keys[first] % size
    return result


def restored(level: Array, branches: Array, size: int) -> Array:
    """The keys again."""
    parents = np.repeat(np.arange(len(branches)), branches)
    sums = np.cumsum(level + 1)
    starts = np.cumsum(branches) - branches
    before = np.where(starts > 0, sums[np.maximum(starts, 1) - 1] if len(sums) else 0, 0)
    words = sums - before[parents] - 1
    if len(words) and (words.min() < 0 or words.max() >= size):
        raise ValueError("there are words beyond the vocabulary")
    return np.asarray(parents * size + words)


def planes(values: Array) -> bytes:
    """Whole numbers below 2**24 as three rows of bytes, the lowest first: the upper ones are mostly zeros."""
    return np.stack([values & 255, values >> 8 & 255, values >> 16 & 255]).astype(np.uint8).tobytes()


def whole(data: bytes, count: int) -> Array:
    """The numbers that `planes` wrote."""
    rows = np.frombuffer(data, dtype=np.uint8)
    if len(rows) != 3 * count:
        raise ValueError(f"{len(rows)} bytes for {count} numbers")
    low, middle, high = rows.reshape(3, count).astype(np.int64)
    return np.asarray(low | middle << 8 | high << 16)
