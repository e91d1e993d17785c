"""Counting abstract transitions: which states, on which inputs, led where, and how often."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray, distinct, ends
from deepcruiser.abstraction.projections import Projected
from deepcruiser.errors import InputError

#: Number of rows that are sorted together when counts are merged, and of keys per part that choose the ranges.
_RANGE_ROWS, _SPREAD = 2**18, 2**10


@dataclass(frozen=True, eq=False)
class Counts:
    """The abstract transitions of some traces.

    `states` and `inputs` are the codes of the cells that were visited, ascending. Row i of the four columns says that
    `count[i]` times the input `inputs[action[i]]` led from `states[source[i]]` to `states[target[i]]`; the rows are in
    ascending order of (source, action, target). `initial` and `final` are the positions of the states that traces
    begin in and end in.
    """

    states: IntArray
    inputs: IntArray
    initial: IntArray
    final: IntArray
    source: IntArray
    action: IntArray
    target: IntArray
    count: IntArray

    @classmethod
    def of(cls, grid: Grid, states: Projected, input_grid: Grid, inputs: Projected, lengths: IntArray) -> Counts:
        """Count the transitions of traces that follow one another; `lengths` are their numbers of steps."""
        state_codes, state = grid.number(grid.cells(states))
        input_codes, action = input_grid.number(input_grid.cells(inputs))
        first, last = ends(lengths)
        key = _key(np.delete(state, last), action, np.delete(state, first), len(state_codes), len(input_codes))
        key, count = np.unique(key, return_counts=True)
        begin_and_end = distinct(state[first]), distinct(state[last])
        return cls._from(state_codes, input_codes, *begin_and_end, key, count.astype(np.int64))

    @classmethod
    def merge(cls, parts: Sequence[Counts]) -> Counts:
        """The counts of all parts together."""
        if len(parts) == 1:
            return parts[0]
        states = distinct(np.concatenate([part.states for part in parts]))
        inputs = distinct(np.concatenate([part.inputs for part in parts]))

        def rows(part: Counts) -> tuple[IntArray, IntArray, IntArray]:
            state, action = np.searchsorted(states, part.states), np.searchsorted(inputs, part.inputs)
            key = _key(state[part.source], action[part.action], state[part.target], len(states), len(inputs))
            return key, state[part.initial], state[part.final]

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy releases the interpreter lock while it sorts
            keys, initial, final = zip(*pool.map(rows, parts), strict=True)
            ranges = pool.map(_add_up, *zip(*_ranges(keys, [part.count for part in parts]), strict=True))
            key, count = (np.concatenate(column) for column in zip(*ranges, strict=True))
        begin_and_end = distinct(np.concatenate(initial)), distinct(np.concatenate(final))
        return cls._from(states, inputs, *begin_and_end, key, count)

    @classmethod
    def _from(
        cls, states: IntArray, inputs: IntArray, initial: IntArray, final: IntArray, key: IntArray, count: IntArray
    ) -> Counts:
        rest, target = np.divmod(key, max(1, len(states)))
        source, action = np.divmod(rest, max(1, len(inputs)))
        return cls(states, inputs, initial, final, source, action, target, count)

    def check(self, *, steps: int) -> None:
        """Refuse counts that are impossible for this number of steps, as in a damaged or forged file."""
        for field in fields(self):
            array = getattr(self, field.name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != 1:
                raise ValueError(f"the {field.name} are not a list of whole numbers")
        states, inputs, rows = len(self.states), len(self.inputs), len(self.count)
        for name in ("initial", "final", "source", "target"):
            _check_range(name, getattr(self, name), states)
        _check_range("action", self.action, inputs)
        if not len(self.source) == len(self.action) == len(self.target) == rows:
            raise ValueError("the columns of the transitions have different lengths")
        key = _key(self.source, self.action, self.target, states, inputs)
        ascending = {"states": self.states, "inputs": self.inputs, "initial": self.initial, "final": self.final}
        for name, array in {**ascending, "transitions": key}.items():
            if len(array) and (np.diff(array) <= 0).any():
                raise ValueError(f"the {name} are not in ascending order")
        if (self.count < 1).any() or int(self.count.sum()) != steps:
            raise ValueError(f"{int(self.count.sum()):,} transitions were counted in {steps:,} steps")
        visited = np.zeros(states, bool)
        visited[np.concatenate([self.initial, self.final, self.source, self.target])] = True
        taken = np.zeros(inputs, bool)
        taken[self.action] = True
        if not visited.all() or not taken.all():
            raise ValueError("it has states or inputs that no transition visits")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )


def _key(source: IntArray, action: IntArray, target: IntArray, states: int, inputs: int) -> IntArray:
    """(source, action, target) as one number, in the same order."""
    if states * inputs * states >= 2**63:
        raise InputError(
            f"{states:,} states and {inputs:,} inputs make too many transitions to be numbered: "
            "use fewer partitions or components"
        )
    key: IntArray = (source * inputs + action) * states + target
    return key


def _ranges(keys: Sequence[IntArray], counts: Sequence[IntArray]) -> list[tuple[list[IntArray], list[IntArray]]]:
    """The rows of all parts in ranges of their keys, which are ascending in each part."""
    spread = np.sort(np.concatenate([key[:: 1 + len(key) // _SPREAD] for key in keys]))
    ranges = max(1, sum(map(len, keys)) // _RANGE_ROWS)
    bounds = spread[np.linspace(0, len(spread), ranges, endpoint=False).astype(int)[1:]]
    cuts = [[0, *np.searchsorted(key, bounds), len(key)] for key in keys]

    def part(columns: Sequence[IntArray], number: int) -> list[IntArray]:
        return [column[cut[number] : cut[number + 1]] for column, cut in zip(columns, cuts, strict=True)]

    return [(part(keys, number), part(counts, number)) for number in range(ranges)]


def _add_up(keys: Sequence[IntArray], counts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The distinct keys, ascending, and how often each was counted in all."""
    every_key, every_count = np.concatenate(keys), np.concatenate(counts)
    order = np.argsort(every_key, kind="stable")
    every_key, every_count = every_key[order], every_count[order]
    begins = np.flatnonzero(np.diff(every_key, prepend=-1))
    return every_key[begins], np.add.reduceat(every_count, begins) if len(begins) else every_count


def _check_range(name: str, numbers: IntArray, end: int) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= end):
        raise ValueError(f"the {name} column has {numbers.min()} to {numbers.max()}, but there are {end} of them")


def final_states(arrays: Mapping[str, IntArray], traces: int) -> IntArray:
    """The `final` of counts from a file that was written without it.

    If more traces came to a state than left it, some end there. If traces begin in several states, the counts do not
    say how many begin in which, so an initial state is final only if a single trace beginning there proves it.
    """
    states, initial = len(arrays["states"]), arrays["initial"]
    arrivals, departures = (
        np.bincount(arrays[column], weights=arrays["count"], minlength=states) for column in ("target", "source")
    )
    arrivals[initial] += traces if len(initial) == 1 else 1
    return np.flatnonzero(arrivals > departures)
