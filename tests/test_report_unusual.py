"""The report's section on the distance from training, against the runs done again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.page import write_page
from deepcruiser.report.sections import collect
from deepcruiser.report.sections.unusual import UNUSUAL, OutsideShares
from tests.support import toy


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> CampaignRecord:
    return toy.campaign(tmp_path_factory.mktemp("runs") / "texts", runs=96)


def shares(record: CampaignRecord) -> dict[str, list[float]]:
    """For seeds, passing and failing runs, computed by running their inputs again."""
    system, model = toy.Reader(), toy.model()
    inputs = {seed.id: seed.input for seed in toy.seeds()}
    result: dict[str, list[float]] = {"seeds": [], "passing runs": [], "failing runs": []}

    def add(kind: str, text: str) -> None:
        states = model.cells(system.run([text])[0].traced)[0]
        known = set(map(tuple, model.grid.decode(model.states).tolist()))
        cells = set(map(tuple, states.tolist()))
        result[kind].append(len(cells - known) / len(cells))

    for seeded in record.seeds:
        if seeded.visits is not None:
            add("seeds", inputs[seeded.seed])
    for run in record.runs:
        kind = {"kept": "passing runs", "dropped": "passing runs", "failed": "failing runs"}.get(run.outcome)
        if kind is not None:
            parent = record.tests[run.parent]
            value = inputs[parent.seed]
            for change in (*parent.recipe, *run.changes):
                value = change(value)
            add(kind, value)
    return result


def test_the_shares_are_those_of_the_runs_done_again(campaign: CampaignRecord) -> None:
    fold = OutsideShares(CampaignData(campaign.folder).record)
    rows = {row["runs"]: row for row in fold.rows()}
    expected = {kind: values for kind, values in shares(campaign).items() if values}
    assert set(rows) == set(expected) == {"seeds", "passing runs", "failing runs"}
    for kind, values in expected.items():
        assert rows[kind]["number"] == len(values)
        assert rows[kind]["median"] == pytest.approx(np.median(values))
        assert rows[kind]["tenth"] == pytest.approx(np.quantile(values, 0.9))
        assert rows[kind]["most"] == pytest.approx(max(values))
    furthest = [test["outside"] for test in fold.furthest()]
    assert furthest == sorted((value for value in expected["failing runs"] if value), reverse=True)[:10]


def test_every_form_of_the_section_has_the_same_figures(campaign: CampaignRecord, tmp_path: Path) -> None:
    read = [CampaignData(campaign.folder)]
    data = collect(ReportData.of(read))
    (row,) = [row for row in data["unusual"][0]["rows"] if row["runs"] == "failing runs"]
    most = f"{row['most']:.2%}"
    assert most in "\n".join(UNUSUAL.text(data))
    assert most in "\n".join(UNUSUAL.markdown(data))
    write_page(read, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Distance from training" in page
    assert most in page
