"""The scores of one input, kept up to date step by step in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from deepcruiser.abstraction.projection import Projection
from deepcruiser.errors import InputError
from deepcruiser.monitor.scores import DOUBT, SCORES, BoolArray, FloatArray, Reference, Vectors
from deepcruiser.trace import Array


@dataclass(frozen=True)
class Reading:
    """The scores of an input, or of the part of it that has been seen.

    `spans` has for each score the first and the last step of the stretch that raises it most above what is usual.
    `problem` says what is not finite, and then the scores are those of the steps before it.
    """

    scores: Mapping[str, float]
    spans: Mapping[str, tuple[int, int]]
    steps: int
    problem: str = ""


class StepMonitor:
    """Follows the states of one input: `update(states, inputs)` takes in a step, or any number of them.

    What it keeps does not grow: the number of the last state, and a few sums for each score. `Monitor.step_by_step`
    makes one, and `Monitor.judge(step_monitor.reading())` says at any time what to think of the input.
    """

    def __init__(self, reference: Reference, usual: Mapping[str, float], initial: Array) -> None:
        self._reference = reference
        self._projections = reference.model.projections
        self._sums = {score.name: _Sum(usual.get(score.name, 0.0)) for score in SCORES}
        self._steps = 0
        self._problem = ""
        self.restart(initial)

    def restart(self, initial: Array) -> None:
        """Continue from another initial state, at the beginning of a segment."""
        self._last = np.empty(0, np.int64)
        no_inputs = np.empty((0, self._projections.inputs.components), np.float32)
        self._take(_vectors(initial, self._projections.states, "state"), no_inputs)

    def update(self, states: Array, inputs: Array) -> None:
        """Add steps: the inputs, and the state after each."""
        reached = _vectors(states, self._projections.states, "state")
        read = _vectors(inputs, self._projections.inputs, "input")
        if len(reached) != len(read):
            raise InputError(f"{len(read)} inputs lead to {len(read)} further states, but {len(reached)} were given")
        self._take(reached, read)

    def reading(self, doubt: float | None = None) -> Reading:
        """The scores so far; `doubt` is that of the system, if it gives one."""
        scores = {name: total.mean for name, total in self._sums.items()}
        spans = {name: total.span for name, total in self._sums.items() if total.count}
        problem = self._problem
        if doubt is not None:
            scores[DOUBT] = float(doubt)
            problem = problem or ("" if np.isfinite(doubt) else "the doubt is not finite")
        return Reading(scores, spans, self._steps, problem)

    def _take(self, states: Vectors, inputs: Vectors) -> None:
        first = len(states) - len(inputs)  # 1 if the initial state comes before the first step
        finite = _finite(states)
        finite[first:] &= _finite(inputs)
        good = len(finite) if finite.all() else int(finite.argmin())
        if self._problem:
            good = 0  # after a state that is not finite, nothing is reliable
        elif good < len(finite):
            state = self._steps + good + 1 - first
            self._problem = f"state {state} or the input before it holds NaN or infinite values"
        if good:
            number, distance = self._reference.locate(states[:good])
            numbers = np.concatenate([self._last, number])
            steps = self._reference.steps(numbers, inputs[: len(numbers) - 1], distance)
            for score in SCORES:
                self._sums[score.name].add(score.values(steps))
            self._steps += len(numbers) - 1
            self._last = number[-1:]


class _Sum:
    """Sum and number of the values so far, and the stretch whose sum is furthest above `usual` for each value."""

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self.total = 0.0
        self.count = 0
        self.span = (0, 0)
        self._best = -np.inf
        self._excess = 0.0  # the sum of all values less the usual
        self._lowest = 0.0  # the least excess before any value so far, and how many values were before it
        self._start = 0

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def add(self, values: FloatArray) -> None:
        if not len(values):
            return
        excess = np.cumsum(np.concatenate([[self._excess], values - self.usual]))  # adds up as single steps would
        before, after = excess[:-1], excess[1:]
        lowest = np.minimum(np.minimum.accumulate(before), self._lowest)
        # Where an excess is the least so far, the best stretch to end there or later begins there.
        starts = np.where(before <= lowest, self.count + np.arange(len(values)), self._start)
        starts = np.maximum.accumulate(starts)
        last = int(np.argmax(after - lowest))
        if after[last] - lowest[last] > self._best:
            self._best = float(after[last] - lowest[last])
            self.span = (int(starts[last]), self.count + last)
        self._excess, self._lowest, self._start = float(after[-1]), float(lowest[-1]), int(starts[-1])
        self.total += float(values.sum())
        self.count += len(values)


def _vectors(vectors: Array, projection: Projection, what: str) -> Vectors:
    """Projected vectors, one or several, of which some may not be finite."""
    rows = vectors[None] if vectors.ndim == 1 else vectors
    if rows.ndim != 2 or rows.shape[1] != projection.size:
        raise InputError(
            f"the {what}s have the shape {tuple(vectors.shape)}, and those profiled {projection.size} numbers each: "
            "is it a trace of another network or layer?"
        )
    return projection(rows)


def _finite(rows: Vectors) -> BoolArray:
    """Which rows hold finite values only."""
    finite: BoolArray = np.logical_and.reduce(np.isfinite(rows), axis=1)
    return finite
