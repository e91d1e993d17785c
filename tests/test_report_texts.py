"""Reports as text, Markdown, JSON and XML, their messages about missing parts, and the live page."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.errors import InputError
from deepcruiser.report.data import CampaignData
from deepcruiser.report.format import markdown_text, quoted
from deepcruiser.report.page import write_page
from deepcruiser.report.sections import as_markdown
from deepcruiser.report.server import serving
from deepcruiser.report.templates import ASSETS
from tests.support import reports, toy
from tests.support.reports import page_data, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reports.failing_campaign(tmp_path_factory.mktemp("runs") / "sounds")


def test_text_markdown_and_json(folder: Path) -> None:
    data = json.loads(report(folder, "--json").stdout)
    reported = data["campaigns"][0]
    text = report(folder, "--text").stdout
    assert f"{reported['failing_tests']} failing tests" in text
    assert all(
        f"{each['name']:12} {each['start']:8.2%} {each['executed']:8.2%}" in text for each in reported["coverage"]
    )
    markdown = report(folder, "--markdown").stdout
    assert "<script" not in markdown
    assert f"### DeepCruiser: {reported['failing_tests']} failing tests" in markdown
    result = report(folder, "--text", "--json")
    assert result.exit_code == 2
    assert "one of" in result.output


def test_markdown_mentions_nobody_and_stays_in_its_cell() -> None:
    data = {
        "campaigns": [{"name": "x", "folder": "x", "failing_tests": 1, "failed": {"wrong": 1}, "failing_inputs": 1}],
        "comparison": {"rows": [], "sentences": []},
        "findings": [],
        "mistakes": [{"heat_map": None, "words": [], "labels": None}],
        "state_space": [None],
        "transformations": [[]],
        "unusual": [{"rows": [], "furthest": []}],
        "learned": [None],
        "failures": [
            {"campaign": 0, "number": 1, "seed": "a|b", "recipe": ["@all http://evil"], "kind": "wrong", "score": 1.0}
        ],
    }
    more = {
        "failing_seeds": 1,
        "runs": 1,
        "seconds": 1.0,
        "guide": "",
        "oracle": "",
        "coverage": [],
        "measure": "",
        "warnings": [],
        "state": "finished",
        "stopped": "",
    }
    data["campaigns"][0].update(more)  # type: ignore[index]
    data["failures"][0].update(  # type: ignore[index]
        reference="`x` |\n| <b>", output="[y](z)", seed_output="@x", text="<i>", replay="deepcruiser replay x 1"
    )
    (row,) = [line for line in as_markdown(data).splitlines() if line.startswith("| 1 ")]
    assert row.count("|") == 7
    assert not set("@`<[") & set(row)
    assert "://" not in row


def test_every_form_has_the_input_that_is_text_and_the_answer_to_the_seed(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path / "x")
    failed, system = campaign.failed, toy.Reader()
    inputs = {seed.id: seed.input for seed in toy.seeds()}
    for test in failed:
        value = inputs[test.seed]
        (run,) = system.run([value])
        for change in test.recipe:
            value = change(value)
        assert (test.text, test.seed_output) == (value, run.output)
    forms = [report(tmp_path / "x", how).stdout for how in ("--text", "--markdown", "--json")]
    report(tmp_path / "x", "--junit", tmp_path / "x.xml")
    bodies = [test[0].text or "" for test in ET.parse(tmp_path / "x.xml").getroot()[0] if len(test)]
    assert [body for body in bodies if "\nunchanged seed: '" in body and "\ninput: '" in body] == bodies
    shown = json.loads(forms[2])["failures"]
    assert {test["number"]: (test["text"], test["seed_output"]) for test in shown} == {
        test.number: (test.text, test.seed_output) for test in failed
    }
    assert f"      unchanged seed: {shown[0]['seed_output']!r}\n      input: {shown[0]['text']!r}" in forms[0]
    assert f"| {markdown_text(repr(shown[0]['text']))} |" in forms[1]
    (tmp_path / "mine.py").write_text("from tests.support import toy\nsystem, seeds = toy.Reader(), toy.seeds()\n")
    file = tmp_path / "mine.py"
    sources = [f"--system={file}:system", f"--data={file}:seeds", "--mutations=brackets"]
    replayed = CliRunner().invoke(main, ["replay", str(tmp_path / "x"), str(shown[0]["number"]), *sources])
    assert f"    unchanged seed: {shown[0]['seed_output']!r}\n    input: {shown[0]['text']!r}" in replayed.output


def test_how_many_seeds_were_right_is_shown_where_they_have_labels(tmp_path: Path) -> None:
    system, texts = toy.Reader(), [seed.value for seed in toy.seeds()]
    right = [system.run([text])[0].output for text in texts]
    labels = ["low" if i < 4 else label for i, label in enumerate(right)]
    seeds = [toy.Text(f"t{i}", text, label) for i, (text, label) in enumerate(zip(texts, labels, strict=True))]
    toy.campaign(tmp_path / "labels", seeds, runs=16)
    expected = {"right": sum(map(str.__eq__, labels, right)), "of": len(seeds)}
    assert 0 < expected["right"] < len(seeds)
    assert CampaignData(tmp_path / "labels").facts()["right"] == expected
    sentence = f"right on {expected['right']} of {len(seeds)} seeds"
    assert sentence in report(tmp_path / "labels", "--text").stdout
    report(tmp_path / "labels")
    assert f"<b>{expected['right']}<small> of {len(seeds)}</small></b> seeds right" in page_text(tmp_path / "labels")
    toy.campaign(tmp_path / "none", runs=16)  # without labels, the answer to the seed is what mutants are compared with
    toy.campaign(tmp_path / "own", seeds, oracle=dc.Disagreement(against="output"), runs=16)
    for name in ("none", "own"):
        assert CampaignData(tmp_path / name).facts()["right"] is None


def page_text(folder: Path) -> str:
    return (folder / "report.html").read_text()


def test_numbers_are_printed_in_six_digits() -> None:
    assert quoted([(1.9420000000000002, 2.0)]) == "[(1.942, 2.0)]"
    assert quoted({"a": 0.1 + 0.2}) == "{'a': 0.3}"


def test_junit_lists_failing_tests_and_the_seeds_that_held(folder: Path, tmp_path: Path) -> None:
    result = report(folder, "--junit", tmp_path / "failures.xml")
    assert result.exit_code == 0
    assert not (tmp_path / "report.html").exists()
    (suite,) = ET.parse(tmp_path / "failures.xml").getroot()
    campaign = dc.CampaignRecord.open(folder)
    failures = suite.findall("testcase/failure")
    assert len(failures) == len(campaign.failed) == int(suite.attrib["failures"])
    assert int(suite.attrib["tests"]) == len(suite)
    assert any(reports.NASTY in failure.attrib["message"] for failure in failures)
    held = {test.attrib["name"] for test in suite if not len(test)}
    kept = {event.seed for event in campaign.seeds if event.outcome == "kept"}
    assert len(held) == len(kept - {test.seed for test in campaign.failed})


def test_what_a_crash_says_may_hold_any_character(tmp_path: Path) -> None:
    class Broken(toy.Reader):
        def _run(self, text: str) -> dc.Run:
            if len(text) > 15:
                raise RuntimeError("\x00\x1b[31m\ufffe \ud800 <&>")
            return super()._run(text)

    campaign = toy.campaign(tmp_path / "x", system=Broken(), runs=96)
    assert any(test.kind == "crash" for test in campaign.failed)
    result = report(tmp_path / "x", "--junit", tmp_path / "x.xml")
    assert result.exit_code == 0, result.exception
    errors = ET.parse(tmp_path / "x.xml").getroot().findall("testsuite/testcase/error")
    assert "\\x1b" in errors[0].attrib["message"]
    for how in ("--text", "--markdown", "--json"):
        assert "\x1b" not in report(tmp_path / "x", how).stdout
    assert report(tmp_path / "x").exit_code == 0


def test_what_is_missing_is_said(folder: Path, tmp_path: Path) -> None:
    for given_folder in (tmp_path, tmp_path / "nowhere"):
        result = report(given_folder)
        assert result.exit_code == 2
        assert "there is no campaign in" in result.output
    result = report(folder, "-o", tmp_path / "no" / "page.html")
    assert result.exit_code == 2
    assert "there is no folder" in result.output
    assert list(tmp_path.iterdir()) == []

    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    shutil.rmtree(moved / "seeds")
    test = dc.CampaignRecord.open(moved).failed[0]
    (moved / "failed" / f"{test.number:06}.flac").write_bytes(b"no sound")
    (moved / "abstract.model").unlink()
    assert report(moved).exit_code == 0
    data = page_data(moved / "report.html")
    (outcome,) = [each for each in data["failures"] if each["number"] == test.number]
    assert "seeds/" in outcome["input"]["seed"]["problem"]
    assert "cannot read" in outcome["input"]["mutant"]["problem"]
    assert data["state_space"] == [None]
    (campaign,) = data["campaigns"]
    assert campaign["coverage"] == []
    assert len(campaign["warnings"]) == 1
    assert "there is no abstract.model" in campaign["warnings"][0]
    assert "there is no abstract.model" in report(moved, "--text").stdout
    assert "there is no abstract" in report(moved, "--markdown").stdout
    assert campaign["failing_tests"] == len(dc.CampaignRecord.open(folder).failed)


def test_a_damaged_folder_shows_what_can_be_read(folder: Path, tmp_path: Path) -> None:
    whole = dc.CampaignRecord.open(folder)
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    (damaged / "abstract.model").write_bytes(b"PK no model")
    with closing(sqlite3.connect(damaged / "campaign.db")) as db, db:
        db.execute("UPDATE runs SET changes = '[{' WHERE number = 41")
    assert report(damaged).exit_code == 0
    data = page_data(damaged / "report.html")
    (campaign,) = data["campaigns"]
    assert campaign["runs"] == 40
    assert campaign["failing_tests"] == sum(test.number <= 40 for test in whole.failed) > 0
    assert {test["number"] for test in data["failures"]} == {test.number for test in whole.failed if test.number <= 40}
    runs, model = campaign["warnings"]
    assert "runs after 40 cannot be read" in runs
    assert model.startswith("coverage and the state space are missing: ")
    assert "damaged or cut short" in model
    html = (damaged / "report.html").read_text()
    assert html.count("<b>Warning:</b>") == 2
    for form in ("--text", "--markdown"):
        assert "runs after 40 cannot be read" in report(damaged, form).stdout


def test_without_a_database_the_failing_tests_are_still_shown(folder: Path, tmp_path: Path) -> None:
    whole = dc.CampaignRecord.open(folder)
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    database = (damaged / "campaign.db").read_bytes()
    (damaged / "campaign.db").write_bytes(database[: len(database) // 3])
    first, *rest = whole.failed
    (damaged / "failed" / f"{first.number:06}.json").write_text("{")
    assert report(damaged).exit_code == 0
    data = page_data(damaged / "report.html")
    (campaign,) = data["campaigns"]
    assert (campaign["state"], campaign["failing_tests"]) == ("damaged", len(rest))
    (warning,) = campaign["warnings"]
    assert "campaign.db" in warning
    assert f"only the {len(rest)} failing tests in failed/ could be read, 1 could not" in warning
    shown = {test["number"]: test for test in data["failures"]}
    assert shown.keys() == {test.number for test in rest}
    for test in rest:
        assert shown[test.number]["recipe"] == [str(change) for change in test.recipe]
        assert shown[test.number]["input"]["mutant"]["form"] == "sound"
        assert "lost" in shown[test.number]["input"]["seed"]["problem"]
    for form in ("--text", "--markdown", "--json"):
        assert f"only the {len(rest)} failing tests" in report(damaged, form).stdout
    assert report(damaged, "--junit", tmp_path / "x.xml").exit_code == 0
    shutil.rmtree(damaged / "failed")
    result = report(damaged)
    assert result.exit_code == 2
    assert "cannot use the campaign's database" in result.output


def test_an_unfinished_campaign_and_one_without_failures_say_so(tmp_path: Path) -> None:
    toy.campaign(tmp_path / "x", runs=16, oracle=dc.WordErrorRate(above=99))
    assert report(tmp_path / "x", "--text").stdout.startswith(f"{tmp_path / 'x'}: no failing tests")
    report(tmp_path / "x")
    assert "none found" in (tmp_path / "x" / "report.html").read_text()
    toy.overwrite(tmp_path / "x" / "campaign.db", "meta", "value = '\"\"'", "key = 'stopped'")  # as kill -9 leaves it
    assert CampaignData(tmp_path / "x").facts()["state"] == "unfinished"
    assert "unfinished" in report(tmp_path / "x", "--text").stdout


def test_fuzz_tells_where_its_page_is_and_closes_it_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(
        "from tests.support import toy\nsystem, seeds, mutations = toy.Reader(), toy.seeds(), toy.MUTATIONS\n"
    )
    file = tmp_path / "served.py"
    command = f"fuzz --system {file}:system --data {file}:seeds --mutations {file}:mutations --guide none"
    command += f" --disagreement --runs 16 --workers 0 --serve -o {tmp_path / 'x'}"
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code in (0, 1), result.output
    url = re.search(r"live page, for this machine: (http://127\.0\.0\.1:\d+/[\w-]{12}/)\n", result.stderr)
    assert url
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url[1])


def test_a_live_page_plays_sounds_in_parts(folder: Path) -> None:
    number = dc.CampaignRecord.open(folder).failed[0].number
    name = f"failed/{number:06}.flac"
    data = (folder / name).read_bytes()
    with serving(folder) as url:
        with urllib.request.urlopen(f"{url}{name}") as answer:
            assert answer.read() == data
            assert answer.headers["Accept-Ranges"] == "bytes"
        for asked, expected in (("bytes=0-", data), ("bytes=100-199", data[100:200]), ("bytes=100-", data[100:])):
            with urllib.request.urlopen(urllib.request.Request(f"{url}{name}", headers={"Range": asked})) as answer:
                assert answer.status == 206
                assert answer.read() == expected
        with urllib.request.urlopen(f"{url}data.json?runs=0&state=running") as answer:
            reported = json.load(answer)
        assert reported["page"]["campaigns"][0]["runs"] == 96
        assert reports.NASTY not in json.dumps(reported["html"])
        with urllib.request.urlopen(f"{url}data.json?runs=96&state=finished") as answer:
            assert answer.status == 204
    with pytest.raises(InputError, match="on port"), serving(folder, 70000):
        pass


def test_every_text_can_be_read_on_its_ground() -> None:
    """A contrast of at least 4.5, as WCAG asks for, in light and in dark."""

    def brightness(colour: str) -> float:
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    css = (ASSETS / "page.css").read_text()
    palettes = [dict(re.findall(r"--(\w+): (#\w{6});", rule)) for rule in re.findall(r":root[^{]*{([^}]*)}", css)]
    assert len(palettes) == 3
    assert palettes[1] == palettes[2]
    for palette in palettes:
        for text in ("ink", "soft", "link", "good", "amber", "failing"):
            for ground in ("paper", "card"):
                low, high = sorted(brightness(palette[name]) for name in (text, ground))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground, palette)
    assert set(re.findall(r"[^-]color: var\(--(\w+)\)", css)) <= {"ink", "soft", "link", "good", "amber", "failing"}


def test_vendored_files_are_those_that_are_named_and_their_licences_go_along(folder: Path, tmp_path: Path) -> None:
    assets = ASSETS
    sums = re.findall(r"^([0-9a-f]{64})  (\S+)$", (assets / "VENDORED.md").read_text(), re.MULTILINE)
    assert {name for _, name in sums} == {path.name for path in assets.glob("*.min.*")}
    for digest, name in sums:
        assert hashlib.sha256((assets / name).read_bytes()).hexdigest() == digest
    write_page([CampaignData(folder)], tmp_path / "page.html", embed=0)
    text = (tmp_path / "page.html").read_text()
    assert "Copyright (c) 2022 Leon Sorokin" in text
