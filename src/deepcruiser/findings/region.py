"""Where a failing test and its seed diverge in the state space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.trace import Trace

#: "outside" if the cause of a finding is that the states leave the region that training visited.
Region = Literal["", "outside"]

_USUAL_SEEDS = 0.95
#: In a network that was profiled on its seeds, every new input visits a few cells for the first time.
_LEAST = 0.05


def usual_share(seeds: Iterable[Visits]) -> float:
    """The share of cells that training never visited, which 19 of 20 seeds do not exceed; at least a twentieth."""
    shares = [len(visits.outside) / _cells(visits) for visits in seeds]
    return max(_LEAST, float(np.quantile(shares, _USUAL_SEEDS))) if shares else _LEAST


def new_share(seed: Visits | None, mutant: Visits | None) -> float:
    """The share of a test's cells that neither training nor its seed visited; 0 without visits."""
    return 0.0 if seed is None or mutant is None else len(new_cells(seed, mutant)) / _cells(mutant)


def new_cells(seed: Visits, mutant: Visits) -> IntArray:
    """The codes of the cells that the mutant visits, and neither training nor its seed did."""
    return np.setdiff1d(mutant.outside, seed.outside, assume_unique=True)


def _cells(visits: Visits) -> int:
    return max(1, len(visits.states) + len(visits.outside))


@dataclass(frozen=True)
class Parting:
    """The beginning of the longest stretch in which the cells of a test and its seed differ, and the test's cell there.

    `moment` is the step as a share of the test's length. `known` says whether training visited the cell.
    """

    step: int
    moment: float
    cell: tuple[int, ...]
    known: bool

    def __str__(self) -> str:
        where = "which training visited" if self.known else "which training never visited"
        return f"seed and test diverge at step {self.step} ({self.moment:.0%} of the way), in cell {self.cell}, {where}"


def parting(model: AbstractModel, seed: Trace, mutant: Trace) -> Parting | None:
    """Where a test and its seed diverge; None if their cells never differ."""
    return parting_of(model, model.cells(seed)[0], model.cells(mutant)[0])


def parting_of(model: AbstractModel, before: IntArray, now: IntArray) -> Parting | None:
    """The same from the cells of seed and test.

    Each step of the test is compared with the step of the seed at the same share of its length.
    """
    last = len(now) - 1
    partners = np.rint(np.arange(len(now)) * ((len(before) - 1) / max(1, last))).astype(np.int64)
    differs = (now != before[partners]).any(axis=1)
    if not differs.any():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], differs, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    step = int(starts[np.argmax(ends - starts)])
    code = model.grid.encode(now[step : step + 1])
    return Parting(step, step / max(1, last), tuple(now[step].tolist()), bool(np.isin(code, model.states)[0]))
