"""The contents of a report, compared with the campaign, and its page."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.events import Event, Seeded
from deepcruiser.campaign.paths import WORST, keep_paths, read_paths
from deepcruiser.criteria import FIVE, Criterion
from deepcruiser.findings.region import parting
from deepcruiser.report import page as page_module
from deepcruiser.report import sections, server, templates
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.inputs import compressed, outline
from deepcruiser.report.page import as_script, write_page
from deepcruiser.report.section import Section
from deepcruiser.report.sections import SECTIONS, collect, failures
from deepcruiser.report.sections.state_space import VisitedCells
from deepcruiser.report.sections.transformations import OutcomeCounts
from tests.support import reports, toy
from tests.support.reports import page_data, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reports.failing_campaign(tmp_path_factory.mktemp("runs") / "sounds")


def test_all_five_criteria_are_those_of_the_runs_done_again(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, guide=[dc.BTCov, dc.SBCov(3)], runs=160)
    facts = CampaignData(tmp_path).facts()
    inputs = {seed.id: seed.input for seed in toy.seeds()}
    system, model = toy.Reader(), toy.model()
    start, end = [], []
    events: list[Event] = [*campaign.seeds, *campaign.runs]
    for event in events:
        if event.outcome not in ("kept", "dropped"):
            continue
        if isinstance(event, Seeded):
            value = inputs[event.seed]
        else:
            parent = campaign.tests[event.parent]
            value = inputs[parent.seed]
            for change in (*parent.recipe, *event.changes):
                value = change(value)
        trace = system.run([value])[0].traced
        end.append(trace)
        if isinstance(event, Seeded):
            start.append(trace)
    result = {each["name"]: each for each in facts["coverage"]}
    assert list(result) == ["BSCov", "2-SBCov", "BTCov", "ISCov", "WICov", "3-SBCov"]
    for criterion in (*FIVE, dc.SBCov(3)):
        assert result[criterion.name]["start"] == pytest.approx(criterion(model, start), abs=1e-12)
        assert result[criterion.name]["executed"] == pytest.approx(criterion(model, end), abs=1e-12)
    assert result["BTCov"]["queue"] == campaign.coverage(dc.BTCov, queue=True).value
    assert result["BSCov"]["queue"] is None


def test_a_criterion_of_the_users_is_shown_like_any_other(tmp_path: Path) -> None:
    """A report needs the object, since a folder has only its name; without it, it says so and shows all else."""
    late = Criterion(
        "LateStates",
        required=lambda M: np.linspace(0, 1, len(M.states)),
        visited=lambda T: (T.states,),
        cells=lambda M: M.cells_of_states(),
    )
    campaign, model = toy.campaign(tmp_path / "x", guide=late, runs=96), toy.model()
    (shown,) = [
        each
        for each in CampaignData(tmp_path / "x", criteria=[late]).facts()["coverage"]
        if each["name"] == "LateStates"
    ]
    weights = np.linspace(0, 1, len(model.states))
    seeds, events = list[Event](campaign.seeds), list[Event]([*campaign.seeds, *campaign.runs])
    queue = [event for event in events if event.outcome == "kept"]
    for some, value in ((seeds, shown["start"]), (events, shown["executed"]), (queue, shown["queue"])):
        passing = [event.visits for event in some if event.outcome in ("kept", "dropped") and event.visits]
        visited = {state for visits in passing for state in visits.states.tolist()}
        assert value == pytest.approx(sum(weights[list(visited)]) / sum(weights), abs=1e-12)
    write_page([CampaignData(tmp_path / "x", criteria=[late])], tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    assert data["coverage"][0]["criteria"][-1] == "LateStates"
    assert data["campaigns"][0]["warnings"] == []

    facts = CampaignData(tmp_path / "x").facts()
    assert [each["name"] for each in facts["coverage"]] == [each.name for each in FIVE]
    assert facts["guide"] == "LateStates or distance"
    assert "'LateStates' is not built in" in facts["warnings"][0]
    assert "'LateStates' is not built in" in report(tmp_path / "x", "--text").stdout


def test_an_oracle_and_changes_of_the_users_are_shown_by_name(tmp_path: Path) -> None:
    """Nothing of the user's is loaded: a report has the names and parameters that the folder holds."""
    toy.campaign(tmp_path / "x", oracle=Opposite(strength=2), runs=64)
    page = CampaignData(tmp_path / "x")
    assert page.facts()["oracle"] == "Opposite(strength=2)"
    assert page.facts()["measure"] == ""
    assert page.failures()[0]["kinds"][0] in {kind.__name__ for kind in toy.MUTATIONS.kinds}
    assert page.failures()[0]["recipe"][0].startswith(page.failures()[0]["kinds"][0] + "(")


