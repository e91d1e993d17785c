"""`deepcruiser replay` as a user types it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support import toy
from tests.support.typed import BRACKETS, begin, failing, make, run


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


def get(database: Path, key: str) -> Any:
    with closing(sqlite3.connect(database)) as db:
        return json.loads(db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])


def put(database: Path, key: str, value: Any) -> None:
    text = json.dumps(value).replace("'", "''")
    toy.overwrite(database, "meta", f"value = '{text}'", f"key = '{key}'")


def test_replay_from_anywhere(
    folder: Path, campaign: Path, made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in (made, campaign, tmp_path):
        monkeypatch.chdir(place)
        result = run("replay", os.path.relpath(campaign))
        assert result.exit_code == 1, result.output
        count = len(failing(campaign))
        assert result.stdout.count("fails as before: the same input, the same answer, the same states") == count
        assert f"{count} of {count} fail; {count} exactly as before" in result.stdout


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
    assert result.stdout.startswith("this is not the campaign's system: states are not compared\n")
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
    database = together / "runs" / "one" / "campaign.db"
    put(database, "directory", {**get(database, "directory"), "absolute": "/nowhere"})
    (database.parent / "abstract.model").unlink()
    result = run("replay", "project/runs/one", number, "--data", f"{made}/net.py:seeds")
    assert "states are not compared: there is no file" in result.stderr
    assert "fails as before: the same input, the same answer" in result.stdout
    put(database, "spec", {**get(database, "spec"), "sead": 3})
    result = run("replay", "project/runs/one", number)
    assert (result.exit_code, "unknown field of a campaign 'sead' (given: 3); did you mean" in result.stderr) == (
        2,
        True,
    )


def test_replay_of_a_campaign_begun_in_python(folder: Path, campaign: Path) -> None:
    other = shutil.copytree(campaign, folder / "python")
    spec = get(other / "campaign.db", "spec")
    for name in ("system", "data", "profile", "partitions", "mutations_source"):
        spec.pop(name, None)
    put(other / "campaign.db", "spec", spec)
    number = str(failing(campaign)[0])
    result = run("replay", str(other), number)
    assert (result.exit_code, "give --system and --data" in result.stderr) == (2, True)
    options = ("--system", "net.py:system", "--data", "net.py:seeds", "--mutations", "changes.py:mutations")
    result = run("replay", str(other), number, *options)
    assert result.exit_code == 1, result.output
    assert "fails as before: the same input, the same answer" in result.stdout
