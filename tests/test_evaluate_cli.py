"""`deepcruiser evaluate` as a user types it, on a recurrent network in PyTorch and synthetic sound."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main
from tests.test_docs import RECOGNISER

ASR = """
import deepcruiser as dc
from evaluated_recogniser import net, log_mel, greedy

system = dc.TorchSystem(net.eval(), state="encoder.lstm", rate=16_000, features=log_mel, transcribe=greedy)
"""


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network, sounds, and a profile of it on some of them."""
    folder = tmp_path_factory.mktemp("sounds")
    (folder / "evaluated_recogniser.py").write_text(RECOGNISER)
    (folder / "evaluated.py").write_text(ASR)
    rng = np.random.default_rng(0)
    for part, count in (("train", 30), ("test", 12)):
        (folder / part).mkdir()
        for number in range(count):
            times = np.arange(int(rng.uniform(0.4, 0.8) * 16_000)) / 16_000
            hum = np.sin(2 * np.pi * rng.uniform(80, 300) * times) * np.sin(2 * np.pi * rng.uniform(1, 5) * times)
            sound = dc.Audio(0.5 * hum + 0.01 * rng.standard_normal(len(times)), 16_000)
            sound.write(folder / part / f"{number:02}.wav")
    lines = [f"{number:02}.wav\tnobody says this" for number in range(12)]
    (folder / "test" / "wrong.tsv").write_text("\n".join(["path\tsentence", *lines]) + "\n")
    return folder


