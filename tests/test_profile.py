from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.abstraction import profile as profile_module
from deepcruiser.files.spooled_rows import Rows
from tests.conftest import walks


@given(st.integers(0, 2**32), st.integers(1, 29))
def test_two_halves_merged_are_the_whole(seed: int, cut: int) -> None:
    traces = walks(np.random.default_rng(seed), 30)
    whole = dc.Profile.of(traces, components=2)
    fit = dc.Fit.of(traces[:cut]).merge(dc.Fit.of(traces[cut:]))
    projections = fit.projections(2)
    halves = [dc.Profile.of(part, projections=projections) for part in (traces[:cut], traces[cut:])]
    merged = halves[0].merge(halves[1])
    # The covariance sums agree to their last bits only, so the projected values do to single precision.
    assert merged.states[:] == pytest.approx(whole.states[:], abs=1e-6)
    same = [dc.Profile.of(part, projections=whole.projections) for part in (traces[:cut], traces[cut:])]
    assert same[0].merge(same[1]) == whole
    assert same[0].merge(same[1]).abstract(7) == whole.abstract(7)


def test_two_profiles_of_the_same_data_are_equal() -> None:
    traces = walks(np.random.default_rng(1), 30)
    assert dc.Profile.of(traces) == dc.Profile.of(traces)
    assert dc.Profile.of(traces) != dc.Profile.of(traces[1:])
    assert dc.Profile.of(traces).abstract(10) == dc.Profile.of(traces).abstract(10)


def test_tensors_and_arrays_give_the_same() -> None:
    traces = walks(np.random.default_rng(2), 20)
    tensors = [dc.Trace(torch.from_numpy(t.states), torch.from_numpy(t.inputs)) for t in traces]
    assert dc.Profile.of(tensors) == dc.Profile.of(traces)


def test_the_order_of_the_traces_does_not_matter_to_the_model() -> None:
    traces = walks(np.random.default_rng(3), 40)
    one = dc.Profile.of(traces)
    other = dc.Profile.of(traces[::-1], projections=one.projections)
    assert one.abstract(10) == other.abstract(10)


def test_counting_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(4), 60))
    whole = [profile.abstract(m) for m in (1, 5, 50)]
    for steps in (1, 13, 100):
        monkeypatch.setattr(profile_module, "_BLOCK_STEPS", steps)
        assert [profile.abstract(m) for m in (1, 5, 50)] == whole


def test_configurations_are_the_sizes_of_the_models() -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(5), 60))
    for configuration, partitions in zip(profile.configurations(), (10, 20, 50, 100), strict=True):
        model = profile.abstract(partitions)
        assert configuration.name == f"M{{3,{partitions}}}"
        assert configuration.states == len(model.states)
        assert configuration.transitions == len(model.transitions)
        assert configuration.choices == len(model.choices)
        assert configuration.cells == partitions**3
        assert f"{len(model.states):,} states" in str(configuration)


def test_profile_and_model_print_themselves() -> None:
    traces = walks(np.random.default_rng(6), 60)
    profile = dc.Profile.of(traces)
    steps = sum(map(len, traces))
    assert repr(profile).startswith(f"Profile of 60 traces, {steps} steps: 3 of 4 components explain ")
    model = profile.abstract(20)
    assert repr(model) == (
        f"AbstractModel M{{3,20}}: {len(model.states)} states, {len(model.transitions)} transitions, from 60 traces"
    )


def test_save_and_load(tmp_path: Path) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(7), 60))
    profile.save(tmp_path / "a.profile")
    loaded = dc.Profile.load(tmp_path / "a.profile")
    assert loaded == profile
    assert loaded.origin == profile.origin
    model = profile.abstract(9)
    assert loaded.abstract(9) == model
    model.save(tmp_path / "a.model")
    again = dc.AbstractModel.load(tmp_path / "a.model")
    assert again == model
    assert again.origin == model.origin
    test = walks(np.random.default_rng(8), 5)
    for criterion in (dc.BSCov, dc.SBCov(2), dc.BTCov, dc.ISCov, dc.WICov):
        assert criterion(again, test) == criterion(model, test)


