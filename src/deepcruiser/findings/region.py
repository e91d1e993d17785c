"""Where in the state space a failing test goes another way than its seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.trace import Trace

#: Whether the cells that only the failing test visits are mostly known to training; empty without visits.
Region = Literal["", "inside", "outside"]

#: The words for a sentence.
REGIONS = {
    "": "the states were not measured",
    "inside": "the states stay mostly where training was",
    "outside": "the states go mostly where training never was",
}


def region(seed: Visits | None, mutant: Visits | None) -> Region:
    """Whether training knew most of the cells that the mutant visits and its seed does not."""
    if seed is None or mutant is None:
        return ""
    known = len(np.setdiff1d(mutant.states, seed.states, assume_unique=True))
    unknown = len(np.setdiff1d(mutant.outside, seed.outside, assume_unique=True))
    return "outside" if unknown > known else "inside"


@dataclass(frozen=True)
class Parting:
    """The first step from which the cells of a test and its seed differ for good, and the test's cell there.

    `moment` is the step as a share of the test's length. `known` says whether training visited the cell.
    """

    step: int
    moment: float
    cell: tuple[int, ...]
    known: bool

    def __str__(self) -> str:
        where = "which training visited" if self.known else "which training never visited"
        return f"seed and test part at step {self.step} ({self.moment:.0%} of the way), in cell {self.cell}, {where}"


def parting(model: AbstractModel, seed: Trace, mutant: Trace) -> Parting | None:
    """Where a test parts from its seed; None if their cells never differ.

    Each step of the test is compared with the step of the seed at the same share of its length. If the two meet again
    at the end, it is the beginning of the longest stretch in which they differ.
    """
    before, now = model.cells(seed)[0], model.cells(mutant)[0]
    last = len(now) - 1
    partners = np.rint(np.arange(len(now)) * ((len(before) - 1) / max(1, last))).astype(np.int64)
    differs = (now != before[partners]).any(axis=1)
    if not differs.any():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], differs, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    step = int(starts[-1] if differs[-1] else starts[np.argmax(ends - starts)])
    code = model.grid.encode(now[step : step + 1])
    return Parting(step, step / max(1, last), tuple(now[step].tolist()), bool(np.isin(code, model.states)[0]))
