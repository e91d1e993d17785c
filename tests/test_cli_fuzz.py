"""`deepcruiser fuzz` as a user types it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.store import Store
from tests.support.typed import BASIC, MODEL, begin, failing, fuzz, json_lines, make, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("user"))


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's working folder; output goes elsewhere, as to another disk."""
    monkeypatch.chdir(made)
    return tmp_path


@pytest.fixture(scope="module")
def campaign(made: Path) -> Path:
    return begin(made)


def test_the_summary(folder: Path) -> None:
    result = fuzz(folder / "a", "--runs", "320")
    assert result.exit_code == 1, result.output
    out = result.stdout
    assert re.search(r"320 runs in \d+\.\d s ", out)
    assert "guide: 2-SBCov or distance; stopped: 320 runs are done" in out
    assert "  2-SBCov " in out
    numbers = failing(folder / "a")
    assert f"failing tests: {len(numbers)} wrong; " in out
    assert f"all of them are in {folder / 'a' / 'failed'}" in out
    assert f"replay one: deepcruiser replay {folder / 'a'} " in out
    assert "resume: deepcruiser fuzz --system net.py:system --data net.py:seeds --profile net.profile" in out
    assert "(with more --runs)" in out
    assert out.count(" became ") <= 3
    assert result.stderr.count("failing test ") == len(numbers)
    assert "  0 runs (" in result.stderr


def test_no_failing_tests(folder: Path) -> None:
    result = fuzz(folder / "a", "--runs", "16", "--data", "net.py:few", "--wer-above", "9", guide="none")
    assert result.exit_code == 2  # two oracles
    arguments = [word for word in (*BASIC, *MODEL) if word != "--disagreement"]
    arguments += ["--cer-above", "9", "--guide", "none,2-SBCov", "-o", str(folder / "a")]
    result = run(*arguments, "--runs", "16")
    assert result.exit_code == 0, result.output
    assert "no failing tests\n" in result.stdout
    assert "none (2-SBCov measured)" in result.stdout
    assert run("replay", str(folder / "a")).stdout == f"there are no failing tests in {folder / 'a'}\n"
    result = run(*arguments, "--runs", "208")
    assert "no failing tests in 208 runs: change the inputs more (--severity is normal)" in result.stdout


def test_json_and_the_same_command_goes_on(folder: Path) -> None:
    once = json_lines(fuzz(folder / "once", "--runs", "160", "--json"))
    first = json_lines(fuzz(folder / "twice", "--runs", "64", "--json"))
    then = json_lines(fuzz(folder / "twice", "--runs", "160", "--json", workers="1"))
    assert [line["type"] for line in once] == ["seeds", *["batch"] * 10, "summary"]
    assert [line["runs"] for line in then] == [64, 80, 96, 112, 128, 144, 160, 160]
    assert then[0]["events"] == []

    def events(*parts: list[dict[str, Any]]) -> list[Any]:
        return [event for part in parts for line in part for event in line.get("events", ())]

    assert events(first, then) == events(once)
    for summary in (once[-1], then[-1]):
        for key in ("folder", "seconds"):
            del summary[key]
    assert then[-1] == once[-1]
    assert once[-1]["failing_tests"] == sum(event["outcome"] == "failed" for event in events(once)) > 0
    seed, ran = once[0]["events"][0], once[1]["events"][0]
    assert set(seed) == {"seed", "reference", "outcome", "reason", "output", "score", "doubt", "sha256"}
    assert ran["changes"][0]["name"] in ("InsertRound", "InsertSquare", "SwapKinds", "InsertLetter")
    assert ran["number"] == 1
    assert ran["parent"] < 0


def test_a_system_that_prints_does_not_spoil_json(folder: Path) -> None:
    result = fuzz(folder / "a", "--system", "net.py:printing", "--runs", "16", "--json")
    assert [line["type"] for line in json_lines(result)] == ["seeds", "batch", "summary"]
    assert "a system that prints" in result.stderr
    again = run("replay", str(folder / "a"), "--json")
    assert json.loads(again.stdout)["tests"] == json_lines(result)[-1]["failing_tests"]


