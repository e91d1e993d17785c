"""The scheduler that learns: its budget, its models against plain ones, resuming, and what it finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.drawing import Drawing
from deepcruiser.campaign.learned import _Seed
from deepcruiser.campaign.regression import Regression
from deepcruiser.campaign.spec import Component
from deepcruiser.transformations import PAPER, AddWhiteNoise, ChangeVolume
from deepcruiser.transformations.severity import severity
from tests.support import toy


def test_the_linear_regression_is_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(60, 5)), rng.normal(size=60)
    model = Regression(5, penalty=3.0)
    for example, label in zip(inputs, labels, strict=True):
        model.learn(example, label)
    ridge = np.linalg.solve(inputs.T @ inputs + 3 * np.eye(5), inputs.T @ labels)
    assert model.weights == pytest.approx(ridge)
    assert model.predict(inputs) == pytest.approx(inputs @ ridge)


def test_the_logistic_regression_finds_what_raises_the_odds() -> None:
    rng = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(2000), rng.normal(size=(2000, 3))])
    true = np.array([-1.0, 2.0, 0.0, -1.0])
    labels = rng.random(2000) < 1 / (1 + np.exp(-inputs @ true))
    model = Regression(4, penalty=3.0, bias=-2.0, logistic=True)
    for example, label in zip(inputs, labels, strict=True):
        model.learn(example, float(label))
    assert model.weights == pytest.approx(true, abs=0.35)


@dataclass(frozen=True)
class Add:
    """A change of the user's: no base class, ranges, and draw takes none of them."""

    amount: float

    RANGES: ClassVar[dict[str, Any]] = {"amount": (1, 2)}

    def __call__(self, text: str) -> str:
        return text + "a" * round(self.amount)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(float(rng.uniform(1, 2)))


@dataclass(frozen=True)
class Upside:
    """A change of the user's without parameters."""

    def __call__(self, text: str) -> str:
        return text[::-1]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls()


OWN = dc.Mutations((Add, Upside), ((Add,), (Upside,)), (), lambda seed, mutant: None)


@pytest.mark.parametrize(
    ("mutations", "budget"),
    [(dc.Mutations(), 0.4), (dc.Mutations(), 1.0), (dc.Mutations(), np.inf), (dc.Mutations.text(), 1.5),
     (dc.Mutations.series(), 1.0), (OWN, 2.0), (dc.Mutations(ranges={"AddWhiteNoise": {"snr_db": (20, 25)}}), 2.0)],
)  # fmt: skip
def test_candidates_keep_the_rule_of_families_the_ranges_and_the_budget(mutations: dc.Mutations, budget: float) -> None:
    drawing, rng = Drawing(mutations, budget), np.random.default_rng(0)
    first = mutations.draw(mutations.kinds[0], rng)
    inherited = (first,) if severity((first,)) < budget else ()
    size = 200
    candidates = drawing.draw(
        [drawing.applied(inherited)] * size, np.full(size, severity(inherited)), rng.integers(1, 4, size), rng
    )
    lengths = Counter[int]()
    for row in range(size):
        changes = drawing.make(candidates, row, rng)
        recipe = list(inherited)
        for change in changes:
            assert type(change) in mutations.allowed(recipe)
            recipe.append(change)
            for name, (low, high) in mutations.ranges.get(type(change).__name__, {}).items():
                assert low <= getattr(change, name) <= high
        assert severity(recipe) <= budget + 2e-3
        assert severity(recipe) == pytest.approx(candidates.severity[row], abs=2e-3)
        again = drawing.candidate(changes, severity(inherited))
        assert again.kinds[0].tolist() == [kind for kind in candidates.kinds[row].tolist() if kind >= 0]
        places = candidates.places[row, : len(changes)] * drawing.has[again.kinds[0]]
        assert again.places[0] == pytest.approx(places, abs=2e-3)
        lengths[len(changes)] += 1
    assert len(lengths) > 1 or mutations is OWN, "one number of changes only"


def test_every_kind_is_drawn_as_often_as_any_other() -> None:
    drawing, rng = Drawing(dc.Mutations(), np.inf), np.random.default_rng(0)
    drawn = drawing.draw([0] * 9000, np.zeros(9000), np.ones(9000, np.int64), rng).kinds[:, 0]
    assert np.abs(np.bincount(drawn, minlength=len(PAPER)) - 1000).max() < 150


def test_a_budget_without_room_is_an_error(tmp_path: Path) -> None:
    for scheduler in ("learned", "chains", "uniform"):
        with pytest.raises(dc.InputError, match=r"no change fits into a severity of 0.5: raise --severity"):
            toy.campaign(tmp_path / scheduler, severity=0.5, scheduler=scheduler)


def test_too_many_kinds_are_an_error() -> None:
    kinds = tuple(type(f"Upside{number}", (Upside,), {}) for number in range(63))
    assert Drawing(dc.Mutations(kinds[:62], (kinds[:62],), (), lambda seed, mutant: None), 2.0).kinds
    with pytest.raises(dc.InputError, match="at most 62 kinds of change can be used at once, not 63"):
        Drawing(dc.Mutations(kinds, (kinds,), (), lambda seed, mutant: None), 2.0)


def test_spent_tests_are_not_chosen(tmp_path: Path) -> None:
    """With a budget of one change nothing fits behind what was kept; `rarity` would choose new tests for ever."""
    record = toy.campaign(tmp_path, severity=1, scheduler="rarity", runs=600, guide="random")
    assert len(record.runs) == 600
    assert all(run.parent < 0 for run in record.runs)


