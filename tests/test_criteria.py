"""Every formula against sets and loops, on random traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcruiser as dc
from tests.conftest import walks
from tests.support import plain

EXACT = [dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov]


def cells_of(model: dc.AbstractModel, traces: list[dc.Trace]) -> plain.Plain:
    """What traces visit, found with nothing of the package but its projection."""
    result = []
    for trace in traces:
        states, inputs = model.projections.project([trace], ["-"])
        result.append(
            (
                plain.cells(states[0], model.grid.lower, model.grid.upper, model.grid.partitions),  # type: ignore[arg-type]
                plain.cells(inputs[0], model.input_grid.lower, model.input_grid.upper, model.input_grid.partitions),  # type: ignore[arg-type]
            )
        )
    return plain.Plain.of(result)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]]:
    """A profile, its model, the profiled traces, and tests that may go far beyond the profiled range."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, input_size = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    components, input_components = draw(st.integers(1, min(size, 5))), draw(st.integers(1, input_size))
    profiled = walks(rng, draw(st.integers(3, 12)), size=size, input_size=input_size)
    if not any(len(trace) and np.ptp(trace.states) for trace in profiled):
        profiled.append(dc.Trace(np.arange(2 * size, dtype=float).reshape(2, size), np.ones((1, input_size))))
    profile = dc.Profile.of(profiled, components=components, input_components=input_components)
    partitions = draw(st.sampled_from([1, 2, 3, 5, 10, 37, 100]))
    model = profile.abstract(partitions, input_partitions=draw(st.sampled_from([1, 2, 5, 10])))
    scale = draw(st.sampled_from([0.3, 1.0, 1.5, 4.0]))
    tests = walks(rng, draw(st.integers(0, 8)), size=size, input_size=input_size, scale=scale)
    tests += [profiled[i] for i in draw(st.lists(st.integers(0, len(profiled) - 1), max_size=3))]
    return profile, model, profiled, tests


@settings(max_examples=200)
@given(cases())
def test_all_five_equal_the_sets(case: tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]]) -> None:
    _, model, profiled, tests = case
    M, T = cells_of(model, profiled), cells_of(model, tests)
    assert dc.BSCov(model, tests) == pytest.approx(plain.bscov(M, T), abs=1e-12)
    assert dc.BTCov(model, tests) == pytest.approx(plain.btcov(M, T), abs=1e-12)
    assert dc.ISCov(model, tests) == pytest.approx(plain.iscov(M, T), abs=1e-12)
    assert dc.WICov(model, tests) == pytest.approx(plain.wicov(M, T), abs=1e-12)
    assert dc.literal_iscov(model, tests) == pytest.approx(plain.literal_iscov(M, T), abs=1e-12)
    assert dc.same_input_wicov(model, tests) == pytest.approx(plain.same_input_wicov(M, T), abs=1e-12)
    assert dc.same_input_wicov(model, tests) <= dc.WICov(model, tests) + 1e-12


@settings(max_examples=60)
@given(cases(), st.integers(1, 3))
def test_boundary_coverage_equals_the_least_distances(
    case: tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]], steps: int
) -> None:
    _, model, profiled, tests = case
    M, T = cells_of(model, profiled), cells_of(model, tests)
    box = np.prod([float(max(c) - min(c) + 1 + 2 * steps) for c in zip(*M.states, strict=True)])
    if box * len(M.states) > 300_000:
        return  # the double loop would take minutes
    assert set(map(tuple, model.grid.decode(model.boundary(steps)).tolist())) == plain.boundary(M.states, steps)
    assert dc.SBCov(steps)(model, tests) == pytest.approx(plain.sbcov(M, T, steps), abs=1e-12)


@given(cases())
def test_the_profiled_data_cover_themselves_exactly(
    case: tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]],
) -> None:
    profile, model, profiled, _ = case
    for criterion in EXACT:
        assert criterion(model, profiled) == 1.0
        assert criterion.of(model, profile.visits(model)) == 1.0
    assert dc.same_input_wicov(model, profiled) == 1.0
    assert dc.SBCov(2)(model, profiled) == 0.0


@given(cases())
def test_no_tests_cover_nothing_and_more_tests_never_less(
    case: tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]],
) -> None:
    _, model, _, tests = case
    for criterion in [*EXACT, dc.SBCov(1), dc.SBCov(2)]:
        values = [criterion(model, tests[:n]) for n in range(len(tests) + 1)]
        assert values[0] == 0.0
        assert values == sorted(values)


