"""The commands as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import COMMANDS, main

SYSTEM = """
import numpy as np
import torch
import deepcruiser as dc

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.GRU(3, 8, batch_first=True)
        generator = torch.Generator().manual_seed(0)
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -1, 1, generator=generator)

    def forward(self, x):
        return self.encoder(x)[0]

net = Net().eval()
system = dc.TorchSystem(net, state="encoder")
other = dc.TorchSystem(net, state="encoder", features=lambda x: x)
number = 7
texts = [np.ones((4, 3), np.float32) * i for i in range(1, 6)]

def build():
    return dc.TorchSystem(net, state="encoder")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder: a network in a file, training and test data as arrays, one of them broken."""
    (tmp_path / "net.py").write_text(SYSTEM)
    rng = np.random.default_rng(0)
    for name, count in (("train", 40), ("test", 10)):
        (tmp_path / name).mkdir()
        for i in range(count):
            array = rng.standard_normal((int(rng.integers(5, 30)), 3)).astype(np.float32)
            np.save(tmp_path / name / f"{i:03}.npy", array)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def profile(*more: str) -> Result:
    return run("profile", "--system", "net.py:system", "--data", "train", "-o", "net.profile", *more)


def cover(*more: str) -> Result:
    return run("cover", "--system", "net.py:system", "--data", "test", *more)


def test_profile_then_cover(folder: Path) -> None:
    result = profile()
    assert result.exit_code == 0, result.output
    assert "Profile of 40 traces" in result.stdout
    assert [f"M{{3,{m}}}" in result.stdout for m in (10, 20, 50, 100)] == [True] * 4
    assert "Saved net.profile (self-check passed: the profiled data cover the model completely)" in result.stdout
    result = cover("--profile", "net.profile", "--partitions", "10")
    assert result.exit_code == 0, result.output
    model = dc.Profile.load("net.profile").abstract(10)
    assert str(model) in result.stdout
    assert [name in result.stdout for name in ("BSCov", "2-SBCov", "BTCov", "ISCov", "WICov")] == [True] * 5
    same = run(*"cover --system net.py:system --data train --profile net.profile --partitions 10 --json".split())
    values = json.loads(same.stdout)["coverage"]
    assert [values[name] for name in ("BSCov", "BTCov", "ISCov", "WICov")] == [1.0] * 4


def test_json(folder: Path) -> None:
    report = json.loads(profile("--json", "--partitions", "5,9", "--components", "2").stdout)
    assert [c["name"] for c in report["configurations"]] == ["M{2,5}", "M{2,9}"]
    assert report["origin"]["traces"] == 40
    assert 0 < report["explained"] <= 1
    report = json.loads(cover("--profile", "net.profile", "--partitions", "9", "--json").stdout)
    assert report["model"] == "M{2,9}"
    assert report["traces"] == 10
    assert report["coverage"]["BSCov"] == report["covered"]["BSCov"] / report["items"]["BSCov"]


def test_progress_goes_to_the_error_stream(folder: Path) -> None:
    result = profile("--json")
    assert "profiling: 40 of 40 inputs" in result.stderr
    assert "steps/s" in result.stderr
    json.loads(result.stdout)


def test_criteria_can_be_chosen(folder: Path) -> None:
    profile()
    report = json.loads(
        cover("--profile", "net.profile", "--partitions", "9", "--criteria", "bscov, 3-SBCov", "--json").stdout
    )
    assert list(report["coverage"]) == ["BSCov", "3-SBCov"]
    result = cover("--profile", "net.profile", "--partitions", "9", "--criteria", "NeuronCov")
    assert (result.exit_code, "unknown criterion 'NeuronCov'" in result.stderr) == (2, True)


def test_export_and_a_model_file(folder: Path) -> None:
    profile()
    for name in ("net.model", "net.drn", "net.tra", "net.dot", "net.graphml"):
        result = run("export", "net.profile", "--partitions", "3", "-o", name)
        assert result.exit_code == 0, result.output
        assert (folder / name).stat().st_size > 100
    by_profile = json.loads(cover("--profile", "net.profile", "--partitions", "3", "--json").stdout)
    by_model = json.loads(cover("--model", "net.model", "--json").stdout)
    assert by_model == by_profile


def test_a_function_that_builds_the_system_and_data_from_python(folder: Path) -> None:
    result = run("profile", "--system", "net.py:build", "--data", "net.py:texts", "-o", "net.profile")
    assert result.exit_code == 0, result.output
    assert "Profile of 5 traces" in result.stdout


def test_a_broken_file_is_left_out_and_named_at_the_end(folder: Path) -> None:
    (folder / "train" / "020.npy").write_bytes(b"not an array")
    result = profile()
    assert result.exit_code == 0, result.output
    assert "Profile of 39 traces" in result.stdout
    assert "left out 1 inputs that could not be read:\n  020: cannot read" in result.stderr
    assert "020" in json.loads(profile("--json").stdout)["skipped"]


def test_all_files_broken(folder: Path) -> None:
    for path in (folder / "train").iterdir():
        path.write_bytes(b"not an array")
    result = profile()
    assert (result.exit_code, "none of the 40 inputs could be read" in result.stderr) == (2, True)
    assert not (folder / "net.profile").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--system none.py:system --data train -o x", "there is no file 'none.py'"),
        ("--system net.py:systen --data train -o x", "no 'systen' in 'net.py', which defines: "),
        ("--system net.py:number --data train -o x", "'net.py:number' is a int, which has no run(batch)"),
        ("--system net.py:net --data train -o x", "is a bare Net: wrap it"),
        (
            "--system net.onyx --data train -o x",
            "or a built-in system (brackets, english, english-letters)",
        ),
        (
            "--system bad.py:system --data train -o x",
            "'bad.py' could not be run: ZeroDivisionError: division by zero (line 2)",
        ),
        ("--system net.py:system --data nowhere -o x", "nowhere"),
        (
            "--system net.py:system --data net.py:number -o x",
            "'net.py:number': the data are of the type int: a path, a list,",
        ),
        ("--system net.py:system --data train -o none/x", "cannot write 'none/x': there is no folder 'none'"),
        ("--system net.py:system --data train -o train", "cannot write 'train': it is a folder"),
        (
            "--system net.py:system --data train -o x --components 9",
            "components=9 is more than the 8 numbers of a state",
        ),
        ("--system net.py:system --data train -o x --partitions 10,a", "'a' is not a whole number"),
        ("--system net.py:system --data train -o x --partitions 0", "0 is less than 1"),
        ("--system net.py:system --data train -o x --input-partitions 0", "0 is not in the range x>=1"),
        ("--data train -o x", "error: missing option '--system'"),
    ],
)
def test_wrong_use_says_what_is_wrong(folder: Path, arguments: str, message: str) -> None:
    (folder / "bad.py").write_text("x = 1\ny = x / 0\n")
    result = run("profile", *arguments.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "x").exists()


def test_wrong_files_for_cover(folder: Path) -> None:
    profile()
    for arguments, message in [
        (["--profile", "none.profile", "--partitions", "5"], "there is no file 'none.profile'"),
        (["--profile", "net.py", "--partitions", "5"], "'net.py' is not a profile of DeepCruiser, or it is damaged"),
        (["--profile", "net.profile"], "give either --profile and --partitions, or --model"),
        (["--model", "net.profile"], "is a profile, but a model is needed"),
        (["--profile", "net.profile", "--partitions", "-1"], "partitions must be at least 1, not -1"),
        (["--model", "net.profile", "--input-partitions", "5"], "--input-partitions needs --profile: the model"),
    ]:
        result = cover(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_profile_of_another_network(folder: Path) -> None:
    profile()
    (folder / "later.py").write_text(SYSTEM.replace("manual_seed(0)", "manual_seed(1)"))
    result = run(*"cover --system later.py:system --data test --profile net.profile --partitions 5".split())
    assert result.exit_code == 2
    assert "the profile was made from another network or layer ('encoder" in result.stderr


def test_a_command_that_there_is_not() -> None:
    for typed, message in (("fuz", "no such command 'fuz'; did you mean 'fuzz'?"), ("xyz", "no such command 'xyz'")):
        result = run(typed)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"error: {message}\n")


def test_every_command_explains_itself() -> None:
    assert run("--help").exit_code == 0
    for name in COMMANDS:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "deepcruiser" in result.stdout or "Takes" in result.stdout or ".model" in result.stdout
        assert name == "evaluate" or "--json" in result.stdout  # every question of evaluate has it
    assert run("--version").stdout.strip().endswith(dc.__version__)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_interrupted_in_the_middle_nothing_is_written(folder: Path) -> None:
    waiting = "import time; open('reached', 'w').close(); time.sleep(60); return self.encoder(x)[0]"
    slow = SYSTEM.replace("return self.encoder(x)[0]", waiting)
    (folder / "slow.py").write_text(slow)
    command = [sys.executable, "-m", "deepcruiser", "profile", "--system", "slow.py:system", "--data", "train"]
    process = subprocess.Popen([*command, "-o", "slow.profile"], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (folder / "reached").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130, message
    assert "interrupted: nothing was written" in message
    assert not list(folder.glob("*slow.profile*"))
