"""The loop is Algorithm 1: checked event by event against what follows from the recipes alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.events import Ran, Seeded
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.campaign.scheduler import SELECT, Decay, Rarity, Recent, Select, Thompson, Uniform, UniformPick
from deepcruiser.criteria import FIVE
from deepcruiser.systems.builtin import bracket_changes
from tests.support import plain, toy

#: The coverage of the queue and of everything that passed, after a number of runs.
Readings = dict[int, tuple[list[float], list[float]]]


@dataclass(frozen=True)
class Known:
    """A test of the queue, from its recipe."""

    recipe: tuple[Any, ...]
    input: str
    reference: str
    visits: Visits


def allowed(T: set[type]) -> set[type]:
    """The rule of picking, word by word."""
    U = set(bracket_changes.UNAFFECTED)
    return {t for S in map(set, bracket_changes.FAMILIES) for t in S | U if not ({t} | S) & T}


def follow(
    campaign: dc.CampaignRecord,
    guide: dc.Guide,
    readings: dict[int, tuple[list[float], list[float]]],
    *,
    batch_size: int,
) -> Counter[str]:
    """Go through a campaign once more, slowly: make, run and judge every mutant, measure every queue from scratch."""
    reader, model = toy.Reader(), toy.model()
    seeds = {seed.id: seed.value for seed in toy.seeds()}
    queue: dict[int, Known] = {}
    executed: list[Visits] = []
    rank, gains, expected = Counter[str](), 0, []

    def values(visits: list[Visits]) -> list[float]:
        return [criterion.of(model, visits) for criterion in guide.criteria]

    def of_queue() -> list[float]:
        return values([test.visits for test in queue.values()])

    ends = {runs for runs, _ in campaign.moments}
    for event in campaign.events:
        if isinstance(event, Seeded):
            (run,) = reader.run([seeds[event.seed]])
            queue[-1 - event.position] = Known((), seeds[event.seed], run.output, model.visits(run.traced))
            executed.append(queue[-1 - event.position].visits)
            continue
        batch = (event.number - 1) // batch_size
        ahead = batch if batch_size == 1 else max(0, batch - 1)
        assert event.parent in queue, "a parent that never was in the queue"
        assert event.parent <= ahead * batch_size, "a parent that was not yet in the queue when the batch was planned"
        parent = queue[event.parent]
        (change,) = event.changes
        assert type(change) in allowed({type(each) for each in parent.recipe})
        text = change(parent.input)
        (run,) = reader.run([text])
        visits = model.visits(run.traced)
        before, with_it = of_queue(), values([*(test.visits for test in queue.values()), visits])
        new = values(executed) != values([*executed, visits])
        if bracket_changes.too_long("", text):
            outcome = "rejected"
        elif run.output != parent.reference:
            outcome = "failed"
        elif guide.needs_model:
            outcome = "kept" if any(a < b for a, b in zip(before, with_it, strict=True)) else "dropped"
        else:
            outcome = event.outcome
            passed = rank["kept"] + rank["dropped"]
            expected.append((1 + gains) / (1 + passed) if guide.keep == "random" else 0.0)
        assert event.outcome == outcome
        rank[outcome] += 1
        assert (event.output, event.score) == (
            (None, 0.0) if outcome == "rejected" else (run.output, outcome == "failed")
        )
        if outcome in ("kept", "dropped"):
            gains += new
            executed.append(visits)
        if outcome == "kept":
            queue[event.number] = Known((*parent.recipe, change), text, parent.reference, visits)
        if outcome != "rejected":
            assert event.visits is not None
            assert [a.tolist() for a in event.visits.arrays] == [a.tolist() for a in visits.arrays]
        if event.number in ends:
            of_the_queue, of_all = readings[event.number]
            assert of_the_queue == pytest.approx(of_queue(), abs=1e-12)
            assert of_all == pytest.approx(values(executed), abs=1e-12)
    assert [campaign.coverage(c).value for c in guide.criteria] == pytest.approx(values(executed), abs=1e-12)
    assert [campaign.coverage(c, queue=True).value for c in guide.criteria] == pytest.approx(of_queue(), abs=1e-12)
    assert len(campaign.moments) == 1 + -(-len(campaign.runs) // batch_size)
    rates = np.array(expected)
    assert abs(rank["kept"] - rates.sum()) <= 4 * np.sqrt((rates * (1 - rates)).sum()) or guide.needs_model
    return rank


@pytest.mark.parametrize(
    ("guide", "batch_size", "select", "pick"),
    [
        *((criterion, 1, "uniform", "uniform") for criterion in FIVE),
        ((dc.BTCov, dc.SBCov(1)), 1, "uniform", "uniform"),
        (dc.BSCov, 1, "rarity", "thompson"),
        (dc.SBCov(2), 16, "decay", "uniform"),
        (dc.WICov, 16, "recent", "thompson"),
        ("random", 1, "uniform", "uniform"),
        (dc.Guide((dc.SBCov(2), dc.ISCov), "random"), 7, "rarity", "thompson"),
        ("none", 1, "uniform", "uniform"),
        ("none", 16, "decay", "uniform"),
    ],
    ids=str,
)
def test_every_event_follows_from_the_recipes(
    tmp_path: Path, guide: Any, batch_size: int, select: str, pick: str
) -> None:
    readings: Readings = {}

    def watch(status: Status) -> None:
        state = status.state
        readings[state.runs] = [c.value for c in state.coverages], [c.value for c in state.executed]

    options = {"guide": guide, "batch_size": batch_size, "select": select, "pick": pick, "runs": 90, "watch": watch}
    campaign = toy.campaign(tmp_path, **options)
    guide = dc.Guide.of(guide)
    seen = follow(campaign, guide, readings, batch_size=batch_size)
    assert seen["failed"] > 3
    assert seen["dropped"] > 1
    assert (seen["kept"] > 10) == (guide.keep != "none")
    assert not (guide.keep == "none" and seen["kept"])


def test_random_keeps_without_looking(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, guide="random", runs=400)
    coverage, seen = dc.Coverage(toy.model(), dc.BSCov), Counter[tuple[str, bool]]()
    for event in campaign.events:
        if event.outcome in ("kept", "dropped") and event.visits is not None:
            seen[event.outcome, coverage.add(event.visits)] += isinstance(event, Ran)
    assert min(seen[outcome, new] for outcome in ("kept", "dropped") for new in (True, False)) > 1


def test_mutants_of_mutants_and_those_that_are_not_valid(tmp_path: Path) -> None:
    """Long seeds, so that some mutants are too long; enough runs for whole chains of transformations."""
    seeds = [toy.Text(f"t{i}", text * 2) for i, text in enumerate(toy.texts(6, longest=15))]
    campaign = toy.campaign(tmp_path, seeds, runs=400, guide=dc.BTCov, select="rarity", pick="thompson")
    recipes: dict[int, tuple[type, ...]] = {-1 - i: () for i in range(len(seeds))}
    rejected = 0
    for event in campaign.runs:
        kind = type(event.changes[0])
        assert kind in allowed(set(recipes[event.parent]))
        if event.outcome == "kept":
            recipes[event.number] = (*recipes[event.parent], kind)
        if event.outcome == "rejected":
            rejected += 1
            assert event.reason.startswith("too long: ")
            assert (event.output, event.visits) == (None, None)
    assert max(map(len, recipes.values())) == 4
    assert rejected > 10


def test_states_are_counted_as_plain_sets_count_them(tmp_path: Path) -> None:
    """Once without any criterion of the package: cells in sets."""
    campaign = toy.campaign(tmp_path, guide=dc.BSCov, batch_size=1, runs=60, select="uniform")
    reader, model = toy.Reader(), toy.model()

    def cells(text: str) -> set[plain.Cell]:
        return {tuple(cell) for cell in model.cells(reader.run([text])[0].traced)[0].tolist()}

    M = set().union(*map(cells, toy.texts(300, longest=12)))
    inputs = {-1 - i: seed.value for i, seed in enumerate(toy.seeds())}
    covered = set().union(*map(cells, inputs.values())) & M
    for event in campaign.runs:
        text = event.changes[0](inputs[event.parent])
        new = cells(text) & M - covered
        assert event.outcome == "failed" or (event.outcome == "kept") == bool(new)
        if event.outcome == "kept":
            inputs[event.number], covered = text, covered | new
        if event.outcome in ("kept", "dropped"):
            assert event.visits is not None
            assert len(event.visits.states) == len(cells(text) & M)
    assert campaign.coverage(dc.BSCov, queue=True).value == len(covered) / len(M)


def test_rarity_counts_the_runs_that_passed(tmp_path: Path) -> None:
    """Its preferences follow from the product of three factors, computed from a plain count of the events."""
    campaign = toy.campaign(tmp_path, runs=160)
    events = campaign.events
    rarity, counts = Rarity(), np.zeros(len(toy.model().states), np.int64)
    for event in events:
        rarity.learn(event)
        if event.outcome in ("kept", "dropped") and event.visits is not None:
            counts[event.visits.states] += 1
    queue = Queue(lambda recipe: (1,))
    for event in events:
        queue.take(event)
    worth = {n: np.mean(1 / (1 + counts[test.states])) * (1 + test.kept) for n, test in queue.tests.items()}
    chosen = Counter(rarity.choose(queue, np.random.default_rng(i)).number for i in range(3000))
    by_worth = sorted(worth, key=lambda number: -worth[number])
    best, rest = by_worth[: len(worth) // 4], by_worth[len(worth) // 2 :]
    assert sum(chosen[number] for number in best) > 0.8 * 3000  # 1 - (3/4)^8 = 0.90
    assert sum(chosen[number] for number in rest) < 0.02 * 3000  # (1/2)^8 = 0.004


def made_up(*, picked: list[int], visited: list[list[int]] | None = None, kept: list[int] | None = None) -> Queue:
    queue = Queue()
    for i, times in enumerate(picked):
        states = np.array(visited[i] if visited else [i], np.int64)
        test = Test(-1 - i, f"t{i}", i, (), None, "", states, picked=times, kept=kept[i] if kept else 0)
        queue.tests[test.number] = test
        queue.live.append(test)
    return queue


def shares(select: Select, queue: Queue, draws: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(0)
    counts = Counter(select.choose(queue, rng).number for _ in range(draws))
    return np.array([counts[test.number] / draws for test in queue.live])


def test_uniform_selects_each_alike() -> None:
    assert shares(Uniform(), made_up(picked=[0, 9, 2, 0])) == pytest.approx([0.25] * 4, abs=0.03)


def test_recent_prefers_the_last_tenth_two_to_one() -> None:
    result = shares(Recent(), made_up(picked=[0] * 50)).reshape(10, 5).sum(axis=1)[::-1]
    assert result == pytest.approx(0.5 ** np.arange(1, 11), abs=0.03)


def test_decay_accepts_what_was_picked_often_less_often() -> None:
    """P = max(0.3, 0.8 - times / 5): so 0.8, 0.6, 0.4, 0.3, 0.3, in shares of their sum."""
    result = shares(Decay(), made_up(picked=[0, 1, 2, 3, 30]))
    assert result == pytest.approx(np.array([0.8, 0.6, 0.4, 0.3, 0.3]) / 2.4, abs=0.03)


def test_rarity_prefers_rare_states_and_fruitful_tests() -> None:
    queue, rarity, nothing = made_up(picked=[0, 0, 4, 4], visited=[[0], [1], [1], [1]], kept=[0, 0, 0, 4]), Rarity(), []  # type: ignore[var-annotated]
    common = Visits(toy.model(), np.array([0]), *(np.array(nothing, np.int64) for _ in range(3)))
    for _ in range(99):
        rarity.learn(Seeded(0, "t0", "kept", "", "", "", 0.0, None, "", common))
    result = shares(rarity, queue)
    worst, best, idle, fruitful = result
    assert best > 0.4  # of several with the same worth, the first of the sample is taken
    assert fruitful > 0.4
    assert worst < 0.001
    assert idle < 0.01


def test_rarity_takes_tests_that_visit_no_state_of_the_model() -> None:
    assert shares(Rarity(), made_up(picked=[0, 0], visited=[[], []]), 10).sum() == 1


def test_thompson_tries_more_what_brings_more_and_gives_up_nothing() -> None:
    kinds, rng, pick, tried = bracket_changes.KINDS, np.random.default_rng(0), Thompson(), Counter[str]()
    chances = dict(zip(kinds, (0.02, 0.5, 0.1, 0.02), strict=True))
    for _ in range(1000):
        kind = pick.choose(kinds, rng)
        tried[kind.__name__] += 1
        pick.learn(kind.__name__, gained=rng.random() < chances[kind])
    assert tried["InsertSquare"] > 800
    assert min(tried[kind.__name__] for kind in kinds) > 5
    assert all(pick.choose(kinds[2:], rng) in kinds[2:] for _ in range(20))


def test_uniform_picks_each_kind_alike() -> None:
    rng, pick = np.random.default_rng(0), UniformPick()
    pick.learn("InsertRound", gained=True)
    counts = Counter(pick.choose(bracket_changes.KINDS, rng) for _ in range(4000))
    assert all(900 < counts[kind] < 1100 for kind in bracket_changes.KINDS)


@pytest.mark.parametrize("select", SELECT)
def test_every_way_to_select_gives_every_test_a_chance(tmp_path: Path, select: str) -> None:
    campaign = toy.campaign(tmp_path, toy.seeds(4), guide="none", select=select, runs=160)
    assert {event.parent for event in campaign.runs} == {-1, -2, -3, -4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guide": "BSCov"}, "expected a criterion, several criteria, 'random' or 'none' as the guide, got 'BSCov'"),
        ({"guide": []}, r"expected a criterion.*, got \[\]"),
        ({"guide": ["BSCov"]}, r"expected a criterion.*, got \['BSCov'\]"),
        (
            {"select": "best"},
            "unknown type of scheduler 'best'; expected one of: learned, chains, uniform",
        ),
        ({"select": "rarety"}, "unknown type of scheduler 'rarety'; did you mean 'rarity'"),
        ({"pick": "tomson"}, "unknown value of pick 'tomson'; did you mean 'thompson'"),
        ({"batchsize": 4}, r"unknown setting 'batchsize' \(given: 4\); did you mean 'batch_size'"),
        ({"window": 0}, "window must be at least 1, not 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"workers": -1}, "workers must be at least 0, not -1"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(dc.InputError, match=message):
        toy.campaign(tmp_path / "c", **options)
    assert not (tmp_path / "c").exists()


def test_ranges_of_kinds_that_are_not_used() -> None:
    with pytest.raises(dc.InputError, match="ranges for Trim, but the kinds are: InsertRound"):
        dc.Mutations(bracket_changes.KINDS, ranges={"Trim": {"top_db": (40, 50)}})


def test_a_campaign_prints_itself(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    assert repr(campaign) == f"Campaign in {tmp_path}: 64 runs, {len(campaign.failed)} failed"
    worst = campaign.failed[0]
    assert str(worst).splitlines()[0] == f"{worst.reference!r} became {worst.output!r} (100%)"
    assert f"  {worst.seed}: {' -> '.join(map(str, worst.recipe))}" in str(worst).splitlines()
    assert campaign[worst.number] is worst
    with pytest.raises(
        dc.InputError, match=rf"there is no failing test 99 in '{tmp_path}'; the worst is {campaign.failed[0].number}"
    ):
        campaign[99]


def test_equal_mutants_of_a_batch_are_run_once(tmp_path: Path) -> None:
    class Counting(toy.Reader):
        batches: list[list[str]] = []  # noqa: RUF012

        def run(self, batch: Any) -> list[dc.Run]:
            self.batches.append(list(batch))
            return super().run(batch)

    same = [toy.Text("a", "ab()"), toy.Text("b", "ab()"), toy.Text("c", "[a]b")]
    record = toy.campaign(tmp_path, same, system=Counting(), runs=64, select="uniform")
    assert all(len(set(batch)) == len(batch) for batch in Counting.batches if len(batch) > 4)
    assert [event.outcome for event in record.seeds] == ["kept"] * 3
    made = [
        record.inputs.make(("a", "b", "c")[-1 - test.parent], test.changes) for test in record.runs if test.parent < 0
    ]
    assert len(set(made)) < len(made)
    assert toy.rows(tmp_path)["runs"]
