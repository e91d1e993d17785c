"""The preferences of a campaign, compared with a plain count, in the report and in the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

import deepcruiser as dc
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.preferences import Preferences, learns
from deepcruiser.campaign.spec import Component
from deepcruiser.cli.summary import summary
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.sections.learned import LEARNED
from deepcruiser.transformations import AddWhiteNoise, ChangeVolume, Trim
from tests.support import toy


def test_the_first_quarter_against_the_last() -> None:
    result = Preferences()
    for number in range(80):
        late = number >= 60
        changes = (AddWhiteNoise(30, 1), ChangeVolume(5)) if late else (Trim(40),) if number % 2 else (ChangeVolume(1),)
        run = Ran(number, -1, changes, "dropped", "", "", 0.0, None, "", None)
        result.take(run, "loud" if late else f"s{number}", (Trim(30),) if late else ())
    kinds = {each.kind: each for each in result.kinds}
    assert (kinds["AddWhiteNoise"].first, kinds["AddWhiteNoise"].last) == (0, 1)
    assert (kinds["Trim"].first, kinds["Trim"].last) == (0.5, 0)
    assert kinds["ChangeVolume"].values == {"gain_db": (1, 5)}
    data = result.to_dict()
    assert data["changes"] == [1, 2]
    assert data["severity"][1] == pytest.approx(1 + 0.1 + 0.2)
    assert data["seeds"] == [["loud", 1]]
    assert result.text.startswith("The scheduler now prefers AddWhiteNoise (100% of the mutants, 0% at first)")
    assert result.short == "AddWhiteNoise 100%, ChangeVolume 100%; 2.0 changes at once"
    result.learns = False
    assert result.text.startswith("The scheduler does not learn which changes to prefer. A mutant has 2.0 new changes")
    assert result.short == ""


def test_schedulers_that_learn() -> None:
    assert learns(dc.CampaignSpec().scheduler)
    assert learns(Component("rarity", {"pick": "thompson"}))
    assert not learns(Component("chains"))
    assert not learns(Component("uniform", {"pick": "uniform"}))


def test_the_report_and_the_summary_show_it(tmp_path: Path) -> None:
    record = toy.campaign(tmp_path / "long", runs=128)
    assert LEARNED.data is not None
    (learned,) = LEARNED.data(ReportData.of([CampaignData(tmp_path / "long")]))
    assert learned["text"] == summary(record)["learned"]["text"]
    assert sum(row["runs"] for row in learned["bins"]) == sum(run.outcome != "rejected" for run in record.runs)
    assert sum(row["failed"] for row in learned["bins"]) == len(record.failed)
    assert learned["learns"]
    short = toy.campaign(tmp_path / "short", runs=32)
    assert summary(short)["learned"] is None
    assert isinstance(short, dc.CampaignRecord)
