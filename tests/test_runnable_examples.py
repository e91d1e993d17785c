"""The examples, run as their users run them, with quick settings; and through the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, *arguments: Any) -> str:
    command: list[Any] = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return str(result.stdout)


def numbers(pattern: str, text: str) -> tuple[int, ...]:
    result = re.search(pattern, text)
    assert result, text
    return tuple(map(int, result.groups()))


def test_text_classifier(tmp_path: Path) -> None:
    message = run("text_classifier", "--runs", 160, "--output", tmp_path / "run")
    right, of = numbers(r"(\d+) of (\d+) new sentences are classified correctly", message)
    assert right > of / 2
    runs, failed = numbers(r"(\d+) runs, (\d+) failed", message)
    assert runs == 160
    assert failed > 0, "capitals, typos and fillers are its weakness"
    assert numbers(r"(\d+) of (\d+) failing tests replay exactly", message) == (failed, failed)
    campaign = dc.CampaignRecord.open(tmp_path / "run")  # its kinds are known without naming them
    assert len(campaign.failed) == failed


def test_series_monitor(tmp_path: Path) -> None:
    message = run("series_monitor", "--runs", 320, "--output", tmp_path / "run")
    right, of = numbers(r"(\d+) of (\d+) new recordings are classified correctly", message)
    assert right > 0.8 * of
    runs, failed = numbers(r"(\d+) runs, (\d+) failed", message)
    assert runs == 320
    assert failed > 0, "other heights and lost samples are its weakness"
    assert numbers(r"(\d+) of (\d+) failing tests replay exactly", message) == (failed, failed)
    assert len(list((tmp_path / "run" / "failed").glob("*.npy"))) == failed


@pytest.mark.shared
def test_speech_commands(shared: Path) -> None:
    message = run("speech_commands", shared / "models/speech-commands-lstm", shared / "speech/an4-train", "--count", 40,
               "--runs", 32)  # fmt: skip
    recordings, seeds, words, right = numbers(r"(\d+) recordings, (\d+) of them of the (\d+) words; (\d+) are", message)
    assert (recordings, seeds, words) == (39, 35, 35)
    assert right >= 33
    assert "32 runs" in message
    same, of = numbers(r"(\d+) of (\d+) failing tests replay exactly", message)
    assert same == of


@pytest.mark.parametrize(
    ("name", "tests", "mutations", "suffix"),
    [("text_classifier", "texts", "text", ".txt"), ("series_monitor", "signals", "series", ".npy")],
)
def test_the_command_line_assumes_no_sound(
    name: str, tests: str, mutations: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """profile, cover, fuzz on a screen that is a pipe, resume, and replay from elsewhere with all inputs written."""
    file = EXAMPLES / f"{name}.py"
    monkeypatch.chdir(tmp_path)

    def deepcruiser(*arguments: str, status: int) -> str:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    system, profile = ("--system", f"{file}:system"), ("--profile", "the.profile", "--partitions", "20")
    deepcruiser("profile", *system, "--data", f"{file}:training", "-o", "the.profile", status=0)
    assert "2-SBCov" in deepcruiser("cover", *system, "--data", f"{file}:{tests}", *profile, status=0)
    fuzz = ("fuzz", *system, "--data", f"{file}:{tests}", *profile, "--mutations", mutations, "--disagreement",
            "--guide", "2-SBCov", "--workers", "1", "--plain", "-o", "runs/it")  # fmt: skip
    deepcruiser(*fuzz, "--runs", "160", status=1)
    message = deepcruiser(*fuzz, "--runs", "320", status=1)
    assert "320 runs" in message
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    replayed = json.loads(deepcruiser("replay", "../runs/it", "--json", "--save", "saved", status=1))
    assert replayed["tests"] == replayed["failing"] > 0
    assert all(result["same"] for result in replayed["results"])
    assert len(list(Path("saved").glob(f"*{suffix}"))) == replayed["tests"]
    monkeypatch.chdir(tmp_path)
    wrong = deepcruiser(*fuzz[:-2], "-o", "runs/other", "--range", "Typos.share=0,9", status=2)
    assert "Typos" in " ".join(wrong.split())


@pytest.mark.parametrize("mutations", [None, dc.Mutations.series()], ids=["of sound", "of series"])
def test_mutations_that_do_not_fit_the_inputs_are_refused(mutations: Any, tmp_path: Path) -> None:
    """A campaign in which no mutant could be made must not look like one without failing tests."""
    system, texts = dc.load_system("brackets"), ["()[]" * 4, "(()" * 4]
    model = dc.profile(system, texts).abstract(partitions=5)
    with pytest.raises(dc.InputError, match=r"no transformation can be applied to an input of the type str .*--mutat"):
        dc.fuzz(system, model, texts, folder=tmp_path, oracle=dc.Disagreement(), mutations=mutations, workers=0)


def test_unknown_mutations() -> None:
    options = ("fuzz", "--system", "brackets", "--model", "none", "--mutations", "video", "-o", "nowhere")
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 2
    assert "--mutations 'video' is neither file.py:name nor a built-in name (text, series, brackets" in result.output
    assert not Path("nowhere").exists()


def test_the_small_fuzzer_finds_failures() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "small_fuzzer.py"], capture_output=True, text=True, check=True, timeout=300
    )
    assert re.search(r"\n\d+ tests kept, [1-9]\d* failing tests\n'.*' is '(un)?balanced'", done.stdout), done.stdout


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"`(\w+\.py)`", (EXAMPLES / "README.md").read_text()))
    assert listed == {path.name for path in EXAMPLES.glob("*.py")}