def test_equal_contents_give_equal_files_that_numpy_opens(tmp_path: Path) -> None:
    for name in ("a", "b"):
        dc.Profile.of(walks(np.random.default_rng(7), 10)).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with np.load(tmp_path / "a", allow_pickle=False) as arrays:
        assert arrays["states"].shape[1] == 3


@pytest.mark.parametrize("kind", ["profile", "model"])
def test_damaged_files(tmp_path: Path, kind: str) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(9), 10))
    path = tmp_path / "x"
    load = dc.Profile.load if kind == "profile" else dc.AbstractModel.load
    (profile if kind == "profile" else profile.abstract(5)).save(path)
    whole = path.read_bytes()
    for length in [0, 1, 10, *np.linspace(20, len(whole) - 1, 20, dtype=int).tolist()]:
        path.write_bytes(whole[:length])
        with pytest.raises(dc.FileError, match="damaged or cut short"):
            load(path)
    rng = np.random.default_rng(10)
    unharmed = 0
    for _ in range(300):
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:
            loaded = load(path)
        except dc.FileError:
            continue
        unharmed += 1  # a bit of the archive that says nothing, such as a date
        assert loaded == (profile if kind == "profile" else profile.abstract(5))
    assert unharmed < 100


def test_files_of_another_kind_or_version(tmp_path: Path) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(9), 10))
    profile.save(tmp_path / "a.profile")
    with pytest.raises(dc.FileError, match="is a profile, but a model is needed"):
        dc.AbstractModel.load(tmp_path / "a.profile")
    with pytest.raises(dc.FileError, match="there is no file"):
        dc.Profile.load(tmp_path / "none")
    with pytest.raises(dc.FileError, match=r"is not a (profile|file)"):
        dc.Profile.load(tmp_path)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(dc.FileError, match=r"is not a (profile|file)"):
        dc.Profile.load(tmp_path / "other.npz")
    with zipfile.ZipFile(tmp_path / "a.profile") as old, zipfile.ZipFile(tmp_path / "b.profile", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, json.dumps({**json.loads(data), "version": 99}) if name == "about.json" else data)
    with pytest.raises(dc.FileError, match=r"version 99 .* reads version 1"):
        dc.Profile.load(tmp_path / "b.profile")
    with zipfile.ZipFile(tmp_path / "a.profile") as old, zipfile.ZipFile(tmp_path / "c.profile", "w") as new:
        for name in old.namelist():
            if name != "lengths.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(dc.FileError, match="it has the arrays inputs, "):
        dc.Profile.load(tmp_path / "c.profile")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(9), 10))
    profile.save(tmp_path / "a.profile")
    before = (tmp_path / "a.profile").read_bytes()

    def fail(self: Rows) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Rows, "blocks", fail)
    with pytest.raises(KeyboardInterrupt):
        profile.save(tmp_path / "a.profile")
    assert (tmp_path / "a.profile").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.profile"]
    with pytest.raises(dc.FileError, match="there is no folder"):
        profile.save(tmp_path / "none" / "a.profile")
    with pytest.raises(dc.FileError, match="it is a folder"):
        profile.save(tmp_path)


def test_rows_outgrow_the_memory_and_stay_the_same() -> None:
    rows = Rows(3)
    block = np.random.default_rng(0).standard_normal((200_000, 3)).astype(np.float32)
    for _ in range(10):  # 24 MB
        rows.append(block)
    assert len(rows) == 2_000_000
    assert (rows[400_000:600_000] == block).all()
    assert (rows[1_999_999:] == block[-1]).all()
    assert len(rows[5:5]) == 0
    copy = Rows(3)
    copy.extend(rows)
    assert copy == rows


