"""Whether a trace is a path of an abstract model, and where it leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deepcruiser.abstraction.grid import IntArray, find
from deepcruiser.trace import Trace

if TYPE_CHECKING:
    from deepcruiser.abstraction.model import AbstractModel

Cell = tuple[int, ...]


@dataclass(frozen=True)
class Departure:
    """The first step of a trace, or of a segment of it, that no profiled trace took.

    `state` is the cell of the trace's state number `step`. Without `input`, no profiled trace visited that state or, at
    step 0, began there. With `input`, no profiled trace read it in that state. With `successor` as well, the input was
    read there but never led to that successor.
    """

    step: int
    state: Cell
    input: Cell | None = None
    successor: Cell | None = None
    segment: int = 0

    @classmethod
    def of(cls, model: AbstractModel, trace: Trace) -> Departure | None:
        """Where the trace leaves the model; None if it is a path of the model with positive probability."""
        for number, part in enumerate(trace.parts):
            departure = cls._of_part(model, part)
            if departure is not None:
                return replace(departure, segment=number)
        return None

    @classmethod
    def _of_part(cls, model: AbstractModel, trace: Trace) -> Departure | None:
        cells, input_cells = model.cells(trace)
        counts = model.counts
        state = find(model.states, model.grid.encode(cells))
        if state[0] not in model.initial:
            return cls(0, _cell(cells[0]))
        source, target = state[:-1], state[1:]
        action = find(counts.inputs, model.input_grid.encode(input_cells))
        pair = source * len(counts.inputs) + action
        choice = np.where((source < 0) | (action < 0), -1, find(model.choices, pair))
        row = np.where((choice < 0) | (target < 0), -1, find(model.rows, pair * len(model.states) + target))
        if (row >= 0).all():
            return None
        step = int(np.argmax(row < 0))
        before, read, after = _cell(cells[step]), _cell(input_cells[step]), _cell(cells[step + 1])
        if choice[step] < 0:
            return cls(step, before, read)
        return cls(step + 1, after) if target[step] < 0 else cls(step, before, read, after)

    def __str__(self) -> str:
        of = f" of segment {self.segment}" if self.segment else ""
        if self.input is None:
            return f"state {self.step}{of} is {self.state}, where no profiled trace {'was' if self.step else 'began'}"
        if self.successor is None:
            return f"input {self.step}{of} is {self.input}, which no profiled trace read in {self.state}"
        way = f"from {self.state} on {self.input} to {self.successor}"
        return f"step {self.step}{of} leads {way}, as no profiled trace did"


def _cell(indices: IntArray) -> Cell:
    return tuple(indices.tolist())
