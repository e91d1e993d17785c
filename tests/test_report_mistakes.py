"""The mistakes that the report counts, compared with the runs of the campaign one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.report.data import CampaignData
from deepcruiser.report.sections.mistakes import Mistakes, wilson
from tests.support import toy


@given(st.integers(1, 500).flatmap(lambda tried: st.tuples(st.integers(0, tried), st.just(tried))))
def test_the_interval_holds_the_rates_at_which_the_count_would_be_usual(counts: tuple[int, int]) -> None:
    """Wilson's interval has the rates p whose distance from the observed rate is z standard deviations at most."""
    failed, tried = counts
    low, high = wilson(failed, tried)
    assert 0 <= low <= high <= 1
    assert low - 1e-12 <= failed / tried <= high + 1e-12
    for end in (low, high):
        assert (failed / tried - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / tried, abs=1e-9)


def test_rates_and_labels_are_those_of_the_runs(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, runs=160)
    mistakes = Mistakes(CampaignData(tmp_path).record)
    heat, labels = mistakes.heat_map(), mistakes.labels()
    assert heat is not None
    assert labels is not None
    assert heat["rule"] == "right label"
    assert set(heat["groups"]) == set(labels["names"]) == {"high", "low"}
    for row in heat["rows"]:
        for group, cell in zip(heat["groups"], row["cells"], strict=True):
            runs = [
                run
                for run in campaign.runs
                if row["kind"] in {type(change).__name__ for change in run.changes}
                and run.outcome != "rejected"
                and campaign.tests[run.parent].reference == group
            ]
            failed = [run for run in runs if run.outcome == "failed"]
            assert cell is None if not runs else cell[:3] == [len(failed), len(runs), len(failed) / len(runs)]
    answers = [(campaign.tests[run.parent].reference, run.output) for run in campaign.runs if run.outcome != "rejected"]
    expected = [[answers.count((right, answer)) for answer in labels["names"]] for right in labels["names"]]
    assert labels["counts"] == expected
    assert np.sum(expected) - np.trace(expected) == len(campaign.failed)


def test_labels_may_have_several_words(tmp_path: Path) -> None:
    class Switch(toy.Reader):
        def run(self, batch: Sequence[str]) -> list[dc.Run]:
            return [
                dc.Run("light on" if run.output == "high" else "light off", run.trace) for run in super().run(batch)
            ]

    assert toy.campaign(tmp_path, system=Switch(), runs=160).failed
    data = CampaignData(tmp_path)
    mistakes = Mistakes(data.record)
    heat, labels = mistakes.heat_map(), mistakes.labels()
    assert heat is not None
    assert labels is not None
    assert set(heat["groups"]) == set(labels["names"]) == {"light on", "light off"}
    assert all(test["pieces"] is None for test in data.failures())  # that both begin with "light" says nothing