def test_chains_draw_again_when_a_test_has_no_room_left(tmp_path: Path) -> None:
    """Mutants of one change here have a severity of 1, so that nothing fits behind those that were kept."""
    record = toy.campaign(tmp_path, severity=1.0, scheduler="chains", batch_size=1, runs=60)
    assert len(record.runs) == 60
    assert len(record.tests) > 2


@pytest.mark.parametrize("aim", ["balanced", "failures", "seeds", "coverage"])
def test_a_campaign_that_is_resumed_goes_on_with_the_same_weights(aim: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scheduler": Component("learned", {"aim": aim}), "severity": 3.0}
    toy.campaign(tmp_path / "whole", runs=208, **options)
    for runs in (32, 112, 208):
        record = toy.campaign(tmp_path / "parts", runs=runs, **options)
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")
    assert record.failed
    assert max(len(run.changes) for run in record.runs) == 3
    assert max(severity((*record.tests[run.parent].recipe, *run.changes)) for run in record.runs) == 3


def test_workers_change_nothing(tmp_path: Path) -> None:
    for workers in (0, 2):
        toy.campaign(tmp_path / str(workers), workers=workers, runs=64)
    assert toy.rows(tmp_path / "0") == toy.rows(tmp_path / "2")


def test_it_works_without_a_model_and_with_changes_of_the_users_own(tmp_path: Path) -> None:
    record = dc.fuzz(
        toy.Reader(), None, toy.seeds(), folder=tmp_path, oracle=dc.Disagreement(), mutations=OWN, guide="none",
        runs=96, workers=0,
    )  # fmt: skip
    assert len(record.runs) == 96
    assert {len(run.changes) for run in record.runs} == {1, 2}


class Weak:
    """Hears noise as a wrong word on every second seed; its doubt says how near it is to that.

    `words` is the number of different wrong words.
    """

    state_name = fingerprint = "weak"

    def __init__(self, words: int) -> None:
        self._words = words

    def run(self, batch: Any) -> list[dc.Run]:
        return [self._run(audio) for audio in batch]

    def _run(self, audio: dc.Audio) -> dc.Run:
        hiss = float(np.abs(np.diff(audio.samples, n=3)).mean())
        pitch = np.count_nonzero(np.diff(np.sign(audio.samples)))
        wrong = f"wrong{int(1e6 * hiss) % self._words}"
        return dc.Run(wrong if hiss > 0.012 and len(audio) % 2 else "right", doubt=min(hiss, 0.012) + 1e-6 * pitch)


def sounds() -> list[Any]:
    @dataclass(frozen=True)
    class Sound:
        id: str
        input: dc.Audio
        text: str = "right"

    times = np.arange(4000) / 8000
    return [
        Sound(f"s{i}", dc.Audio((0.3 * np.sin(2 * np.pi * (150 + 5 * i) * times))[i % 2 :].astype(np.float32), 8000))
        for i in range(12)
    ]


def test_it_finds_the_change_that_fails_and_avoids_what_the_gate_rejects(tmp_path: Path) -> None:
    """Only white noise makes the system fail, on every second seed; the gate rejects nearly all loud noise."""
    mutations = dc.Mutations.sound(["AddWhiteNoise", "ChangeVolume", "LowPassFilter", "Trim"])
    options: dict[str, Any] = {"oracle": dc.Disagreement(), "mutations": mutations, "guide": "none", "workers": 0}
    noisy, outcomes = {}, {}
    for scheduler in ("learned", "chains"):
        kind = Component(scheduler, {"aim": "failures"} if scheduler == "learned" else {})
        record = dc.fuzz(Weak(1000), None, sounds(), folder=tmp_path / scheduler, scheduler=kind, runs=320, **options)
        last = record.runs[160:]
        noise = [change for run in last for change in run.changes if isinstance(change, AddWhiteNoise)]
        noisy[scheduler] = len(noise) / len(last)
        outcomes[scheduler] = Counter(run.outcome for run in last)
        assert any(isinstance(change, ChangeVolume) for run in last for change in run.changes)
    assert noisy["learned"] > 1.2 * noisy["chains"], noisy
    assert outcomes["learned"]["failed"] > 4 * outcomes["chains"]["failed"], outcomes
    assert outcomes["learned"]["rejected"] < outcomes["chains"]["rejected"], outcomes


def test_where_seeds_fail_in_one_way_only_more_of_them_fail(tmp_path: Path) -> None:
    """Every second seed fails, always with the same wrong word, so another failure of it is worth nothing."""
    mutations = dc.Mutations.sound(["AddWhiteNoise", "ChangeVolume", "LowPassFilter", "Trim"])
    options: dict[str, Any] = {"oracle": dc.Disagreement(), "mutations": mutations, "guide": "none", "workers": 0}
    broken = Counter[str]()
    for scheduler in ("learned", "chains"):
        for seed in range(3):
            folder = tmp_path / f"{scheduler}-{seed}"
            record = dc.fuzz(
                Weak(1), None, sounds(), folder=folder, scheduler=scheduler, runs=320, seed=seed, **options
            )
            broken[scheduler] += len({test.seed for test in record.failed})
    assert broken["learned"] > 1.5 * broken["chains"], broken


def test_a_new_failure_is_as_likely_as_failures_that_happened_once() -> None:
    seed = _Seed()
    for way in ["a", "b", "a", "", "c", "c", "c", "d"]:
        seed.take((way,) if way else ())
    *_, ways, odds = seed.row
    share = (2 + 1) / (7 + 1)  # "b" and "d" happened once
    assert ways == pytest.approx(np.log(1 + 4))
    assert odds == pytest.approx(np.log(share / (1 - share)))