@pytest.fixture(autouse=True)
def there(sounds: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(sounds)
    monkeypatch.syspath_prepend(sounds)
    yield
    for name in ("evaluated", "evaluated_recogniser"):
        sys.modules.pop(name, None)


def evaluate(line: str, *, output: str = "results") -> Result:
    options = f"--system evaluated.py:system --data test --train train -o {output}"
    return CliRunner().invoke(main, ["evaluate", *line.split(), *options.split()])


def refused(line: str, **options: str) -> str:
    result = evaluate(line, **options)
    assert result.exit_code == 2, result.output
    return result.stderr.strip().splitlines()[-1]


def test_all_questions_and_the_page(sounds: Path) -> None:
    small, campaigns = "--seeds 10 --mutants 10", "--seeds 10 --runs 16 --campaigns 2 --partitions 5,20"
    for question in ("configurations", f"rq1 {small}", f"rq2 {small}", f"rq3 {campaigns}", f"rq4 {campaigns}",
                     f"schedulers {campaigns} --arms learned,matched",
                     f"abstraction {small}"):  # fmt: skip
        result = evaluate(question)
        assert result.exit_code == 0, result.output
        name = question.split()[0]
        assert f"Saved results/{name}.md" in result.stdout
        for suffix in (".md", ".csv", "-data.csv", ".svg", ".png"):
            assert (sounds / "results" / f"{name}{suffix}").stat().st_size > 100
    result = CliRunner().invoke(main, ["evaluate", "page", "results", "-o", "page.md"])
    assert result.exit_code == 0, result.output
    page = (sounds / "page.md").read_text()
    assert page.index("## Configurations") < page.index("## RQ1") < page.index("## RQ4") < page.index("## Schedulers")
    assert "](page/rq3.svg)" in page
    assert (sounds / "page" / "rq3.svg").is_file()
    assert "[rq2-transformations.csv](page/rq2-transformations.csv)" in page
    assert (sounds / "page" / "rq2.csv").read_text() == (sounds / "results" / "rq2.csv").read_text()
    assert not list((sounds / "page").glob("*-data.csv"))
    (sounds / "results" / "rq3.svg").rename(sounds / "away.svg")
    result = CliRunner().invoke(main, ["evaluate", "page", "results", "-o", "page.md"])
    assert result.exit_code == 2
    assert "cannot read 'results/rq3.svg': no such file or directory; ask the question again" in result.stderr
    (sounds / "away.svg").rename(sounds / "results" / "rq3.svg")
    (sounds / "page.md").write_text(page.replace("<!-- rq2 -->", "Said by us.\n\n<!-- rq2 -->"))
    CliRunner().invoke(main, ["evaluate", "page", "results", "-o", "page.md"])
    renewed = (sounds / "page.md").read_text()
    assert renewed.replace("Said by us.\n\n", "") == page


def test_the_same_command_gives_the_same_files(sounds: Path) -> None:
    line = "rq1 --seeds 4 --mutants 9 --json"
    first, again = evaluate(line, output="once"), evaluate(line, output="twice")
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert json.loads(first.stdout)["rq1"][0]["configuration"] == "M{3,10}"
    for name in ("rq1.csv", "rq1-data.csv", "rq1.svg", "rq1.png"):
        assert (sounds / "once" / name).read_bytes() == (sounds / "twice" / name).read_bytes()
    evaluate(line, output="once")
    section = (sounds / "once" / "rq1.md").read_text()
    assert "-o once`" in section
    assert str(sounds) not in section


def test_ctrl_c_and_on(sounds: Path) -> None:
    """Two working processes are interrupted, and the same command continues from there."""
    options = "--system evaluated.py:system --data test --train train --seeds 12 --mutants 120 --jobs 2 -o stopped"
    command = [sys.executable, "-m", "deepcruiser", "evaluate", "rq1", *options.split()]
    with subprocess.Popen(command, cwd=sounds, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while len(list((sounds / "stopped" / "work").glob("*.batch"))) < 5 and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, message = process.communicate(timeout=60)
    assert process.returncode == 130, message
    assert "Interrupted. Everything run so far is saved. Resume with: python -m deepcruiser evaluate rq1" in message
    known = {path: path.stat().st_mtime_ns for path in (sounds / "stopped" / "work").glob("*.batch")}
    assert 5 <= len(known) < 12 * 8
    assert evaluate("rq1 --seeds 12 --mutants 120 --jobs 1", output="stopped").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in known} == known
    with open(sounds / "stopped" / "rq1-data.csv") as file:
        assert sum(1 for _ in file) > 12 * 100


def test_bad_use_is_told_in_a_sentence(sounds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--seeds 100 is too large: only 12 of the 12 inputs are readable; use --seeds 12" in refused("rq1")
    assert "two seeds have the id '00'" in refused("rq2 --seeds 5 --data test/wrong.tsv", output="wrong")
    options = ["evaluate", "rq2", "--seeds", "5", "--system", "evaluated.py:system", "--train", "train", "-o", "wrong"]
    result = CliRunner().invoke(main, [*options, "--data", "test/wrong.tsv"])
    assert result.exit_code == 2
    assert "--seeds 5 is too large: only 0 of the 12 inputs are answered without an error; give other" in result.stderr
    assert evaluate("configurations", output="mine").exit_code == 0
    assert refused("configurations --seed 3", output="mine").startswith(
        "error: 'mine' was started with different settings: seed"
    )
    assert "either --profile, or --train" in refused("rq1 --profile x.profile")
    assert "is not a list of whole numbers" in refused("rq1 --partitions ten")
    assert "--base 20 must be one of the partitions, 5" in refused("rq3 --seeds 2 --partitions 5")
    missing = refused("configurations --device cuda:99")
    assert "the device 'cuda:99' cannot be used" in missing
    assert "this machine has: cpu" in missing
    assert "there are no results in 'nothing'" in CliRunner().invoke(
        main, ["evaluate", "page", "nothing", "-o", "page.md"]
    ).stderr  # fmt: skip
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert refused("rq1") == "error: figures need the package matplotlib: pip install 'deepcruiser[evaluate]'"


def test_the_preset_of_the_paper(sounds: Path) -> None:
    campaigns = "--seeds 6 --campaigns 1 --partitions 5,20 --minutes 0.02 --runs 12"
    result = evaluate(f"rq3 --paper {campaigns}", output="paper")
    assert result.exit_code == 0, result.output
    section = (sounds / "paper" / "rq3.md").read_text()
    assert "campaigns of 12 runs or 0.02 minutes" in section
    assert "M{3,5} with inputs {3,5}" in section
    assert "M{3,20} with inputs {3,20}" in section
    about = json.loads((sounds / "paper" / "experiment.json").read_text())
    assert about["oracle"] == "word error rate above 0.3"
    assert about["batch_size"] == 1
    assert "never_invalid" in json.dumps(about["mutations"])
    assert dc.Profile.load(sounds / "paper" / "train.profile").origin.fitted_on == 30
    result = evaluate("rq3 --paper --batch-size 4", output="other")
    assert result.exit_code == 2
    assert "--paper cannot be combined with --batch-size 4: leave one out, or use 1" in result.stderr
