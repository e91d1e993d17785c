"""The questions on a small network, 10 seeds with 10 mutants each, against slow computations."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.evaluate.abstraction import abstraction
from deepcruiser.evaluate.campaigns import Budget
from deepcruiser.evaluate.configurations import configurations
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.rq1 import rq1
from deepcruiser.evaluate.rq2 import rq2
from deepcruiser.evaluate.rq3 import rq3
from deepcruiser.evaluate.rq4 import rq4
from deepcruiser.evaluate.statistics import superiority
from deepcruiser.transformations import from_dict
from tests.support import toy

GRIDS = (4, 12)
SMALL: dict[str, Any] = {"seeds": 10, "mutants": 10}
CAMPAIGNS: dict[str, Any] = {"seeds": 10, "budget": Budget(64), "campaigns": 3, "base": 12}


def load(folder: Path, number: int = 0, **options: Any) -> Experiment:
    """The experiment of the toy network; its seeds have no text, so what is right is the answer to a seed."""
    system = options.pop("system", None) or toy.Reader()
    profile = dc.profile(toy.Reader(), toy.texts(300, longest=12), exact=True)
    options = {"partitions": GRIDS, "mutations": toy.MUTATIONS, "oracle": dc.Disagreement(), **options}
    made = Experiment(system, profile, Seeds(toy.seeds(24)), folder=folder, **options)
    made.open()
    return made


def asked(question: Any, folder: Path, *, jobs: int = 1, **options: Any) -> Answer:
    with Pool(load(folder), partial(load, folder), jobs=jobs) as pool:
        answer: Answer = question(pool, **options)
        return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def test_configurations_are_those_of_the_profile(folder: Path) -> None:
    experiment = load(folder)
    answer = configurations(Pool(experiment))
    expected = experiment.profile.configurations(GRIDS)
    for row, size in zip(answer.tables[0].rows, expected, strict=True):
        assert (row["configuration"], row["states"], row["transitions"]) == (size.name, size.states, size.transitions)
        assert row["of the grid"] == size.states / size.cells
    assert len(answer.data.rows) == 20


def plain_index(model: dc.AbstractModel, one: dc.Trace, other: dc.Trace) -> tuple[float, ...]:
    """The Jaccard indices of states, of those in S_M, and of transitions, of the whole network's traces, with sets."""
    known = set(map(tuple, model.grid.decode(model.states).tolist()))
    sets = []
    for trace in (one, other):
        cells = list(map(tuple, model.cells(trace)[0].tolist()))
        sets.append((set(cells), set(cells) & known, set(pairwise(cells))))
    return tuple(len(a & b) / len(a | b) for a, b in zip(*sets, strict=True))


def test_rq1_is_what_one_finds_with_sets(folder: Path) -> None:
    answer = asked(rq1, folder, **SMALL)
    rows, system, seeds = answer.data.rows, toy.Reader(), Seeds(toy.seeds(24))
    models = {m: load(folder).profile.abstract(m) for m in GRIDS}
    assert len(rows) == 100
    assert len({row["seed"] for row in rows}) == 10
    assert any(row["states M{3,12}"] != row["basic M{3,12}"] for row in rows)
    kinds = Counter(row["transformation"] for row in rows)
    assert max(kinds.values()) - min(kinds.values()) <= 10, "each seed has every kind equally often, or once more"
    for row in rows[::7]:
        change = from_dict({"name": row["transformation"], **json.loads(row["parameters"])}, kinds=toy.MUTATIONS.kinds)
        seed, mutant = system.run([seeds[row["seed"]], change(seeds[row["seed"]])])
        assert row["score"] == (seed.output != mutant.output)
        for m, model in models.items():
            result = tuple(row[f"{kind} M{{3,{m}}}"] for kind in ("states", "basic", "transitions"))
            assert result == plain_index(model, seed.traced, mutant.traced)
    for line in answer.tables[0].rows:
        assert sum(value for name, value in line.items() if "-" in name) == pytest.approx(1)
    coarse, fine = (np.mean([row[f"states M{{3,{m}}}"] for row in rows]) for m in GRIDS)
    assert fine < coarse


