"""The commands: findings, shrink, export of campaigns, replay of suites, gates."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.findings.suite import Suite
from tests.support import judge

SOURCE = judge.SOURCE + '''
from deepcruiser.systems.builtin import bracket_changes as changes

class Seed:
    def __init__(self, id, text, label):
        self.id, self.input, self.text = id, text, label

mutations = dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)
seeds = [Seed(f"{voice}-{n}", text, "fine") for voice in ("anna", "ben")
         for n, text in enumerate(["a(b)", "([])", "[][]ab", "(()())", "ab[a]b"])]
hard = [Seed(seed.id, seed.input, "fine" if n < 3 else "odd") for n, seed in enumerate(seeds)]
'''  # fmt: skip
FUZZ = "fuzz --system judge.py:{system} --data judge.py:{data} --mutations judge.py:mutations --disagreement"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "judge.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    return tmp_path


def run(command: str) -> Result:
    return CliRunner().invoke(main, command.split())


def fuzz(output: str, *options: str, system: str = "broken", data: str = "seeds", runs: int = 240) -> Result:
    command = FUZZ.format(system=system, data=data)
    return run(f"{command} --guide none --runs {runs} --workers 0 --plain -o {output} {' '.join(options)}")


def test_findings(folder: Path) -> None:
    assert fuzz("run").exit_code == 1
    result = run("findings run --group-by ^([a-z]+) --json")
    assert result.exit_code == 1, result.output
    data = json.loads(result.stdout)
    assert sum(len(each["tests"]) for each in data["findings"]) == data["failing_tests"] > 3
    for finding in data["findings"]:
        assert (finding["kind"], finding["expected"], finding["got"]) == ("label flip", "fine", "confused")
        assert finding["shrunk"]["status"] == "shrunk"
        assert finding["shrunk"]["number"] == finding["worst"]["number"]
        assert set(finding["counts"]["groups"]) <= {"anna", "ben"}
        assert sum(finding["counts"]["groups"].values()) == len(finding["tests"])
    ranks = [finding["rank"] for finding in data["findings"]]
    assert ranks == sorted(ranks, reverse=True)
    plain = run("findings run")
    assert plain.exit_code == 1
    assert f"{data['failing_tests']} failing tests, {len(data['findings'])} findings" in plain.stdout
    for finding in data["findings"]:
        assert finding["title"] in plain.stdout
    unshrunk = json.loads(run("findings run --shrink 0 --json").stdout)
    assert {each["id"] for each in unshrunk["findings"]} == {each["id"] for each in data["findings"]}, "they stay"


def test_findings_of_a_network_that_is_mended(folder: Path) -> None:
    fuzz("run")
    result = run("findings run --system judge.py:mended --json")
    data = json.loads(result.stdout)
    assert data["findings"] == []
    assert {each["status"] for each in data["apart"]} == {"no longer fails"}


def test_no_failures(folder: Path) -> None:
    assert fuzz("run", system="mended").exit_code == 0
    for command in ("findings run", "shrink run"):
        result = run(command)
        assert (result.exit_code, "there are no failing tests in run" in result.output) == (0, True)


def test_shrink_is_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzz("run")
    first = json.loads(run("shrink run --worst 2 --json").stdout)
    assert [each["status"] for each in first] == ["shrunk", "shrunk"]
    shrink_command: Any = sys.modules["deepcruiser.cli.shrink"]
    known: list[int] = []
    original = shrink_command.shrink_tests

    def counting(*args: Any, **options: Any) -> Any:
        for each in original(*args, **options):
            known.append(each.number)
            yield each

    monkeypatch.setattr(shrink_command, "shrink_tests", counting)
    everything = json.loads(run("shrink run --all --json").stdout)
    assert [each for each in everything if each["number"] in {e["number"] for e in first}] == first
    assert set(known) == {each["number"] for each in everything} - {each["number"] for each in first}
    number = everything[-1]["number"]
    assert f"{number}: " in run(f"shrink run {number}").output or number in known
    wrong = run("shrink run 1 --all")
    assert (wrong.exit_code, "give numbers, --all or --worst" in wrong.output) == (2, True)
    (folder / "run" / "shrunk.json").write_text("[]")
    damaged = run("shrink run --all")
    assert (damaged.exit_code, "is damaged" in damaged.output) == (2, True)


def test_gates(folder: Path) -> None:
    assert fuzz("run").exit_code == 1
    count = len(json.loads(run("findings run --shrink 0 --json").stdout)["findings"])
    assert count > 1
    assert run(f"findings run --shrink 0 --max-findings {count}").exit_code == 0
    failed = run(f"findings run --shrink 0 --max-findings {count - 1}")
    assert (failed.exit_code, f"{count} findings, more than {count - 1}" in failed.output) == (1, True)
    assert fuzz("again", "--max-findings", str(count)).exit_code == 0
    assert fuzz("more", "--max-findings", "0").exit_code == 1


def test_a_system_that_gets_most_seeds_wrong_does_not_pass(folder: Path) -> None:
    result = fuzz("hard", system="mended", data="hard")
    assert result.exit_code == 4
    assert "the system gets 70% of the unchanged seeds wrong, more than 50%: fix that first" in result.output
    assert fuzz("ok", "--max-wrong-seeds", "80%", system="mended", data="hard").exit_code == 0
    assert fuzz("no", "--max-wrong-seeds", "20%", data="hard").exit_code == 4
    assert run("findings ok").exit_code == 4


def test_export_a_suite_and_replay_it(folder: Path) -> None:
    fuzz("run")
    result = run("export run --suite suite --json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    suite = Suite.read("suite")
    assert data["tests"] == len(suite.cases) == data["findings"] > 1
    assert suite.system == "judge.py:broken"
    failing = run("replay suite")
    assert failing.exit_code == 1, failing.output
    for case in suite.cases:
        assert f"{case.id}: still fails" in failing.stdout
    (folder / "suite" / "known.txt").write_text("".join(f"{case.id} next release\n" for case in suite.cases))
    known = run("replay suite")
    count = len(suite.cases)
    assert (known.exit_code, f"{count} of {count} fail, {count} of them known to" in known.output) == (0, True)
    fixed = run("replay suite --system judge.py:mended --json")
    assert fixed.exit_code == 0
    data = json.loads(fixed.stdout)
    assert (data["tests"], data["failing"]) == (len(suite.cases), 0)
    wrong = run("replay suite 7")
    assert (wrong.exit_code, "a suite is always replayed as a whole" in wrong.output) == (2, True)


def test_export_the_queue_and_the_failures(folder: Path) -> None:
    fuzz("run")
    result = run("export run --queue more --json")
    assert (result.exit_code, json.loads(result.stdout)["tests"]) == (0, 10), "guide none keeps the seeds alone"
    assert len(dc.read_corpus("more/manifest.jsonl")) == 10
    result = run("export run --manifest jsonl -o train --json")
    assert json.loads(result.stdout)["tests"] == len(dc.read_corpus("train/manifest.jsonl")) > 0
    needs_model = run("export run --queue few --minimise BSCov")
    assert (needs_model.exit_code, "minimising needs the model of the campaign" in needs_model.output) == (2, True)
    for wrong, message in [
        ("export run", "give --suite, --queue or --manifest"),
        ("export run --manifest nemo", "--manifest needs -o FOLDER"),
        ("export run --suite a --queue b", "give one of --suite, --queue and --manifest"),
        ("export run --suite a --minimise BSCov", "--minimise needs --queue"),
    ]:
        result = run(wrong)
        assert (result.exit_code, message in result.output) == (2, True), result.output
