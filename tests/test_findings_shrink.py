"""The mildest recipe that still fails."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.findings.shrink import PRECISION, Recipe, Shrunk, search, shrink
from deepcruiser.serialise import digest_of
from deepcruiser.transformations import NAMES, AddWhiteNoise, ChangeSpeed, ChangeVolume, LowPassFilter, Trim
from deepcruiser.transformations import series as series_changes
from deepcruiser.transformations.severity import parameters

SOUND = dc.Audio(np.sin(np.arange(8000) / 9).astype(np.float32), 16000)


def found(recipe: Recipe, fails: Callable[[Recipe], bool]) -> tuple[Recipe, Any, list[Recipe]]:
    """The mildest recipe by a rule, its thresholds, and what was tried on the way."""
    tried: list[Recipe] = []
    searching = search(recipe, SOUND, {})
    try:
        candidate = next(searching)
        while True:
            tried.append(candidate)
            candidate = searching.send(fails(candidate))
    except StopIteration as stop:
        return stop.value.recipe, stop.value.thresholds, tried


def check(recipe: Recipe, thresholds: Any, fails: Callable[[Recipe], bool]) -> None:
    """The promises of a shrunk recipe, checked by trying."""
    assert fails(recipe)
    for step in range(len(recipe)):
        shorter = recipe[:step] + recipe[step + 1 :]
        assert not shorter or not fails(shorter), "no step can be dropped"
    for threshold in thresholds:
        change = recipe[threshold.step]
        assert getattr(change, threshold.name) == threshold.fails
        if threshold.passes is None:
            continue
        milder = replace(change, **{threshold.name: threshold.passes})
        assert not fails((*recipe[: threshold.step], milder, *recipe[threshold.step + 1 :]))
        low, high = type(change).RANGES[threshold.name]
        assert abs(threshold.fails - threshold.passes) <= PRECISION * (high - low)


def test_one_step_of_four_matters() -> None:
    recipe = (ChangeVolume(-6), ChangeSpeed(1.12), AddWhiteNoise(31.0, 7), Trim(40))

    def fails(candidate: Recipe) -> bool:
        return any(isinstance(change, ChangeSpeed) and change.factor > 1.05 for change in candidate)

    mildest, thresholds, tried = found(recipe, fails)
    (speed,) = mildest
    assert isinstance(speed, ChangeSpeed)
    assert 1.05 < speed.factor < 1.05 + PRECISION * 0.3
    assert [(each.step, each.name, each.fails) for each in thresholds] == [(0, "factor", speed.factor)]
    check(mildest, thresholds, fails)
    assert len(tried) == len(set(tried)) < 15, "nothing is run twice"


def test_two_steps_together() -> None:
    recipe = (ChangeVolume(-8), LowPassFilter(3500), ChangeSpeed(0.9))

    def fails(candidate: Recipe) -> bool:
        volume = sum(change.gain_db for change in candidate if isinstance(change, ChangeVolume))
        cutoff = min([change.cutoff_hz for change in candidate if isinstance(change, LowPassFilter)], default=8000.0)
        return volume < 0 and (8000 - cutoff) / 1000 - volume > 8

    mildest, thresholds, _ = found(recipe, fails)
    assert [type(change) for change in mildest] == [ChangeVolume, LowPassFilter]
    check(mildest, thresholds, fails)


def test_a_parameter_without_any_part_in_it() -> None:
    """Reverberation that fails however long it lasts: the time goes all the way, and only the level has a threshold."""
    from deepcruiser.transformations import Reverb

    def fails(candidate: Recipe) -> bool:
        return bool(candidate) and candidate[0].direct_db < 15

    mildest, thresholds, _ = found((Reverb(0.3, 11.0, 5),), fails)
    assert mildest[0].rt60_seconds == 0.01
    assert {each.name: each.passes for each in thresholds}.keys() == {"direct_db"}
    check(mildest, thresholds, fails)


@given(
    st.lists(st.sampled_from(["volume", "speed", "noise", "trim", "gap"]), min_size=1, max_size=4, unique=True),
    st.integers(0, 2**32 - 1),
)
def test_every_promise_under_any_rule(kinds: list[str], seed: int) -> None:
    """Whatever fails: a rule that is a table of random bits, even one that no threshold could describe."""
    rng = np.random.default_rng(seed)
    makers: dict[str, Callable[[], Any]] = {
        "volume": lambda: ChangeVolume.draw(rng),
        "speed": lambda: ChangeSpeed.draw(rng),
        "noise": lambda: AddWhiteNoise.draw(rng),
        "trim": lambda: Trim.draw(rng),
        "gap": lambda: series_changes.DropGap.draw(rng),
    }
    recipe = tuple(makers[kind]() for kind in kinds)
    table = rng.random(997) < 0.5

    def fails(candidate: Recipe) -> bool:
        return candidate == recipe or (bool(candidate) and bool(table[zlib.crc32(repr(candidate).encode()) % 997]))

    mildest, thresholds, tried = found(recipe, fails)
    check(mildest, thresholds, fails)
    assert len(tried) == len(set(tried))


def test_every_number_has_a_value_without_change_or_is_a_place_or_a_seed() -> None:
    """A new transformation has to say what no change is."""
    left_alone = {"seed", "where", "start"}
    for kind in NAMES.values():
        numbers = set(kind.RANGES) - left_alone
        assert set(parameters(kind, SOUND)) == numbers, kind


@dataclass(frozen=True)
class Shift:
    """Add a number; NO_CHANGE of it is not known, so only whole steps are dropped."""

    by: int

    def __call__(self, value: float) -> float:
        return value + self.by


class Threshold:
    """A system that says "high" of numbers above a limit, or, of every n-th call, whatever comes."""

    def __init__(self, limit: float, *, wrong_every: int = 0) -> None:
        self.limit, self.wrong_every, self.calls = limit, wrong_every, 0

    def run(self, batch: Sequence[float]) -> list[dc.Run]:
        runs = []
        for value in batch:
            self.calls += 1
            flip = self.wrong_every > 0 and self.calls % self.wrong_every == 0
            runs.append(dc.Run("high" if (value > self.limit) != flip else "low"))
        return runs


class Counting(Executor):
    """Counts the batches, and how many mutants they had."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.sizes = executor, list[int]()

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], Sequence[Execution]]:
        self.sizes.append(len(mutants))
        return self.executor.submit(mutants)