def test_transition_coverage_of_a_model_without_repeats_is_a_matter_of_single_steps() -> None:
    """A worked case: two tests that share nothing but their first transition."""
    model = dc.Profile.of([line(0, 1, 2, 3), line(0, 1, 3)], components=1).abstract(4)
    assert dc.BTCov(model, [line(0, 1)]) == 1 / 4
    assert dc.BSCov(model, [line(0, 1)]) == 2 / 4
    assert dc.BSCov(model, [line(0, 1), line(3, 2)]) == 1.0
    assert dc.BTCov(model, [line(0, 1), line(3, 2)]) == 1 / 4


def line(*positions: float) -> dc.Trace:
    """A trace on a line, with one and the same input at every step."""
    return dc.Trace(np.array(positions, float)[:, None], np.ones((len(positions) - 1, 1)))


def test_literal_input_space_coverage_can_exceed_one() -> None:
    def step(x: float) -> dc.Trace:
        return dc.Trace(np.array([[0.0], [1.0]]), np.array([[x]]))

    model = dc.Profile.of([step(0.0), step(1.0)], components=1).abstract(2, input_partitions=2)
    tests = [step(x) for x in (0.0, 1.0, 2.0, 3.0)]
    assert dc.ISCov(model, tests) == 1.0
    assert dc.literal_iscov(model, tests) == 2.0


@pytest.mark.parametrize("name", ["BSCov", "bscov", "3-SBCov", "BTCov", "ISCov", "WICOV"])
def test_criteria_by_name(name: str) -> None:
    assert dc.criterion(name).name.lower() == name.lower()
    assert dc.criterion("3-SBCov") == dc.SBCov(3)


@pytest.mark.parametrize("name", ["0-SBCov", "SBCov", "NeuronCoverage", ""])
def test_unknown_criterion(name: str) -> None:
    with pytest.raises(dc.InputError, match="unknown criterion"):
        dc.criterion(name)


@pytest.mark.parametrize("steps", [0, -1, 1.5])
def test_boundary_needs_a_step(steps: Any) -> None:
    with pytest.raises(dc.InputError, match=f"1 step or more, a whole number, not {steps}"):
        dc.SBCov(steps)


@settings(max_examples=60)
@given(cases(), st.integers(1, 3))
def test_boundary_within_the_bounds_has_the_cells_of_the_grid_alone(
    case: tuple[dc.Profile, dc.AbstractModel, list[dc.Trace], list[dc.Trace]], steps: int
) -> None:
    _, model, profiled, tests = case
    M, T = cells_of(model, profiled), cells_of(model, tests)
    box = np.prod([float(max(c) - min(c) + 1 + 2 * steps) for c in zip(*M.states, strict=True)])
    if box * len(M.states) > 300_000:
        return
    intervals = [
        model.grid.partitions if upper > lower else 1
        for lower, upper in zip(model.grid.lower, model.grid.upper, strict=True)
    ]
    around = {
        cell
        for cell in plain.boundary(M.states, steps)
        if all(0 <= i < n for i, n in zip(cell, intervals, strict=True))
    }
    assert set(map(tuple, model.grid.decode(model.boundary(steps, within=True)).tolist())) == around
    share = len(T.states & around) / len(around) if around else 0.0
    assert dc.SBCov(steps, within=True)(model, tests) == pytest.approx(share, abs=1e-12)


def test_boundary_within_the_bounds_by_hand_and_by_name(tmp_path: Path) -> None:
    """S_M is {0, 1, 4} on a line of five cells: 2 and 3 lie inside, -1 and 5 outside."""
    model = dc.Profile.of([line(0, 1, 4)], components=1).abstract(5)
    criterion = dc.criterion("1-sbcov-WITHIN")
    assert criterion == dc.SBCov(1, within=True)
    assert criterion != dc.SBCov(1)
    assert dc.SBCov(1)(model, [line(0, 2.2, -0.5)]) == 2 / 4
    assert criterion(model, [line(0, 2.2, -0.5)]) == 1 / 2
    coverage = dc.Coverage(model, criterion)
    coverage.add(line(0, 2.2, -0.5))
    assert coverage.uncovered["state"].tolist() == [[3]]
    coverage.save(tmp_path / "c")
    assert dc.Coverage.load(tmp_path / "c", model).value == 1 / 2


def test_a_full_grid_has_no_boundary_within() -> None:
    model = dc.Profile.of([line(0, 1, 2)], components=1).abstract(3)
    assert dc.SBCov(2, within=True)(model, [line(0, 5)]) == 0.0
