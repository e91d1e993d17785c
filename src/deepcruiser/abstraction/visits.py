"""What traces visit of an abstract model: four sorted sets, from which every criterion is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.projections import Projected
from deepcruiser.abstraction.sorted_sets import distinct, ends, find, known

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
        """The visits of projected traces that follow one another."""
        codes = model.grid.encode(model.grid.cells(states))
        first, last = ends(lengths)
        state = find(model.states, codes)
        source, target = np.delete(state, last), np.delete(state, first)
        moves = (source >= 0) & (target >= 0)
        transitions = find(model.transitions, (source * len(model.states) + target)[moves])
        action = find(model.counts.inputs, model.input_grid.encode(model.input_grid.cells(inputs)))
        chooses = (source >= 0) & (action >= 0)
        choices = find(model.choices, (source * len(model.counts.inputs) + action)[chooses])
        return cls(model, known(state), known(transitions), known(choices), distinct(codes[state < 0]))

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The four sets, in the order of the fields."""
        return self.states, self.transitions, self.choices, self.outside

    def boundary(self, steps: int) -> IntArray:
        """The cells of S_T at a distance of 1 to `steps` from S_M, as numbers of `model.boundary(steps)`."""
        return known(find(self.model.boundary(steps), self.outside))
