"""`deepcruiser fuzz` and `replay` as a user types them."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.campaign.store import Store
from deepcruiser.cli import main
from deepcruiser.systems import brackets

BRACKETS = """
import os
import torch
import deepcruiser as dc
from deepcruiser.systems import brackets
from changes import mutations

net = brackets.BracketNet()
net.load_state_dict(torch.load(os.path.join(os.path.dirname(__file__), "weights.pt"), weights_only=True))
net.requires_grad_(False).eval()
system = dc.TorchSystem(net, "lstm", features=brackets.encode, batch="padded", transcribe=brackets._answer)


class Newer:
    '''Always right.'''
    fingerprint = "newer"

    def run(self, batch):
        return [dc.Run(brackets.verdict(text), run.trace) for text, run in zip(batch, system.run(batch))]


class Printing:
    fingerprint = system.fingerprint
    state_name = system.state_name

    def run(self, batch):
        print("\\x1b[2Ja system that prints")
        os.write(2, b"and its library\\n")
        return system.run(batch)


class Seed:
    def __init__(self, id, text):
        self.id, self.value, self.text = id, text, brackets.verdict(text)

    @property
    def input(self):
        return self.value


seeds = [Seed(f"t{n}", text) for n, text in enumerate(brackets.ordinary_tests(40))]
few = seeds[:2]
printing = Printing()
nothing = []
"""

CHANGES = """
import deepcruiser as dc
from deepcruiser.systems import bracket_changes as changes

mutations = dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)
here_only = dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, lambda seed, text: None)


def of_its_own(seed, text):
    return "too long" if len(text) > 30 else None


def build():
    return dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, of_its_own)
"""

SPEECH = """
import numpy as np
import torch
import deepcruiser as dc


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = torch.nn.GRU(8, 12, batch_first=True), torch.nn.Linear(12, 3)
        generator = torch.Generator().manual_seed(0)
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -0.7, 0.7, generator=generator)

    def forward(self, frames):
        return self.out(self.gru(frames)[0])


