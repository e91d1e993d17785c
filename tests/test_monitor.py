"""The monitor: what is usual, alarms, step by step, files, and bad input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deepcruiser as dc
from deepcruiser.files import archive
from deepcruiser.monitor.calibration import Calibration
from tests.support.toy import Reader, model, texts

CLEAN = texts(400, seed=5, longest=12)
#: Texts of which `Odd` makes states that profiling never saw.
STRANGE = ["!" + text for text in texts(80, seed=6, longest=12) if len(text) > 8]


class Odd(Reader):
    """The reader, with states of twice the size after the symbols 5 to 8 of texts that begin with "!"."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        runs = super().run([text.removeprefix("!") for text in batch])
        for text, run in zip(batch, runs, strict=True):
            if text.startswith("!"):
                np.asarray(run.traced.states)[5:9] *= 2
        return runs


def calibrated(**options: Any) -> dc.Monitor:
    return dc.Monitor(model()).calibrate(Odd(), CLEAN, **{"alarm_rate": 0.05, **options})


def test_clean_inputs_raise_alarms_at_the_rate_asked_for() -> None:
    monitor = calibrated()
    fresh = texts(2_000, seed=7, longest=12)
    rate = np.mean([monitor.check(run) is not None for run in Reader().run(fresh)])
    assert 0.025 <= rate <= 0.1
    assert monitor.calibration is not None
    low, high = monitor.calibration.interval
    assert low < 0.05 < high


def test_strange_inputs_raise_alarms_that_say_what_and_when() -> None:
    monitor = calibrated()
    alarms = [alarm for run in Odd().run(STRANGE) if (alarm := monitor.check(run))]
    assert len(alarms) > 0.8 * len(STRANGE)
    alarm = alarms[0]
    assert alarm.score > alarm.threshold
    assert alarm.value > alarm.usual
    assert alarm.steps is not None
    assert 3 <= alarm.steps[0] <= alarm.steps[1] <= 9
    assert alarm.seconds is None
    assert f"in steps {alarm.steps[0]} to {alarm.steps[1]}" in str(alarm)


def test_the_score_is_the_largest_standardised_one() -> None:
    calibration = calibrated().calibration
    assert calibration is not None
    row = np.array([0.5, 2.0, 0.3, 0.9, 7.0])
    columns = calibration.clean.T.tolist()
    expected = max(
        (x - float(np.mean(c))) / max(float(np.std(c)), 1 / calibration.steps)
        for x, c in zip(row, columns, strict=True)
    )
    assert calibration.combine(row) == pytest.approx(expected)
    assert calibration.standardised(calibration.clean).mean(0) == pytest.approx(np.zeros(5), abs=1e-9)


def test_the_threshold_lets_pass_what_the_rate_says() -> None:
    clean = np.random.default_rng(0).permutation(np.arange(1.0, 1_000.0))[:, None]
    calibration = Calibration(("outside",), clean, np.empty((0, 1)), 0.01, 10_000)
    above = calibration.combine(clean) > calibration.threshold
    assert above.sum() == 9  # of 999, and with the next input as likely in any place, 10 of 1,000
    low, high = calibration.interval
    assert 0.004 < low < 0.01 < high < 0.02


def test_bad_examples_teach_which_scores_matter() -> None:
    rng = np.random.default_rng(0)
    clean, bad = rng.normal(0, 1, (300, 3)), rng.normal(0, 1, (200, 3))
    bad[:, 1] += 2
    fitted = Calibration(("a", "b", "c"), clean, bad, 0.05, 1_000)
    assert fitted.weights[1] > 5 * abs(fitted.weights[[0, 2]]).max()
    plainly = Calibration(("a", "b", "c"), clean, np.empty((0, 3)), 0.05, 1_000)
    fresh = rng.normal((0, 2, 0), 1, (500, 3))

    def caught(calibration: Calibration) -> float:
        return float((calibration.combine(fresh) > calibration.threshold).mean())

    assert caught(fitted) > caught(plainly) + 0.05
    gradient = _loss_gradient(fitted)
    assert np.abs(gradient).max() < 0.05  # where it is 0, a weight away it is some 50


