"""A table of numbers that moves from memory to a temporary file when it grows large."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

#: Below this many bytes the rows stay in memory.
_IN_MEMORY = 2**22
_BLOCK_ROWS = 2**18


class Rows:
    """A growing table of single-precision rows: in memory while it is small, in a temporary file beyond 4 MB."""

    dtype = np.dtype("<f4")

    def __init__(self, width: int) -> None:
        self.width = width
        self._count = 0
        self._waiting: list[bytes] = []
        self._waiting_rows = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._count

    def append(self, rows: npt.NDArray[np.float32]) -> None:
        self._waiting.append(np.ascontiguousarray(rows, self.dtype).tobytes())
        self._waiting_rows += len(rows)
        self._count += len(rows)
        if self._waiting_rows >= _BLOCK_ROWS:
            self._write()

    def _write(self) -> None:
        """Write the waiting rows; writing short rows one by one would take longer than computing them."""
        self._file.seek(0, 2)
        self._file.write(b"".join(self._waiting))
        self._waiting, self._waiting_rows = [], 0

    def extend(self, other: Rows) -> None:
        for block in other.blocks():
            self.append(block)

    def __getitem__(self, rows: slice) -> npt.NDArray[np.float32]:
        if self._waiting:
            self._write()
        start, stop, _ = rows.indices(self._count)
        width = self.width * self.dtype.itemsize
        self._file.seek(start * width)
        data = self._file.read(max(0, stop - start) * width)
        return np.frombuffer(data, self.dtype).reshape(-1, self.width)

    def blocks(self) -> Iterator[npt.NDArray[np.float32]]:
        for start in range(0, self._count, _BLOCK_ROWS):
            yield self[start : start + _BLOCK_ROWS]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Rows)
            and (len(self), self.width) == (len(other), other.width)
            and all(np.array_equal(a, b) for a, b in zip(self.blocks(), other.blocks(), strict=True))
        )
