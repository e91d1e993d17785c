"""What each step of a trace does that profiling did not: the raw material of all scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import Grid, IntArray, find
from deepcruiser.abstraction.model import AbstractModel

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Steps:
    """The states and the steps of a trace, or of a piece of one, as the model knows them.

    `distance` is that of each state's cell to the nearest of S_M, 0 for those in it. `transition` and `choice` say of
    each step whether (s, s') is in delta_M and x in X_M(s); `probability` is Pr_x(s, s'), and
    `Reference.least` for what was never seen.
    """

    distance: FloatArray
    transition: BoolArray
    choice: BoolArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class Reference:
    """A model with what looking up single steps needs."""

    model: AbstractModel

    def locate(self, states: Vectors) -> tuple[IntArray, FloatArray]:
        """Of projected states, the number in the model (-1: none) and the distance to its nearest state."""
        grid = self.model.grid
        cells = grid.cells(states)
        number = _numbers(grid, self.model.states, cells)
        distance = np.zeros(len(cells))
        outside = np.flatnonzero(number < 0)
        if len(outside):
            distance[outside] = self._nearest.query(cells[outside].astype(np.float64), p=1)[0]
        return number, distance

    def steps(self, number: IntArray, inputs: Vectors, distance: FloatArray) -> Steps:
        """The steps from each state to the next, on projected inputs: one fewer than there are numbers of states."""
        model = self.model
        source, target = number[:-1], number[1:]
        action = _numbers(model.input_grid, model.counts.inputs, model.input_grid.cells(inputs))
        inside, fed = (source >= 0) & (target >= 0), (source >= 0) & (action >= 0)
        transition = _member(model.transitions, source * len(model.states) + target, inside)
        choice = _member(model.choices, source * len(model.counts.inputs) + action, fed)
        key = (source * len(model.counts.inputs) + action) * len(model.states) + target
        row = np.where(inside & fed, find(self._rows, key), -1)
        probability = np.full(len(row), self.least)
        probability[row >= 0] = model.probabilities[row[row >= 0]]
        return Steps(distance, transition, choice, probability)

    @cached_property
    def _rows(self) -> IntArray:
        """One number for each row of the model's counts, ascending as they are."""
        counts = self.model.counts
        rows: IntArray = (counts.source * len(counts.inputs) + counts.action) * len(counts.states) + counts.target
        return rows

    @cached_property
    def _nearest(self) -> Any:
        from scipy.spatial import KDTree  # only where something lies outside: it loads slowly

        return KDTree(self.model.grid.decode(self.model.states).astype(np.float64))

    @cached_property
    def least(self) -> float:
        """The probability of what was never seen: half a step among all that profiling counted."""
        return 0.5 / max(1, int(self.model.counts.count.sum()))


def _member(ascending: IntArray, codes: IntArray, possible: BoolArray) -> BoolArray:
    member: BoolArray = possible & (find(ascending, codes) >= 0)
    return member


def _numbers(grid: Grid, codes: IntArray, cells: IntArray) -> IntArray:
    """The position of each cell in `codes`, -1 where it is not there; what is beyond the bounds needs no code."""
    intervals = np.where(grid.upper > grid.lower, grid.partitions, 1)
    within = ((cells >= 0) & (cells < intervals)).all(1)
    number = np.full(len(cells), -1, np.int64)
    number[within] = find(codes, grid.encode(cells[within]))
    return number
