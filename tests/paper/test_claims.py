"""The paper's claims about its criteria and its model, and what does not follow from them.

The implications are checked on every model and every test suite that can be made of the eight steps between two states
on two inputs. Counterexamples are the smallest that there are; some have a larger one beside them that says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.abstraction.transition_counts import Counts
from deepcruiser.evaluate.similarity import jaccard
from tests.conftest import walks

A, B, C, D, E = range(5)


def walk(states: Sequence[float], inputs: Sequence[float]) -> dc.Trace:
    """A trace through numbered places on a line."""
    return dc.Trace(np.array(states, float)[:, None], np.array(inputs, float)[:, None])


def model(traces: Sequence[dc.Trace], *, states: int, inputs: int) -> dc.AbstractModel:
    """The model of the traces on a grid with a cell for each place and each input, visited or not."""
    whole = dc.Profile.of([walk([0, states - 1], [0]), walk([0, 0], [inputs - 1])], components=1)
    grid = whole.abstract(states, input_partitions=inputs)
    projected = [grid.projections.project([trace], ["-"]) for trace in traces]
    counts = Counts.of(
        grid.grid,
        np.concatenate([part[0][0] for part in projected]),
        grid.input_grid,
        np.concatenate([part[1][0] for part in projected]),
        np.array([len(trace) for trace in traces]),
    )
    return dc.AbstractModel(grid.projections, grid.grid, grid.input_grid, counts, grid.origin)


STEPS = [walk([s, t], [x]) for s, x, t in product((0, 1), (A, B), (0, 1))]
Values = dict[str, float]


@cache
def every_case() -> tuple[Values, ...]:
    """The values of every suite for every model that can be made of single steps: 255 x 256 of them."""
    return tuple(_cases())


def _cases() -> Iterator[Values]:
    suites = [suite for size in range(len(STEPS) + 1) for suite in combinations(range(len(STEPS)), size)]
    for profiled in suites[1:]:
        M = model([STEPS[i] for i in profiled], states=2, inputs=2)
        visits = [M.visits(step) for step in STEPS]
        for suite in suites:
            chosen = [visits[i] for i in suite]
            yield {c.name: c.of(M, chosen) for c in (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov)}


def test_transition_coverage_subsumes_state_coverage() -> None:
    """BTCov = 1 implies BSCov = 1, because every trace here has a step."""
    full = [case for case in every_case() if case["BTCov"] == 1]
    assert len(full) > 1000
    assert all(case["BSCov"] == 1 for case in full)


def test_transition_coverage_says_nothing_of_states_without_a_transition() -> None:
    """A trace without steps visits a state; the paper's claim holds only if there is none."""
    M = model([walk([0, 0], [A]), walk([1], [])], states=2, inputs=1)
    assert dc.BTCov(M, [walk([0, 0], [A])]) == 1
    assert dc.BSCov(M, [walk([0, 0], [A])]) == 1 / 2


def test_weighted_input_coverage_is_stronger_than_transition_and_input_coverage() -> None:
    """WICov = 1 implies BTCov = ISCov = 1."""
    full = [case for case in every_case() if case["WICov"] == 1]
    assert len(full) > 1000
    assert all(case["BTCov"] == case["ISCov"] == 1 for case in full)


def test_weighted_input_coverage_is_full_just_when_both_are() -> None:
    """It counts successors under any input, so it requires no more than the two together."""
    both = [case for case in every_case() if case["BTCov"] == case["ISCov"] == 1]
    assert len(both) > 1000
    assert all(case["WICov"] == pytest.approx(1) for case in both)


def test_weighted_input_coverage_on_the_same_input_asks_for_every_step() -> None:
    """A leads to 0 and 1, and so does B. 0 on A and 1 on B are all of BTCov, ISCov and WICov, and half of this."""
    M = model([walk([0, t], [x]) for t in (0, 1) for x in (A, B)], states=2, inputs=2)
    tests = [walk([0, 0], [A]), walk([0, 1], [B])]
    assert [criterion(M, tests) for criterion in (dc.BTCov, dc.ISCov, dc.WICov)] == [1, 1, 1]
    assert dc.same_input_wicov(M, tests) == 1 / 2


def test_weighted_input_coverage_never_exceeds_input_coverage() -> None:
    assert all(case["WICov"] <= case["ISCov"] + 1e-12 for case in every_case())


def test_full_coverages_are_ordered_and_values_are_not() -> None:
    """WICov 2/3 with BTCov 1/2: two of three steps stay in 0. 199 of 200: 0.995 and 1/2. BTCov 1/2, BSCov 1/3."""
    staying = [walk([0, 0], [A])]
    for steps in (3, 200):
        M = model([walk([0] * steps, [A] * (steps - 1)), walk([0, 1], [A])], states=2, inputs=1)
        assert (dc.WICov(M, staying), dc.BTCov(M, staying)) == ((steps - 1) / steps, 1 / 2)
    M = model([walk([0, 0], [A]), walk([1, 2], [A])], states=3, inputs=1)
    assert (dc.BTCov(M, staying), dc.BSCov(M, staying)) == (1 / 2, 1 / 3)