class TestBadInput:
    def test_no_traces(self) -> None:
        with pytest.raises(dc.InputError, match="no traces to profile"):
            dc.Profile.of([])

    def test_traces_without_steps(self) -> None:
        with pytest.raises(dc.InputError, match="have no steps"):
            dc.Profile.of([dc.Trace(np.ones((1, 4)), np.ones((0, 2)))])

    def test_a_model_of_traces_without_steps_requires_nothing_but_states(self) -> None:
        projections = dc.Profile.of(walks(np.random.default_rng(0), 9)).projections
        start = dc.Trace(np.zeros((1, 4)), np.zeros((0, 2)))
        model = dc.Profile.of([start], projections=projections).abstract(4)
        assert [c(model, [start]) for c in (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov)] == [1.0, 0.0, 0.0, 0.0]

    def test_lengths_that_do_not_match(self) -> None:
        with pytest.raises(dc.InputError, match="5 states do not fit 5 inputs"):
            dc.Trace(np.ones((5, 2)), np.ones((5, 2)))

    def test_wrong_shapes_and_types(self) -> None:
        with pytest.raises(dc.InputError, match=r"states must have the shape \(steps, size\), not \(5,\)"):
            dc.Trace(np.ones(5), np.ones((4, 2)))
        with pytest.raises(dc.InputError, match="inputs must be a numpy array or a torch tensor, not list"):
            dc.Trace(np.ones((5, 2)), [1, 2, 3, 4])  # type: ignore[arg-type]

    def test_sizes_that_differ(self) -> None:
        one, other = walks(np.random.default_rng(0), 2, size=4), walks(np.random.default_rng(0), 1, size=3)
        with pytest.raises(dc.InputError, match="states of sequence '2' have 3 numbers and those before 4"):
            dc.Profile.of(one + other)
        model = dc.Profile.of(walks(np.random.default_rng(0), 9)).abstract(5)
        with pytest.raises(dc.InputError, match=r"have 3 numbers and those profiled 4.*another network or layer"):
            dc.BSCov(model, other)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_not_a_number(self, bad: float) -> None:
        traces = [t for t in walks(np.random.default_rng(0), 30) if len(t) > 5]
        model = dc.Profile.of(traces).abstract(5)
        spoiled = traces[2].states.copy()  # type: ignore[union-attr]
        spoiled[3, 1] = bad
        traces[2] = dc.Trace(spoiled, traces[2].inputs)
        with pytest.raises(dc.InputError, match="state 3 of sequence '2' holds NaN, infinity"):
            dc.Profile.of(traces)
        with pytest.raises(dc.InputError, match="state 3 of sequence 'trace 2' holds NaN, infinity"):
            model.visits(traces)
        inputs = traces[0].inputs.copy()  # type: ignore[union-attr]
        inputs[1, 0] = bad
        with pytest.raises(dc.InputError, match="input 1 of sequence '0' holds NaN, infinity"):
            dc.Profile.of([dc.Trace(traces[0].states, inputs)])

    def test_too_many_components(self) -> None:
        traces = walks(np.random.default_rng(0), 9)
        with pytest.raises(dc.InputError, match="components=5 is more than the 4 numbers of a state"):
            dc.Profile.of(traces, components=5)
        with pytest.raises(dc.InputError, match="input_components=3 is more than the 2 numbers of an input"):
            dc.Profile.of(traces, input_components=3)
        with pytest.raises(dc.InputError, match="not 0"):
            dc.Profile.of(traces, components=0)

    def test_constant_states(self) -> None:
        with pytest.raises(dc.InputError, match=r"all 12 profiled states are the same vector.*trained"):
            dc.Profile.of([dc.Trace(np.full((12, 3), 0.7), np.ones((11, 2)))])

    @pytest.mark.parametrize("partitions", [0, -1])
    def test_partitions(self, partitions: int) -> None:
        profile = dc.Profile.of(walks(np.random.default_rng(0), 9))
        with pytest.raises(dc.InputError, match=f"partitions must be at least 1, not {partitions}"):
            profile.abstract(partitions)

    def test_other_projections(self) -> None:
        one, other = (dc.Profile.of(walks(np.random.default_rng(seed), 9)) for seed in (0, 1))
        with pytest.raises(dc.MismatchError, match=r"different projections.*dc.fit on each"):
            one.merge(other)
