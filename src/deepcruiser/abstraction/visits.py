"""What traces visit of an abstract model: four sorted sets, from which every criterion is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray, distinct, ends, find, known
from deepcruiser.abstraction.projections import Projected

if TYPE_CHECKING:
    from deepcruiser.abstraction.model import AbstractModel


@dataclass(frozen=True, eq=False)
class Visits:
    """What some traces T visit of `model`; each array is sorted and has no duplicates."""

    model: AbstractModel
    #: S_T n S_M, as numbers of the model's states.
    states: IntArray
    #: delta_T n delta_M, as numbers of the model's transitions.
    transitions: IntArray
    #: The pairs (s, x) with x in X_T(s) n X_M(s), as numbers of the model's choices.
    choices: IntArray
    #: The codes of the cells of S_T that are not in S_M.
    outside: IntArray

    @classmethod
    def of(cls, model: AbstractModel, states: Projected, inputs: Projected, lengths: IntArray) -> Visits:
        """The visits of projected traces, given one after the other."""
        state, outside = _positions(model.grid, model.grid.cells(states), model.states, model.tables[0])
        action, _ = _positions(model.input_grid, model.input_grid.cells(inputs), model.counts.inputs, model.tables[1])
        first, last = ends(lengths)
        source, target = np.delete(state, last), np.delete(state, first)
        moves = (source >= 0) & (target >= 0)
        transitions = find(model.transitions, distinct((source * len(model.states) + target)[moves]))
        chooses = (source >= 0) & (action >= 0)
        choices = find(model.choices, distinct((source * len(model.counts.inputs) + action)[chooses]))
        return cls(model, known(state), known(transitions), known(choices), outside)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The four sets, in the order of the fields."""
        return self.states, self.transitions, self.choices, self.outside

    def boundary(self, steps: int, *, within: bool = False) -> IntArray:
        """The cells of S_T at a distance of 1 to `steps` from S_M, as numbers of `model.boundary(steps)`."""
        return known(find(self.model.boundary(steps, within=within), self.outside))


def _positions(grid: Grid, cells: IntArray, ascending: IntArray, table: IntArray | None) -> tuple[IntArray, IntArray]:
    """The position of each cell's code in `ascending`, -1 where it is not there; the distinct codes that are not."""
    positions = find(ascending, grid.encode(cells)) if table is None else table[grid.places(cells)]
    return positions, distinct(grid.encode(cells[positions < 0]))
