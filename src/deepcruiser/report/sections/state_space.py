"""The cells of the abstract model, and which of them seeds, mutants and failing tests visited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray, distinct, find
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event, Seeded
from deepcruiser.errors import InputError
from deepcruiser.report.data import Fold, ReportData
from deepcruiser.report.salvage import Record
from deepcruiser.report.section import Data, Section, runs_known

#: Width of the boundary that is drawn.
STEPS = 2
#: Number of failing tests that are named for a place.
_NAMED = 12
#: A picture with more cells is drawn coarser.
_MOST_CELLS = 6000
_NOTHING = np.empty(0, np.int64)


class VisitedCells(Fold):
    """The cells that seeds, passing mutants and failing tests visited."""

    def __init__(self, record: Record) -> None:
        self._visited = {"seeds": _NOTHING, "passed": _NOTHING, "failed": _NOTHING}
        self._add(record.seeds)
        super().__init__(record)

    def _add(self, events: Sequence[Event]) -> None:
        new: dict[str, list[IntArray]] = {who: [codes] for who, codes in self._visited.items()}
        for event in events:
            if event.visits is not None and (who := _who(event)):
                new[who] += [event.visits.model.states[event.visits.states], event.visits.outside]
        self._visited = {who: distinct(np.concatenate(codes)) for who, codes in new.items()}

    def numbers(self) -> dict[str, Any] | None:
        """How many cells each visited; None without a model."""
        model = self._record.model
        if model is None:
            return None
        layers = self._layers(model)
        return {
            "partitions": model.grid.partitions,
            "steps": STEPS,
            "cells": {name: len(codes) for name, codes in layers.items()},
            "outside": int((find(model.states, layers["passed"]) < 0).sum()),
        }

    def picture(self) -> dict[str, Any] | None:
        """The cells by pairs of components, each with how many cells of each layer lie there; None without a model."""
        model, numbers = self._record.model, self.numbers()
        if model is None or numbers is None:
            return None
        axes = model.projections.states
        cells = [model.grid.decode(codes) for codes in self._parts(model).values()]
        shown = min(3, len(model.grid.lower))
        pairs = list(combinations(range(shown), 2)) or [(0, 0)]
        return {
            **numbers,
            "pairs": [self._pair(cells, x, y) for x, y in pairs],
            "lower": model.grid.lower[:shown].tolist(),
            "upper": model.grid.upper[:shown].tolist(),
            "explained": [float(v / axes.total_variance) for v in axes.variances[:shown] if axes.total_variance > 0],
        }

    def _parts(self, model: AbstractModel) -> dict[str, IntArray]:
        """The codes of the layers, those of seeds and mutants in training alone; then those of these two beyond it."""
        layers = self._layers(model)
        known = {who: np.isin(layers[who], model.states) for who in ("seeds", "passed")}
        inside = {who: layers[who][is_known] for who, is_known in known.items()}
        return {**layers, **inside, **{f"{who} beyond": layers[who][~is_known] for who, is_known in known.items()}}

    def _pair(self, cells: list[IntArray], x: int, y: int) -> dict[str, Any]:
        """The picture along two components, and the failing tests that pass through each place."""
        picture = _projected(cells, x, y)
        return {"x": x, "y": y, **picture, "through": self._through(x, y, picture["coarse"])}

    def _through(self, x: int, y: int, coarse: int) -> dict[str, list[int]]:
        """For each place the number of failing tests that pass through it, and the worst of them by number."""
        tests = [test for test in self._record.failed if test.visits is not None]
        places: dict[str, list[int]] = {}
        for test in tests:
            assert test.visits is not None
            model = test.visits.model
            codes = np.concatenate([model.states[test.visits.states], test.visits.outside])
            where = np.floor_divide(model.grid.decode(codes)[:, [x, y]], coarse)
            where[:, 1] *= x != y
            for a, b in set(map(tuple, where.tolist())):
                place = places.setdefault(f"{a},{b}", [0])
                place[0] += 1
                if len(place) <= _NAMED:
                    place.append(test.number)
        return places

    def _layers(self, model: AbstractModel) -> dict[str, IntArray]:
        """The codes of the cells of each layer; mutants have those that no seed visits."""
        try:
            boundary = model.boundary(STEPS)
        except InputError:  # the grid has no room for the cells beyond it
            boundary = _NOTHING
        passed = np.setdiff1d(self._visited["passed"], self._visited["seeds"], assume_unique=True)
        return {"training": model.states, "boundary": boundary, **self._visited, "passed": passed}


def _who(event: Event) -> str:
    if event.outcome == "failed":
        return "failed"
    if event.outcome == "rejected":
        return ""
    return "seeds" if isinstance(event, Seeded) else "passed"


def _projected(layers: list[IntArray], x: int, y: int) -> dict[str, Any]:
    """Rows of x, y and the number of cells of each layer; where there are many, `coarse` neighbours become one."""
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


def _data(report: ReportData) -> list[dict[str, Any] | None]:
    return [each.fold(VisitedCells).numbers() for each in report.campaigns]


def _page_data(report: ReportData) -> list[dict[str, Any] | None]:
    return [each.fold(VisitedCells).picture() for each in report.campaigns]


def _text(data: Data) -> Iterator[str]:
    for campaign, space in zip(data["campaigns"], data["state_space"], strict=True):
        if space:
            cells = space["cells"]
            name = f"{campaign['name']}: " if len(data["campaigns"]) > 1 else ""
            yield (
                f"state space: {name}{cells['training']:,} cells in training; seeds reach {cells['seeds']:,}, passing "
                f"mutants {cells['passed']:,} more ({space['outside']:,} outside training), failing tests "
                f"{cells['failed']:,}"
            )


STATE_SPACE = Section(
    "state_space", "State space", _data, page_data=_page_data, scripts=("state_space.js",), text=_text, shown=runs_known
)