@dataclass(frozen=True)
class Opposite(dc.Disagreement):
    """An oracle that the package does not have."""

    strength: int = 1


def test_counts_recipes_and_failures_are_those_of_the_campaign(folder: Path) -> None:
    campaign, read = dc.CampaignRecord.open(folder), CampaignData(folder)
    facts = read.facts()
    assert facts["runs"] == len(campaign.runs)
    assert facts["state"] == "finished"
    assert facts["failing_tests"] == len(campaign.failed)
    by_number = {test["number"]: test for test in read.failures()}
    for test in campaign.failed:
        assert by_number[test.number]["recipe"] == [str(step) for step in test.recipe]
        assert by_number[test.number]["seed"] == test.seed
        assert by_number[test.number]["output"] == test.output
    for row in read.fold(OutcomeCounts).rows():
        mine = [run for run in campaign.runs for change in run.changes if type(change).__name__ == row["kind"]]
        assert row["tried"] == len(mine)
        assert row["failed"] == sum(event.outcome == "failed" for event in mine)
        scores = [event.score for event in mine if event.outcome != "rejected"]
        assert row["mean_score"] == pytest.approx(np.mean(scores))


def test_words_that_go_wrong_are_those_that_differ(folder: Path) -> None:
    read = ReportData.of([CampaignData(folder)])
    (mistakes,) = collect(read)["mistakes"]
    assert mistakes["labels"] is None
    assert mistakes["heat_map"]["rule"] == "number of words"
    words = {row["expected"]: row for row in mistakes["words"]}
    for word in set(reports.WORDS) - {reports.NASTY}:
        tests = {
            test["number"]
            for test in read.failures
            for before, after in test["pieces"]
            if before != after and word in before.split()
        }
        assert words.get(word, {"tests": 0})["tests"] == len(tests)


def test_reading_on_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=32)
    read = CampaignData(tmp_path)
    toy.campaign(tmp_path, runs=96)
    read.update()
    at_once = CampaignData(tmp_path)
    assert read.facts() == at_once.facts()
    assert read.coverage.moments == at_once.coverage.moments
    assert read.failures() == at_once.failures()
    for section in SECTIONS:  # but for the budget, which may change when a campaign is resumed
        for make in () if section.name == "reproduce" else filter(None, (section.data, section.page_data)):
            assert make(ReportData.of([read])) == make(ReportData.of([at_once])), section


def test_the_state_space_has_the_cells_that_were_visited(tmp_path: Path) -> None:
    """Each place has its cells of training and boundary, how many are covered, and the failing tests through it."""
    campaign, model = toy.campaign(tmp_path, runs=96), toy.model()
    space = CampaignData(tmp_path).fold(VisitedCells).picture()
    assert space is not None
    cells = model.grid.decode(model.states)
    known = set(map(tuple, cells.tolist()))

    def visited(events: list[Any]) -> set[tuple[int, ...]]:
        codes = [np.concatenate([model.states[e.visits.states], e.visits.outside]) for e in events if e.visits]
        return set(map(tuple, model.grid.decode(np.concatenate(codes)).tolist()))

    seeds = visited([event for event in campaign.seeds if event.outcome == "kept"])
    passed = visited([run for run in campaign.runs if run.outcome in ("kept", "dropped")]) - seeds
    for pair in space["pairs"]:
        assert pair["coarse"] == 1
        x, y = pair["x"], pair["y"]
        rows = {(a, b): counts for a, b, *counts in pair["rows"]}

        def counted(some: set[tuple[int, ...]], x: int = x, y: int = y) -> Counter[tuple[int, int]]:
            return Counter((cell[x], cell[y]) for cell in some)

        parts = (known, None, seeds & known, passed & known, None, seeds - known, passed - known)
        for column, part in enumerate(parts):
            if part is not None:
                assert {at: counts[column] for at, counts in rows.items() if counts[column]} == counted(part)
        assert sum(counts[1] for counts in rows.values()) == len(model.boundary(2))
        through: dict[str, list[int]] = {}
        for test in campaign.failed:
            for a, b in counted(visited([test])):
                through.setdefault(f"{a},{b}", []).append(test.number)
        assert pair["through"] == {at: [len(tests), *tests[:12]] for at, tests in through.items()}


