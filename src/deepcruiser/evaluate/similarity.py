"""The Jaccard index of two runs: the items that both visit, over the items that either visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray, distinct
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.evaluate.records import Record

Floats = npt.NDArray[np.float64]


def jaccard(one: IntArray, other: IntArray) -> float:
    """|A n B| / |A u B| of two sets, given as ascending arrays; 1 for two empty sets."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    union = len(one) + len(other) - common
    return common / union if union else 1.0


@dataclass(frozen=True, eq=False)
class Visited:
    """The cells that a run visits, those that are states of the model, and its pairs of successive cells."""

    states: IntArray
    basic: IntArray
    transitions: IntArray

    def similarity(self, other: Visited) -> dict[str, float]:
        """The Jaccard index of each kind of item."""
        return {name: jaccard(getattr(self, name), getattr(other, name)) for name in ITEMS}


#: The items compared: all abstract states, those that profiling visited, and transitions.
ITEMS = ("states", "basic", "transitions")


def visited(model: AbstractModel, records: Sequence[Record]) -> list[Visited]:
    """The items that each run visits, with the same numbers for all runs."""
    if not records:
        return []
    width = model.projections.states.components
    lengths = [len(record.states) for record in records]
    codes = model.grid.encode(model.grid.cells(np.concatenate([record.states[:, :width] for record in records])))
    known, number = np.unique(codes, return_inverse=True)
    basic = np.isin(known, model.states)
    result = []
    for numbers in np.split(number, np.cumsum(lengths)[:-1]):
        states = distinct(numbers)
        pairs = distinct(numbers[:-1] * len(known) + numbers[1:])
        result.append(Visited(states, states[basic[states]], pairs))
    return result


def seed_similarities(model: AbstractModel, seed: Record, mutants: Sequence[Record]) -> list[dict[str, float]]:
    """The Jaccard indices of a seed and each of its mutants."""
    first, *others = visited(model, [seed, *mutants])
    return [first.similarity(other) for other in others]
