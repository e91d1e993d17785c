"""Where the runs of a campaign have been: each cell, transition and choice, noted once, when it was new.

It decides nothing. It is there to be looked at: from it and the model, all criteria can be computed after each batch,
whichever of them was the guide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.sorted_sets import find
from deepcruiser.abstraction.visits import Visits

#: Who was there: seeds, mutants that the system got right, mutants that failed.
Who = Literal["seeds", "passed", "failed"]
WHO: tuple[Who, ...] = get_args(Who)

#: States, transitions and choices of the model by number, and the codes of cells that are no states of it; ascending.
Ground = tuple[IntArray, IntArray, IntArray, IntArray]
_NOTHING = np.empty(0, np.int64)


class Territory:
    """What was visited so far, and what of it is new since it was last asked for.

    Seeds and mutants that passed share one territory, since coverage is that of both; failing tests, which count for
    no coverage, have their own, without transitions and choices.
    """

    def __init__(self, model: AbstractModel | None) -> None:
        self._sizes = (0, 0, 0) if model is None else (len(model.states), len(model.transitions), len(model.choices))
        self._seen = {name: [np.zeros(size, bool) for size in self._sizes] for name in ("right", "failed")}
        self._outside = dict.fromkeys(self._seen, _NOTHING)
        self._new: dict[Who, list[Ground]] = {}

    def add(self, visits: Visits, who: Who) -> None:
        """Note what a run visited."""
        failed = who == "failed"
        ground = (
            visits.states,
            _NOTHING if failed else visits.transitions,
            _NOTHING if failed else visits.choices,
            visits.outside,
        )
        self._new.setdefault(who, []).append(self._mark(ground, "failed" if failed else "right"))

    def take(self) -> dict[Who, Ground]:
        """What is new since the last time."""
        new = {who: _joined(grounds) for who, grounds in self._new.items()}
        self._new = {}
        return {who: ground for who, ground in new.items() if any(map(len, ground))}

    def restore(self, news: Iterable[tuple[Who, Ground]]) -> None:
        """Go on behind what was taken before."""
        for who, ground in news:
            self._mark(ground, "failed" if who == "failed" else "right")

    def _mark(self, ground: Ground, name: str) -> Ground:
        new = []
        for mask, numbers in zip(self._seen[name], ground[:3], strict=True):
            new.append(numbers[~mask[numbers]])
            mask[numbers] = True
        outside = ground[3][find(self._outside[name], ground[3]) < 0]
        if len(outside):
            self._outside[name] = np.sort(np.concatenate([self._outside[name], outside]))
        return new[0], new[1], new[2], outside


def _joined(grounds: list[Ground]) -> Ground:
    states, transitions, choices, outside = (np.sort(np.concatenate(each)) for each in zip(*grounds, strict=True))
    return states, transitions, choices, outside
