from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from tests.conftest import walks
from tests.support import toy

ALL = [dc.BSCov, dc.SBCov(1), dc.SBCov(2), dc.BTCov, dc.ISCov, dc.WICov]


def model_and_tests(seed: int, *, partitions: int = 6) -> tuple[dc.AbstractModel, list[dc.Trace]]:
    rng = np.random.default_rng(seed)
    return dc.Profile.of(walks(rng, 30), components=2).abstract(partitions), walks(rng, 20, scale=1.4)


@given(st.integers(0, 2**32), st.sampled_from([2, 6, 20]), st.sampled_from(ALL))
def test_gain_foretells_what_add_does(seed: int, partitions: int, criterion: dc.Criterion) -> None:
    model, tests = model_and_tests(seed, partitions=partitions)
    coverage = dc.Coverage(model, criterion)
    for n, trace in enumerate(tests):
        before, gain = coverage.value, coverage.gain(trace)
        assert coverage.value == before, "gain must not commit"
        coverage.add(trace)
        assert coverage.value == pytest.approx(before + gain, abs=1e-12)
        assert coverage.value == criterion(model, tests[: n + 1])
        assert coverage.gain(trace) == 0.0


@given(st.integers(0, 2**32), st.sampled_from(ALL))
def test_order_does_not_matter(seed: int, criterion: dc.Criterion) -> None:
    model, tests = model_and_tests(seed)
    order = np.random.default_rng(seed).permutation(len(tests))
    assert criterion(model, tests) == criterion(model, [tests[i] for i in order])


@given(st.integers(0, 2**32), st.integers(0, 20), st.sampled_from(ALL))
def test_merged_parts_are_the_whole(seed: int, cut: int, criterion: dc.Criterion) -> None:
    model, tests = model_and_tests(seed)
    parts = [dc.Coverage(model, criterion) for _ in range(2)]
    for i, trace in enumerate(tests):
        parts[i >= cut].add(trace)
    merged = parts[0].merge(parts[1])
    assert merged.value == criterion(model, tests)
    assert parts[0].value == criterion(model, tests[:cut]), "merging must leave the parts alone"


def test_a_batch_of_traces_counts_as_its_traces() -> None:
    model, tests = model_and_tests(5)
    for criterion in ALL:
        coverage = dc.Coverage(model, criterion)
        coverage.add(model.visits(tests))
        assert coverage.value == criterion(model, tests)


def test_uncovered_are_the_cells_that_the_tests_did_not_reach() -> None:
    model, tests = model_and_tests(1)
    coverage = dc.Coverage(model, dc.BSCov)
    for trace in tests:
        coverage.add(trace)
    reached = {tuple(cell) for trace in tests for cell in model.cells(trace)[0].tolist()}
    states = set(map(tuple, model.grid.decode(model.states).tolist()))
    assert set(map(tuple, coverage.uncovered["state"].tolist())) == states - reached
    assert 0 < len(coverage.uncovered["state"]) < len(states)


def test_uncovered_transitions_choices_and_rows_add_up() -> None:
    model, tests = model_and_tests(2)
    for criterion, parts in [
        (dc.BTCov, {"state", "successor"}),
        (dc.ISCov, {"state", "input"}),
        (dc.WICov, {"state", "input", "successor"}),
        (dc.SBCov(2), {"state"}),
    ]:
        coverage = dc.Coverage(model, criterion)
        coverage.add(model.visits(tests))
        uncovered = coverage.uncovered
        assert set(uncovered) == parts
        assert {len(cells) for cells in uncovered.values()} == {int((~coverage.covered).sum())}


def test_save_and_load(tmp_path: Path) -> None:
    model, tests = model_and_tests(3)
    for criterion in ALL:
        coverage = dc.Coverage(model, criterion)
        coverage.add(model.visits(tests[:10]))
        coverage.save(tmp_path / "x.coverage")
        loaded = dc.Coverage.load(tmp_path / "x.coverage", model)
        assert loaded.value == coverage.value
        assert loaded.criterion == criterion
        loaded.add(model.visits(tests[10:]))
        assert loaded.value == criterion(model, tests)


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    model, _ = model_and_tests(3)
    other, _ = model_and_tests(4)
    coverage = dc.Coverage(model, dc.BSCov)
    with pytest.raises(dc.MismatchError, match="BSCov and of BTCov"):
        coverage.merge(dc.Coverage(model, dc.BTCov))
    with pytest.raises(dc.MismatchError, match="two models"):
        coverage.merge(dc.Coverage(other, dc.BSCov))
    coverage.save(tmp_path / "x.coverage")
    with pytest.raises(dc.MismatchError, match="another model"):
        dc.Coverage.load(tmp_path / "x.coverage", other)
    with pytest.raises(dc.FileError, match="is a coverage, but a model is needed"):
        dc.AbstractModel.load(tmp_path / "x.coverage")


def test_a_coverage_prints_itself() -> None:
    model, tests = model_and_tests(3)
    coverage = dc.Coverage(model, dc.BSCov)
    coverage.add(model.visits(tests))
    text = str(coverage)
    assert "BSCov" in text
    assert f"{coverage.value:.2%}" in text
    assert f"of {len(model.states):,}" in text


def test_data_far_from_those_profiled_bring_a_hint() -> None:
    model = replace(toy.model(), probes=())

    class Forgetful(toy.Reader):
        """Its front end has lost a scale."""

        def _run(self, text: str) -> dc.Run:
            run = super()._run(text)
            return dc.Run(run.output, dc.Trace(np.asarray(run.traced.states) * 30, run.traced.inputs))

    data = toy.texts(40, seed=8, longest=12)
    assert "not in the model" not in str(dc.cover(model, toy.Reader(), data))
    report = dc.cover(model, Forgetful(), data)
    visits = [model.visits(run.traced) for run in Forgetful().run(data)]
    known = set(np.concatenate([each.states for each in visits]).tolist()) - set(model.initial.tolist())
    assert len(known) < 0.05 * sum(len(each.outside) for each in visits)
    assert "of the cells that the data visit are not in the model: check that" in str(report).splitlines()[-1]
