"""The regular grid over projected vectors: cells as numbers, sorted arrays of these as sets, and the boundary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError

IntArray = npt.NDArray[np.int64]

#: Default number of intervals per component of the inputs.
INPUT_PARTITIONS = 10

#: Codes are non-negative 64-bit integers.
_CODES = 2**63 - 1

#: Up to this many cells are numbered with a table, which is several times as fast as sorting.
_TABLE = 2**22


@dataclass(frozen=True, eq=False)
class Grid:
    """`partitions` equal intervals between the bounds of each component.

    A cell is one index per component: 0 to partitions - 1 within the bounds, and negative or larger beyond them,
    where the intervals go on with the same width. A component whose bounds are equal has one interval, 0; what lies
    below it is -1, what lies above it 1.
    """

    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    partitions: int

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise InputError(f"partitions must be at least 1, not {self.partitions}")
        if prod(self._intervals) > _CODES:
            raise InputError(
                f"{self.partitions} partitions of {len(self.lower)} components make {prod(self._intervals):.1e} cells, "
                f"more than the {_CODES:.1e} that can be numbered: use fewer partitions or components"
            )

    def check(self, codes: IntArray) -> None:
        """Refuse impossible bounds and codes of cells outside of them, as in a damaged or forged file."""
        if not (np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower <= self.upper)).all():
            raise ValueError("the bounds of the grid are not finite, or a lower bound is above its upper bound")
        cells = self.decode(codes)
        if len(codes) and (codes.min() < 0 or not self.within(cells).all() or (self.encode(cells) != codes).any()):
            raise ValueError("it has cells outside of its grid")

    @cached_property
    def _intervals(self) -> list[int]:
        return [self.partitions if upper > lower else 1 for lower, upper in zip(self.lower, self.upper, strict=True)]

    @property
    def size(self) -> int:
        """The number of cells within the bounds."""
        return prod(self._intervals)

    @property
    def label(self) -> str:
        """The grid's part of a model's name: the m of M{k,m}."""
        return str(self.partitions)

    def within(self, cells: IntArray) -> npt.NDArray[np.bool_]:
        """For each cell, whether it lies within the bounds of every component."""
        return np.asarray(((cells >= 0) & (cells < np.array(self._intervals))).all(axis=1))

    def cells(self, values: npt.NDArray[np.floating]) -> IntArray:
        """The cell of each row: floor((v - lb) / (ub - lb) * partitions), and v = ub belongs to the last interval."""
        cells = np.empty(values.shape, np.int64)
        for d, intervals in enumerate(self._intervals):
            lower, upper = self.lower[d], self.upper[d]
            v = values[:, d].astype(np.float64)
            below, above = v < lower, v > upper  # the bounds decide what is inside, not the rounding of the quotient
            if upper > lower:
                v -= lower
                v /= upper - lower
                v *= self.partitions
            else:
                v = np.sign(v - lower)
            outside = below | above
            far, is_below = np.floor(v[outside]), below[outside]
            cells[:, d] = np.clip(v, 0, intervals - 1, out=v)  # which rounds towards zero
            if len(far):  # values beyond the last clip have no code anyway
                far = np.where(is_below, np.minimum(far, -1), np.maximum(far, intervals))
                cells[outside, d] = np.clip(far, -(2.0**62), 2.0**62)
        return cells

    @cached_property
    def margin(self) -> int:
        """How many intervals beyond the bounds still have a code of their own."""
        low, high = 0, 2**61  # the largest margin whose cells can all be numbered, below what `cells` clips to
        while low < high:
            middle = (low + high + 1) // 2
            fits = prod(n + 2 * middle for n in self._intervals) <= _CODES
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    @cached_property
    def strides(self) -> IntArray:
        """The code of the next cell along each component, less that of the cell itself."""
        widths = [n + 2 * self.margin for n in self._intervals]
        return np.array([prod(widths[d + 1 :]) for d in range(len(widths))], np.int64)

    def encode(self, cells: IntArray) -> IntArray:
        """One number per cell, in the lexicographic order of the cells; never the same for two cells."""
        codes = np.zeros(len(cells), np.int64)
        for d, (intervals, stride) in enumerate(zip(self._intervals, self.strides, strict=True)):
            index = cells[:, d]
            if len(index) and (index.min() < -self.margin or index.max() >= intervals + self.margin):
                far = index.max() if index.max() >= intervals + self.margin else index.min()
                raise InputError(
                    f"a vector lies in interval {far:,} of component {d}, whose profiled intervals are 0 to "
                    f"{intervals - 1:,}; only intervals from {-self.margin:,} to "
                    f"{intervals + self.margin - 1:,} can be numbered: use fewer components or partitions"
                )
            codes += (index + self.margin) * stride
        return codes

    def table(self, ascending: IntArray) -> IntArray | None:
        """By place, the position of a cell's code in `ascending`, -1 for others; None for a grid of too many cells."""
        if self.size > _TABLE:
            return None
        table = np.full(self.size + 1, -1, np.int64)
        table[self.places(self.decode(ascending))] = np.arange(len(ascending))
        return table

    def places(self, cells: IntArray) -> IntArray:
        """The number of each cell within the bounds, in their order; `size` for a cell outside."""
        places, outside = np.zeros(len(cells), np.int64), np.zeros(len(cells), bool)
        for d, intervals in enumerate(self._intervals):
            index = cells[:, d]
            outside |= (index < 0) | (index >= intervals)
            places *= intervals
            places += index
        places[outside] = self.size
        return places

    def number(self, cells: IntArray) -> tuple[IntArray, IntArray]:
        """The distinct codes of cells within the bounds, ascending, and the number of each cell's code among them."""
        if self.size > _TABLE:
            return np.unique(self.encode(cells), return_inverse=True)
        place = np.ravel_multi_index(tuple(cells.T), self._intervals)
        visited = np.zeros(self.size, bool)
        visited[place] = True
        places = np.flatnonzero(visited)
        rank = np.empty(self.size, np.int64)
        rank[places] = np.arange(len(places))
        return self.encode(np.stack(np.unravel_index(places, self._intervals), axis=1)), rank[place]

    def decode(self, codes: IntArray) -> IntArray:
        """The cells of codes; the inverse of `encode`."""
        cells = np.empty((len(codes), len(self.strides)), np.int64)
        rest = codes
        for d, stride in enumerate(self.strides):
            index, rest = np.divmod(rest, stride)
            cells[:, d] = index - self.margin
        return cells


