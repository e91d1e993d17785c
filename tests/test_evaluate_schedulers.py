"""Schedulers compared: the arms, the matched arm run by run, the corrected tests, and the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.evaluate.campaign_table import Campaigns, compare, distinct
from deepcruiser.evaluate.campaigns import Budget
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.schedulers import chosen_arms, first_failure, known_arms, schedulers
from deepcruiser.evaluate.statistics import holm
from tests.support import toy
from tests.test_evaluate_questions import load

ARMS = ("learned", "matched", "chains", "learned-window-1", "one-change-kept")
SMALL: dict[str, Any] = {"seeds": 10, "budget": Budget(64), "campaigns": 2, "base": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schedulers")


@pytest.fixture(scope="module")
def result(folder: Path) -> Campaigns:
    every = list(chosen_arms(ARMS, 12, 3.0).values())
    with Pool(load(folder)) as pool:
        return compare(pool, **SMALL, every=every)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm(values: list[float]) -> None:
    """By its definition: the i-th smallest times the number left, and never below the one before."""
    order = np.argsort(values, kind="stable")
    plain = [min(1.0, (len(values) - i) * values[at]) for i, at in enumerate(order)]
    expected = np.empty(len(values))
    for i, at in enumerate(order):
        expected[at] = max(plain[: i + 1])
    assert holm(values) == pytest.approx(expected.tolist())


def test_a_matched_campaign_has_the_changes_and_the_severity_of_the_other(result: Campaigns) -> None:
    learned, matched = (result.by_arm[arm] for arm in list(result.by_arm)[:2])
    for one, other in zip(learned, matched, strict=True):
        assert len(one["ran"]) == len(other["ran"]) == 64
        recipes = [[(run["changes"], run["severity"]) for run in campaign["ran"]] for campaign in (one, other)]
        assert recipes[0] == recipes[1]
        assert max(run["severity"] for run in one["ran"]) == 3
    assert learned != matched


def test_a_campaign_of_the_arm_learned_is_one_of_fuzz(result: Campaigns, tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(24)[:10]
    seeds = [toy.seeds(24)[i] for i in order]
    model = dc.profile(toy.Reader(), toy.texts(300, longest=12), exact=True).abstract(12)
    fuzzed = toy.campaign(tmp_path, seeds, model=model, seed=1, severity=3.0)
    campaign = result.by_arm[next(iter(result.by_arm))][1]
    assert [run["outcome"] for run in campaign["ran"]] == [run.outcome for run in fuzzed.runs]
    assert [run["changes"] for run in campaign["ran"]] == [
        len(fuzzed.tests[run.parent].recipe) + len(run.changes) for run in fuzzed.runs
    ]


def test_measures() -> None:
    def run(seed: str, errors: list[str], score: float, severity: float) -> dict[str, Any]:
        return {"seed": seed, "outcome": "failed", "reason": "wrong", "errors": errors, "score": score,
                "severity": severity}  # fmt: skip

    ran = [{"outcome": "dropped"}, run("a", ["x > y"], 0.2, 0.5), run("a", ["x > y"], 0.2, 1.5), run("b", [], 0.5, 1)]
    campaign = {"ran": ran}
    assert distinct(campaign) == 2
    assert distinct(campaign, above=0.3) == 1
    assert distinct(campaign, runs=3) == distinct(campaign, most=1) == 1
    assert distinct(campaign, least=1) == 2
    assert (first_failure(campaign), first_failure({"ran": ran[:1]})) == (2, 2)


def test_the_tables(folder: Path, tmp_path: Path) -> None:
    with Pool(load(folder)) as pool:
        answer = schedulers(pool, **SMALL, arms=ARMS, severity=3.0)
    table, tests, severities = (each.rows for each in answer.tables)
    assert [row["arm"] for row in table] == list(ARMS)
    assert [row["against"] for row in tests] == list(ARMS[1:])
    assert table[0]["severity"] == table[1]["severity"] > table[4]["severity"] > 0
    for row in tests:
        assert 0 <= row["A (distinct)"] <= 1
        assert row["p (distinct)"] <= 1
    assert all(sum(v for k, v in row.items() if k != "arm") > 0 for row in severities)
    text = answer.write(tmp_path, command="x", seed=0).read_text()
    assert "Holm" in text
    assert "not corrected" not in text
    json.dumps([dict(row) for row in tests])


def test_unknown_arms() -> None:
    with pytest.raises(dc.InputError, match="unknown arm 'lerned'; choose from: learned, "):
        chosen_arms(["lerned"], 20, "normal")
    with pytest.raises(dc.InputError, match="severity must be"):
        chosen_arms(["learned"], 20, "soft")
    assert len(set(known_arms(20, "normal").values())) == len(known_arms(20, "normal"))