def bands(audio):
    frames = audio.samples[: len(audio) // 200 * 200].reshape(-1, 200)
    energies = np.square(np.abs(np.fft.rfft(frames)[:, 1:97])).reshape(len(frames), 8, 12).sum(2)
    return np.log(energies + 1e-4).astype(np.float32)


def words(scores):
    said = scores.argmax(-1).tolist()
    return " ".join(("", "ah", "oh")[n] for n, before in zip(said, [-1, *said]) if n and n != before)


system = dc.TorchSystem(Net().eval(), "gru", rate=8000, features=bands, batch="padded", transcribe=words)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def json_lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: a network of brackets that was not trained for long, and a small one of sounds."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "net.py").write_text(BRACKETS)
    (folder / "changes.py").write_text(CHANGES)
    (folder / "asr.py").write_text(SPEECH)
    net = brackets.train(steps=200)
    torch.save(net.state_dict(), folder / "weights.pt")
    system = dc.TorchSystem(net, "lstm", features=brackets.encode, batch="padded", transcribe=brackets._answer)
    profile = dc.profile(system, brackets.training_texts(1500), batch_size=256)
    profile.save(folder / "net.profile")
    profile.abstract(20).save(folder / "net.model")
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("speech", 6), ("noise", 2)):
        (folder / part).mkdir()
        for number in range(count):
            times = np.arange(int(rng.uniform(0.4, 0.8) * 8000)) / 8000
            pitch = rng.uniform(100, 200) * np.cumsum(1 + 0.3 * np.sin(2 * np.pi * 3 * times)) / 8000
            sound = sum(np.sin(2 * np.pi * pitch * n) / n for n in range(1, 12)) * np.abs(np.sin(2 * np.pi * 2 * times))
            dc.Audio(0.2 * sound + 0.003 * rng.standard_normal(len(times)), 8000).write(folder / part / f"{number}.wav")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user works in it; what is written goes elsewhere, as to another disk."""
    monkeypatch.chdir(made)
    return tmp_path


MODEL = ("--profile", "net.profile", "--partitions", "20")
BASIC = (
    "fuzz",
    "--system",
    "net.py:system",
    "--data",
    "net.py:seeds",
    "--mutations",
    "net.py:mutations",
    "--disagreement",
)


def fuzz(output: Path | str, *more: str, guide: str = "2-SBCov", workers: str = "0") -> Result:
    return run(*BASIC, *MODEL, "--guide", guide, "--workers", workers, "-o", str(output), *more)


@pytest.fixture(scope="module")
def campaign(made: Path) -> Path:
    """A campaign with failing tests, as its folder."""
    before = os.getcwd()
    os.chdir(made)
    try:
        result = fuzz("runs/one", "--runs", "480")
    finally:
        os.chdir(before)
    assert result.exit_code == 1, result.output
    assert "failing tests: " in result.stdout
    return made / "runs" / "one"


def failing(campaign: Path) -> list[int]:
    return sorted(int(path.stem) for path in (campaign / "failed").glob("*.txt"))


def test_the_summary(folder: Path) -> None:
    result = fuzz(folder / "a", "--runs", "320")
    assert result.exit_code == 1, result.output
    out = result.stdout
    assert "320 runs in 0:00:0" in out
    assert "guide: 2-SBCov; stopped: 320 runs are done" in out
    assert "  2-SBCov " in out
    numbers = failing(folder / "a")
    assert f"failing tests: {len(numbers)} wrong; " in out
    assert f"all of them are in {folder / 'a' / 'failed'}" in out
    assert f"to run one again: deepcruiser replay {folder / 'a'} " in out
    assert f"to go on: deepcruiser {' '.join((*BASIC, *MODEL))} --guide 2-SBCov" in out
    assert "(with more --runs)" in out
    assert out.count(" became ") <= 3
    assert result.stderr.count("failing test ") == len(numbers)
    assert "  0 runs (" in result.stderr


def test_no_failing_tests(folder: Path) -> None:
    result = fuzz(folder / "a", "--runs", "16", "--data", "net.py:few", "--wer-above", "9", guide="none")
    assert result.exit_code == 2  # two oracles
    arguments = [word for word in (*BASIC, *MODEL) if word != "--disagreement"]
    result = run(*arguments, "--cer-above", "9", "--guide", "none,2-SBCov", "--runs", "16", "-o", str(folder / "a"))
    assert result.exit_code == 0, result.output
    assert "no failing tests" in result.stdout
    assert "none (2-SBCov measured)" in result.stdout
    assert run("replay", str(folder / "a")).stdout == f"there are no failing tests in {folder / 'a'}\n"


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
    assert set(seed) == {"seed", "reference", "outcome", "reason", "output", "score", "sha256"}
    assert ran["transformation"]["name"] in ("InsertRound", "InsertSquare", "SwapKinds", "InsertLetter")
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
    for given in ("50", "0", "x", "-1%", "101%"):
        assert fuzz(folder / "a", "--until-coverage", given).exit_code == 2


def test_a_folder_of_another_campaign_or_process(folder: Path, campaign: Path) -> None:
    before = (campaign / "command.json").read_bytes()
    result = fuzz(campaign, "--seed", "5")
    assert (result.exit_code, "was begun otherwise: seed was 0 and is 5" in result.stderr) == (2, True)
    with Store.open(campaign, write=True):
        result = fuzz(campaign)
    assert (result.exit_code, "another process is at work" in result.stderr) == (2, True)
    assert (campaign / "command.json").read_bytes() == before
    (folder / "file").touch()
    assert fuzz(folder / "file").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--guide NoCov", "no criterion 'NoCov'"),
        ("--guide random,none", "no criterion 'none'"),
        ("--wer-above 0.2 --cer-above 0.2", "give one of --wer-above, --cer-above, --disagreement"),
        ("--range ChangeSpeed.factor=1,2", "are for sound"),
        ("--data net.py:nothing", "the data set is empty"),
        ("--data nowhere", "there is no corpus at"),
        ("--mutations net.py:net", "is a BracketNet: a deepcruiser.Mutations is needed"),
        ("--mutations changes", "is neither file.py:name nor built in"),
        ("--mutations changes.py:here_only --workers 2", "cannot be sent to other processes"),
        ("--system net.py:Newer", "another network"),
        ("--select best", "'best' is not one of"),
        ("--minutes -1", "-1"),
        ("--batch-size 0", "0"),
        ("--seed -1", "seed must be at least 0"),
        ("--against memory", "'memory' is not one of"),
    ],
)
def test_wrong_use_says_what_is_wrong(folder: Path, arguments: str, message: str) -> None:
    given = [word for word in (*BASIC, *MODEL) if word != "--disagreement" or "above" not in arguments]
    result = run(*given, "--workers", "0", "--runs", "16", "-o", str(folder / "x"), *arguments.split())
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "x" / "command.json").exists()


def test_data_is_needed(folder: Path) -> None:
    result = run("fuzz", "--system", "net.py:system", *MODEL, "-o", str(folder / "x"))
    assert (result.exit_code, "give --data" in result.stderr) == (2, True)


def test_mutations_that_cannot_be_sent_are_made_here(folder: Path) -> None:
    arguments = (*BASIC, *MODEL, "--runs", "16", "-o", str(folder / "x"))
    result = run(*arguments, "--mutations", "changes.py:here_only")
    assert "mutants are made in this process" in result.stderr
    result = run(*arguments[:-1], str(folder / "y"), "--mutations", "changes.py:build", "--workers", "2")
    assert result.exit_code in (0, 1), result.output
    assert "made in this process" not in result.stderr


def test_replay_from_anywhere(
    folder: Path, campaign: Path, made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in (made, campaign, tmp_path):
        monkeypatch.chdir(place)
        result = run("replay", os.path.relpath(campaign))
        assert result.exit_code == 1, result.output
        count = len(failing(campaign))
        assert result.stdout.count("fails as before: the same input, the same answer, the same states") == count
        assert f"{count} of {count} fail; {count} gave the same as before" in result.stdout


def test_replay_of_single_tests(folder: Path, campaign: Path) -> None:
    first, second, *_ = failing(campaign)
    result = run("replay", str(campaign), str(second), str(first), "--json", "--save", str(folder / "saved"))
    report = json.loads(result.stdout)
    assert (result.exit_code, report["failing"], report["other_system"]) == (1, 2, False)
    assert [test["number"] for test in report["results"]] == [second, first]
    assert all(test["fails"] and test["same"] and not test["differences"] for test in report["results"])
    assert report["results"][0]["output_now"] == report["results"][0]["output"]
    for number in (first, second):
        name = f"{number:06}.txt"
        assert (folder / "saved" / name).read_bytes() == (campaign / "failed" / name).read_bytes()
    result = run("replay", str(campaign), "999999")
    assert (result.exit_code, "no failing test 999999" in result.stderr) == (2, True)
    result = run("replay", str(folder))
    assert (result.exit_code, "campaign" in result.stderr) == (2, True)


def test_a_newer_system_has_fixed_it(folder: Path, campaign: Path) -> None:
    result = run("replay", str(campaign), "--system", "net.py:Newer")
    assert result.exit_code == 0, result.output
    count = len(failing(campaign))
    assert result.stdout.count("fixed: '") == count
    assert result.stdout.startswith("another system than the campaign's: states are not compared\n")
    report = json.loads(run("replay", str(campaign), "--system", "net.py:Newer", "--json").stdout)
    assert (report["failing"], report["other_system"]) == (0, True)


def test_replay_when_things_have_moved(
    folder: Path, campaign: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = str(failing(campaign)[0])
    alone = shutil.copytree(campaign, folder / "alone")  # by the absolute path
    assert run("replay", str(alone), number).exit_code == 1
    ignored = shutil.ignore_patterns("runs", "__pycache__")
    together = shutil.copytree(made, folder / "project", ignore=ignored)
    shutil.copytree(campaign, together / "runs" / "one")
    (together / "net.py").write_text(BRACKETS.replace("brackets.ordinary_tests(40)", "brackets.deep_tests(40)"))
    monkeypatch.chdir(folder)
    result = run("replay", "project/runs/one", number)  # what moved with it comes first
    assert "the seed 't" in result.stdout
    assert "has changed" in result.stdout
    (together / "net.py").write_text(BRACKETS)
    (together / "net.profile").unlink()
    notes = json.loads((together / "runs" / "one" / "command.json").read_text())
    notes["directory"]["absolute"] = "/nowhere"
    (together / "runs" / "one" / "command.json").write_text(json.dumps(notes))
    result = run("replay", "project/runs/one", number, "--data", f"{made}/net.py:seeds")
    assert "states are not compared: there is no file" in result.stderr
    assert "fails as before: the same input, the same answer\n" in result.stdout
    (together / "runs" / "one" / "command.json").write_text("{")
    result = run("replay", "project/runs/one", number)
    assert (result.exit_code, "damaged" in result.stderr) == (2, True)


def test_replay_of_a_campaign_begun_in_python(folder: Path, campaign: Path) -> None:
    other = shutil.copytree(campaign, folder / "python")
    (other / "command.json").unlink()
    number = str(failing(campaign)[0])
    result = run("replay", str(other), number)
    assert (result.exit_code, "give --system and --data" in result.stderr) == (2, True)
    given = ("--system", "net.py:system", "--data", "net.py:seeds", "--mutations", "changes.py:mutations")
    result = run("replay", str(other), number, *given)
    assert result.exit_code == 1, result.output
    assert "fails as before: the same input, the same answer\n" in result.stdout


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
    changes = [event["transformation"] for batch in batches[1:] for event in batch["events"]]
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
        ("--transformations Robot", "no transformation 'robot'; there are: "),
        ("--transformations AddBackgroundNoise", "needs recordings: --noise FOLDER"),
        ("--noise nowhere", "there are no recordings"),
        ("--range snr_db=1,2", "is not of the form AddWhiteNoise.snr_db=25,40"),
        ("--range AddWhiteNoise.snr_db=5", "is not of the form"),
        ("--range AddWhiteNoise.loudness=1,2", "draws no 'loudness'"),
        ("--range AddWhiteNoise.snr_db=40,25", "must begin with the least"),
        ("--range Reverb.rt60_seconds=1,2", "ranges for Reverb"),
    ],
)
def test_wrong_transformations(folder: Path, arguments: str, message: str) -> None:
    given = ("fuzz", "--system", "asr.py:system", "--data", "speech", "--model", "net.model", "-o", str(folder / "x"))
    result = run(*given, *arguments.split())
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
    assert f"to go on: python -m deepcruiser {' '.join(command[3:])}" in after
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
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in said, "Traceback" in said) == (130, True, False)
