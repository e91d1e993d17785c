"""Every criterion over the course of a campaign, and the picture of its state space: folds over its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.sorted_sets import distinct, find
from deepcruiser.campaign.events import Event, Seeded
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import FIVE, Criterion, SBCov
from deepcruiser.errors import InputError

#: Steps of the boundary that is drawn.
STEPS = 2
#: A picture of more cells is made coarser.
_MOST_CELLS = 6000
_NOTHING = np.empty(0, np.int64)


class CoverageHistory:
    """What a campaign covers of its model, as its events are added."""

    def __init__(self, model: AbstractModel, criteria: Sequence[Criterion] = ()) -> None:
        self.model = model
        every = [*FIVE, *(each for each in criteria if each not in FIVE)]
        try:
            self._boundary = model.boundary(STEPS)
        except InputError:  # the grid has no room for the cells beyond it
            self._boundary = _NOTHING
            every = [each for each in every if each != SBCov(STEPS)]
        #: Of everything that ran without failing, and of the queue.
        self.executed = [Coverage(model, each) for each in every]
        self.queue = [Coverage(model, each) for each in every]
        self._visited: dict[str, list[IntArray]] = {"seeds": [], "passed": [], "failed": []}
        self._cells = dict.fromkeys(self._visited, _NOTHING)

    @property
    def names(self) -> list[str]:
        return [coverage.criterion.name for coverage in self.executed]

    def add(self, event: Event) -> None:
        """Count what an event visits."""
        visits = event.visits
        if visits is None:
            return
        who = "seeds" if isinstance(event, Seeded) else "failed" if event.outcome == "failed" else "passed"
        self._visited[who] += [self.model.states[visits.states], visits.outside]
        if len(self._visited[who]) > 2000:
            self._merge(who)
        if who != "failed":
            for coverage in self.executed:
                coverage.add(visits)
            for coverage in self.queue if event.outcome == "kept" else ():
                coverage.add(visits)

    def values(self) -> list[float]:
        """The criteria as they are now, of everything that ran without failing."""
        return [coverage.value for coverage in self.executed]

    def _merge(self, who: str) -> IntArray:
        self._cells[who] = distinct(np.concatenate([self._cells[who], *self._visited[who]]))
        self._visited[who] = []
        return self._cells[who]

    def space(self) -> dict[str, Any]:
        """The cells by pairs of components: how many states lie there, and how many of them were visited by whom."""
        model, axes = self.model, self.model.projections.states
        layers = [model.states, self._boundary, *map(self._merge, self._visited)]
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
            "outside": int((find(model.states, self._merge("passed")) < 0).sum()),
        }


def course(record: CampaignRecord, criteria: Sequence[Criterion]) -> list[dict[str, Any]]:
    """The coverage of everything that ran without failing, by these criteria, at each moment of a campaign."""
    if record.model is None:
        return [{"runs": runs, "seconds": seconds, "executed": []} for runs, seconds in record.moments]
    coverages = [Coverage(record.model, criterion) for criterion in criteria]
    events: Iterable[Event] = (event for event in record.seeds)
    rows, done = [], 0
    for runs, seconds in record.moments:
        events = [*events, *record.runs[done:runs]]
        for event in events:
            if event.visits is not None and event.outcome in ("kept", "dropped"):
                for coverage in coverages:
                    coverage.add(event.visits)
        events, done = (), runs
        rows.append({"runs": runs, "seconds": seconds, "executed": [coverage.value for coverage in coverages]})
    return rows


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