@dataclass(frozen=True)
class Seed:
    id: str
    input: Any
    text: str = "low"


def failed(number: int, recipe: Recipe, output: Any = "high", kind: str = "wrong") -> FailedTest:
    return FailedTest(
        number=number, seed="s", position=0, recipe=recipe, kind=kind, reference="low", seed_reference="low",
        output=output, score=1.0, doubt=None, digest="", visits=None,
    )  # fmt: skip


def shrunk(system: Any, tests: Sequence[FailedTest], **options: Any) -> tuple[list[Shrunk], Counting]:
    inputs = Inputs(Seeds([Seed("s", 0.0)]))
    executor = Counting(LocalExecutor(system, None, inputs, lambda seed, mutant: None))
    return list(shrink(tests, executor, inputs, dc.Disagreement(), **options)), executor


def test_batches_are_shared_and_change_nothing() -> None:
    rng = np.random.default_rng(0)
    tests = [failed(i, tuple(Shift(int(by)) for by in rng.integers(-3, 6, 5))) for i in range(40)]
    tests = [test for test in tests if sum(change.by for change in test.recipe) > 4]
    alone = [each for test in tests for each in shrunk(Threshold(4), [test])[0]]
    together, executor = shrunk(Threshold(4), tests, batch_size=8)
    assert sorted(together, key=lambda each: each.number) == alone
    assert max(executor.sizes) == 8
    for each in alone:
        total = sum(change.by for change in each.recipe)
        assert each.status == "shrunk"
        assert total > 4
        assert all(total - change.by <= 4 for change in each.recipe)
        assert each.output == "high"
        assert each.digest == digest_of(float(total))


def test_what_does_not_fail_any_more_or_only_sometimes() -> None:
    (gone,), _ = shrunk(Threshold(10), [failed(1, (Shift(5),))])
    assert (gone.status, gone.runs, gone.recipe) == ("no longer fails", 5, (Shift(5),))
    (sometimes,), _ = shrunk(Threshold(10, wrong_every=2), [failed(1, (Shift(5),))])
    assert str(sometimes) == "fails sometimes (2 of 5)"
    (late,), _ = shrunk(Threshold(4, wrong_every=4), [failed(1, (Shift(5), Shift(1)))])
    assert str(late) == "fails sometimes (4 of 5)", "the run that confirms it passes"


def test_another_failure_is_not_the_same() -> None:
    class Crashing(Threshold):
        def run(self, batch: Sequence[float]) -> list[dc.Run]:
            if any(value > 7 for value in batch):
                raise ValueError("too high")
            return super().run(batch)

    tests = [
        failed(1, (Shift(5), Shift(4)), "ValueError: too high", "crash"),
        failed(2, (Shift(9), Shift(-3))),
        failed(3, (Shift(5), Shift(4)), "KeyError: 7", "crash"),
    ]
    result, _ = shrunk(Crashing(4), tests)
    by_number = {each.number: each for each in result}
    assert by_number[1].recipe == (Shift(5), Shift(4)), "with one of them it is wrong, but does not crash"
    assert by_number[2].recipe == (Shift(9), Shift(-3)), "without the second it crashes"
    assert by_number[3].status == "no longer fails", "it crashes in another way"


def test_what_cannot_be_made() -> None:
    class Broken(Shift):
        def __call__(self, value: float) -> float:
            raise ValueError("no")

    (each,), _ = shrunk(Threshold(4), [failed(1, (Broken(5),))])
    assert each.status == "cannot be made"
