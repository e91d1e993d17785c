"""Traces with several segments: no transition between segments in profiles, coverage, transducers and monitors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import deepcruiser as dc

SIZE, WIDTH = 3, 8


def array(rng: np.random.Generator, steps: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=(steps, SIZE)).astype(np.float32)


def trace(rng: np.random.Generator, steps: int, size: int = 5) -> dc.Trace:
    return dc.Trace(rng.normal(size=(steps + 1, size)), rng.normal(size=(steps, 2)), rng.integers(0, 4, steps))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("tensors", [False, True])
def test_joined_and_parts_are_inverse(rng: np.random.Generator, tensors: bool) -> None:
    traces = [trace(rng, steps) for steps in (4, 1, 0, 7)]
    if tensors:
        traces = [dc.Trace(torch.tensor(each.states), torch.tensor(each.inputs)) for each in traces]
    joined = dc.Trace.joined(traces)
    assert (len(joined), len(joined.states), joined.segments) == (12, 16, (4, 1, 0, 7))
    assert repr(joined).startswith("Trace of 12 steps in 4 segments (states of 5")
    for part, one in zip(joined.parts, traces, strict=True):
        assert part.segments == (len(one),)
        assert np.array_equal(part.states, one.states)
        assert np.array_equal(part.inputs, one.inputs)
        if not tensors:
            assert part.outputs is not None
            assert np.array_equal(part.outputs, np.asarray(one.outputs))


@pytest.mark.parametrize(
    ("states", "segments", "message"),
    [
        (7, (2, 2), "segments of 2, 2 steps do not add up to 5 inputs"),
        (6, (2, 3), "6 states do not fit 5 inputs in 2 segments: each segment of N inputs leads through N\\+1 states"),
        (6, (6, -1), "segments of 6, -1 steps do not add up"),
        (7, (), "7 states do not fit 5 inputs: N inputs lead through N\\+1 states"),
    ],
)
def test_segments_that_do_not_fit(states: int, segments: tuple[int, ...], message: str) -> None:
    with pytest.raises(dc.InputError, match=message):
        dc.Trace(np.zeros((states, 2)), np.zeros((5, 2)), segments=segments)


def test_segments_count_as_traces_of_their_own(rng: np.random.Generator) -> None:
    apart = [trace(rng, int(steps)) for steps in rng.integers(1, 30, 12)]
    joined = [dc.Trace.joined(apart[:5]), dc.Trace.joined(apart[5:6]), dc.Trace.joined(apart[6:])]
    profile = dc.Profile.of(apart)
    model = profile.abstract(partitions=4)
    same = dc.Profile.of(joined, projections=profile.projections).abstract(partitions=4)
    assert model == same
    assert model.origin.traces == same.origin.traces == 12
    others = [trace(rng, int(steps)) for steps in rng.integers(1, 30, 4)]
    for one, other in zip(model.visits(others).arrays, model.visits(dc.Trace.joined(others)).arrays, strict=True):
        assert np.array_equal(one, other)
    assert dc.BTCov(model, [dc.Trace.joined(others)]) == dc.BTCov(model, others)
    assert model.accepts(dc.Trace.joined(apart))
    left = model.departure(dc.Trace.joined([apart[0], others[0]]))
    assert left is not None
    assert (left.segment, left.step) == (1, model.departure(others[0]).step)  # type: ignore[union-attr]
    assert " of segment 1 " in str(left) or str(left).startswith(f"step {left.step} of segment 1 ")
    transducer, of_joined = dc.Transducer.of(apart, model), dc.Transducer.of(joined, model)
    assert np.array_equal(transducer.transitions, of_joined.transitions)
    assert np.array_equal(transducer.initial, of_joined.initial)
    assert np.array_equal(transducer.final, of_joined.final)


def test_a_monitor_crosses_no_seam(rng: np.random.Generator) -> None:
    apart = [trace(rng, 20) for _ in range(8)]
    monitor = dc.Monitor(dc.Profile.of(apart).abstract(partitions=4))
    (joined,) = [monitor.read(dc.Run("", dc.Trace.joined(apart[:2])))]
    readings = [monitor.read(dc.Run("", each)) for each in apart[:2]]
    assert joined.steps == 40
    for name, score in joined.scores.items():
        assert score == pytest.approx(np.mean([each.scores[name] for each in readings]))


class Encoder(nn.Module):
    """A mean over the windows of a recording, as speaker encoders make it."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(SIZE, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[1][0][-1]  # type: ignore[no-any-return]


def windows(value: Any) -> list[Any]:
    return [value[start : start + 4] for start in range(0, max(1, len(value) - 3), 2)]


def system(**options: Any) -> dc.TorchSystem:
    torch.manual_seed(0)
    return dc.TorchSystem(Encoder().eval(), windows=windows, **options)


def test_windows_of_one_input_give_one_answer(rng: np.random.Generator) -> None:
    values = [array(rng, steps) for steps in (9, 4, 16)]
    runs = system(transcribe=lambda outputs: torch.stack(outputs).mean(0).numpy()).run(values)
    plain = dc.TorchSystem(system().net)
    for value, run in zip(values, runs, strict=True):
        singles = [plain.run([window])[0] for window in windows(value)]
        np.testing.assert_allclose(run.output, np.mean([each.output for each in singles], 0), atol=1e-6)
        assert run.traced.segments == tuple(4 for _ in singles)
        for part, single in zip(run.traced.parts, singles, strict=True):
            np.testing.assert_allclose(part.states, single.traced.states, atol=1e-6)
            np.testing.assert_allclose(part.inputs, single.traced.inputs)
    (whole,) = system().run(values[:1])
    assert [one.shape for one in whole.output] == [(WIDTH,)] * 3


def test_a_whole_campaign_on_windows(rng: np.random.Generator, tmp_path: Path) -> None:
    values = [array(rng, 12) for _ in range(12)]
    label = system(transcribe=lambda outputs: int(torch.stack(outputs).mean(0).argmax()))
    profile = dc.profile(label, values, components=2)
    assert profile.origin.traces == len(profile.names) == 12 * 5
    assert set(profile.names) == {str(number) for number in range(12)}
    model = profile.abstract(partitions=5)
    coverage = dc.cover(model, label, values)
    assert coverage["BTCov"] == coverage["BSCov"] == 1.0
    parts = [part for run in label.run(values) for part in run.traced.parts]
    assert dc.Profile.of(parts, projections=profile.projections).abstract(partitions=5).counts == model.counts
    oracle, mutations = dc.Disagreement(), dc.Mutations.series()
    campaign = dc.fuzz(
        label, model, values, folder=tmp_path, oracle=oracle, mutations=mutations, runs=160, seed=0, workers=0
    )
    assert campaign.failed
    assert all(test.replay(label).differences == () for test in campaign.failed[:5])


@pytest.mark.parametrize(("windows", "returned"), [([], "no window"), (None, "a NoneType")])
def test_windows_that_are_none(windows: Any, returned: str) -> None:
    encoder = dc.TorchSystem(Encoder().eval(), windows=lambda value: windows)
    message = f"windows= returned {returned} for input 0 of the batch; it must return at least one"
    with pytest.raises(dc.InputError, match=message):
        encoder.run([np.zeros((4, SIZE), np.float32)])
    with pytest.raises(dc.InputError, match="windows must be a function, not 5"):
        dc.TorchSystem(Encoder().eval(), windows=5)  # type: ignore[arg-type]
