"""Files in Kaldi's forms, written value by value, as an independent account of what the readers must understand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: The ways in which a matrix can be stored.
FORMS = ("float", "double", "CM", "CM2", "CM3", "text")


def size(number: int) -> bytes:
    return b"\4" + struct.pack("<i", number)


def binary(array: Array, letter: str = "F") -> bytes:
    """A vector or matrix with the two bytes that begin a binary object."""
    kind = letter + ("M" if array.ndim == 2 else "V")
    values = array.astype("<f4" if letter == "F" else "<f8").tobytes()
    return b"\0B" + kind.encode() + b" " + b"".join(size(n) for n in array.shape) + values


def text(array: Array) -> bytes:
    rows = [" ".join(repr(float(value)) for value in row) for row in np.atleast_2d(array)]
    return (f" [ {rows[0]} ]\n" if array.ndim == 1 else " [\n  " + "\n  ".join(rows) + " ]\n").encode()


def compressed(rng: np.random.Generator, rows: int, columns: int, kind: str) -> tuple[bytes, Array]:
    """A compressed matrix of random codes, and its values by the rule of each code."""
    low, span = -3.0, 8.0
    header = b"\0B" + kind.encode() + b" " + struct.pack("<ffii", low, span, rows, columns)
    values = np.zeros((rows, columns))
    if kind != "CM":
        bits = 16 if kind == "CM2" else 8
        codes = rng.integers(0, 2**bits, (rows, columns))
        for row in range(rows):
            for column in range(columns):
                values[row, column] = low + span * int(codes[row, column]) / (2**bits - 1)
        return header + codes.astype(f"<u{bits // 8}").tobytes(), values
    marks = np.sort(rng.integers(0, 65536, (columns, 4)), axis=1)
    codes = rng.integers(0, 256, (columns, rows))
    codes[0, :4] = [0, 64, 192, 255]  # the marks themselves
    for column in range(columns):
        p0, p25, p75, p100 = (low + span * int(mark) / 65535 for mark in marks[column])
        for row in range(rows):
            code = int(codes[column, row])
            if code <= 64:
                value = p0 + (p25 - p0) * code / 64
            elif code <= 192:
                value = p25 + (p75 - p25) * (code - 64) / 128
            else:
                value = p75 + (p100 - p75) * (code - 192) / 63
            values[row, column] = value
    return header + marks.astype("<u2").tobytes() + codes.astype("u1").tobytes(), values


def stored(rng: np.random.Generator, form: str, rows: int, columns: int) -> tuple[bytes, Array]:
    """A random matrix in one of `FORMS`, and its values."""
    if form in ("CM", "CM2", "CM3"):
        return compressed(rng, rows, columns, form)
    values = rng.standard_normal((rows, columns)).astype(np.float32)
    return (text(values) if form == "text" else binary(values, form[0].upper())), values


def archive(path: Path, forms: tuple[str, ...] = FORMS, seed: int = 0) -> tuple[dict[str, Array], dict[str, int]]:
    """Write an archive with a matrix in each of the forms; its values, and the byte where each object begins."""
    rng = np.random.default_rng(seed)
    values, places, content = {}, {}, b""
    for number, form in enumerate(forms):
        data, values[f"utt-{form}"] = stored(rng, form, 5 + number, 4)
        content += f"utt-{form} ".encode()
        places[f"utt-{form}"] = len(content)
        content += data
    path.write_bytes(content)
    return values, places
