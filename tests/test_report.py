"""What a report tells, against the campaign itself, and the page made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.events import Ran, Seeded
from deepcruiser.criteria import FIVE
from deepcruiser.report.data import Gathering
from deepcruiser.report.page import as_script, gathered, shown, write_page
from deepcruiser.report.sounds import compressed, outline
from tests.support import reports, toy
from tests.support.reports import page_data, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reports.failing_campaign(tmp_path_factory.mktemp("runs") / "sounds")


def test_all_five_criteria_are_those_of_the_runs_done_again(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, guide=[dc.BTCov, dc.SBCov(3)], runs=160)
    told = Gathering(tmp_path).report()
    system, model = toy.Reader(), toy.model()
    start, end = [], []
    for event in campaign.events:
        if event.outcome not in ("kept", "dropped"):
            continue
        parent = campaign.tests[event.parent if isinstance(event, Ran) else event.number]
        changes = event.changes if isinstance(event, Ran) else ()
        value = campaign.inputs.make(parent.seed, (*parent.recipe, *changes))
        trace = system.run([value])[0].traced
        end.append(trace)
        if isinstance(event, Seeded):
            start.append(trace)
    found = {each["name"]: each for each in told["coverage"]}
    assert list(found) == ["BSCov", "2-SBCov", "BTCov", "ISCov", "WICov", "3-SBCov"]
    for criterion in (*FIVE, dc.SBCov(3)):
        assert found[criterion.name]["start"] == pytest.approx(criterion(model, start), abs=1e-12)
        assert found[criterion.name]["executed"] == pytest.approx(criterion(model, end), abs=1e-12)
    assert found["BTCov"]["queue"] == campaign.coverage(dc.BTCov, queue=True).value
    assert found["BSCov"]["queue"] is None


def test_counts_recipes_and_failures_are_those_of_the_campaign(folder: Path) -> None:
    campaign, gathering = dc.CampaignRecord.open(folder), Gathering(folder)
    told = gathering.report()
    assert told["runs"] == len(campaign.runs)
    assert told["state"] == "finished"
    assert told["failing_tests"] == len(campaign.failed)
    by_number = {test["number"]: test for test in gathering.failures}
    for test in campaign.failed:
        assert by_number[test.number]["recipe"] == [str(step) for step in test.recipe]
        assert by_number[test.number]["seed"] == test.seed
        assert by_number[test.number]["output"] == test.output
    for row in told["transformations"]:
        mine = [event for event in campaign.runs if type(event.changes[0]).__name__ == row["kind"]]
        assert row["tried"] == len(mine)
        assert row["failed"] == sum(event.outcome == "failed" for event in mine)
        scores = [event.score for event in mine if event.outcome != "rejected"]
        assert row["mean_score"] == pytest.approx(np.mean(scores))


def test_reading_on_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=32)
    gathering = Gathering(tmp_path)
    toy.campaign(tmp_path, runs=96)
    gathering.update()
    at_once = Gathering(tmp_path)
    told, expected = gathering.report(), at_once.report()
    assert told == expected
    assert gathering.failures == at_once.failures
    assert gathering.space() == at_once.space()


def test_the_state_space_has_the_cells_that_were_visited(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=96)
    space, model = Gathering(tmp_path).space(), toy.model()
    assert space is not None
    cells = model.grid.decode(model.states)
    for pair in space["pairs"]:
        assert pair["coarse"] == 1
        rows = {(x, y): counts for x, y, *counts in pair["rows"]}
        for x, y in {(cell[pair["x"]], cell[pair["y"]]) for cell in cells.tolist()}:
            assert rows[x, y][0] == ((cells[:, pair["x"]] == x) & (cells[:, pair["y"]] == y)).sum()
        assert sum(counts[0] for counts in rows.values()) == len(model.states)
        assert sum(counts[1] for counts in rows.values()) == len(model.boundary(2))


def test_many_cells_are_drawn_coarser_and_none_is_lost() -> None:
    from deepcruiser.report.coverage_history import _projected

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
    inside = {f"0/{test['input'][which]['file']}" for test in data["failures"][:3] for which in ("seed", "mutant")}
    assert set(sounds) == inside
    for test in data["failures"][3:]:
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
    monkeypatch.setattr("deepcruiser.report.page._ROOM", 5000)
    campaigns = [Gathering(folder)]
    data = gathered(campaigns)
    page = shown(data, campaigns)
    assert 0 < len(page["failures"]) < len(data["failures"])
    assert page["left_out"] == len(data["failures"]) - len(page["failures"])
    assert [test["score"] for test in data["failures"]] == sorted((t["score"] for t in data["failures"]), reverse=True)


def test_texts_and_series_are_shown_as_such(tmp_path: Path) -> None:
    toy.campaign(tmp_path / "texts")
    reports.series_campaign(tmp_path / "series")
    campaigns = [Gathering(tmp_path / name) for name in ("texts", "series")]
    page = shown(gathered(campaigns), campaigns)
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
    assert data["spaces"] == [None]
    assert data["campaigns"][0]["coverage"] == []
    assert len(data["failures"]) == len(campaign.failed) > 0
    distinct = [test for test in data["failures"] if not test.get("again")]
    assert len(distinct) == len({test.digest for test in campaign.failed}) < len(campaign.failed)
    assert data["failures"][0]["replay"].endswith("--system FILE.py:NAME --data PATH")
    for how in ("--text", "--markdown"):
        assert f"{len(campaign.failed)} failing tests" in report(tmp_path / "x", how).stdout


def test_campaigns_are_compared(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("same", 0), ("other", 1)):
        toy.campaign(tmp_path / name, seed=seed, runs=96)
    same = gathered([Gathering(tmp_path / "a"), Gathering(tmp_path / "same")])
    assert {test["elsewhere"] for test in same["failures"]} == {"both"}
    other = gathered([Gathering(tmp_path / "a"), Gathering(tmp_path / "other")])
    recipes = [{(t["seed"], *t["recipe"]) for t in other["failures"] if t["campaign"] == i} for i in (0, 1)]
    for test in other["failures"]:
        known = (test["seed"], *test["recipe"]) in recipes[1 - test["campaign"]]
        assert test["elsewhere"] == ("both" if known else "gone" if test["campaign"] else "new")
    (coverage,) = [row for row in other["compared"] if row["what"] == "BSCov, all runs"]
    first, second = coverage["values"]
    assert coverage["marks"][1]["way"] == ("better" if second > first else "worse" if second < first else "")
    assert f"{len(recipes[0] - recipes[1]):,} failing tests that are new" in other["verdicts"][0]
    result = report(tmp_path / "a", tmp_path / "other", "-o", tmp_path / "both.html")
    assert result.exit_code == 0
    assert "Compared" in (tmp_path / "both.html").read_text()
    assert "found only here" in report(tmp_path / "a", tmp_path / "other", "--text").stdout
