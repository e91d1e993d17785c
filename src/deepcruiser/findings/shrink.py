"""The mildest recipe that still fails in the same way, and the value at which each parameter begins to fail."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs
from deepcruiser.campaign.verdict import Verdict, moved_reference, verdict
from deepcruiser.findings.kinds import Failure, classify
from deepcruiser.oracles import Oracle
from deepcruiser.transformations.severity import parameters

Recipe = tuple[Any, ...]

#: Thresholds are right to this share of the range that a parameter is drawn from.
PRECISION = 0.05
#: A test that does not fail at once is run this often.
TRIES = 5


@dataclass(frozen=True)
class Threshold:
    """Where a parameter of a shrunk recipe begins to fail: it fails at `fails`, and passes at `passes`, nearer to no
    change.

    `passes` is None if it fails even without that change.
    """

    step: int
    name: str
    fails: float
    passes: float | None


@dataclass(frozen=True)
class Shrunk:
    """The mildest recipe found for a failing test, and the result of running it once more, alone.

    `status` is "shrunk", "no longer fails", "fails sometimes" (`failing` of `TRIES` runs), or "cannot be made".
    Unless it is "shrunk", the recipe is that of the test. `leaves` says where the states of a finding's tests leave
    what training visited, where that was looked at.
    """

    number: int
    status: str
    recipe: Recipe
    thresholds: tuple[Threshold, ...]
    runs: int
    failing: int
    output: Any
    score: float
    digest: str
    leaves: str = ""

    def __str__(self) -> str:
        if self.status == "fails sometimes":
            return f"fails sometimes ({self.failing} of {TRIES})"
        return " -> ".join(map(str, self.recipe)) if self.status == "shrunk" else self.status


@dataclass(frozen=True, eq=False)
class Trial:
    """The result of a recipe: whether it failed in the same way, and how it was judged."""

    same: bool
    execution: Execution
    judged: Verdict


#: Yields recipes to run and gets what came of them.
Job = Generator[list[Recipe], list[Trial], Shrunk]


def shrink(
    tests: Iterable[FailedTest],
    executor: Executor,
    inputs: Inputs,
    oracle: Oracle,
    *,
    ranges: Mapping[str, Mapping[str, Any]] | None = None,
    batch_size: int = 16,
) -> Iterator[Shrunk]:
    """Shrink failing tests, several at a time, so that every batch is full; yields each when it is done.

    `ranges` are those of the campaign's mutations where they are not the usual ones.
    """
    waiting = ((test, _shrinking(test, inputs, ranges or {})) for test in tests)
    active = [(test, job, next(job)) for test, job in islice(waiting, batch_size)]
    while active:
        plan = [(test, recipe) for test, _, recipes in active for recipe in recipes]
        trials = iter(_run(plan, executor, inputs, oracle, batch_size))
        still = []
        for test, job, recipes in active:
            try:
                still.append((test, job, job.send(list(islice(trials, len(recipes))))))
            except StopIteration as stop:
                yield _confirmed(test, stop.value, executor, inputs, oracle)
                still += [(test, job, next(job)) for test, job in islice(waiting, 1)]
        active = still


def search(recipe: Recipe, value: Any, ranges: Mapping[str, Mapping[str, Any]]) -> Generator[Recipe, bool, _Found]:
    """Yields recipes to try and gets whether each fails in the same way; returns the mildest that does.

    Steps are dropped first, then parameters are moved towards no change, and again until neither helps. So no step of
    the result can be dropped, and no parameter moved by its threshold.
    """
    known: dict[Recipe, bool] = {recipe: True, (): False}  # the seed itself passes
    bounds: dict[tuple[int, str], float] = {}

    def fails(candidate: Recipe) -> Generator[Recipe, bool, bool]:
        if candidate not in known:
            known[candidate] = yield candidate
        return known[candidate]

    while True:
        before = recipe
        step = 0
        while step < len(recipe):
            shorter = recipe[:step] + recipe[step + 1 :]
            if (yield from fails(shorter)):
                recipe, step = shorter, 0
                bounds.clear()
            else:
                step += 1
        thresholds = []
        for step in range(len(recipe)):
            for name, none in parameters(type(recipe[step]), value).items():
                if getattr(recipe[step], name) == none:
                    continue
                low, high = ranges.get(type(recipe[step]).__name__, {}).get(name) or type(recipe[step]).RANGES[name]
                precision = PRECISION * min(high - low, abs(getattr(recipe[step], name) - none))
                threshold = yield from _bisect(recipe, step, name, none, precision, bounds.get((step, name)), fails)
                recipe = _with(recipe, step, name, threshold.fails)
                if threshold.passes is not None:
                    bounds[step, name] = threshold.passes
                thresholds.append(threshold)
        if recipe == before:
            return _Found(recipe, tuple(thresholds))


@dataclass(frozen=True)
class _Found:
    recipe: Recipe
    thresholds: tuple[Threshold, ...]


def _bisect(
    recipe: Recipe, step: int, name: str, none: float, precision: float, bound: float | None, fails: Any
) -> Generator[Recipe, bool, Threshold]:
    """Move a parameter towards the value of no change while the test fails; `bound` is where it passed before."""
    bad = float(getattr(recipe[step], name))
    if bound is not None:
        if not (yield from fails(_with(recipe, step, name, bound))):
            return Threshold(step, name, bad, bound)
        bad = bound
    if (yield from fails(_with(recipe, step, name, none))):
        return Threshold(step, name, none, None)
    good = none
    while abs(good - bad) > precision:
        middle = float(f"{(good + bad) / 2:.4g}")
        if middle in (good, bad):
            break
        if (yield from fails(_with(recipe, step, name, middle))):
            bad = middle
        else:
            good = middle
    return Threshold(step, name, bad, good)


def _with(recipe: Recipe, step: int, name: str, value: float) -> Recipe:
    return (*recipe[:step], replace(recipe[step], **{name: value}), *recipe[step + 1 :])


def _shrinking(test: FailedTest, inputs: Inputs, ranges: Mapping[str, Mapping[str, Any]]) -> Job:
    runs = 1
    (first,) = yield [test.recipe]
    if first.execution.invalid or first.judged.kind == "unreadable":
        return _unshrunk(test, "cannot be made", runs, 0)
    if not first.same:
        failing = 0
        for _ in range(TRIES - 1):  # one by one, since equal inputs of a batch are run once
            (again,) = yield [test.recipe]
            failing += again.same
        return _unshrunk(test, "fails sometimes" if failing else "no longer fails", TRIES, failing)
    searching = search(test.recipe, inputs.make(test.seed, ()), ranges)
    try:
        candidate = next(searching)
        while True:
            runs += 1
            (trial,) = yield [candidate]
            candidate = searching.send(trial.same)
    except StopIteration as stop:
        result: _Found = stop.value
    return Shrunk(test.number, "shrunk", result.recipe, result.thresholds, runs, 1, None, 0.0, "")


def _confirmed(test: FailedTest, shrunk: Shrunk, executor: Executor, inputs: Inputs, oracle: Oracle) -> Shrunk:
    """The result after one more run, alone, as a replay runs it; a system that is not deterministic may pass now."""
    if shrunk.status != "shrunk":
        return shrunk
    (trial,) = _run([(test, shrunk.recipe)], executor, inputs, oracle, 1)
    if trial.same:
        judged = trial.judged
        return replace(
            shrunk, runs=shrunk.runs + 1, output=judged.output, score=judged.score, digest=trial.execution.digest
        )
    trials = _run([(test, test.recipe)] * TRIES, executor, inputs, oracle, 1)
    failing = sum(trial.same for trial in trials)
    return _unshrunk(test, "fails sometimes" if failing else "no longer fails", shrunk.runs + 1 + TRIES, failing)


def _unshrunk(test: FailedTest, status: str, runs: int, failing: int) -> Shrunk:
    return Shrunk(test.number, status, test.recipe, (), runs, failing, test.output, test.score, test.digest)


def _run(
    plan: Sequence[tuple[FailedTest, Recipe]], executor: Executor, inputs: Inputs, oracle: Oracle, batch_size: int
) -> Iterator[Trial]:
    for start in range(0, len(plan), batch_size):
        part = plan[start : start + batch_size]
        mutants = [Mutant(test.number, test.number, test.seed, (), recipe) for test, recipe in part]
        for (test, recipe), execution in zip(part, executor.submit(mutants)(), strict=True):
            yield _trial(test, recipe, execution, inputs, oracle)


def _trial(test: FailedTest, recipe: Recipe, execution: Execution, inputs: Inputs, oracle: Oracle) -> Trial:
    if execution.invalid:
        return Trial(False, execution, Verdict("", None))
    seed, mutant = partial(inputs.make, test.seed, ()), partial(inputs.make, test.seed, recipe)
    judged = verdict(execution, oracle, lambda _: moved_reference(oracle, test.seed_reference, seed, recipe, mutant))
    return Trial(
        bool(judged.kind) and failure_of(oracle, judged).key == failure_of(oracle, test).key, execution, judged
    )


def failure_of(oracle: Oracle | None, test: FailedTest | Verdict) -> Failure:
    """What kind of failure a failing test or a verdict is."""
    return classify(oracle, test.kind, test.reference, test.output)
