"""The cells around the visited ones."""

from __future__ import annotations

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray
from deepcruiser.abstraction.visits import find
from deepcruiser.errors import InputError


def boundary(states: IntArray, grid: Grid, steps: int) -> IntArray:
    """The codes of the cells whose distance from the nearest of `states` is 1 to `steps`, ascending.

    The distance is the sum of the differences of the indices, so the cells at distance d are the neighbours of those
    at distance d - 1 that have not been met before. Cells beyond the bounds are cells like any other.
    """
    if steps < 1:
        raise InputError(f"a boundary has at least 1 step, not {steps}")
    if steps > grid.margin:
        raise InputError(
            f"{steps} steps beyond the bounds cannot be told apart on this grid, only {grid.margin}: "
            "use fewer partitions or components"
        )
    rings: list[IntArray] = []
    inner, ring = np.empty(0, np.int64), states
    for _ in range(steps):
        near = np.concatenate([ring + stride for stride in grid.strides] + [ring - stride for stride in grid.strides])
        inner, ring = ring, _without(_without(np.unique(near), ring), inner)
        rings.append(ring)
    return np.sort(np.concatenate(rings))


def _without(codes: IntArray, known: IntArray) -> IntArray:
    """`codes` that are not among `known`; both are ascending."""
    return codes[find(known, codes) < 0]
