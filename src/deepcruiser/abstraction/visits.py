"""What traces visit of an abstract model, as numbers of its states, transitions, choices and boundary cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.projections import Projected
from deepcruiser.abstraction.sorted_sets import distinct, ends, find, known

if TYPE_CHECKING:
    from deepcruiser.abstraction.model import AbstractModel


@dataclass(frozen=True, eq=False)
class Visits:
    """The codes of some traces, one behind the other, and what of `model` they amount to."""

    model: AbstractModel
    state_codes: IntArray
    input_codes: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, model: AbstractModel, states: Projected, inputs: Projected, lengths: IntArray) -> Visits:
        """The visits of projected traces that stand one behind the other."""
        state_codes = model.grid.encode(model.grid.cells(states))
        return cls(model, state_codes, model.input_grid.encode(model.input_grid.cells(inputs)), lengths)

    @cached_property
    def _state(self) -> IntArray:
        """The number of the model's state at each position, -1 where there is none."""
        return find(self.model.states, self.state_codes)

    @cached_property
    def _source(self) -> IntArray:
        return np.delete(self._state, ends(self.lengths)[1])

    @cached_property
    def states(self) -> IntArray:
        """The states of S_T that are in S_M."""
        return known(self._state)

    @cached_property
    def transitions(self) -> IntArray:
        """The pairs of delta_T that are in delta_M."""
        target = np.delete(self._state, ends(self.lengths)[0])
        inside = (self._source >= 0) & (target >= 0)
        return known(find(self.model.transitions, (self._source * len(self.model.states) + target)[inside]))

    @cached_property
    def choices(self) -> IntArray:
        """The pairs of a state s and an input of X_T(s) that are in X_M(s)."""
        action = find(self.model.counts.inputs, self.input_codes)
        inside = (self._source >= 0) & (action >= 0)
        return known(find(self.model.choices, (self._source * len(self.model.counts.inputs) + action)[inside]))

    @cached_property
    def outside(self) -> IntArray:
        """The codes of the cells of S_T that are not in S_M."""
        return distinct(self.state_codes[self._state < 0])

    def boundary(self, steps: int) -> IntArray:
        """The cells of S_T at a distance of 1 to `steps` from S_M."""
        return known(find(self.model.boundary(steps), self.state_codes[self._state < 0]))

    @cached_property
    def open_choices(self) -> IntArray:
        """Every pair (s, x) of T with s in S_M, whether x is in X_M(s) or not: rows of a state and an input's code."""
        inside = self._source >= 0
        return np.unique(np.stack([self._source[inside], self.input_codes[inside]], axis=1), axis=0)
