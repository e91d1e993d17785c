"""Findings from one version of a network to the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.campaign.events import Event
from deepcruiser.cli import main
from deepcruiser.findings.cluster import find
from deepcruiser.findings.history import History, Seen, Version, history, open_version
from deepcruiser.findings.suite import write_suite
from deepcruiser.report.page import write_history
from tests.support import judge, toy


def version(name: str, runs: int, **first: int) -> Version:
    findings = {(symptom, "", "", "Trim"): Seen(symptom, 1, run) for symptom, run in first.items()}
    return Version(name, runs, findings, 0, {})


def titles(seen: tuple[Seen, ...]) -> list[str]:
    return sorted(each.title for each in seen)


def test_new_fixed_and_still_failing() -> None:
    one = version("1", 100, crash=10, spelling=20, late=90)
    two = version("2", 50, spelling=5, deletion=7)
    three = version("3", 200, spelling=1, crash=2, insertion=180)
    first, second = History((one, two, three), runs=50).differences
    assert (titles(first.new), titles(first.fixed), titles(first.still)) == (["deletion"], ["crash"], ["spelling"])
    assert (titles(second.new), titles(second.fixed), titles(second.still)) == (["crash"], ["deletion"], ["spelling"])


def test_what_only_a_longer_campaign_could_find_is_neither_new_nor_fixed() -> None:
    short, long = version("short", 50, crash=3), version("long", 500, crash=9, late=400)
    (difference,) = History((short, long), runs=50).differences
    assert (difference.new, difference.fixed, titles(difference.still)) == ((), (), ["crash"])
    (difference,) = History((long, short), runs=50).differences
    assert (difference.new, difference.fixed, titles(difference.still)) == ((), (), ["crash"])


def test_campaigns_and_suites(tmp_path: Path) -> None:
    module = judge.judges(tmp_path)
    broken = judge.campaign(module.broken, tmp_path / "broken", runs=160)
    judge.campaign(module.mended, tmp_path / "mended", runs=96)
    write_suite(tmp_path / "suite", broken, find(broken).findings)
    result = history(map(open_version, [tmp_path / "broken", tmp_path / "suite", tmp_path / "mended"]))
    assert result.runs == 96
    assert [each.runs for each in result.versions] == [160, None, 96]
    assert result.versions[0].failures == sum(run.outcome == "failed" for run in broken.runs[:96])
    assert result.versions[0].findings.keys() == result.versions[1].findings.keys()
    first, second = result.differences
    assert (first.new, first.fixed) == ((), ())
    assert len(second.fixed) == len(first.still) == len(result.versions[0].findings) > 1
    assert (second.new, second.still) == ((), ())


def test_coverage_is_compared_at_equal_runs(tmp_path: Path) -> None:
    short, long = toy.campaign(tmp_path / "short", runs=48), toy.campaign(tmp_path / "long", runs=128)
    result = history([long, short])
    events: list[Event] = [*long.seeds, *long.runs[:48]]
    passed = [event for event in events if event.outcome in ("kept", "dropped")]
    assert result.versions[0].coverage == {
        "BSCov": dc.BSCov.of(toy.model(), [event.visits for event in passed if event.visits is not None])
    }
    assert result.versions[0].coverage == result.versions[1].coverage, "the same campaign so far"
    assert result.versions[1].coverage == {"BSCov": short.coverage(dc.BSCov).value}


@pytest.mark.parametrize(
    ("folders", "fail_on", "status"),
    [("mended broken", "new", 1), ("broken mended", "new", 0), ("broken broken", "still", 1), ("broken", "new", 0)],
)
def test_the_command(tmp_path: Path, folders: str, fail_on: str, status: int) -> None:
    module = judge.judges(tmp_path)
    for name in set(folders.split()):
        judge.campaign(getattr(module, name), tmp_path / name)
    command = ["history", *(str(tmp_path / name) for name in folders.split()), "--fail-on", fail_on]
    result = CliRunner().invoke(main, [*command, "--json"])
    assert result.exit_code == status, result.output
    data = json.loads(result.stdout)
    assert len(data["versions"]) == len(folders.split())
    plain = CliRunner().invoke(main, command)
    assert plain.exit_code == status
    if fail_on == "new" and status:
        assert "  new: 'fine' became 'confused' when changed by " in plain.stdout
        assert data["versions"][-1]["new"]


def test_the_page_is_escaped(tmp_path: Path) -> None:
    one, two = version("<b>one</b>", 10), version("two", 10, **{"<script>alert(1)</script>": 2})
    write_history(History((one, two), 10), tmp_path / "history.html")
    page = (tmp_path / "history.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
