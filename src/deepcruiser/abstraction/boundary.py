"""The cells around the visited ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray
from deepcruiser.abstraction.sorted_sets import distinct, find


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