def test_rq2_correlates_what_is_in_the_data(folder: Path) -> None:
    from scipy import stats

    answer = asked(rq2, folder, **SMALL, times=50)
    rows = answer.data.rows
    assert 0 < sum(row["score"] for row in rows) < len(rows)
    for line, m in zip(answer.tables[0].rows, GRIDS, strict=True):
        x, y = [row[f"states M{{3,{m}}}"] for row in rows], [row["score"] for row in rows]
        assert line["Spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic)
        assert line["Pearson"].value == pytest.approx(stats.pearsonr(x, y).statistic)
        basic = [row[f"basic M{{3,{m}}}"] for row in rows]
        assert line["Spearman of states of the model"].value == pytest.approx(stats.spearmanr(basic, y).statistic)
        assert line["Spearman"].low <= line["Spearman"].value <= line["Spearman"].high
    assert {row["transformation"] for row in answer.tables[1].rows} == {k.__name__ for k in toy.MUTATIONS.kinds}


BY_COVERAGE = dc.Guide((dc.BSCov,), "coverage")


@pytest.mark.parametrize(
    ("guide", "select", "pick", "place"),
    [(BY_COVERAGE, "uniform", "uniform", 1), (dc.Guide((dc.WICov,), "coverage"), "uniform", "uniform", 5),
     ("none", "uniform", "uniform", 1), (dc.Guide((dc.BSCov,), "random"), "uniform", "uniform", 1),
     (BY_COVERAGE, "rarity", "thompson", 1)],
    ids=str,
)  # fmt: skip
def test_a_campaign_of_rq3_is_one_of_fuzz(
    folder: Path, tmp_path: Path, guide: Any, select: str, pick: str, place: int
) -> None:
    """The same seeds in the same order, the same random number: the same coverage, batch by batch, and failures."""
    from deepcruiser.evaluate.campaign_table import compare
    from deepcruiser.evaluate.campaigns import Arm

    with Pool(load(folder)) as pool:
        result = compare(pool, **CAMPAIGNS)
        names = list(dict.fromkeys(event["seed"] for c in result.by_arm[result.none] for event in c["ran"]))
    chosen = dc.Guide.of(guide)
    arm = Arm(chosen.criteria[0].name, 12, chosen.keep, select, pick)
    order = [load(folder).seeds, np.random.default_rng(0).permutation(24)]
    by_name = {seed.id: seed for seed in toy.seeds(24)}
    picked = [by_name[list(order[0])[i]] for i in order[1][:10]]  # type: ignore[index]
    assert {seed.id for seed in picked} >= set(names)
    model = dc.profile(toy.Reader(), toy.texts(300, longest=12), exact=True).abstract(12)
    for number, campaign in enumerate(result.by_arm[arm]):
        history: list[tuple[float, float]] = []

        def watch(status: Status, history: list[tuple[float, float]] = history) -> None:
            history.append((status.state.coverages[0].value, status.state.executed[0].value))

        options: dict[str, Any] = {"guide": guide, "select": select, "pick": pick, "seed": number, "runs": 64}
        fuzzed = toy.campaign(tmp_path / str(number), picked, model=model, watch=watch, **options)
        points = campaign["history"]
        assert [(point["queue"][place], point["executed"][place]) for point in points] == history
        assert sum(run["outcome"] == "failed" for run in campaign["ran"]) == len(fuzzed.failed)


def test_rq3_compares_with_both_baselines(folder: Path) -> None:
    answer = asked(rq3, folder, **CAMPAIGNS)
    grids, criteria, ways = (table.rows for table in answer.tables)
    assert [row["guide"] for row in grids] == ["itself", "random", "none"] * len(GRIDS)
    assert {row["criterion"] for row in criteria} == {"2-SBCov", "BTCov", "ISCov", "WICov"}
    assert [row["select, pick"] for row in ways][::6] == ["uniform, uniform", "learned"]
    for row in grids:
        assert row["start"] <= row["queue"].low <= row["queue"].value <= row["all runs"].high
        if row["guide"] == "itself":
            assert row["queue"] == row["all runs"]
        else:
            assert 0.1 <= row["p (guided against it)"] <= 1  # the smallest p-value of three against three is 2 in 20
        if row["guide"] == "none":
            assert row["queue"].high == row["start"]
    assert len(answer.data.rows) == 5 * 3 * len({(a["guide"], a["criterion"], a["partitions"], a["select"], a["pick"])
                                                for a in answer.data.rows})  # fmt: skip


def test_rq4_counts_distinct_failures() -> None:
    from deepcruiser.evaluate.campaign_table import distinct, failing_seeds, rejected
    from deepcruiser.evaluate.rq4 import failures, mean_score

    ran = [
        {"seed": "a", "outcome": "failed", "reason": "wrong", "score": 0.5, "errors": ["x > y"]},
        {"seed": "a", "outcome": "failed", "reason": "wrong", "score": 0.5, "errors": ["x > y"]},
        {"seed": "b", "outcome": "failed", "reason": "wrong", "score": 0.5, "errors": ["x > y"]},
        {"seed": "a", "outcome": "failed", "reason": "crash", "score": 0.0, "errors": []},
        {"seed": "c", "outcome": "dropped", "reason": "", "score": 0.0, "errors": []},
        {"seed": "c", "outcome": "rejected", "reason": "too long", "score": 0.0, "errors": []},
    ]
    result = {"ran": [{**run, "severity": 1.0} for run in ran]}
    assert (failures(result), distinct(result), failing_seeds(result)) == (4, 3, 2)
    assert (mean_score(result), rejected(result)) == (pytest.approx(1.5 / 5), pytest.approx(1 / 6))  # type: ignore[comparison-overlap]


def test_rq4_shares_the_campaigns_of_rq3(folder: Path) -> None:
    before = sorted((folder / "work").iterdir())
    answer = asked(rq4, folder, **CAMPAIGNS)
    assert sorted((folder / "work").iterdir()) == before or len(before) < 20  # unless this test runs alone
    assert len(answer.tables[0].rows) == 2 + 4 + 2 + 1 + 6
    assert any(row["failures"].value > 0 for row in answer.tables[0].rows)


def test_rq2_with_chains_of_transformations(tmp_path: Path) -> None:
    answer = asked(rq2, tmp_path, seeds=10, mutants=30, changes=3, times=20)
    data, whole, apart = answer.data.rows, *(table.rows for table in answer.tables)
    lengths = [row["transformation"].count(" -> ") + 1 for row in data]
    assert [row["transformations"] for row in apart] == [1, 2, 3]
    assert [row["mutants"] for row in apart] == [lengths.count(n) for n in (1, 2, 3)]
    assert min(lengths.count(n) for n in (1, 2, 3)) > len(data) / 6
    correlations = [
        "Spearman",
        "Pearson",
        "given the seed",
        "Spearman of states of the model",
        "Spearman of transitions",
    ]
    assert [list(row) for row in whole] == [["configuration", *correlations]] * len(GRIDS)
    for row, n in zip(data, lengths, strict=True):
        parameters = json.loads(row["parameters"])
        assert isinstance(parameters, dict) if n == 1 else len(parameters) == n
        applied = [
            from_dict({"name": name, **some}, kinds=toy.MUTATIONS.kinds)
            for name, some in zip(
                row["transformation"].split(" -> "), [parameters] if n == 1 else parameters, strict=True
            )
        ]
        assert all(type(applied[i]) in toy.MUTATIONS.allowed(applied[:i]) for i in range(n))
    with pytest.raises(dc.InputError, match="changes must be at least 1 per mutant, not 0"):
        asked(rq2, tmp_path, changes=0, **SMALL)
    of_rq1 = asked(rq1, tmp_path, seeds=10, mutants=30, changes=3)
    assert {row["transformation"].count(" -> ") + 1 for row in of_rq1.data.rows} == {1, 2, 3}
    assert "changed by 1 to 3 transformations" in of_rq1.notes[0]


def test_abstraction_tells_apart(folder: Path) -> None:
    assert superiority([0.9, 0.8, 0.5], [0.5, 0.1]) == (6 - 0.5) / 6
    answer = asked(abstraction, folder, **SMALL)
    rows = answer.tables[0].rows
    assert [row["components"] for row in rows] == [1, 1, 2, 2, 3, 3]
    assert all(row["again"] == 1 for row in rows)  # the reader answers an input alike in any batch
    assert all(row["another"] < row["mutants"] < 1 for row in rows)
    explained = [row["explained variance"] for row in rows]
    assert explained == sorted(explained)


def test_abstraction_beside_k_means(folder: Path) -> None:
    pytest.importorskip("sklearn")
    first, beside = asked(abstraction, folder, k_means=True, **SMALL).tables
    grids, clusters = beside.rows[::2], beside.rows[1::2]
    assert [row["partition"] for row in beside.rows] == ["grid", "k-means"] * 2
    assert [row["states"] for row in grids] == [row["states"] for row in clusters]
    same = ("configuration", "states", "again", "mutants", "another", "told apart")
    assert [[row[name] for name in same] for row in grids] == [[row[name] for name in same] for row in first.rows[-2:]]
    assert all(row["again"] == 1 > row["mutants"] > row["another"] for row in clusters)
    assert all(row["mutants' states outside"] == 0 for row in clusters)
    assert all(row["mutants' states outside"] > 0 for row in grids)


def test_an_answer_is_written_whole(folder: Path, tmp_path: Path) -> None:
    answer = asked(rq1, folder, **SMALL)
    path = answer.write(tmp_path, command="deepcruiser evaluate rq1", seed=0)
    text = path.read_text()
    assert "![RQ1" in text
    assert "* command: `deepcruiser evaluate rq1`" in text
    assert "cores" in text
    for name in ("rq1.svg", "rq1.png", "rq1.csv", "rq1-data.csv"):
        assert (tmp_path / name).stat().st_size > 200
    with open(tmp_path / "rq1-data.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 100


def test_campaigns_of_minutes_stop_when_their_runs_took_as_long(folder: Path) -> None:
    from deepcruiser.evaluate.campaign_table import compare

    with Pool(load(folder)) as pool:
        by_runs = compare(pool, **CAMPAIGNS)
        some = [result for several in by_runs.by_arm.values() for result in several]
        seconds = sorted(sum(result["seconds"].values()) for result in some)[len(some) // 2] / 2
        shorter = compare(pool, **{**CAMPAIGNS, "budget": Budget(64, seconds / 60)})
        again = compare(pool, **{**CAMPAIGNS, "budget": Budget(64, seconds / 60)})
    assert shorter.by_arm == again.by_arm, "the seconds are those of the first time"
    lengths = set()
    for arm, several in shorter.by_arm.items():
        for result, whole in zip(several, by_runs.by_arm[arm], strict=True):
            took = list(result["seconds"].values())
            lengths.add(len(result["ran"]))
            assert result["ran"] == whole["ran"][: len(result["ran"])], "the same campaign, cut short"
            assert len(result["ran"]) == 64 or sum(took) >= seconds > sum(took[:-1])
    assert min(lengths) < 64
    assert f"campaigns of 64 runs or {seconds / 60:g} minutes, which differ" in shorter.how


def test_budgets() -> None:
    assert str(Budget(1000)) == "1,000 runs"
    assert str(Budget(minutes=2.5)) == "2.5 minutes"
    assert Budget(minutes=1).spent(10**9, 59.9) is False
    for wrong, message in (
        ({}, "runs or of minutes"),
        ({"runs": 0}, "--runs must be"),
        ({"minutes": 0}, "--minutes must"),
    ):
        with pytest.raises(dc.InputError, match=message):
            Budget(**wrong)
