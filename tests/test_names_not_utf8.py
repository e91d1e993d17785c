"""Names of files that are not UTF-8: stored and shown escaped, and read again exactly."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main

SYSTEM = """
import numpy as np
import deepcruiser as dc

class Loud:
    state_name = "level"

    def run(self, batch):
        return [self.one(audio) for audio in batch]

    def one(self, audio):
        steps = np.abs(audio.samples[: len(audio) // 100 * 100].reshape(-1, 100)).mean(1, keepdims=True)
        states = np.concatenate([np.zeros((1, 1)), np.cumsum(steps, axis=0)])
        return dc.Run("loud" if steps.mean() > 0.05 else "soft", dc.Trace(states, steps))

system = Loud()
"""
NAMES = ("caf\udce9", "\udcff\udcfe", "plain")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sounds").mkdir()
    for number, name in enumerate(NAMES):
        noise = np.random.default_rng(number).standard_normal(8000)
        try:
            dc.Audio(0.065 * noise, 16_000).write(tmp_path / "sounds" / f"{name}.wav")
        except (dc.FileError, UnicodeError):
            pytest.skip("this system has no such names")
    (tmp_path / "loud.py").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> Result:
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code in (0, 1), result.output
    assert not [char for char in result.output if not char.isprintable() and char != "\n"]
    return result


def test_from_seeds_to_the_report(folder: Path) -> None:
    run("profile --system loud.py:system --data sounds --components 1 -o a.profile")
    assert set(dc.Profile.load("a.profile").names) == set(NAMES)
    options = "--system loud.py:system --data sounds --profile a.profile --partitions 4"
    run(f"cover {options}")
    run(f"fuzz {options} --disagreement --workers 0 --runs 32 --no-validity -o run")
    record = dc.CampaignRecord.open("run")
    assert {seed.seed for seed in record.seeds} == set(NAMES)
    assert any(test.seed == NAMES[0] for test in record.failed)
    run(f"fuzz {options} --disagreement --workers 0 --runs 64 --no-validity -o run")
    failing = next(test for test in record.failed if test.seed == NAMES[0])
    replayed = run(f"replay run {failing.number}").output
    assert "fails as before" in replayed
    assert "caf\\udce9" in replayed
    assert any(name in run("findings run").output for name in ("caf\\udce9", "\\udcff\\udcfe"))
    run("report run")
    assert "caf\\udce9" in Path("run/report.html").read_text(encoding="utf-8")
    assert any(test["seed"] == NAMES[0] for test in json.loads(run("report run --json").stdout)["failures"])
    for form in ("nemo", "kaldi", "csv", "jsonl"):
        run(f"export run --manifest {form} -o {form}")


def test_a_choice_of_seeds_names_them(folder: Path) -> None:
    run("seeds --system loud.py:system --data sounds --disagreement -o s.html")
    table = Path("s.csv").read_text(encoding="utf-8").splitlines()
    chosen = [next(line for line in table if line.startswith("caf\\udce9,")).split(",")[0] + ",yes"]
    Path("s.csv").write_text("\n".join(["seed,leave out", *chosen]), encoding="utf-8")
    common = "--system loud.py:system --data sounds --guide none --disagreement --workers 0 --runs 4 -o run"
    run(f"fuzz {common} --leave-out s.csv")
    left_out = [seed.seed for seed in dc.CampaignRecord.open("run").seeds if seed.reason == "left out"]
    assert left_out == [NAMES[0]]


def test_lone_surrogates_in_a_list(folder: Path) -> None:
    entry = {"audio_filepath": "sounds/\ud800.wav", "text": "loud"}
    (folder / "a.jsonl").write_text(json.dumps(entry) + "\n")
    result = CliRunner().invoke(main, "cover --system loud.py:system --data a.jsonl --model x".split())
    assert result.exit_code == 2
    (sample,) = dc.read_corpus("a.jsonl")
    assert sample.id == "sounds/\ud800"
    with pytest.raises(dc.FileError, match=r"cannot read .*\\ud800\.wav"):
        assert sample.input is None
    assert os.fspath(sample.path).endswith("\ud800.wav")
