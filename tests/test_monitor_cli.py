"""`deepcruiser monitor` and `cover --monitor` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main
from tests.support.toy import Reader, texts

SYSTEM = """
import numpy as np

from tests.support.toy import Reader, texts
from tests.test_monitor import Odd

system = Odd()
clean = texts(300, seed=5, longest=12)
live = texts(30, seed=8, longest=12) + ["!((ab)[]ab)" for _ in range(4)]
calm = texts(40, seed=9, longest=12)
few = clean[:20]
odd = ["!" + text + "abab" for text in texts(30, seed=10)]


class Broken(Odd):
    def run(self, batch):
        runs = super().run(batch)
        for text, run in zip(batch, runs):
            if text.startswith("!"):
                run.trace.states[3] = np.nan
        return runs


broken = Broken()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watched.py").write_text(SYSTEM)
    profile = dc.profile(Reader(), texts(300, longest=12), exact=True)
    profile.save("a.profile")
    profile.abstract(12).save("a.model")
    return tmp_path


def deepcruiser(line: str) -> Result:
    return CliRunner().invoke(main, line.split())


def test_the_worst_come_first_and_too_many_alarms_are_exit_status_1(folder: Path) -> None:
    first = deepcruiser(
        "monitor --system watched.py:system --model a.model --calibrate watched.py:clean --data watched.py:live "
        "-o a.monitor"
    )
    assert first.exit_code == 1, first.output
    lines = first.stdout.splitlines()
    assert "34 inputs, " in first.stdout
    assert lines[3].startswith("alarm")
    assert "(usually" in lines[4]
    assert "in steps" in lines[4]
    again = deepcruiser("monitor --system watched.py:system --model a.model --monitor a.monitor --data watched.py:live")
    assert again.stdout == first.stdout
    calm = deepcruiser("monitor --system watched.py:system --model a.model --monitor a.monitor --data watched.py:calm")
    assert calm.exit_code == 0, calm.output
    allowed = "--data watched.py:live --fail-above 0.5"
    assert (
        deepcruiser(f"monitor --system watched.py:system --model a.model --monitor a.monitor {allowed}").exit_code == 0
    )
    refused = deepcruiser(
        "monitor --system watched.py:system --model a.model --monitor a.monitor --data watched.py:live --fail-above 3"
    )
    assert "--fail-above must be a share from 0 to 1, not 3" in refused.output


def test_json_lines_and_the_nearest_training_data(folder: Path) -> None:
    result = deepcruiser(
        "monitor --system watched.py:system --profile a.profile --partitions 12 --calibrate watched.py:clean "
        "--bad watched.py:odd --data watched.py:live --json --nearest 2"
    )
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    scores = [row["score"] for row in rows]
    assert len(rows) == 34
    assert scores == sorted(scores, reverse=True)
    assert {row["input"] for row in rows[:4]} == {"30", "31", "32", "33"}
    alarm = rows[0]["alarm"]
    assert alarm["score"] > alarm["threshold"]
    assert alarm["scores"] == rows[0]["scores"]
    near = rows[0]["nearest"]
    assert len(near) == 2
    assert near[0]["distance"] <= near[1]["distance"]
    assert int(near[0]["name"]) < 300


def test_states_that_are_not_finite_are_alarms(folder: Path) -> None:
    result = deepcruiser(
        "monitor --system watched.py:broken --model a.model --calibrate watched.py:clean --data watched.py:live"
    )
    assert result.exit_code == 1, result.output
    assert "inf" in result.stdout
    assert "state 3 or the input before it holds NaN or infinite values" in result.stdout


def test_without_a_calibration_inputs_are_only_sorted(folder: Path) -> None:
    result = deepcruiser("monitor --system watched.py:system --model a.model --data watched.py:live")
    assert result.exit_code == 0, result.output
    assert "without --calibrate or --monitor, none raises an alarm" in result.stdout
    assert {line.split()[-1] for line in result.stdout.splitlines()[3:7]} == {"30", "31", "32", "33"}


def test_few_clean_inputs_are_warned_of(folder: Path) -> None:
    result = deepcruiser(
        "monitor --system watched.py:system --model a.model --calibrate watched.py:few --data watched.py:calm"
    )
    assert "warning: calibrated on 20 clean inputs only" in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--model a.model --calibrate watched.py:clean --monitor a.monitor", "give either --calibrate or --monitor"),
        ("--model a.model -o b.monitor", "--bad and -o need --calibrate with clean data"),
        ("--model a.model --nearest 3", "--nearest needs --profile and --partitions"),
        ("--model a.model --monitor none.monitor", "there is no file 'none.monitor'"),
    ],
)
def test_wrong_use_says_what_is_needed(folder: Path, line: str, message: str) -> None:
    result = deepcruiser(f"monitor --system watched.py:system --data watched.py:live {line}")
    assert result.exit_code == 2
    assert message in result.output


def test_cover_marks_unusual_inputs(folder: Path) -> None:
    options = "--system watched.py:system --model a.model --data watched.py:live"
    deepcruiser(f"monitor {options} --calibrate watched.py:clean -o a.monitor")
    result = deepcruiser(f"cover {options} --monitor a.monitor")
    assert result.exit_code == 0, result.output
    assert "of 34 inputs are unusual" in result.stdout
    unusual = json.loads(deepcruiser(f"cover {options} --monitor a.monitor --json").stdout)["unusual"]
    assert {"30", "31", "32", "33"} <= set(unusual)
    assert f"{len(unusual)} of 34" in result.stdout
    assert "unusual" not in json.loads(deepcruiser(f"cover {options} --json").stdout)