def test_stops(folder: Path) -> None:
    result = fuzz(folder / "a", "--until-coverage", "0.5%", "--model", "net.model")
    assert (result.exit_code, "give either --profile" in result.stderr) == (2, True)
    result = fuzz(folder / "a", "--until-coverage", "0.5%")
    assert "stopped: 2-SBCov reached 0." in result.stdout
    result = fuzz(folder / "a", "--minutes", "0")
    assert "stopped: 0 minutes are over" in result.stdout
    for share in ("50", "0", "x", "-1%", "101%"):
        assert fuzz(folder / "a", "--until-coverage", share).exit_code == 2


def test_a_folder_of_another_campaign_or_process(folder: Path, campaign: Path) -> None:
    before = CampaignRecord.open(campaign).spec
    result = fuzz(campaign, "--seed", "5")
    assert (result.exit_code, "was started with different settings: seed was 0 and is 5" in result.stderr) == (2, True)
    with Store.open(campaign, write=True):
        result = fuzz(campaign)
    assert (result.exit_code, "another process is writing to" in result.stderr) == (2, True)
    assert CampaignRecord.open(campaign).spec == before
    (folder / "file").touch()
    assert fuzz(folder / "file").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--guide NoCov", "unknown criterion 'NoCov'"),
        ("--guide random,none", "unknown criterion 'none'"),
        ("--wer-above 0.2 --cer-above 0.2", "cannot be combined: give one of --wer-above, --cer-above, "),
        ("--range ChangeSpeed.factor=1,2", "cannot be combined with --mutations"),
        ("--data net.py:nothing", "the data set is empty"),
        ("--data nowhere", "there is no corpus at"),
        ("--mutations net.py:net", "is a BracketNet: a deepcruiser.Mutations is needed"),
        ("--mutations changes", "is neither file.py:name nor a built-in name"),
        ("--mutations changes.py:here_only --workers 2", "cannot be sent to other processes"),
        ("--system net.py:Newer", "another network"),
        ("--scheduler best", "'best' is not one of"),
        ("--minutes -1", "-1"),
        ("--batch-size 0", "0"),
        ("--seed -1", "-1 is not in the range x>=0"),
        ("--against memory", "'memory' is not one of"),
    ],
)
def test_wrong_use_says_what_is_wrong(folder: Path, arguments: str, message: str) -> None:
    words = [word for word in (*BASIC, *MODEL) if word != "--disagreement" or "above" not in arguments]
    result = run(*words, "--workers", "0", "--runs", "16", "-o", str(folder / "x"), *arguments.split())
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "x" / "failed").exists()


def test_data_is_needed(folder: Path) -> None:
    result = run("fuzz", "--system", "net.py:system", *MODEL, "-o", str(folder / "x"))
    assert (result.exit_code, "give --data" in result.stderr) == (2, True)


def test_mutations_that_cannot_be_sent_run_in_one_process(folder: Path) -> None:
    arguments = (*BASIC, *MODEL, "--runs", "16", "-o", str(folder / "x"))
    result = run(*arguments, "--mutations", "changes.py:here_only")
    assert "running in one process" in result.stderr
    result = run(*arguments[:-1], str(folder / "y"), "--mutations", "changes.py:build", "--workers", "2")
    assert result.exit_code in (0, 1), result.output
    assert "in one process" not in result.stderr


