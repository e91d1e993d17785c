"""Regression suites: written, read, run by pytest, and changed since."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.findings.cluster import find
from deepcruiser.findings.corpus import write_input
from deepcruiser.findings.suite import Suite, run_case, write_suite
from deepcruiser.serialise import digest_of
from tests.support.judge import campaign, judges

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def record(tmp_path: Path) -> CampaignRecord:
    return campaign(judges(tmp_path).broken, tmp_path / "run")


@pytest.fixture
def suite(record: CampaignRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(tmp_path)
    return write_suite(tmp_path / "suite", record, find(record).findings, system="judge.py:broken")


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest with the plugin, and no other of those installed, in a process of its own."""
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    command = [sys.executable, "-m", "pytest", "-p", "deepcruiser.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_it_fails_on_the_network_that_it_was_made_from_and_passes_on_a_mended_one(suite: Suite, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "run")  # neither the campaign nor its seeds are needed any more
    again = Suite.read(tmp_path / "suite")
    module = judges(tmp_path)
    assert len(again.cases) > 1
    assert len({case.id for case in again.cases}) == len(again.cases)
    for case in again.cases:
        judged = run_case(case, module.broken, again.oracle)
        assert (judged.kind, judged.output) == ("wrong", case.output)
        assert digest_of(case.input) == case.digest
        assert run_case(case, module.mended, again.oracle).kind == ""


def test_a_suite_grows_and_keeps_what_it_has(suite: Suite, record: CampaignRecord, tmp_path: Path) -> None:
    result = find(record).findings
    before = {path.name: path.read_bytes() for path in suite.folder.iterdir()}
    assert write_suite(suite.folder, record, result).cases[0].id == suite.cases[0].id
    assert {path.name: path.read_bytes() for path in suite.folder.iterdir()} == before
    worse = campaign(judges(tmp_path).worse, tmp_path / "worse")
    grown = write_suite(suite.folder, worse, find(worse).findings)
    assert [case.id for case in grown.cases[: len(suite.cases)]] == [case.id for case in suite.cases]
    assert len(grown.cases) > len(suite.cases)
    other = campaign(judges(tmp_path).broken, tmp_path / "other", oracle=dc.Disagreement("output"))
    with pytest.raises(dc.MismatchError, match=r"the suite in .* judges by .* and the campaign by"):
        write_suite(suite.folder, other, find(other).findings)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(dc.FileError, match="it has other files; use a new folder"):
        write_suite(tmp_path / "notes", record, result)


@pytest.mark.parametrize("suffix", [".json", ".txt"])
def test_a_file_that_was_changed_is_named(suite: Suite, suffix: str) -> None:
    path = next(suite.folder.glob(f"{suite.cases[0].id}{suffix}"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(dc.FileError, match=rf"{path.name}' has changed since .* its SHA-256 is \w+ instead of \w+"):
        Suite.read(suite.folder)
    path.unlink()
    with pytest.raises(dc.FileError, match=f"{path.name}' is missing from the suite"):
        Suite.read(suite.folder)


@pytest.mark.parametrize(
    "change", [{"title": 3}, {"seed": None}, {"score": "high"}, {"recipe": [{}]}, {"recipe": [{"name": 1}]}], ids=str
)
def test_a_test_of_another_shape_is_refused(suite: Suite, change: dict[str, Any]) -> None:
    name = f"{suite.cases[0].id}.json"
    path, about = suite.folder / name, json.loads((suite.folder / "suite.json").read_text())
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    about["files"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (suite.folder / "suite.json").write_text(json.dumps(about))
    with pytest.raises(dc.FileError, match="is damaged, or of another version"):
        Suite.read(suite.folder)


def test_what_is_no_suite(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=r"there is no suite in '.*': it has no suite.json"):
        Suite.read(tmp_path)
    path = suite.folder / "suite.json"
    data = json.loads(path.read_text())
    changes: list[tuple[dict[str, Any], str]] = [
        ({"format": 99}, "has format 99 and this version reads format 1"),
        ({"oracle": {"type": "Disagreement", "above": 3}}, "unknown field of the oracle"),
        ({"tests": ["../judge.py"]}, "which is not in its folder"),
        ({"tests": 3}, "is damaged, or of another version"),
        ({"files": {}}, "is damaged, or of another version"),
    ]
    for change, message in changes:
        path.write_text(json.dumps({**data, **change}))
        with pytest.raises(dc.DeepCruiserError, match=message):
            Suite.read(suite.folder)
    path.write_text("no JSON")
    with pytest.raises(dc.FileError, match="is not what `deepcruiser export --suite` writes"):
        Suite.read(suite.folder)


@pytest.mark.parametrize(
    "value",
    [
        "([])\r\n ä",
        np.arange(6.0, dtype=np.float32).reshape(3, 2),
        dc.Audio(np.linspace(-1.5, 1.5, 50).astype(np.float32), 8000),
    ],
)
def test_inputs_come_back_bit_for_bit(value: Any, tmp_path: Path) -> None:
    path = write_input(tmp_path / "it.works", value)
    assert digest_of(dc.Sample("it", path).input) == digest_of(value)


def test_inputs_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match="an input of the type dict cannot be written"):
        write_input(tmp_path / "it", {})


def test_pytest_runs_it(suite: Suite, tmp_path: Path) -> None:
    count = len(suite.cases)
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite")
    assert status == 1, printed
    assert f"{count} failed" in printed
    case = suite.cases[0]
    assert case.title in printed
    assert "expected:   'fine'" in printed
    assert "got:        'confused' (score 1.00)" in printed
    assert "Traceback" not in printed
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite", "--deepcruiser-system", "judge.py:mended")
    assert (status, f"{count} passed" in printed) == (0, True), printed


def test_pytest_selects_and_knows(suite: Suite, tmp_path: Path) -> None:
    first, *rest = suite.cases
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite", "-k", first.id, "--strict-markers")
    assert (status, f"1 failed, {len(rest)} deselected" in printed) == (1, True), printed
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite", "-m", "not deepcruiser")
    assert (status, f"{len(suite.cases)} deselected" in printed) == (5, True), printed
    (suite.folder / "known.txt").write_text(
        "# those that wait for the next release\n" + "".join(f"{case.id} next release\n" for case in suite.cases)
    )
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite", "-rx")
    assert (status, f"{len(suite.cases)} xfailed" in printed) == (0, True), printed
    assert "next release" in printed
    (suite.folder / "known.txt").write_text("0000 gone\n")
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite")
    assert status == 2
    assert "lists '0000', which the suite does not have" in printed


def test_pytest_beside_other_tests_and_without_being_asked(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    _, printed = run_pytest(tmp_path, "test_mine.py", "--deepcruiser", "suite")
    assert f"{len(suite.cases)} failed, 1 passed" in printed
    status, printed = run_pytest(tmp_path)
    assert (status, "1 passed" in printed) == (0, True), printed
    status, printed = run_pytest(tmp_path, "--deepcruiser", "nowhere")
    assert (status, "there is no suite in" in printed) == (4, True), printed


def test_pytest_with_xdist(suite: Suite, tmp_path: Path) -> None:
    status, printed = run_pytest(
        tmp_path, "-p", "xdist", "-n", "2", "--deepcruiser", "suite", "--deepcruiser-system", "judge.py:mended"
    )
    assert (status, f"{len(suite.cases)} passed" in printed) == (0, True), printed


def test_pytest_names_a_changed_file(suite: Suite, tmp_path: Path) -> None:
    path = next(suite.folder.glob("*.txt"))
    path.write_text("()")
    status, printed = run_pytest(tmp_path, "--deepcruiser", "suite")
    assert status == 2
    assert f"{path.name}' has changed since the suite was written" in printed
