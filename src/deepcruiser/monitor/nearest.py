"""The profiled sequences that come nearest to the cells of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepcruiser.abstraction.grid import IntArray, ends
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.errors import InputError
from deepcruiser.monitor.scores import FloatArray
from deepcruiser.trace import Trace

#: Number of profiled states that are compared at a time.
_BLOCK_ROWS = 2**18


@dataclass(frozen=True)
class Neighbour:
    """A profiled sequence: its name, its distance in cells, and the step at which it comes nearest."""

    name: str
    distance: float
    step: int


def nearest(
    profile: Profile, model: AbstractModel, trace: Trace, *, steps: tuple[int, int] | None = None, count: int = 3
) -> list[Neighbour]:
    """The profiled sequences that come nearest to the cells of a trace, the nearest first.

    `steps` are the first and the last step to look at, such as those of an alarm; without them it is the whole trace.
    The distance of a sequence is the mean, over the distinct cells that the trace visits there, of the distance to
    the nearest cell that the sequence visits. Its step is the nearest to the middle of those steps.
    """
    if not profile.names:
        raise InputError(
            "the profile does not name its sequences, since an earlier version made it: profile the data again"
        )
    if profile.projections != model.projections:
        raise InputError("the model was not made from this profile: give the profile that it comes from")
    first, last = (0, len(trace)) if steps is None else steps
    cells = model.cells(trace)[0][max(0, first) : last + 1]
    if not len(cells):
        raise InputError(f"the trace has {len(trace)} steps, so none from {first} to {last}")
    wanted, middle = np.unique(cells, axis=0), cells[len(cells) // 2]
    starts, stops = ends(profile.lengths)
    mean, step = np.empty(len(starts)), np.empty(len(starts), np.int64)
    for block in _blocks(starts, stops):
        begin = int(starts[block[0]])
        there = model.grid.cells(profile.states[begin : int(stops[block[-1]]) + 1])
        inside = starts[block] - begin
        mean[block] = np.mean([np.minimum.reduceat(_distances(there, cell), inside) for cell in wanted], axis=0)
        to_middle = _distances(there, middle)
        step[block] = [
            to_middle[low:high].argmin() for low, high in zip(inside, [*inside[1:], len(there)], strict=True)
        ]
    order = np.argsort(mean, kind="stable")[:count]
    return [Neighbour(profile.names[i], float(mean[i]), int(step[i])) for i in order]


def _distances(cells: IntArray, cell: IntArray) -> FloatArray:
    distances: FloatArray = np.abs(cells - cell).sum(1).astype(np.float64)
    return distances


def _blocks(starts: IntArray, stops: IntArray) -> list[IntArray]:
    """The numbers of the sequences, in blocks of whole ones."""
    block = starts // _BLOCK_ROWS
    return [np.flatnonzero(block == number) for number in np.unique(block)] if len(stops) else []