def find(ascending: IntArray, codes: IntArray) -> IntArray:
    """The position of each code in `ascending`, -1 if it is not there."""
    if not len(ascending):
        return np.full(len(codes), -1, np.int64)
    position = np.minimum(np.searchsorted(ascending, codes), len(ascending) - 1)
    return np.where(ascending[position] == codes, position, -1)


def known(positions: IntArray) -> IntArray:
    """The distinct positions, ascending, without -1."""
    present = distinct(positions)
    return present[1:] if len(present) and present[0] < 0 else present


def distinct(codes: IntArray) -> IntArray:
    """The distinct codes, ascending: np.unique without its hash table, which takes four times as long."""
    ascending = np.sort(codes)
    first_of_its_kind: npt.NDArray[np.bool_] = np.diff(ascending, prepend=ascending[:1] - 1) != 0
    return ascending[first_of_its_kind]


def ends(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """The positions of the first and the last state of each trace, if all their N+1 states follow one another."""
    last = np.cumsum(lengths + 1) - 1
    return last - lengths, last


def rings(states: IntArray, grid: Grid) -> Iterator[IntArray]:
    """The codes, ascending, of the cells at distance 1 from the nearest of `states`, then of those at distance 2, ...

    The distance is the sum of the differences of the indices, so the cells at distance d + 1 are the neighbours of
    those at distance d that are at neither d nor d - 1. Cells beyond the bounds are cells like any other.
    """
    inner, ring = np.empty(0, np.int64), states
    for _ in range(grid.margin):  # beyond it, neighbours have no codes
        neighbours = (ring + step for stride in grid.strides for step in (stride, -stride))
        outer = [near[(find(ring, near) < 0) & (find(inner, near) < 0)] for near in neighbours]
        inner, ring = ring, distinct(np.concatenate(outer))
        yield ring
