"""Ordering inputs without labels so that failures are likely to come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.errors import InputError
from deepcruiser.oracles import Oracle, is_finite
from deepcruiser.stream import Progress, named, nothing_read, require_sized, stream
from deepcruiser.trace import Run, System

By = Literal["doubt", "novelty", "both"]


@dataclass(frozen=True)
class Ranked:
    """An input of the pool: how unsure the system was of it, how new its states are, and whether it fails.

    `novelty` is the share of its cells that profiling never visited. `fails` is None without a label.
    """

    id: str
    doubt: float | None
    novelty: float | None
    fails: bool | None


@dataclass(frozen=True)
class Priorities:
    """A pool in the order in which to look at it."""

    by: By
    order: tuple[Ranked, ...]
    #: What could not be read, and why.
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def labelled(self) -> list[bool]:
        """Whether each input with a label fails, in the order of the pool."""
        return [each.fails for each in self.order if each.fails is not None]

    @property
    def curve(self) -> list[int]:
        """The number of failures among the first 1, 2, 3... inputs with a label."""
        return list(accumulate(map(int, self.labelled)))

    @property
    def area(self) -> float | None:
        """The area under the curve, 0.5 for a random order on average; None without any failure.

        This is APFD, the average percentage of faults detected, of Rothermel and others.
        """
        failing = [place for place, fails in enumerate(self.labelled, 1) if fails]
        count = len(self.labelled)
        return 1 - sum(failing) / (count * len(failing)) + 1 / (2 * count) if failing else None


def prioritise(
    model: AbstractModel | None,
    system: System,
    data: Iterable[Any],
    *,
    by: By = "doubt",
    oracle: Oracle | None = None,
    batch_size: int = 16,
    watch: Callable[[Progress], None] | None = None,
) -> Priorities:
    """Run the system over a pool and order it: by doubt, by the novelty of the states, or by both.

    Novelty takes a model, doubt a system that gives it. With an oracle, inputs that have a text are judged, so that the
    order can be compared with a random one; labels never change the order.
    """
    if by not in ("doubt", "novelty", "both"):
        raise InputError(f"by must be 'doubt', 'novelty' or 'both', not {by!r}")
    if by != "doubt":
        if model is None:
            raise InputError(f"ordering by {by} needs a model of the system's states: give one, or order by doubt")
        model.check(system)
    data, size = require_sized(data)
    texts = {name: getattr(item, "text", None) for name, item in named(data)}
    progress = Progress(size, stage="ranking", watch=watch)

    def reduce(names: list[str], runs: list[Run]) -> list[Ranked]:
        return [
            Ranked(name, run.doubt, _novelty(model, run) if by != "doubt" else None, _fails(oracle, texts[name], run))
            for name, run in zip(names, runs, strict=True)
        ]

    pool = [each for _, each in stream(system, data, reduce, progress=progress, batch_size=batch_size)]
    if not pool:
        raise nothing_read(progress)
    if by != "novelty" and any(each.doubt is None for each in pool):
        raise InputError(f"ordering by {by} needs a system that says how unsure it is of an answer: order by novelty")
    return Priorities(by, tuple(pool[i] for i in _order(pool, by)), progress.skipped)


def _order(pool: Sequence[Ranked], by: By) -> list[int]:
    """The numbers of the pool's inputs, ties as they came; "both" orders by the mean of the two ranks."""
    scores = {
        "doubt": [each.doubt or 0.0 for each in pool],
        "novelty": [each.novelty or 0.0 for each in pool],
    }
    values = _ranks(scores["doubt"]) + _ranks(scores["novelty"]) if by == "both" else np.array(scores[by])
    return [int(number) for number in np.argsort(-values, kind="stable")]


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """The rank of each value, least first; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[inverse]
    return ranks


def _novelty(model: AbstractModel | None, run: Run) -> float:
    assert model is not None
    visits = model.visits(run.traced)
    return len(visits.outside) / max(1, len(visits.states) + len(visits.outside))


def _fails(oracle: Oracle | None, text: Any, run: Run) -> bool | None:
    if oracle is None or text is None:
        return None
    return not is_finite(run.output) or oracle.fails(oracle.score(oracle.reference(text, run.output), run.output))
