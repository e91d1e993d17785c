"""k-means behind the grid's interface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.abstraction import clusters as clusters_module
from deepcruiser.abstraction.clusters import Clusters
from tests.conftest import walks
from tests.support import plain

pytest.importorskip("sklearn")


def profiled(seed: int = 0) -> tuple[list[dc.Trace], dc.Profile]:
    traces = walks(np.random.default_rng(seed), 40, size=3)
    return traces, dc.Profile.of(traces, components=2)


def test_a_cell_is_the_nearest_centre() -> None:
    rng = np.random.default_rng(0)
    centres, vectors = rng.normal(size=(20, 3)), rng.normal(size=(200, 3)) * 3
    cells = Clusters.at(centres).cells(vectors)
    assert cells.shape == (200, 1)
    assert cells[:, 0].tolist() == [int(np.argmin([((v - c) ** 2).sum() for c in centres])) for v in vectors]


def test_criteria_equal_the_sets_on_clusters_too() -> None:
    traces, profile = profiled()
    model = profile.cluster(12, input_partitions=2)
    tests = walks(np.random.default_rng(5), 10, size=3, scale=2)

    def cells_of(several: list[dc.Trace]) -> plain.Plain:
        result = []
        for trace in several:
            states, inputs = model.cells(trace)
            result.append(([tuple(s) for s in states.tolist()], [tuple(x) for x in inputs.tolist()]))
        return plain.Plain.of(result)

    M, T = cells_of(traces), cells_of(tests)
    assert len(model.states) == len(M.states) == 12
    assert dc.BSCov(model, tests) == pytest.approx(plain.bscov(M, T))
    assert dc.BTCov(model, tests) == pytest.approx(plain.btcov(M, T))
    assert dc.ISCov(model, tests) == pytest.approx(plain.iscov(M, T))
    assert dc.WICov(model, tests) == pytest.approx(plain.wicov(M, T))
    assert [c(model, traces) for c in (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov)] == [1] * 4
    assert [c(model, tests) for c in (dc.SBCov(1), dc.SBCov(3, within=True))] == [0, 0], "there is no boundary"


def test_the_clusters_are_those_of_lloyd() -> None:
    """No centre can move: each is the mean of the vectors that are nearest to it."""
    _, profile = profiled()
    model = profile.cluster(5)
    assert isinstance(model.grid, Clusters)
    cells = model.grid.cells(profile.states[:])[:, 0]
    means = [profile.states[:][cells == number].mean(0) for number in range(5)]
    assert model.grid.centres == pytest.approx(np.array(means), abs=1e-3)


def test_same_seed_same_clusters_saved_and_loaded(tmp_path: Path) -> None:
    _, profile = profiled()
    model = profile.cluster(7, seed=3)
    assert model == profile.cluster(7, seed=3)
    assert model != profile.cluster(7, seed=4)
    model.save(tmp_path / "k.model")
    loaded = dc.AbstractModel.load(tmp_path / "k.model")
    assert loaded == model
    assert loaded.name == model.name == "M{2,7 clusters}"


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    _, profile = profiled()
    with pytest.raises(dc.InputError, match=r"clusters must be at most \d+, the number of different states"):
        profile.cluster(10_000)
    with pytest.raises(dc.InputError, match="clusters must be at least 1, not 0"):
        profile.cluster(0)
    monkeypatch.setattr(clusters_module, "find_spec", lambda name: None)
    with pytest.raises(dc.InputError, match=r"k-means needs scikit-learn: install it with pip install 'deepcruiser"):
        profile.cluster(3)
