"""Every score of a trace against loops over its cells, on random traces."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import deepcruiser as dc
from deepcruiser.monitor.scores import (
    CHOICES,
    DISTANCE,
    OUTSIDE,
    SCORES,
    SURPRISE,
    TRANSITIONS,
    Score,
    outside_share,
    state_similarity,
    transition_similarity,
)
from deepcruiser.monitor.step_monitor import _Sum
from tests.support import plain
from tests.test_criteria import cases, cells_of

Case = tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]]
Formula = Callable[[plain.Plain, plain.Cells], list[float]]


def outside(M: plain.Plain, T: plain.Cells) -> list[float]:
    return [float(s not in M.states) for s in T[0]]


def distance(M: plain.Plain, T: plain.Cells) -> list[float]:
    return [float(min(plain.distance(s, known) for known in M.states)) for s in T[0]]


def transitions(M: plain.Plain, T: plain.Cells) -> list[float]:
    return [float((s, t) not in M.transitions) for s, t in pairwise(T[0])]


def choices(M: plain.Plain, T: plain.Cells) -> list[float]:
    return [float(x not in M.inputs.get(s, set())) for s, x in zip(T[0], T[1], strict=False)]


def surprise(M: plain.Plain, T: plain.Cells) -> list[float]:
    never = 1 / (2 * sum(M.counts.values()))
    return [-math.log(M.probability(s, x, t) or never) for s, x, t in zip(T[0], T[1], T[0][1:], strict=False)]


BRUTE: dict[Score, Formula] = {
    OUTSIDE: outside,
    DISTANCE: distance,
    TRANSITIONS: transitions,
    CHOICES: choices,
    SURPRISE: surprise,
}


def cells(model: dc.AbstractModel, trace: dc.Trace) -> plain.Cells:
    """The cells of one trace, found with nothing of the package but its projection."""
    states, inputs = model.projections.project([trace], ["-"])
    grid, input_grid = model.grid, model.input_grid
    return (
        plain.cells(states[0], grid.lower.tolist(), grid.upper.tolist(), grid.partitions),
        plain.cells(inputs[0], input_grid.lower.tolist(), input_grid.upper.tolist(), input_grid.partitions),
    )


@settings(max_examples=150)
@given(cases())
def test_all_scores_equal_the_loops(case: Case) -> None:
    _, model, profiled, tests = case
    M = cells_of(model, profiled)
    assert set(BRUTE) == set(SCORES)
    for trace in tests:
        T = cells(model, trace)
        assert outside_share(model.visits(trace)) == len(set(T[0]) - M.states) / len(set(T[0]))
        for score, brute in BRUTE.items():
            values = brute(M, T)
            expected = sum(values) / len(values) if values else 0.0
            assert score.of(model, trace) == pytest.approx(expected, rel=1e-12, abs=1e-12), score.name


@settings(max_examples=60)
@given(cases())
def test_profiled_data_are_not_outside_and_hold_nothing_unknown(case: Case) -> None:
    _, model, profiled, _ = case
    for trace in profiled:
        assert [score.of(model, trace) for score in (OUTSIDE, DISTANCE, TRANSITIONS, CHOICES)] == [0.0] * 4
        assert SURPRISE.of(model, trace) < math.log(2 * model.counts.count.sum())


@settings(max_examples=60)
@given(cases())
def test_step_by_step_equals_all_at_once_and_the_span_is_the_best_stretch(case: Case) -> None:
    _, model, _, tests = case
    monitor = dc.Monitor(model)
    for trace in tests:
        whole = monitor.read(dc.Run("", trace))
        steps = monitor.step_by_step(trace.states[0])
        for state, x in zip(trace.states[1:], trace.inputs, strict=True):
            steps.update(state, x)
        reading = steps.reading()
        assert reading.steps == whole.steps == len(trace)
        for score in SCORES:
            assert whole.scores[score.name] == pytest.approx(score.of(model, trace), rel=1e-12, abs=1e-12)
            assert reading.scores[score.name] == pytest.approx(whole.scores[score.name], rel=1e-12, abs=1e-12)
        assert reading.spans == whole.spans


def test_spans_are_the_stretch_with_the_greatest_sum_above_the_usual() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.integers(0, 5, rng.integers(1, 25)).astype(float)
        total = _Sum(usual=1.5)
        for piece in np.split(values, np.sort(rng.integers(0, len(values) + 1, 3))):
            total.add(piece)
        sums = {
            (i, j): float((values[i : j + 1] - 1.5).sum()) for i in range(len(values)) for j in range(i, len(values))
        }
        assert sums[total.span] == max(sums.values())


@settings(max_examples=60)
@given(cases())
def test_similarities_equal_the_sets(case: Case) -> None:
    _, model, profiled, tests = case
    for one, other in zip([*tests, profiled[0]], [*profiled, *tests, profiled[0]], strict=False):
        first, second = cells(model, one)[0], cells(model, other)[0]
        A, B = set(first), set(second)
        assert state_similarity(model, one, other) == len(A & B) / len(A | B)
        pairs = set(pairwise(first)), set(pairwise(second))
        union = pairs[0] | pairs[1]
        expected = len(pairs[0] & pairs[1]) / len(union) if union else 1.0
        assert transition_similarity(model, one, other) == expected


def test_states_too_far_out_for_a_code_are_outside() -> None:
    traces = [dc.Trace(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 1.0]]), np.array([[0.0], [1.0]]))]
    model = dc.Profile.of(traces, components=2).abstract(2**20)
    far = dc.Trace(np.array([[0.0, 0.0], [1e30, 1e30]]), np.full((1, 1), 1e30))
    assert OUTSIDE.of(model, far) == 0.5
    assert TRANSITIONS.of(model, far) == CHOICES.of(model, far) == 1.0
    assert 1e15 < DISTANCE.of(model, far) < math.inf
