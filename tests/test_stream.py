"""Running a system over data: order, batches, unreadable inputs, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.stream import Progress, in_share, stream


class Echo:
    """A system whose states are sums of its inputs; it remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def run(self, batch: Sequence[Any]) -> list[dc.Run]:
        self.batches.append([len(array) for array in batch])
        return [
            dc.Run(float(a.sum()), dc.Trace(np.concatenate([np.zeros((1, a.shape[1])), a.cumsum(0)]), a)) for a in batch
        ]


@dataclass
class Item:
    """A sample as a corpus has them."""

    id: str
    array: np.ndarray | None

    @property
    def input(self) -> np.ndarray:
        if self.array is None:
            raise dc.FileError(f"cannot read {self.id}.wav: it is empty")
        return self.array


def arrays(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((int(rng.integers(1, 40)), 3)) for _ in range(count)]


@pytest.mark.parametrize("batch_size", [1, 3, 16, 1000])
def test_results_come_in_the_order_of_the_data(batch_size: int) -> None:
    data, system, progress = arrays(100), Echo(), Progress(100)
    results = list(
        stream(system, data, lambda _, runs: [r.output for r in runs], progress=progress, batch_size=batch_size)
    )
    assert [name for name, _ in results] == [str(i) for i in range(100)]
    assert [output for _, output in results] == [float(a.sum()) for a in data]
    assert (progress.done, progress.steps) == (100, sum(map(len, data)))


def batches_of(lengths: list[int], batch_size: int) -> list[list[int]]:
    """The lengths of the inputs of each batch, by the rule of the documentation."""
    measured = [length for at, length in enumerate(lengths) if at % (1 + len(lengths) // 16) == 0]
    most = min(one for one in measured if sum(other > one for other in measured) < len(measured) / 8)
    batches: list[list[int]] = []
    for start in range(0, len(lengths), 8 * batch_size):
        batch: list[int] = []
        for length in sorted(lengths[start : start + 8 * batch_size], reverse=True):
            if batch and (len(batch) + 1) * batch[0] > batch_size * most:
                batches.append(batch)
                batch = []
            batch.append(length)
        batches.append(batch)
    return batches


@given(
    st.lists(st.integers(1, 9) | st.sampled_from([1, 20, 300]), min_size=1, max_size=80), st.sampled_from([1, 2, 3, 16])
)
def test_a_batch_takes_as_many_inputs_as_fit_its_budget(lengths: list[int], batch_size: int) -> None:
    data = [np.ones((length, 1)) for length in lengths]
    system = Echo()
    list(stream(system, data, nothing, progress=Progress(len(data)), batch_size=batch_size))
    assert system.batches == batches_of(lengths, batch_size)


def nothing(names: list[str], runs: list[dc.Run]) -> list[None]:
    return [None] * len(runs)


def test_what_has_no_length_runs_in_batches_of_a_fixed_number() -> None:
    class Numbers(Echo):
        def run(self, batch: Sequence[Any]) -> list[dc.Run]:
            return super().run([np.ones((number, 1)) for number in batch])

    system = Numbers()
    list(stream(system, range(1, 11), nothing, progress=Progress(10), batch_size=4))
    assert system.batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


def test_the_same_batches_where_a_pass_goes_on() -> None:
    data, whole, rest = arrays(100), Echo(), Echo()
    list(stream(whole, data, nothing, progress=Progress(100), batch_size=3))
    list(stream(rest, data, nothing, progress=Progress(100, complete=48), batch_size=3))
    assert 0 < len(rest.batches) < len(whole.batches)
    assert rest.batches == whole.batches[-len(rest.batches) :]


def test_profile_and_cover_do_not_depend_on_the_batch_size() -> None:
    data = arrays(60)
    profiles = [dc.profile(Echo(), data, batch_size=n, exact=True) for n in (1, 7, 64)]
    # The covariance is summed in another order, so the axes differ in their last bits and no cell does.
    counts = [profile.abstract(10).counts for profile in profiles]
    assert counts[0] == counts[1] == counts[2]
    model, tests = profiles[0].abstract(10), arrays(20, seed=1)
    reports = [str(dc.cover(model, Echo(), tests, batch_size=n)) for n in (1, 7, 64)]
    assert reports[0] == reports[1] == reports[2]


def test_profiled_data_cover_themselves() -> None:
    data = arrays(60)
    model = dc.profile(Echo(), data).abstract(20)
    report = dc.cover(model, Echo(), data)
    assert [report[name] for name in ("BSCov", "BTCov", "ISCov", "WICov")] == [1.0, 1.0, 1.0, 1.0]
    assert report[dc.BSCov] == 1.0
    assert report.traces == 60
    with pytest.raises(dc.InputError, match="5-SBCov was not measured, only BSCov, 2-SBCov"):
        report["5-SBCov"]


def test_profile_of_a_system_is_that_of_its_traces() -> None:
    data = arrays(40)
    traces = [run.traced for run in Echo().run(data)]
    assert dc.profile(Echo(), data, exact=True).abstract(10).counts == dc.Profile.of(traces).abstract(10).counts


def test_parts_profiled_apart_are_the_whole() -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(200))]
    whole = dc.profile(Echo(), data, pca_share=0.3, seed=5)
    parts = [data[:90], data[90:]]
    fitted = [dc.fit(Echo(), part, share=0.3, seed=5) for part in parts]
    projections = fitted[0].merge(fitted[1]).projections(3)
    assert np.abs(projections.states.axes - whole.projections.states.axes).max() < 1e-12
    joined = [dc.profile(Echo(), part, projections=projections) for part in parts]
    merged = joined[0].merge(joined[1])
    assert merged.origin.data == whole.origin.data
    assert merged.abstract(10).states.tolist() == whole.abstract(10).states.tolist()
    assert len(merged.lengths) == 200