def test_sounds(folder: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("profile", "--system", "asr.py:system", "--data", "train", "-o", str(folder / "asr.profile"))
    assert result.exit_code == 0, result.output
    arguments = ["fuzz", "--system", "asr.py:system", "--data", "speech", "--profile", str(folder / "asr.profile")]
    arguments += ["--partitions", "10", "--guide", "BSCov,BTCov", "--wer-above", "0.1", "--runs", "64", "--json"]
    arguments += ["--transformations", "changevolume,AddWhiteNoise,DRC", "--noise", "noise", "--workers", "2"]
    arguments += ["--range", "AddWhiteNoise.snr_db=20,25", "--range", "AddBackgroundNoise.snr_db=20,25"]
    result = run(*arguments, "-o", str(folder / "a"))
    assert result.exit_code == 1, result.output
    *batches, summary = json_lines(result)
    changes = [event["changes"][0] for batch in batches[1:] for event in batch["events"]]
    assert {change["name"] for change in changes} == {"ChangeVolume", "AddWhiteNoise", "DRC", "AddBackgroundNoise"}
    assert all(20 <= change["snr_db"] <= 25 for change in changes if "snr_db" in change)
    assert list(summary["coverage"]) == ["BSCov", "BTCov"]
    monkeypatch.chdir(folder)
    shutil.move(made / "noise", folder / "elsewhere")
    try:
        result = run("replay", "a", "--json", "--save", "heard", "--noise", "elsewhere")
    finally:
        shutil.move(folder / "elsewhere", made / "noise")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["tests"] == summary["failing_tests"] == len(list((folder / "heard").glob("*.flac")))
    assert [test["differences"] for test in report["results"]] == [[]] * report["tests"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--transformations Robot", "unknown transformation 'Robot'; choose from: "),
        ("--transformations AddBackgroundNoise", "needs recordings: --noise FOLDER"),
        ("--noise nowhere", "there are no recordings"),
        ("--range snr_db=1,2", "is not of the form AddWhiteNoise.snr_db=25,40"),
        ("--range AddWhiteNoise.snr_db=5", "is not of the form"),
        ("--range AddWhiteNoise.loudness=1,2", "draws no 'loudness'"),
        ("--range AddWhiteNoise.snr_db=40,25", "must start with the smaller number"),
        ("--range Reverb.rt60_seconds=1,2", "ranges for Reverb"),
    ],
)
def test_wrong_transformations(folder: Path, arguments: str, message: str) -> None:
    words = ("fuzz", "--system", "asr.py:system", "--data", "speech", "--model", "net.model", "-o", str(folder / "x"))
    result = run(*words, *arguments.split())
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert not (folder / "x").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals and terminals are as on POSIX")
def test_ctrl_c_on_a_terminal_saves_and_says_how_to_go_on(folder: Path, made: Path) -> None:
    """With worker processes, on a terminal of its own, and a system that prints into the screen."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "deepcruiser", *BASIC, *MODEL, "--workers", "2", "-o", str(folder / "a")]
    command[command.index("net.py:system")] = "net.py:printing"
    command[command.index("net.py:mutations")] = "changes.py:build"  # defined in a file of the user's
    environment = {**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=made, env=environment, start_new_session=True
    )
    os.close(terminal)
    shown = b""
    interrupted = False
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            part = os.read(keyboard, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
        if not interrupted and b"2-SBCov" not in shown and b"InsertRound" in shown and shown.count(b"run time") > 3:
            interrupted = True
            process.send_signal(signal.SIGINT)
    os.close(keyboard)
    text = shown.decode()
    assert process.wait(timeout=60) in (0, 1), text
    before, _, after = text.rpartition("\x1b[?1049l")  # back from the other screen
    assert "a system that prints" not in before
    assert "and its library" not in before
    assert "meanwhile the system printed" in after
    assert "\\x1b[2Ja system that prints" in after
    assert "stopped: interrupted" in after
    assert "resume: python -m deepcruiser fuzz --system net.py:printing --data" in after.replace("\r\n", "")
    number = failing(folder / "a")[:1]
    if number:
        assert run("replay", str(folder / "a"), str(*number)).exit_code == 1


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_ctrl_c_before_it_has_begun(folder: Path, made: Path) -> None:
    (folder / "slow.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\nsystem = 1\n")
    command = [sys.executable, "-m", "deepcruiser", *BASIC, *MODEL, "-o", str(folder / "a")]
    command[command.index("net.py:system")] = f"{folder / 'slow.py'}:system"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=made)
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in message, "Traceback" in message) == (130, True, False)