def test_input_coverage_does_not_imply_transition_coverage() -> None:
    """A known input that leads elsewhere is all of ISCov and nothing of BTCov.

    With tests that were profiled: if it led to two states, reading it once is all of ISCov and half of BTCov.
    """
    M = model([walk([0, 0], [A])], states=2, inputs=1)
    assert (dc.ISCov(M, [walk([0, 1], [A])]), dc.BTCov(M, [walk([0, 1], [A])])) == (1, 0)
    M = model([walk([0, 0], [A]), walk([0, 1], [A])], states=2, inputs=1)
    assert (dc.ISCov(M, [walk([0, 0], [A])]), dc.BTCov(M, [walk([0, 0], [A])])) == (1, 0.5)


def test_transition_coverage_does_not_imply_input_coverage() -> None:
    """A known step on another input is all of BTCov and nothing of ISCov.

    With tests that were profiled: if two inputs led there, one of them is all of BTCov and half of ISCov.
    """
    M = model([walk([0, 0], [A])], states=2, inputs=2)
    assert (dc.BTCov(M, [walk([0, 0], [B])]), dc.ISCov(M, [walk([0, 0], [B])])) == (1, 0)
    M = model([walk([0, 0], [A]), walk([0, 0], [B])], states=2, inputs=2)
    assert (dc.BTCov(M, [walk([0, 0], [A])]), dc.ISCov(M, [walk([0, 0], [A])])) == (1, 0.5)


def test_the_printed_input_coverage_can_be_full_where_a_third_is_covered() -> None:
    """X_M(0) = {A, B, C}, X_T(0) = {A, D, E}: printed 3/3, cut with X_M 1/3. {A} and {B}: printed 1, cut 0."""
    M = model([walk([0, 0], [A])], states=2, inputs=2)
    assert (dc.literal_iscov(M, [walk([0, 0], [B])]), dc.ISCov(M, [walk([0, 0], [B])])) == (1, 0)
    M = model([walk([0, 0], [x]) for x in (A, B, C)], states=2, inputs=5)
    tests = [walk([0, 0], [x]) for x in (A, D, E)]
    assert dc.literal_iscov(M, tests) == 1
    assert dc.ISCov(M, tests) == 1 / 3


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 6))
def test_the_model_over_approximates_the_observed_traces(seed: int, partitions: int, input_partitions: int) -> None:
    """Every profiled trace is a path of M, each step with positive probability, and M is no larger than they are."""
    traces = walks(np.random.default_rng(seed), 10)
    traces.append(dc.Trace(np.array([[0.0] * 4, [1.0] * 4]), np.ones((1, 2))))
    M = dc.Profile.of(traces, components=2).abstract(partitions, input_partitions=input_partitions)
    for trace in traces:
        assert M.accepts(trace)
        states, inputs = M.cells(trace)
        for s, x, t in zip(states, inputs, states[1:], strict=False):
            assert M.probability(s.tolist(), on=x.tolist(), to=t.tolist()) > 0
    concrete = np.unique(np.concatenate([trace.states for trace in traces]), axis=0)
    assert len(M.states) <= len(concrete)
    assert len(M.transitions) <= sum(len(trace) for trace in traces)


def test_the_model_has_paths_that_were_not_observed() -> None:
    """0 -> 0 and 0 -> 1 were seen, each alone; 0 -> 0 -> 1 was not, and is a path."""
    M = model([walk([0, 0], [A]), walk([0, 1], [A])], states=2, inputs=1)
    assert M.accepts(walk([0, 0, 1], [A, A]))
    assert not M.accepts(walk([0, 1, 1], [A, A]))


def test_the_grid_has_m_to_the_k_cells() -> None:
    traces = [dc.Trace(np.vstack([np.zeros(3), np.eye(3)]), np.ones((3, 1)))]
    assert dc.Profile.of(traces, components=3).abstract(7).grid.size == 7**3


def test_like_states_do_not_make_like_traces() -> None:
    """The Jaccard index of the states is 1, and that of the transitions 0."""
    one, other = walk([0, 1], [A]), walk([1, 0], [A])
    M = model([one, other], states=2, inputs=1)
    first, second = M.visits(one), M.visits(other)
    assert jaccard(first.states, second.states) == 1
    assert jaccard(first.transitions, second.transitions) == 0


def test_a_finer_grid_can_make_two_inputs_more_alike() -> None:
    """Indices mostly fall on finer grids (RQ1), and need not: what both visit may be split, and the rest not."""
    one, other = walk([0.0, 0.9, 2.0], [A, A]), walk([0.0, 0.9], [A])
    coarse, fine = (dc.Profile.of([one], components=1).abstract(m) for m in (2, 4))
    values = [jaccard(M.visits(one).states, M.visits(other).states) for M in (coarse, fine)]
    assert values == [1 / 2, 2 / 3]