def test_the_share_is_fitted_on_and_chosen_by_name_and_seed() -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(400))]
    profile = dc.profile(Echo(), data, pca_share=0.25, seed=3)
    chosen = [item for item in data if in_share(item.id, share=0.25, seed=3)]
    assert 60 < len(chosen) < 140
    assert profile.origin.fitted_on == len(chosen)
    traces = [run.traced for run in Echo().run([item.array for item in chosen])]
    axes = dc.Fit.of(traces).projections(3).states.axes
    assert np.abs(profile.projections.states.axes - axes).max() < 1e-12
    assert dc.profile(Echo(), data, pca_share=0.25, seed=3) == profile
    assert dc.profile(Echo(), data, pca_share=0.25, seed=4) != profile


def test_a_sample_is_profiled_as_if_there_were_nothing_else() -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(400))]
    whole, sample = dc.profile(Echo(), data, exact=True), dc.profile(Echo(), data, sample=0.2, exact=True, seed=1)
    assert 40 < sample.origin.traces < 130
    assert len(whole.lengths) == 400
    chosen = [item for item in data if in_share(f"sample:{item.id}", share=0.2, seed=1)]
    alone = dc.profile(Echo(), chosen, exact=True)
    assert sample == alone
    assert sample.origin == alone.origin
    assert dc.profile(Echo(), data, sample=0.2, exact=True, seed=2) != sample


def test_the_share_of_the_pca_is_one_of_the_sample_and_parts_choose_alike() -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(1000))]
    sample = dc.profile(Echo(), data, sample=0.5, pca_share=0.3, seed=1)
    assert 0.2 < sample.origin.fitted_on / sample.origin.traces < 0.4
    parts = [data[:300], data[300:]]
    fits = [dc.fit(Echo(), part, sample=0.5, share=0.3, seed=1) for part in parts]
    projections = fits[0].merge(fits[1]).projections(3)
    joined = [dc.profile(Echo(), part, sample=0.5, projections=projections, seed=1) for part in parts]
    assert joined[0].merge(joined[1]).origin.data == sample.origin.data


@pytest.mark.parametrize("sample", [0.0, -0.1, 1.01])
def test_a_sample_is_a_share(sample: float) -> None:
    with pytest.raises(dc.InputError, match=rf"sample must be above 0 and at most 1, not {sample}: 0.2 profiles"):
        dc.profile(Echo(), arrays(3), sample=sample)


def test_a_sample_without_a_sequence() -> None:
    with pytest.raises(dc.InputError, match=r"a sample of 1e-09 of 3 sequences is empty: use a larger sample"):
        dc.profile(Echo(), arrays(3), sample=1e-9)


