"""Counting abstract transitions: which states, on which inputs, led where, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray
from deepcruiser.abstraction.projections import Projected
from deepcruiser.abstraction.sorted_sets import distinct, ends
from deepcruiser.errors import InputError


@dataclass(frozen=True, eq=False)
class Counts:
    """The abstract transitions of some traces.

    `states` and `inputs` are the codes of the cells that were visited, ascending. Row i of the four columns says that
    `count[i]` times the input `inputs[action[i]]` led from `states[source[i]]` to `states[target[i]]`; the rows are in
    ascending order of (source, action, target). `initial` are the positions of the states that traces begin in.
    """

    states: IntArray
    inputs: IntArray
    initial: IntArray
    source: IntArray
    action: IntArray
    target: IntArray
    count: IntArray

    @classmethod
    def of(cls, grid: Grid, states: Projected, input_grid: Grid, inputs: Projected, lengths: IntArray) -> Counts:
        """Count the transitions of traces that stand one behind the other; `lengths` are their steps."""
        state_codes, state = grid.number(grid.cells(states))
        input_codes, action = input_grid.number(input_grid.cells(inputs))
        first, last = ends(lengths)
        key = _key(np.delete(state, last), action, np.delete(state, first), len(state_codes), len(input_codes))
        key, count = np.unique(key, return_counts=True)
        return cls._from(state_codes, input_codes, distinct(state[first]), key, count.astype(np.int64))

    @classmethod
    def merge(cls, parts: Sequence[Counts]) -> Counts:
        """The counts of all parts together."""
        if len(parts) == 1:
            return parts[0]
        states = distinct(np.concatenate([part.states for part in parts]))
        inputs = distinct(np.concatenate([part.inputs for part in parts]))
        keys, initial = [], []
        for part in parts:
            state, action = np.searchsorted(states, part.states), np.searchsorted(inputs, part.inputs)
            keys.append(_key(state[part.source], action[part.action], state[part.target], len(states), len(inputs)))
            initial.append(state[part.initial])
        every_key, every_count = np.concatenate(keys), np.concatenate([part.count for part in parts])
        order = np.argsort(every_key, kind="stable")
        every_key, every_count = every_key[order], every_count[order]
        begins = np.flatnonzero(np.diff(every_key, prepend=-1))
        count = np.add.reduceat(every_count, begins) if len(begins) else every_count
        return cls._from(states, inputs, distinct(np.concatenate(initial)), every_key[begins], count)

    @classmethod
    def _from(cls, states: IntArray, inputs: IntArray, initial: IntArray, key: IntArray, count: IntArray) -> Counts:
        rest, target = np.divmod(key, max(1, len(states)))
        source, action = np.divmod(rest, max(1, len(inputs)))
        return cls(states, inputs, initial, source, action, target, count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )


def _key(source: IntArray, action: IntArray, target: IntArray, states: int, inputs: int) -> IntArray:
    """(source, action, target) as one number, in the same order."""
    if states * inputs * states >= 2**63:
        raise InputError(
            f"{states:,} states and {inputs:,} inputs make too many transitions to be told apart: "
            "use fewer partitions or components"
        )
    key: IntArray = (source * inputs + action) * states + target
    return key
