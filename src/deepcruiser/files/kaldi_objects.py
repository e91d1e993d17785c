"""The objects in Kaldi's and EESEN's files: tokens, numbers, vectors and matrices, binary or as text.

Every size in a file is compared with what is left of the file before memory is taken for it.
"""

from __future__ import annotations

import mmap
import re
import struct

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import FileError

Array = npt.NDArray[np.floating]

#: How a binary object begins.
BINARY = b"\0B"
_SPACE = re.compile(rb"\s*")
_WORD = re.compile(rb"[^\s\0]{1,100}(?=\s|\Z)")
_MATRICES = {"FM": "<f4", "DM": "<f8"}
_VECTORS = {"FV": "<f4", "DV": "<f8"}
#: The bytes of a value in a compressed matrix.
_COMPRESSED = {"CM": 1, "CM2": 2, "CM3": 1}


class KaldiReader:
    """Reads objects one after the other; `name` is that of the file, for errors.

    The objects are binary if the two bytes of `BINARY` stand at `position`, and text otherwise.
    """

    def __init__(self, data: bytes | mmap.mmap, name: str, position: int = 0) -> None:
        self.data, self.name, self.position = data, name, position
        self.binary = data[position : position + 2] == BINARY
        if self.binary:
            self.position += 2

    def error(self, expected: str) -> FileError:
        """The error for the object at the position."""
        there = bytes(self.data[self.position : self.position + 24])
        what = repr(there)[1:] if there else "the end of the file"
        return FileError(f"{self.name}, byte {self.position}: expected {expected}, not {what}; is the file damaged?")

    def at_end(self) -> bool:
        """Whether nothing but white space is left."""
        self._skip_space()
        return self.position >= len(self.data)

    def peek(self) -> bytes:
        """The next byte; in text, the next one that is not white space."""
        if not self.binary:
            self._skip_space()
        return self.data[self.position : self.position + 1]

    def token(self, expected: str = "a token") -> str:
        """The characters up to the next white space, of which one character is skipped."""
        if not self.binary:
            self._skip_space()
        match = _WORD.match(self.data, self.position)
        if match is None:
            raise self.error(expected)
        try:
            text = match[0].decode()
        except UnicodeDecodeError:
            raise self.error(expected) from None
        self.position = match.end() + 1
        return text

    def integer(self, expected: str = "a whole number") -> int:
        if self.binary:
            return int(self._sized({4: "<i"}, expected))
        start, word = self.position, self.token(expected)
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", word):
            self.position = start
            raise self.error(expected)
        return int(word)

    def number(self, expected: str = "a number") -> float:
        if self.binary:
            return self._sized({4: "<f", 8: "<d"}, expected)
        start, word = self.position, self.token(expected)
        try:
            return float(word)
        except ValueError:
            self.position = start
            raise self.error(expected) from None

    def flag(self) -> bool:
        """The letter T or F; in binary, the next value follows directly."""
        letter = self.peek()
        if letter not in (b"T", b"F"):
            raise self.error("T or F")
        self.position += 1
        return letter == b"T"

    def array(self) -> Array:
        """A vector [size] or a matrix [rows, columns], in the precision of the file; text in double precision."""
        if not self.binary:
            return self._text()
        kind, shape, low, span = self._header()
        size = self._bytes(kind, shape)
        data = bytes(self.data[self.position : self.position + size])
        self.position += size
        if kind in _COMPRESSED:
            return _decompressed(kind, data, shape, low, span)
        return np.frombuffer(data, dtype=(_MATRICES | _VECTORS)[kind]).reshape(shape).copy()

    def skip_array(self) -> None:
        """Skip a vector or a matrix."""
        if not self.binary:
            self.position = self._brackets()[1] + 1
            return
        kind, shape, _, _ = self._header()
        self.position += self._bytes(kind, shape)

    def _skip_space(self) -> None:
        match = _SPACE.match(self.data, self.position)
        assert match is not None  # it matches the empty text
        self.position = match.end()

    def _sized(self, forms: dict[int, str], expected: str) -> float:
        """A number with its size in front of it."""
        size = (self.data[self.position : self.position + 1] or b"\0")[0]
        raw = self.data[self.position + 1 : self.position + 1 + size]
        if size not in forms or len(raw) < size:
            raise self.error(expected)
        self.position += 1 + size
        return float(struct.unpack(forms[size], raw)[0])

    def _header(self) -> tuple[str, tuple[int, ...], float, float]:
        """The kind and the shape of a binary array, and the least value and the span of a compressed one."""
        start = self.position
        kind = self.token("a vector or a matrix")
        low = span = 0.0
        if kind in _COMPRESSED:
            header = self.data[self.position : self.position + 16]
            if len(header) < 16:
                raise self.error("the 16 bytes of a compressed matrix's header")
            low, span, *shape = struct.unpack("<ffii", header)
            self.position += 16
        elif kind in _MATRICES or kind in _VECTORS:
            shape = [self.integer("a size") for _ in range(2 if kind in _MATRICES else 1)]
        else:
            self.position = start
            raise self.error("a vector or a matrix (FM, DM, FV, DV, CM, CM2 or CM3)")
        if min(shape) < 0 or (0 in shape and max(shape) > 0):
            raise FileError(f"{self.name}, byte {start}: the sizes {shape} are not those of an array")
        return kind, tuple(shape), low, span

    def _bytes(self, kind: str, shape: tuple[int, ...]) -> int:
        """The number of bytes of an array, after checking that all of them are there."""
        count = int(np.prod(shape, dtype=object))
        if kind in _COMPRESSED:
            needed = count * _COMPRESSED[kind] + (8 * shape[1] if kind == "CM" else 0)
        else:
            needed = count * np.dtype((_MATRICES | _VECTORS)[kind]).itemsize
        if needed > len(self.data) - self.position:
            what = " x ".join(f"{n:,}" for n in shape)
            raise FileError(
                f"{self.name}, byte {self.position}: an array of {what} takes {needed:,} bytes, and the file has "
                f"{len(self.data) - self.position:,} left; it is damaged or cut short"
            )
        return needed

    def _brackets(self) -> tuple[int, int]:
        """The positions of the brackets of an array in text."""
        if self.peek() != b"[":
            raise self.error("a vector or a matrix in brackets")
        end = self.data.find(b"]", self.position)
        if end < 0:
            raise FileError(f"{self.name}, byte {self.position}: a bracket is never closed; the file is cut short")
        return self.position, end

    def _text(self) -> Array:
        start, end = self._brackets()
        body = bytes(self.data[start + 1 : end])
        rows = [row.split() for row in re.split(rb"[\n;]", body)]
        try:
            values = np.array([row for row in rows if row], dtype=np.float64)  # also refuses rows of different lengths
        except ValueError:
            raise FileError(
                f"{self.name}, byte {start}: expected rows of one length in the brackets; is the file damaged?"
            ) from None
        self.position = end + 1
        return values if len(rows) > 1 else values.reshape(-1)


def _decompressed(kind: str, data: bytes, shape: tuple[int, ...], low: float, span: float) -> Array:
    rows, columns = shape
    if kind != "CM":
        most = 2 ** (8 * _COMPRESSED[kind]) - 1
        whole = np.frombuffer(data, dtype=f"<u{_COMPRESSED[kind]}").reshape(shape)
        return np.asarray(low + whole * (span / most), dtype=np.float32)
    # Each column has four values of its own, and a byte of each row says where between two of them its value lies.
    marks = low + np.frombuffer(data, dtype="<u2", count=4 * columns).reshape(columns, 4, 1) * (span / 65535)
    places = np.frombuffer(data, dtype="u1", offset=8 * columns).reshape(columns, rows).astype(np.float64)
    first, second, third, fourth = marks.transpose(1, 0, 2)
    values = np.where(
        places <= 64,
        first + (second - first) * places / 64,
        np.where(
            places <= 192,
            second + (third - second) * (places - 64) / 128,
            third + (fourth - third) * (places - 192) / 63,
        ),
    )
    return np.ascontiguousarray(values.T, dtype=np.float32)
