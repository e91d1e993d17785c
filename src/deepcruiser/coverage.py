"""Coverage as a running total: what one more trace would add, what is covered, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.criteria import FIVE, BoolArray, Criterion, criterion
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.files import archive
from deepcruiser.notebook import axes, bar, card, text
from deepcruiser.progress import with_bar
from deepcruiser.stream import Progress, Source, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System, Trace
from deepcruiser.workers import Workers

#: If the model knows a smaller share of the visited cells, the data are far from those profiled.
NEAR = 0.05

#: For each kind of visit that a criterion counts, the numbers of the visits that are new.
NewVisits = tuple[IntArray, ...]


class Coverage:
    """How much of a model a growing set of tests covers under one criterion.

    The cost of `gain` and `add` depends on what the trace visits, not on what was covered before.
    """

    def __init__(self, model: AbstractModel, criterion: Criterion) -> None:
        self.model = model
        self.criterion = criterion
        self._seen = criterion.nothing(model)
        self._weights = criterion.required(model)
        self._value: float | None = 0.0

    def gain(self, trace: Trace | Visits) -> float:
        """By how much `value` would rise if the trace were added."""
        new = self._new(trace)
        if not any(map(len, new)):
            return 0.0
        self._mark(new, True)
        try:
            return self._weight_of(new) / self._total
        finally:
            self._mark(new, False)

    def add(self, trace: Trace | Visits) -> bool:
        """Add the trace; returns whether it visits anything that no trace before it did."""
        new = self._new(trace)
        if not any(map(len, new)):
            return False
        self._mark(new, True)
        self._value = None
        return True

    @property
    def value(self) -> float:
        """The criterion of all traces that were added, 0 to 1."""
        if self._value is None:
            self._value = self.criterion.value(self.model, self._seen)
        return self._value

    @property
    def covered(self) -> BoolArray:
        """Which items of the model are covered, in the model's order."""
        return self.criterion.covered(self.model, self._seen)

    @property
    def uncovered(self) -> dict[str, IntArray]:
        """The cells of the items still uncovered: `state` and, if the criterion has them, `input` and `successor`."""
        return {name: cells[~self.covered] for name, cells in self.criterion.cells(self.model).items()}

    def merge(self, other: Coverage) -> Coverage:
        """The combined coverage of both sets of tests."""
        if self.criterion != other.criterion:
            raise MismatchError(f"coverages of {self.criterion} and of {other.criterion} cannot be merged")
        if self.model != other.model:
            raise MismatchError(f"coverages of two models cannot be merged: {self.model} and another {other.model}")
        merged = Coverage(self.model, self.criterion)
        merged._seen = tuple(a | b for a, b in zip(self._seen, other._seen, strict=True))
        merged._value = None
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the coverage to one file; the model has a file of its own."""
        about = {"criterion": self.criterion.name, "model": self.model.fingerprint}
        archive.save(path, "coverage", about, {f"seen{i}": mask for i, mask in enumerate(self._seen)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: AbstractModel) -> Coverage:
        """Read a coverage of `model` that `save` wrote."""
        about, arrays = archive.load(path, "coverage")
        with archive.contents_of(path, "coverage"):
            if about["model"] != model.fingerprint:
                raise MismatchError(f"{os.fspath(path)!r} is a coverage of another model than {model}")
            coverage = cls(model, criterion(about["criterion"]))
            seen = tuple(arrays[f"seen{i}"] for i in range(len(coverage._seen)))
            if [(a.shape, a.dtype) for a in seen] != [(a.shape, a.dtype) for a in coverage._seen]:
                raise ValueError("the numbers of items differ")
            coverage._seen, coverage._value = seen, None
        return coverage

    def __repr__(self) -> str:
        if bool((self._weights == 1).all()):
            share = f"{int(self.covered.sum()):,} of {len(self._weights):,}"
        else:
            share = f"{self.value * self._total:,.1f} of {self._total:,.0f}, summed probabilities"
        return f"{self.criterion.name:8} {self.value:7.2%}   {share}"

    def _new(self, trace: Trace | Visits) -> NewVisits:
        visits = trace if isinstance(trace, Visits) else self.model.visits(trace)
        kinds = zip(self._seen, self.criterion.visited(visits), strict=True)
        return tuple(visited[~mask[visited]] for mask, visited in kinds)

    def _mark(self, new: NewVisits, seen: bool) -> None:
        for mask, visited in zip(self._seen, new, strict=True):
            mask[visited] = seen

    def _weight_of(self, new: NewVisits) -> float:
        """The weight of the items that are covered now and would not be without the visits `new`."""
        if self.criterion.takes is None:
            return float(self._weights[new[0]].sum())
        touched = np.unique(
            np.concatenate([index.items(visits) for index, visits in zip(self._index, new, strict=True)])
        )
        complete = np.logical_and.reduce(
            [mask[visit[touched]] for mask, visit in zip(self._seen, self.criterion.takes(self.model), strict=True)]
        )
        return float(self._weights[touched[complete]].sum())

    @cached_property
    def _total(self) -> float:
        return float(self._weights.sum())

    @cached_property
    def _index(self) -> list[_Index]:
        return [_Index(visit) for visit in self.criterion.takes(self.model)] if self.criterion.takes else []


class _Index:
    """From visits of one kind back to the items that take them."""

    def __init__(self, visit_of_item: IntArray) -> None:
        self._items = np.argsort(visit_of_item, kind="stable")
        self._counts = np.bincount(visit_of_item)
        self._starts = np.cumsum(self._counts) - self._counts

    def items(self, visits: IntArray) -> IntArray:
        """All items that take one of the visits."""
        counts = self._counts[visits]
        behind = np.repeat(self._starts[visits] - (np.cumsum(counts) - counts), counts)
        items: IntArray = self._items[behind + np.arange(counts.sum())]
        return items


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """How much of a model a data set covers; prints as one line per criterion."""

    coverages: tuple[Coverage, ...]
    traces: int
    steps: int
    #: The inputs that could not be read, and why.
    skipped: dict[str, str]
    #: The share of the visited cells that the model knows, without initial ones; counted batch by batch.
    known: float = 1.0

    @property
    def hint(self) -> str:
        """What to check if the data are far from the profiled ones; otherwise empty."""
        if self.known >= NEAR:
            return ""
        return (
            f"{1 - self.known:.1%} of the cells that the data visit are not in the model: check that the data are like "
            "those profiled, with the same sample rate, features and normalisation"
        )

    def __getitem__(self, criterion: Criterion | str) -> float:
        """The value of a criterion, given as an object or by name."""
        for coverage in self.coverages:
            if str(criterion) == coverage.criterion.name:
                return coverage.value
        raise InputError(f"{criterion} was not measured, only {', '.join(c.criterion.name for c in self.coverages)}")

    def __str__(self) -> str:
        return "\n".join([*map(str, self.coverages), *([self.hint] if self.hint else [])])

    def _repr_html_(self) -> str:
        rows = [(c.criterion.name, f"{c.value:.2%}", bar(c.value), str(c).split("%", 1)[1]) for c in self.coverages]
        return card(f"Coverage of {self.traces:,} inputs, {self.steps:,} steps", rows, below=text(self.hint))

    def plot(self, ax: Any = None) -> Any:
        """A bar for each criterion, drawn with matplotlib; returns the axes."""
        ax = axes(ax, height=2.5)
        names = [coverage.criterion.name for coverage in reversed(self.coverages)]
        bars = ax.barh(names, [100 * coverage.value for coverage in reversed(self.coverages)], color="#0072b2")
        ax.bar_label(bars, fmt="%.1f %%", padding=3)
        ax.set(xlim=(0, 108), xlabel="covered, %", title=f"{self.traces:,} inputs")
        return ax


@with_bar
def cover(
    model: AbstractModel,
    system: System,
    data: Iterable[Any],
    *,
    criteria: Sequence[Criterion] = FIVE,
    batch_size: int = 16,
    workers: Workers[Source] | None = None,
    watch: Callable[[Progress], None] | None = None,
    inspect: Callable[[str, Run], None] | None = None,
) -> CoverageReport:
    """Run the system over the data and measure how much of the model its states reach.

    `inspect` is called with the name and the run of each input, before its states are gone.
    """
    model.check(system)
    data, size = require_sized(data)
    coverages = tuple(Coverage(model, each) for each in criteria)
    progress, cells = Progress(size, stage="covering", watch=watch), [0, 0]

    visit, traces = partial(_visit, model, inspect), 0
    for _, arrays in stream(system, data, visit, progress=progress, batch_size=batch_size, workers=workers):
        traces += 1
        if arrays is not None:
            visits = Visits(model, *arrays)
            cells[0] += len(np.setdiff1d(visits.states, model.initial))
            cells[1] += len(visits.outside)
            for coverage in coverages:
                coverage.add(visits)
    if traces == 0:
        raise nothing_read(progress)
    known = cells[0] / sum(cells) if sum(cells) else 1.0
    return CoverageReport(coverages, traces, progress.steps, progress.skipped, known)


def _visit(
    model: AbstractModel, inspect: Callable[[str, Run], None] | None, names: list[str], runs: list[Run]
) -> Callable[[], list[tuple[IntArray, ...] | None]]:
    """The visits of a batch, and its first run."""
    visits, rest = model.start_visits([run.traced for run in runs], names), [None] * (len(runs) - 1)
    if inspect is not None:
        for name, run in zip(names, runs, strict=True):
            inspect(name, run)
    return lambda: [visits().arrays, *rest]