def test_too_small_a_share_is_not_trusted() -> None:
    data = [Item(f"utterance-{i}", array) for i, array in enumerate(arrays(5))]
    assert dc.profile(Echo(), data, pca_share=0.01).origin.fitted_on == 5


def test_one_unreadable_input_is_left_out_and_told() -> None:
    data = [Item(str(i), array) for i, array in enumerate(arrays(30))]
    data[7] = Item("broken", None)
    reported: dict[str, str] = {}
    profile = dc.profile(Echo(), data, exact=True, watch=lambda progress: reported.update(progress.skipped))
    assert reported == {"broken": "cannot read broken.wav: it is empty"}
    assert profile.origin.traces == 29
    report = dc.cover(profile.abstract(10), Echo(), data)
    assert report.skipped == reported
    assert report.traces == 29
    assert report["BSCov"] == 1.0


@pytest.mark.parametrize("use", ["profile", "exact", "cover"])
def test_all_unreadable_is_an_error(use: str) -> None:
    data = [Item(f"u{i}", None) for i in range(5)]
    model = dc.profile(Echo(), arrays(9)).abstract(5)
    with pytest.raises(dc.InputError, match=r"none of the 5 inputs could be read; the first, 'u0': cannot read"):
        dc.cover(model, Echo(), data) if use == "cover" else dc.profile(Echo(), data, exact=use == "exact")


def test_an_item_may_keep_its_input_in_a_plain_field() -> None:
    @dataclass
    class Plain:
        id: str
        input: np.ndarray

    data = arrays(9)
    profile = dc.profile(Echo(), [Plain(str(i), array) for i, array in enumerate(data)], exact=True)
    assert profile == dc.profile(Echo(), data, exact=True)


def test_bad_data() -> None:
    with pytest.raises(dc.InputError, match="the data set is empty"):
        dc.profile(Echo(), [])
    with pytest.raises(dc.InputError, match=r"read more than once.*generator has no length"):
        dc.profile(Echo(), (a for a in arrays(3)))
    with pytest.raises(dc.InputError, match="batch_size must be at least 1, not 0"):
        dc.profile(Echo(), arrays(3), batch_size=0)
    with pytest.raises(dc.InputError, match=r"pca_share must be above 0 and at most 1, not 1.5"):
        dc.profile(Echo(), arrays(3), pca_share=1.5)


def test_a_system_that_forgets_an_input() -> None:
    class Forgetful(Echo):
        def run(self, batch: Sequence[Any]) -> list[dc.Run]:
            return super().run(batch)[1:]

    with pytest.raises(dc.InputError, match="returned 8 runs for a batch of 9 inputs"):
        dc.profile(Forgetful(), arrays(9), exact=True)


def test_a_profile_of_another_network() -> None:
    class Named(Echo):
        def __init__(self, fingerprint: str) -> None:
            super().__init__()
            self.fingerprint, self.state_name = fingerprint, "lstm: h"

    model = dc.profile(Named("abc"), arrays(9)).abstract(5)
    assert dc.cover(model, Named("abc"), arrays(3)).traces == 3
    assert dc.cover(model, Echo(), arrays(3)).traces == 3
    with pytest.raises(dc.MismatchError, match=r"made from another network.*'lstm: h', abc.*profile this one first"):
        dc.cover(model, Named("xyz"), arrays(3))


def test_the_states_of_one_batch_at_most_are_alive() -> None:
    alive = peak = 0

    class Counted(np.ndarray):
        def __del__(self) -> None:
            nonlocal alive
            alive -= len(self)

    class Counting(Echo):
        def run(self, batch: Sequence[Any]) -> list[dc.Run]:
            nonlocal alive, peak
            runs = []
            for array in batch:
                states = np.concatenate([np.zeros((1, 3)), array.cumsum(0)]).view(Counted)
                alive += len(states)
                peak = max(peak, alive)
                runs.append(dc.Run(None, dc.Trace(states, array)))
            return runs

    data = arrays(100)
    dc.profile(Counting(), data, batch_size=4)
    one = max(sum(length + 1 for length in batch) for batch in batches_of([len(array) for array in data], 4))
    assert one <= peak <= 2 * one, f"{peak} states were alive at once, and the largest batch has {one}"
