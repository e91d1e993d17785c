"""`deepcruiser demo`: from the built-in recogniser to a report, and back to a failing test."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import builtin, main
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL


def test_the_demo_and_its_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    all_data = builtin.data
    monkeypatch.setattr(builtin, "data", lambda name: all_data(name)[:40])
    monkeypatch.setattr(import_module("deepcruiser.cli.demo"), "RUNS", 96)
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    result = run(main, ["demo", "--json", "--seed", "2", "-o", "here"])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    assert outcome["guided"]["runs"] == outcome["unguided"]["runs"] == 96
    assert outcome["guided"]["failing_tests"] > 0
    assert 0 < outcome["new"]["BSCov"] < 1
    record = dc.CampaignRecord.open("here/campaign")
    assert record.failed
    if has_beam_search():  # failures sound like failures: other words, and not other spaces
        known = set(dc.read_language_model(LANGUAGE_MODEL).words)
        for test in record.failed:
            assert known >= set(test.output.split())
            assert test.output.replace(" ", "") != test.reference.replace(" ", "")
    result = run(main, ["demo", "--seed", "2", "-o", "here"])  # it takes the place of the other
    assert result.exit_code == 0, result.output
    assert "here/report.html" in result.stdout
    assert "<title>" in Path("here/report.html").read_text(encoding="utf-8")
    (command,) = [line for line in result.stdout.splitlines() if "Replay it: " in line]
    result = run(main, command.split("deepcruiser ")[1].split())
    assert result.exit_code == 1, result.output
    assert "fails as before: the same input, the same answer, the same states" in result.stdout
