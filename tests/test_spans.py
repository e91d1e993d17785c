"""Disagreement of spans, compared with spans on a fine grid of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.transformations import AddWhiteNoise, ChangeSpeed, Trim, apply

#: Moments of the grid in a second; spans of the tests begin and end on it.
GRID = 20
spans = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 30)), max_size=7).map(
    lambda spans: [(start / GRID, (start + length) / GRID) for start, length in spans]
)


def raster(answer: Any) -> np.ndarray:
    """Whether each moment lies in a span."""
    inside = np.zeros(140, bool)
    for start, end in answer:
        inside[round(start * GRID) : round(end * GRID)] = True
    return inside


@settings(max_examples=500)
@given(spans, spans)
def test_it_is_intersection_over_union(one: Any, other: Any) -> None:
    """Spans may overlap, touch, be empty and come in any order."""
    either = np.sum(raster(one) | raster(other))
    expected = np.sum(raster(one) & raster(other)) / either if either else 1.0
    oracle = dc.SpanDisagreement()
    assert oracle.score(one, other) == pytest.approx(1 - expected, abs=1e-9)
    assert oracle.score(other, one) == pytest.approx(1 - expected, abs=1e-9)
    assert oracle.score(one, one[::-1]) == pytest.approx(0, abs=1e-9)
    assert oracle.score(np.array(one).reshape(-1, 2), [list(pair) for pair in other]) == oracle.score(one, other)


def test_when_it_fails() -> None:
    oracle = dc.SpanDisagreement(below=0.5)
    for output, fails in (([(0, 2)], False), ([(0, 1)], False), ([(0, 0.99)], True), ([], True), ([(3, 5)], True)):
        assert oracle.fails(oracle.score([(0.0, 2.0)], output)) is fails
    assert not oracle.fails(oracle.score([], []))
    assert oracle.fails(oracle.score([], [(0, 1)]))
    assert oracle.name == "overlap of spans below 0.5"
    assert oracle.reference("a text", [(0, 1)]) == [(0, 1)], "a text says nothing of spans"


@pytest.mark.parametrize("below", [0, -1, 1.1, float("nan")])
def test_limits_that_are_none(below: float) -> None:
    with pytest.raises(dc.InputError, match=f"below must be above 0 and at most 1, not {below}"):
        dc.SpanDisagreement(below)


@pytest.mark.parametrize("answer", ["speech", 3, [(2, 1)], [1, 2, 3], None, [(0, "x")], [(0, float("nan"))]], ids=repr)
def test_answers_that_are_no_spans(answer: Any) -> None:
    with pytest.raises(dc.InputError, match=r"spans must be a list of pairs \(start, end\) in seconds, not"):
        dc.SpanDisagreement().score([(0, 1)], answer)


def beeps(*starts: float, length: float = 0.5, seconds: float = 5.0, rate: int = 8000) -> dc.Audio:
    """Silence, and tones in it."""
    times = np.arange(int(seconds * rate)) / rate
    on = sum(((times >= start) & (times < start + length)).astype(float) for start in starts)
    return dc.Audio((0.3 * on * np.sin(2 * np.pi * 440 * times)).astype(np.float32), rate)


def heard(audio: dc.Audio) -> list[tuple[float, float]]:
    """A correct detector: spans where the level of 10 ms exceeds a tenth of the greatest."""
    frame = audio.rate // 100
    levels = np.abs(audio.samples[: len(audio) // frame * frame]).reshape(-1, frame).max(1)
    return dc.spans(
        (levels > 0.1 * levels.max()).astype(float), seconds_per_step=0.01, shortest_seconds=0.05, pad_seconds=0
    )


@pytest.mark.parametrize(
    "recipe",
    [
        [],
        [AddWhiteNoise(40, 1)],
        [ChangeSpeed(0.85)],
        [ChangeSpeed(1.15)],
        [Trim(30)],
        [AddWhiteNoise(40, 1), Trim(30), ChangeSpeed(1.1)],
        [ChangeSpeed(0.9), Trim(30), AddWhiteNoise(40, 1)],
    ],
    ids=str,
)
def test_the_reference_moves_with_the_sound(recipe: list[Any]) -> None:
    """A detector that is right about seed and mutant is right, however the mutant was stretched and cut."""
    seed, oracle = beeps(1.0, 2.0, 4.0), dc.SpanDisagreement(below=0.9)
    mutant = apply(recipe, seed)
    followed = oracle.follow(heard(seed), seed, recipe, mutant)
    assert oracle.score(followed, heard(mutant)) < 0.1
    assert np.asarray(followed).max() <= mutant.seconds
    if any(isinstance(step, ChangeSpeed | Trim) for step in recipe):
        assert oracle.score(heard(seed), heard(mutant)) > 0.15, "the reference had to move"
    assert oracle.score(followed, heard(mutant)[1:]) > 0.25, "and a span that was missed is still seen"


def test_what_was_cut_off_is_not_expected() -> None:
    quiet = beeps(2.0).samples + 0.001 * beeps(0.2, 4.5).samples
    seed = dc.Audio(quiet, 8000)
    mutant = Trim(30)(seed)
    assert mutant.seconds < 1
    followed = dc.SpanDisagreement().follow([(0.2, 0.7), (2.0, 2.5), (4.5, 5.0)], seed, [Trim(30)], mutant)
    assert dc.SpanDisagreement().score(followed, [(0.1, 0.6)]) < 0.05


DETECTOR = """
import numpy as np
import torch
import deepcruiser as dc


