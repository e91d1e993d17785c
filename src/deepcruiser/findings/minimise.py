"""A small part of a test set that covers as much of the model as the whole."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.criteria import BSCov, Criterion
from deepcruiser.errors import InputError
from deepcruiser.stream import Progress, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System

#: What a test visits: an array for each criterion and kind of visit that it counts.
Visited = tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class Minimised:
    """The tests to keep, by their ids, in the order in which they add coverage.

    `coverage` has the value of each criterion after each of them; the last row is that of the whole test set.
    """

    criteria: tuple[Criterion, ...]
    tests: tuple[str, ...]
    coverage: tuple[tuple[float, ...], ...]
    #: The number of tests of the whole set.
    of: int
    #: What could not be read, and why.
    skipped: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        last = self.coverage[-1] if self.coverage else (0.0,) * len(self.criteria)
        values = ", ".join(f"{each.name} {value:.2%}" for each, value in zip(self.criteria, last, strict=True))
        return f"{len(self.tests):,} of {self.of:,} tests cover as much as all of them: {values}"


def minimise(
    model: AbstractModel,
    system: System,
    data: Iterable[Any],
    *,
    criteria: Sequence[Criterion] = (BSCov,),
    batch_size: int = 16,
    watch: Callable[[Progress], None] | None = None,
) -> Minimised:
    """Run the system over the data and keep the fewest tests found that cover exactly as much."""
    model.check(system)
    data, size = require_sized(data)
    progress = Progress(size, stage="covering", watch=watch)

    def reduce(names: list[str], runs: list[Run]) -> list[Visited]:
        return [_visited(model.visits(run.traced), criteria) for run in runs]

    visited = dict(stream(system, data, reduce, progress=progress, batch_size=batch_size))
    if not visited:
        raise nothing_read(progress)
    return _minimised(model, list(visited), list(visited.values()), criteria, progress.skipped)


def minimise_visits(
    model: AbstractModel, visits: Iterable[tuple[str, Visits]], *, criteria: Sequence[Criterion] = (BSCov,)
) -> Minimised:
    """The same for tests that were run already: their ids, and what they visit of the model."""
    visited = {name: _visited(each, criteria) for name, each in visits}
    return _minimised(model, list(visited), list(visited.values()), criteria, {})


def smallest_cover(tests: Sequence[IntArray], elements: int) -> list[int]:
    """The numbers of tests that together have all elements that any test has, in the order of what they add.

    Greedy set cover: always the test that adds most, the first of them. Gains only fall as the cover grows, so a test
    is looked at again only when its old gain is the greatest left. Then tests that the others make superfluous go.
    """
    chosen = _greedy(tests, range(len(tests)), elements)
    counts = np.zeros(elements, np.int64)
    for number in chosen:
        counts[tests[number]] += 1
    kept = set(chosen)
    for number in reversed(chosen):
        if (counts[tests[number]] > 1).all():
            counts[tests[number]] -= 1
            kept.remove(number)
    return _greedy(tests, sorted(kept), elements)


def _greedy(tests: Sequence[IntArray], numbers: Iterable[int], elements: int) -> list[int]:
    covered = np.zeros(elements, bool)
    heap = [(-len(tests[number]), number) for number in numbers if len(tests[number])]
    heapq.heapify(heap)
    chosen = []
    while heap:
        _, number = heapq.heappop(heap)
        entry = (-int(np.count_nonzero(~covered[tests[number]])), number)
        if entry[0] == 0:
            continue
        if heap and heap[0] < entry:
            heapq.heappush(heap, entry)
            continue
        covered[tests[number]] = True
        chosen.append(number)
    return chosen


def _minimised(
    model: AbstractModel,
    names: list[str],
    visited: list[Visited],
    criteria: Sequence[Criterion],
    skipped: dict[str, str],
) -> Minimised:
    if not criteria:
        raise InputError("minimising needs at least one criterion, such as BSCov")
    tests, elements = _elements(model, visited, criteria)
    chosen = smallest_cover(tests, elements)
    seen = [criterion.nothing(model) for criterion in criteria]
    coverage = []
    for number in chosen:
        kinds = [mask for masks in seen for mask in masks]
        for mask, visits in zip(kinds, visited[number], strict=True):
            mask[visits] = True
        coverage.append(tuple(each.value(model, masks) for each, masks in zip(criteria, seen, strict=True)))
    return Minimised(tuple(criteria), tuple(names[i] for i in chosen), tuple(coverage), len(names), skipped)


def _visited(visits: Visits, criteria: Sequence[Criterion]) -> Visited:
    return tuple(array for criterion in criteria for array in criterion.visited(visits))


def _elements(
    model: AbstractModel, visited: Sequence[Visited], criteria: Sequence[Criterion]
) -> tuple[list[IntArray], int]:
    """The tests as sets of numbered elements, which have all to be there for the coverage to stay, and their number.

    An item that takes several visits, as in WICov, is covered just when all of them are made, so its visits are the
    elements; visits that complete no item are none.
    """
    needed: list[IntArray] = []
    kind = 0
    for criterion in criteria:
        seen = criterion.nothing(model)
        for test in visited:
            for mask, visits in zip(seen, test[kind : kind + len(seen)], strict=True):
                mask[visits] = True
        covered = criterion.covered(model, seen)
        takes = criterion.takes(model) if criterion.takes is not None else (np.arange(len(covered)),)
        for mask, visits_of_item in zip(seen, takes, strict=True):
            numbers = np.full(len(mask), -1, np.int64)
            numbers[visits_of_item[covered]] = 0
            needed.append(numbers)
        kind += len(seen)
    count = 0
    for numbers in needed:
        wanted = np.flatnonzero(numbers == 0)
        numbers[wanted] = count + np.arange(len(wanted))
        count += len(wanted)
    tests = []
    for test in visited:
        positions = np.concatenate([numbers[visits] for numbers, visits in zip(needed, test, strict=True)])
        tests.append(positions[positions >= 0])
    return tests, count
