"""The Jaccard index of two runs: how much of what both visit, both visit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.sorted_sets import distinct
from deepcruiser.evaluate.records import Record

Floats = npt.NDArray[np.float64]


def jaccard(one: IntArray, other: IntArray) -> float:
    """|A n B| / |A u B| of two sets, as ascending arrays; two empty sets are the same, so 1."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    union = len(one) + len(other) - common
    return common / union if union else 1.0


@dataclass(frozen=True, eq=False)
class Visited:
    """What one run visits: cells, those of them that are states of the model, and pairs of cells in succession."""

    states: IntArray
    basic: IntArray
    transitions: IntArray

    def like(self, other: Visited) -> dict[str, float]:
        """The Jaccard index of each."""
        return {name: jaccard(getattr(self, name), getattr(other, name)) for name in KINDS}


#: Of what there is an index: all abstract states, those that profiling visited, and transitions.
KINDS = ("states", "basic", "transitions")


def visited(model: AbstractModel, records: Sequence[Record]) -> list[Visited]:
    """What each run visits, in numbers that mean the same for all of them."""
    if not records:
        return []
    width = model.projections.states.components
    lengths = [len(record.states) for record in records]
    codes = model.grid.encode(model.grid.cells(np.concatenate([record.states[:, :width] for record in records])))
    known, number = np.unique(codes, return_inverse=True)
    basic = np.isin(known, model.states)
    found = []
    for numbers in np.split(number, np.cumsum(lengths)[:-1]):
        states = distinct(numbers)
        pairs = distinct(numbers[:-1] * len(known) + numbers[1:])
        found.append(Visited(states, states[basic[states]], pairs))
    return found


def to_mutants(model: AbstractModel, seed: Record, mutants: Sequence[Record]) -> list[dict[str, float]]:
    """The indices of a seed and each of its mutants."""
    first, *others = visited(model, [seed, *mutants])
    return [first.like(other) for other in others]