def _loss_gradient(calibration: Calibration) -> np.ndarray[Any, Any]:
    """By differences, of the logistic loss with a ridge of 1, at the weights and the best constant."""
    rows = np.arcsinh(calibration.standardised(np.concatenate([calibration.clean, calibration.bad])))
    sign = np.repeat([-1.0, 1.0], [len(calibration.clean), len(calibration.bad)])

    def loss(weights: np.ndarray[Any, Any]) -> float:
        constants = np.linspace(-10, 10, 4_001)
        margins = sign * ((rows @ weights)[None] + constants[:, None])
        return float(np.log1p(np.exp(-margins)).sum(1).min() + (weights**2).sum() / 2)

    return np.array([(loss(calibration.weights + d) - loss(calibration.weights - d)) / 2e-3 for d in np.eye(3) * 1e-3])


def test_bad_inputs_can_be_given_to_calibrate() -> None:
    monitor = calibrated(bad=STRANGE[:20])
    assert monitor.calibration is not None
    assert monitor.calibration.bad.shape == (20, 5)
    assert np.mean([monitor.check(run) is not None for run in Odd().run(STRANGE[20:])]) > 0.8


@dataclass(frozen=True)
class Sound:
    """A text that lasts a second and a half, and half a second for each symbol."""

    text: str

    @property
    def seconds(self) -> float:
        return 1.5 + 0.5 * len(self.text)

    def __len__(self) -> int:
        return len(self.text)


class Hearing(Reader):
    def run(self, batch: Any) -> list[dc.Run]:
        return super().run([sound.text for sound in batch])


def test_where_inputs_are_sounds_the_alarm_says_the_seconds() -> None:
    monitor = dc.Monitor(model()).calibrate(Hearing(), [Sound(text) for text in CLEAN])
    alarms = [monitor.check(run) for run in Odd().run(STRANGE)]
    alarm = next(alarm for alarm in alarms if alarm is not None)
    assert alarm.steps is not None
    assert alarm.seconds == pytest.approx((alarm.steps[0] * 0.5, (alarm.steps[1] + 1) * 0.5))
    assert "most from" in str(alarm)


class Doubtful(Reader):
    """Has more doubt for longer texts."""

    def run(self, batch: Any) -> list[dc.Run]:
        return [
            dc.Run(run.output, run.trace, len(text) / 10) for run, text in zip(super().run(batch), batch, strict=True)
        ]


def test_the_doubt_of_a_system_is_a_score_if_it_gives_one() -> None:
    monitor = dc.Monitor(model()).calibrate(Doubtful(), CLEAN)
    assert monitor.calibration is not None
    assert monitor.calibration.names[-1] == "doubt"
    (run,) = Doubtful().run([CLEAN[0]])
    alarm = monitor.check(replace(run, doubt=50.0))
    assert alarm is not None
    assert (alarm.unusual, alarm.steps) == ("doubt", None)
    assert "the system's doubt is 50" in str(alarm)
    assert monitor.check(replace(run, doubt=None)) is None  # taken as usual
    broken = monitor.judge(monitor.step_by_step().reading(doubt=float("nan")))
    assert broken is not None
    assert "not finite" in str(broken)


@pytest.mark.parametrize("where", ["states", "inputs"])
def test_what_is_not_finite_is_an_alarm_and_no_error(where: str) -> None:
    monitor = calibrated()
    (run,) = Reader().run(["((a)b)[]"])
    trace = run.traced
    states, inputs = np.array(trace.states), np.array(trace.inputs)
    (states if where == "states" else inputs)[4] = np.nan
    alarm = monitor.check(dc.Run("", dc.Trace(states, inputs)))
    assert alarm is not None
    assert alarm.score == np.inf
    assert alarm.problem.startswith("state ")
    assert "NaN" in str(alarm)
    json.dumps(alarm.to_dict(), allow_nan=False)
    steps = monitor.step_by_step()
    for state, x in zip(states[1:], inputs, strict=True):
        steps.update(state, x)
    reading = steps.reading()
    again = monitor.judge(reading)
    assert again is not None
    assert again.to_dict() == alarm.to_dict()
    bad = states.copy()
    bad[0] = np.inf
    at_once = monitor.check(dc.Run("", dc.Trace(bad, np.array(trace.inputs))))
    assert at_once is not None
    assert at_once.steps == (0, 0)


def test_step_by_step_keeps_no_history() -> None:
    monitor = calibrated()
    steps = monitor.step_by_step()
    rng = np.random.default_rng(0)

    def size() -> int:
        kept = [steps, *steps._sums.values()]
        return sum(
            np.asarray(value).nbytes for thing in kept for value in vars(thing).values() if not isinstance(value, dict)
        )

    steps.update(rng.normal(0, 0.3, (1, 4)), np.eye(6)[:1])
    before = size()
    for _ in range(300):
        steps.update(torch.from_numpy(rng.normal(0, 0.3, (5, 4))), np.eye(6)[:5])
    assert size() == before
    assert steps.reading().steps == 1_501