def test_the_path_of_a_failing_test_is_that_of_running_it_again(tmp_path: Path) -> None:
    def paths() -> dict[int, Any]:
        tests = collect(ReportData.of([CampaignData(tmp_path)]), page=True)["failures"]
        return {test["number"]: test["path"] for test in tests if "path" in test}

    campaign, system, model = toy.campaign(tmp_path, runs=160), toy.Reader(), toy.model()
    worst, last = campaign.failed[0], campaign.failed[-1]
    assert set(paths()) == {test.number for test in campaign.failed[:WORST]} != {t.number for t in campaign.failed}
    keep_paths(campaign, system, [last])
    assert last.number in paths()
    shown = paths()[worst.number]
    seed = next(seed.input for seed in toy.seeds() if seed.id == worst.seed)
    traces = [run.traced for run in system.run([seed, worst.make()])]
    for which, trace in zip(("seed", "test"), traces, strict=True):
        cells = model.cells(trace)[0]
        assert shown[which]["cells"] == cells.tolist()
        known = [int(code in set(model.states.tolist())) for code in model.grid.encode(cells).tolist()]
        assert shown[which]["known"] == "".join(map(str, known))
    expected = parting(model, *traces)
    assert shown["parting"] == (None if expected is None else expected.step)
    file = tmp_path / "paths" / f"{worst.number:06}.json"
    for damage in ("{", "[]", '{"sha256": "00"}', file.read_text().replace('"cells":[[', '"cells":[[1,')):
        file.write_text(damage)
        assert worst.number not in paths()


def test_the_text_written_so_far_grows_with_the_steps(tmp_path: Path) -> None:
    campaign = reports.sound_campaign(tmp_path, runs=16)
    assert campaign.model is not None
    paths = read_paths(tmp_path, campaign.failed[0], campaign.model)
    assert paths is not None
    (run,) = reports.listener().run([campaign.failed[0].make()])
    assert run.traced.outputs is not None
    written = dict(paths.test.texts)
    text = ""
    for step in range(1, len(run.traced.outputs) + 1):
        text = written.get(step, text)
        assert text == reports.words(torch.as_tensor(run.traced.outputs[:step]))
    assert text == campaign.failed[0].output


def test_many_cells_are_drawn_coarser_and_none_is_lost() -> None:
    from deepcruiser.report.sections.state_space import _projected

    cells = np.stack(np.meshgrid(np.arange(-100, 100), np.arange(200)), -1).reshape(-1, 2)
    drawn = _projected([cells, cells[:0]], 0, 1)
    assert drawn["coarse"] == 4
    assert sum(row[2] for row in drawn["rows"]) == len(cells)


def test_a_sound_is_compressed_to_what_it_was_and_its_outline_is_its_loudness(tmp_path: Path) -> None:
    audio = reports.Recording("x", 1).input
    data, kind = compressed(audio)
    assert kind == "audio/mpeg"
    assert len(data) < len(audio) * 2 / 2  # half of 16 bits a sample
    (tmp_path / "x.mp3").write_bytes(data)
    again = dc.Audio.read(tmp_path / "x.mp3")
    assert again.rate == audio.rate
    error = again.samples[: len(audio)] - audio.samples[: len(again)]
    assert np.square(error).mean() < 0.05 * np.square(audio.samples).mean()
    import base64

    peaks = np.frombuffer(base64.b64decode(outline(audio)), np.uint8)
    assert len(peaks) == 120
    assert peaks.max() == round(float(np.abs(audio.samples).max()) * 255)


@given(st.text())
def test_no_text_can_end_the_script_that_holds_it(text: str) -> None:
    script = as_script({"text": text, "nasty": f"</script>{text}<!--\u2028"})
    assert not set("<>&\u2028\u2029") & set(script)
    assert json.loads(script)["text"] == text


