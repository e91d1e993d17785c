"""All five criteria over the course of a campaign, and the picture of its state space, from what it noted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.sorted_sets import distinct, find, known
from deepcruiser.campaign.territory import Ground, Who
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import BSCov, BTCov, ISCov, SBCov, WICov
from deepcruiser.errors import InputError

#: Steps of the boundary that is measured and drawn.
STEPS = 2
#: A picture of more cells is made coarser.
_MOST_CELLS = 6000
_NOTHING = np.empty(0, np.int64)


class Measures:
    """What a campaign covers of its model, as its territory grows."""

    def __init__(self, model: AbstractModel) -> None:
        self.model = model
        criteria = [BSCov, BTCov, ISCov, WICov]
        try:
            self._boundary = model.boundary(STEPS)
            criteria.insert(1, SBCov(STEPS))
        except InputError:  # the grid has no room for the cells beyond it
            self._boundary = _NOTHING
        self._coverages = {criterion.name: Coverage(model, criterion) for criterion in criteria}
        self._visited: dict[Who, list[IntArray]] = {"seeds": [], "passed": [], "failed": []}
        #: Whether the campaign noted where it went from its beginning.
        self.complete = False

    @property
    def names(self) -> list[str]:
        return list(self._coverages)

    def add(self, who: Who, ground: Ground) -> None:
        """Count what was visited for the first time."""
        states, transitions, choices, outside = ground
        self.complete |= who == "seeds"
        self._visited[who].append(np.concatenate([self.model.states[states], outside]))
        if who == "failed":
            return
        boundary = known(find(self._boundary, outside))
        news = {"BSCov": (states,), "BTCov": (transitions,), "ISCov": (choices,), "WICov": (choices, transitions)}
        for name, coverage in self._coverages.items():
            coverage.take(news.get(name, (boundary,)))

    def values(self) -> list[float]:
        """The criteria as they are now, of everything that ran without failing."""
        return [coverage.value for coverage in self._coverages.values()]

    def space(self) -> dict[str, Any]:
        """The cells by pairs of components: how many states lie there, and how many of them were visited by whom."""
        model, axes = self.model, self.model.projections.states
        layers = [model.states, self._boundary, *(_all(codes) for codes in self._visited.values())]
        cells = [model.grid.decode(codes) for codes in layers]
        shown = min(3, axes.components)
        pairs = list(combinations(range(shown), 2)) or [(0, 0)]
        return {
            "pairs": [{"x": x, "y": y, **_projected(cells, x, y)} for x, y in pairs],
            "lower": model.grid.lower[:shown].tolist(),
            "upper": model.grid.upper[:shown].tolist(),
            "partitions": model.grid.partitions,
            "explained": [float(v / axes.total_variance) for v in axes.variances[:shown]]
            if axes.total_variance > 0
            else [],
            "steps": STEPS,
            "cells": dict(zip(("training", "boundary", "seeds", "passed", "failed"), map(len, layers), strict=True)),
            "outside": int((find(model.states, _all(self._visited["passed"])) < 0).sum()),
        }


def _all(codes: Iterable[IntArray]) -> IntArray:
    return distinct(np.concatenate([_NOTHING, *codes]))


def _projected(layers: list[IntArray], x: int, y: int) -> dict[str, Any]:
    """Rows of x, y and the number of cells of each layer; `coarse` cells side by side are one where there are many."""
    coarse = 1
    while True:
        places = [np.floor_divide(cells[:, [x, y]], coarse) for cells in layers]
        where, place = np.unique(np.concatenate(places), axis=0, return_inverse=True)
        if len(where) <= _MOST_CELLS:
            break
        coarse *= 2
    counts = np.zeros((len(where), len(layers)), np.int64)
    ends = np.cumsum([0, *map(len, layers)])
    for layer, (start, stop) in enumerate(pairwise(ends)):
        counts[:, layer] = np.bincount(place.ravel()[start:stop], minlength=len(where))
    if x == y:
        where[:, 1] = 0
    return {"coarse": coarse, "rows": np.concatenate([where, counts], axis=1).tolist()}
