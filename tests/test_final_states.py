"""States that traces end in: of models, merged counts, and files that were written without them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.abstraction.profile import _BLOCK_STEPS
from tests.conftest import walks

FIRST = Path(__file__).parent / "data" / "first"


def final_cells(model: dc.AbstractModel) -> set[tuple[int, ...]]:
    return set(map(tuple, model.grid.decode(model.states)[model.final].tolist()))


def profiled(seed: int, *, begin_apart: bool = False) -> tuple[list[dc.Trace], dc.AbstractModel]:
    traces = walks(np.random.default_rng(seed), 12, size=2)
    traces.append(dc.Trace(np.array([[0.0, 0.0], [1.0, -1.0]]), np.ones((1, 2))))
    if begin_apart:
        traces += [dc.Trace(trace.states + 1, trace.inputs) for trace in traces[:5]]
    return traces, dc.Profile.of(traces, components=2).abstract(4)


@given(st.integers(0, 2**32), st.booleans())
def test_final_states_are_where_traces_end(seed: int, begin_apart: bool) -> None:
    traces, model = profiled(seed, begin_apart=begin_apart)
    assert final_cells(model) == {tuple(model.cells(trace)[0][-1].tolist()) for trace in traces}


def test_blocks_that_are_counted_apart_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    traces, model = profiled(3, begin_apart=True)
    monkeypatch.setattr("deepcruiser.abstraction.profile._BLOCK_STEPS", 10)
    assert _BLOCK_STEPS > 10
    parts = dc.Profile.of(traces, projections=model.projections).abstract(4)
    assert parts.counts == model.counts


def without_final(path: Path) -> Path:
    """The file of a model as earlier versions wrote it: without final states, and with no list of its arrays."""
    old = path.with_suffix(".old")
    with zipfile.ZipFile(path) as new, zipfile.ZipFile(old, "w") as archive:
        about = json.loads(new.read("about.json"))
        del about["arrays"]
        archive.writestr("about.json", json.dumps(about))
        for name in new.namelist():
            if name not in ("about.json", "final.npy"):
                archive.writestr(name, new.read(name))
    return old


@given(seed=st.integers(0, 2**32))
def test_older_files_load_with_their_final_states(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    _, model = profiled(seed)
    path = tmp_path_factory.mktemp("model") / "m.model"
    model.save(path)
    old = dc.AbstractModel.load(without_final(path))
    assert len(model.initial) == 1
    assert old.counts == model.counts
    assert old == model, "a coverage or a campaign of the older file still fits"
    assert old.fingerprint == model.fingerprint


@given(seed=st.integers(0, 2**32))
def test_older_files_with_several_initial_states_have_no_wrong_final_state(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    _, model = profiled(seed, begin_apart=True)
    path = tmp_path_factory.mktemp("model") / "m.model"
    model.save(path)
    old = dc.AbstractModel.load(without_final(path))
    initial = set(map(tuple, model.grid.decode(model.states)[model.initial].tolist()))
    assert final_cells(old) <= final_cells(model)
    assert final_cells(old) - initial == final_cells(model) - initial


def test_files_of_the_first_version_load() -> None:
    """The files in data/first were written by the first version that wrote any, from these traces."""
    rng = np.random.default_rng(0)
    traces = []
    for steps in (int(rng.integers(3, 8)) for _ in range(6)):
        states = np.vstack([np.zeros(3), rng.normal(size=(steps, 3)).cumsum(0)])
        traces.append(dc.Trace(states, rng.normal(size=(steps, 2))))
    model = dc.AbstractModel.load(FIRST / "walks.model")
    assert model == dc.Profile.load(FIRST / "walks.profile").abstract(4)
    assert final_cells(model) == {tuple(model.cells(trace)[0][-1].tolist()) for trace in traces}
    assert all(map(model.accepts, traces))
    assert [criterion(model, traces[:2]) for criterion in (dc.BSCov, dc.BTCov, dc.WICov)] == [6 / 12, 9 / 23, 0.4]
    assert dc.Coverage.load(FIRST / "walks.coverage", model).value == 3 / 12


def test_the_header_is_that_of_earlier_versions(tmp_path: Path) -> None:
    _, model = profiled(0)
    model.save(tmp_path / "m.model")
    with zipfile.ZipFile(tmp_path / "m.model") as archive:
        about = json.loads(archive.read("about.json"))
    assert (about["format"], about["version"]) == ("deepcruiser model", 1)