def test_saved_and_loaded_it_says_the_same(tmp_path: Path) -> None:
    monitor = calibrated(bad=STRANGE[:20])
    monitor.save(tmp_path / "a.monitor")
    loaded = dc.Monitor.load(tmp_path / "a.monitor", model())
    assert repr(loaded) == repr(monitor)
    assert [loaded.check(run) for run in Odd().run(STRANGE)] == [monitor.check(run) for run in Odd().run(STRANGE)]
    with pytest.raises(dc.MismatchError, match="is a monitor of another model than"):
        dc.Monitor.load(tmp_path / "a.monitor", model(1))
    (tmp_path / "b.monitor").write_bytes((tmp_path / "a.monitor").read_bytes()[:-100])
    with pytest.raises(dc.FileError, match="is not a monitor"):
        dc.Monitor.load(tmp_path / "b.monitor", model())


@pytest.mark.parametrize(
    ("about", "bad"),
    [
        ({"names": ["unknown"] * 7}, 1.0),
        ({"names": [{}] * 7}, 1.0),
        ({"step_seconds": -1.0}, 1.0),
        ({"step_seconds": float("nan")}, 1.0),
        ({"alarm_rate": float("nan")}, 1.0),
        ({}, float("nan")),
        ({}, 1j),
    ],
)
def test_a_monitor_that_makes_no_sense_is_refused(tmp_path: Path, about: dict[str, Any], bad: complex) -> None:
    monitor = calibrated(bad=STRANGE[:20])
    monitor.save(tmp_path / "a.monitor")
    was, arrays = archive.load(tmp_path / "a.monitor", "monitor")
    arrays["bad"] = arrays["bad"] * bad
    archive.save(tmp_path / "a.monitor", "monitor", {**was, **about}, arrays)
    with pytest.raises(dc.FileError, match=r"the contents of the monitor .* do not fit together"):
        dc.Monitor.load(tmp_path / "a.monitor", model())


def test_another_network_is_refused() -> None:
    with pytest.raises(dc.MismatchError, match="made from another network or layer"):
        dc.Monitor(model()).calibrate(Reader(1), CLEAN)
    wide = dc.Trace(np.zeros((3, 7)), np.zeros((2, 6)))
    with pytest.raises(dc.InputError, match=r"the states have the shape \(7,\), and those profiled 4 numbers each"):
        calibrated().check(dc.Run("", wide))
    with pytest.raises(dc.InputError, match="2 inputs lead to 2 further states, but 1 were given"):
        calibrated().step_by_step().update(np.zeros((1, 4)), np.zeros((2, 6)))


def test_few_inputs_are_warned_of_with_the_interval() -> None:
    with pytest.warns(UserWarning, match=r"calibrated on 20 clean inputs only.*0\.13% to 16\.84% \(95 % interval\)"):
        dc.Monitor(model()).calibrate(Reader(), CLEAN[:20])
    with pytest.warns(UserWarning, match=r"1\.00% needs at least 99 inputs"):
        dc.Monitor(model()).calibrate(Reader(), CLEAN[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dc.Monitor(model()).calibrate(Reader(), CLEAN[:60], alarm_rate=0.05)
    with pytest.raises(dc.InputError, match="needs at least 2 clean inputs, better 50, not 1"):
        dc.Monitor(model()).calibrate(Reader(), CLEAN[:1])
    with pytest.raises(dc.InputError, match=r"above 0 and below 1, such as 0\.01, not 1"):
        calibrated(alarm_rate=1)
    with pytest.raises(dc.InputError, match="the monitor is not calibrated"):
        dc.Monitor(model()).check(Reader().run(CLEAN[:1])[0])


class Broken(Reader):
    def run(self, batch: Any) -> list[dc.Run]:
        runs = super().run(batch)
        return [dc.Run(run.output, dc.Trace(np.asarray(run.traced.states) * np.nan, run.traced.inputs)) for run in runs]


def test_clean_data_must_be_finite() -> None:
    with pytest.raises(dc.InputError, match=r"input '0' is not clean, state 0 or .* calibrate without it"):
        dc.Monitor(model()).calibrate(Broken(), CLEAN)