def test_the_page_is_whole_and_all_texts_in_it_are_escaped(folder: Path, tmp_path: Path) -> None:
    result = report(folder, "-o", tmp_path / "page.html", "--embed", 3)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "page.html").read_text()
    assert reports.NASTY not in text
    assert "&lt;script&gt;" not in page_data(tmp_path / "page.html")["failures"][0]["output"]
    assert not re.findall(r"""(?:src|href)=["']?(?!data:|#)[^"'> ]+""", text.split("<script>")[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    sounds = json.loads(re.search(r'id="sounds">(.*?)</script>', text)[1])  # type: ignore[index]
    data = page_data(tmp_path / "page.html")
    worst = {each["tests"][0] for each in data["findings"][:3]}
    heard = [test for i, test in enumerate(data["failures"]) if i < 3 or test["number"] in worst]
    inside = {f"0/{test['input'][which]['file']}" for test in heard for which in ("seed", "mutant")}
    assert set(sounds) == inside
    for test in data["failures"]:
        for which in ("seed", "mutant"):
            file = test["input"][which]["file"]
            assert f"0/{file}" in inside or (tmp_path / data["links"][0] / file).is_file()


def test_a_page_in_the_folder_links_to_the_recordings_there(folder: Path) -> None:
    assert report(folder, "--embed", 0).exit_code == 0
    data = page_data(folder / "report.html")
    for test in data["failures"]:
        assert (folder / data["links"][0] / test["input"]["mutant"]["file"]).is_file()
    assert not (folder / "report-sounds").exists()


def test_many_failures_are_cut_to_the_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(failures, "_ROOM", 5000)
    campaigns = [CampaignData(folder)]
    data, page = (collect(ReportData.of(campaigns), page=page) for page in (False, True))
    assert 0 < len(page["failures"]) < len(data["failures"]) == data["campaigns"][0]["failing_tests"]
    assert [test["score"] for test in data["failures"]] == sorted((t["score"] for t in data["failures"]), reverse=True)


def test_texts_and_series_are_shown_as_such(tmp_path: Path) -> None:
    toy.campaign(tmp_path / "texts")
    reports.series_campaign(tmp_path / "series")
    campaigns = [CampaignData(tmp_path / name) for name in ("texts", "series")]
    page = collect(ReportData.of(campaigns), page=True)
    for test in page["failures"]:
        if test["campaign"] == 0:
            stored = (tmp_path / "texts" / "failed" / f"{test['number']:06}.txt").read_text()
            assert "".join(now for _, now in test["input"]["pieces"]) == stored
        else:
            array = np.load(tmp_path / "series" / "failed" / f"{test['number']:06}.npy")
            lines = test["input"]["mutant"]["lines"]
            assert np.allclose(np.array(lines).T, array, rtol=1e-3)
    assert {test["campaign"] for test in page["failures"]} == {0, 1}
    write_page(campaigns, tmp_path / "both.html")


def test_a_campaign_without_a_model_has_all_but_coverage(tmp_path: Path) -> None:
    class Stateless(toy.Reader):
        def _run(self, text: str) -> dc.Run:
            return dc.Run(super()._run(text).output, None)

    options: dict[str, Any] = {"oracle": dc.Disagreement(), "mutations": toy.MUTATIONS, "workers": 0, "runs": 64}
    campaign = dc.fuzz(Stateless(), None, toy.seeds(), folder=tmp_path / "x", guide="none", **options)
    assert report(tmp_path / "x").exit_code == 0
    data = page_data(tmp_path / "x" / "report.html")
    assert data["state_space"] == [None]
    assert data["campaigns"][0]["coverage"] == []
    assert len(data["failures"]) == len(campaign.failed) > 0
    distinct = [test for test in data["failures"] if not test.get("again")]
    assert len(distinct) == len({test.digest for test in campaign.failed}) < len(campaign.failed)
    assert data["failures"][0]["replay"] == data["reproduce"][0]["replay"] == ""
    for how in ("--text", "--markdown"):
        assert f"{len(campaign.failed)} failing tests" in report(tmp_path / "x", how).stdout


def compare(campaigns: list[CampaignData]) -> dict[str, Any]:
    return collect(ReportData.of(campaigns))


def test_campaigns_are_judged_against_the_first_at_equal_runs(tmp_path: Path) -> None:
    """A longer campaign with the same seed begins with the shorter one."""
    for name, seed, runs in (("a", 0, 64), ("longer", 0, 96), ("other", 1, 80)):
        toy.campaign(tmp_path / name, seed=seed, runs=runs)
    a, longer, other = (str(tmp_path / name) for name in ("a", "longer", "other"))
    same = compare([CampaignData(a), CampaignData(longer)])
    rows = {row["label"]: row for row in same["comparison"]["rows"]}
    assert rows.pop("runs")["values"] == [64, 96]
    for label, row in rows.items():
        assert label.startswith("time") or row["values"][0] == row["values"][1], label
        assert row["differences"][1]["better"] is None
    assert "only the first 64 runs are compared" in same["comparison"]["sentences"][-1]
    assert {test["elsewhere"] for test in same["failures"]} <= {"both", "new"}

    judged = compare([CampaignData(longer), CampaignData(other)])
    for row in judged["comparison"]["rows"]:
        first, second = row["values"]
        better = None
        if row["label"] in ("BSCov", "2-SBCov", "BTCov", "ISCov", "WICov") or row["label"] in (
            "failing tests", "different failures", "seeds with a failure"
        ):  # fmt: skip
            better = second > first if second != first else None  # the same system and model: more is better
        elif row["label"] == "first failure in run":
            better = second < first if second != first else None
        assert row["differences"][1]["better"] is better, row["label"]
    (failing,) = [row["values"] for row in judged["comparison"]["rows"] if row["label"] == "failing tests"]
    assert failing == [sum(test.number <= 80 for test in CampaignData(each).record.failed) for each in (longer, other)]
    recipes = [{(t["seed"], *t["recipe"]) for t in judged["failures"] if t["campaign"] == i} for i in (0, 1)]
    for test in judged["failures"]:
        known = (test["seed"], *test["recipe"]) in recipes[1 - test["campaign"]]
        assert test["elsewhere"] == ("both" if known else "new" if test["campaign"] else "gone")
    result = report(longer, other, "-o", tmp_path / "both.html")
    assert result.exit_code == 0
    assert "Compared with" in (tmp_path / "both.html").read_text()
    assert "better)" in report(longer, other, "--text").stdout

    mended = toy.campaign(tmp_path / "mended", system=toy.Reader(1), model=toy.model(1), runs=64)
    worse = compare([CampaignData(tmp_path / "mended"), CampaignData(a)])
    (row,) = [row for row in worse["comparison"]["rows"] if row["label"] == "failing tests"]
    assert row["values"][0] == len(mended.failed) != row["values"][1]
    assert row["differences"][1]["better"] is (row["values"][1] < row["values"][0])  # another system: less is better
    (row,) = [row for row in worse["comparison"]["rows"] if row["label"] == "BSCov"]
    assert row["differences"][1]["better"] is None, "of another model"


def test_a_section_is_added_by_its_module_and_the_list(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, template, script and text of a new section reach the page, the live page and every other form."""
    assets = tmp_path / "assets"
    shutil.copytree(templates.ASSETS, assets)
    (assets / "longest.html").write_text(
        "<h2>{{ section.title }}</h2><p>{{ page.longest[0] }} steps <b>{{ live }}</b></p>"
    )
    (assets / "drawn.html").write_text("<p id='drawn-place'></p>")
    (assets / "drawn.js").write_text('registerSection("drawn", () => {});')
    longest = Section(
        "longest",
        "Longest recipe",
        lambda report: [max(len(test.recipe) for test in each.record.failed) for each in report.campaigns],
        text=lambda data: [f"longest recipe: {data['longest'][0]} steps"],
        markdown=lambda data: [f"Longest recipe: {data['longest'][0]} steps"],
    )
    drawn = Section("drawn", "Drawn", page_data=lambda report: "for the page alone", scripts=("drawn.js",))
    hidden = Section("hidden", "Never shown", shown=lambda data: False)
    monkeypatch.setattr(templates, "ASSETS", assets)
    for module in (sections, page_module, server):
        monkeypatch.setattr(module, "SECTIONS", (*SECTIONS, longest, drawn, hidden))
    steps = max(len(test.recipe) for test in dc.CampaignRecord.open(folder).failed)
    assert report(folder, "-o", tmp_path / "page.html").exit_code == 0
    html, data = (tmp_path / "page.html").read_text(), page_data(tmp_path / "page.html")
    assert f'<section id="longest"><h2>Longest recipe</h2><p>{steps} steps <b>False</b></p></section>' in html
    assert '<a href="#longest">Longest recipe</a>' in html
    assert (data["longest"], data["drawn"]) == ([steps], "for the page alone")
    assert html.index('registerSection("drawn"') < html.index("(function start()")
    assert "Never shown" not in html
    printed = json.loads(report(folder, "--json").stdout)
    assert printed["longest"] == [steps]
    assert "drawn" not in printed
    assert f"\nlongest recipe: {steps} steps" in report(folder, "--text").stdout
    assert f"\nLongest recipe: {steps} steps" in report(folder, "--markdown").stdout
    with server.serving(folder) as url, urllib.request.urlopen(f"{url}data.json?runs=0&state=running") as answer:
        live = json.load(answer)
    assert live["html"]["longest"].endswith(f"<p>{steps} steps <b>True</b></p>")
    assert live["page"]["drawn"] == "for the page alone"
    assert not {"drawn", "hidden", "failures", "reproduce"} & set(live["html"])