class Follower(torch.nn.Module):
    '''A plain recurrent network that follows the level, with weights set by hand.'''

    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.RNN(1, 1, batch_first=True)
        for name, value in (("weight_ih_l0", 1.0), ("weight_hh_l0", 0.5), ("bias_ih_l0", 0.0), ("bias_hh_l0", 0.0)):
            torch.nn.init.constant_(getattr(self.rnn, name), value)

    def forward(self, levels):
        return self.rnn(levels)[0]


def levels(audio):
    frames = audio.samples[: len(audio) // 80 * 80].reshape(-1, 80)
    return np.abs(frames).max(1)[:, None].astype(np.float32)


def speech(states):
    # the planted weakness: the limit is a fixed level, so what is soft is not heard
    return dc.spans((states[:, 0] > 0.25).float(), seconds_per_step=0.01, shortest_seconds=0.05, pad_seconds=0)


system = dc.TorchSystem(Follower().eval(), "rnn", features=levels, batch="padded", transcribe=speech)
"""


def test_a_campaign_of_a_detector(tmp_path: Path) -> None:
    """From the command line: failures are those of volume, never of speed or cut silence, and they replay."""
    (tmp_path / "vad.py").write_text(DETECTOR)
    (tmp_path / "seeds").mkdir()
    for number, starts in enumerate([(1.0, 2.0, 4.0), (0.5, 3.0), (2.2,), (0.3, 1.3, 2.3, 3.3)]):
        beeps(*starts).write(tmp_path / "seeds" / f"{number}.wav")
    common = ["--system", str(tmp_path / "vad.py:system"), "--data", str(tmp_path / "seeds")]
    runner = CliRunner()
    made = runner.invoke(main, ["profile", *common, "-o", str(tmp_path / "vad.profile"), "--components", "1"])
    assert made.exit_code == 0, made.output
    fuzz = ["fuzz", *common, "--profile", str(tmp_path / "vad.profile"), "--partitions", "10", "--workers", "0"]
    fuzz += ["--spans-below", "0.5", "--transformations", "ChangeVolume,ChangeSpeed,Trim", "--runs", "96", "--json"]
    result = runner.invoke(main, [*fuzz, "--range", "ChangeVolume.gain_db=-10,0", "-o", str(tmp_path / "run")])
    assert result.exit_code == 1, result.output
    summary = json.loads(result.stdout.splitlines()[-1])
    campaign = dc.CampaignRecord.open(tmp_path / "run")
    assert summary["failing_tests"] == len(campaign.failed) > 0
    assert all(any(type(step).__name__ == "ChangeVolume" for step in test.recipe) for test in campaign.failed)
    again = runner.invoke(main, ["replay", str(tmp_path / "run"), "--json"])
    assert again.exit_code == 1, again.output
    assert all(outcome["same"] and outcome["fails"] for outcome in json.loads(again.stdout)["results"])


def test_wrong_options(tmp_path: Path) -> None:
    common = ["fuzz", "--system", "brackets", "--model", "none", "-o", str(tmp_path / "run"), "--spans-below"]
    for more, message in (
        (["0.5", "--disagreement"], "cannot be combined: give one of --wer-above, --cer-above, "),
        (["0.5", "--against", "text"], "--spans-below compares with the answer to the seed"),
        (["1.5"], "below must be above 0 and at most 1, not 1.5"),
    ):
        result = CliRunner().invoke(main, [*common, *more])
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
