"""The scheduler that learns during the campaign which changes cause failures and increase coverage.

For each mutant it draws candidates at random, scores each with a model that it learned from the runs so far, and takes
the best. While failures are rare it learns from the distance to failure. It learns only from the events of the
campaign, in their order, so a resumed campaign continues with the same weights.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.alignment import word_errors
from deepcruiser.campaign.drawing import MOST_CHANGES, Candidates, Drawing, Floats
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.regression import Regression
from deepcruiser.campaign.scheduler import Mutant, Plan, Scheduler
from deepcruiser.errors import InputError
from deepcruiser.serialise import summarise

Aim = Literal["balanced", "failures", "seeds", "coverage"]
AIMS: tuple[str, ...] = get_args(Aim)

#: Candidates for each mutant of a plan, until the first failure and where failures are frequent: the best of many is
#: worth more when it is known what fails.
_CANDIDATES = {"balanced": (16, 96), "failures": (16, 96), "seeds": (16, 96), "coverage": (48, 48)}
#: The share of the candidates that are made from tests that were kept, until the first failure; it falls to 0 as
#: failures become frequent. The others are made from seeds: where a seed fails often, its mutants that passed are
#: harder to break, and as many changes at once on a fresh seed cover more.
_FROM_KEPT = {"balanced": 0.5, "failures": 0.5, "seeds": 0.5, "coverage": 0.0}
#: The share of the mutants that are chosen for their coverage, until the first failure and where failures are frequent.
_FOR_COVERAGE = {"balanced": (0.5, 0.15), "failures": (0.25, 0.0), "seeds": (0.25, 0.0), "coverage": (1.0, 1.0)}
#: A new failure of a seed that has n is worth 1 / (1 + n) to this power.
_SPREAD = {"balanced": 0.5, "failures": 0.0, "seeds": 2.0, "coverage": 0.0}
#: The deviation of the noise on a score: without it, little that is new would be tried.
_NOISE = 0.2
#: Failures are rare while there are fewer than `_ENOUGH` among this many recent runs. Until then, distances among the
#: greatest tenth of the recent ones count as half a failure.
_RECENT, _LEAST, _NEAREST, _ENOUGH = 400, 32, 0.9, 20
#: What a weight of 1 costs, in examples.
_PENALTY = 3.0
#: With each run of a seed, its earlier runs count for this much less.
_DECAY = 0.95
#: Standardised values are cut off here.
_FAR = 3.0
#: Nothing is less likely than this, or more likely than 1 less this.
_NEVER = 0.01
#: Smaller distances are alike.
_CLOSEST = 1e-3
#: The number of features of a test, before those of its changes.
_OF_TEST = 11
#: Columns of the table of tests, after the doubt and the distance.
_TRIED, _IS_MUTANT, _LENGTH, _SEVERITY = range(2, 6)
#: Columns of the table of seeds: three features, the logarithm of the ways to fail, the odds of a new one.
_OF_SEED, _WAYS, _NEW = slice(0, 3), 3, 4
_NOTHING = np.empty(0, np.int64)
#: A mean, and the deviation from it.
Scale = tuple[float, float]
#: A kind of failure, and which word became what.
Way = tuple[str, ...]


class _Table:
    """Rows of numbers, as many as are needed; new ones are 0."""

    def __init__(self, *shape: int, of: Any = float) -> None:
        self.rows = np.zeros((64, *shape), of)

    def __setitem__(self, at: int, row: Any) -> None:
        while at >= len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[at] = row


@dataclass(eq=False)
class _Test:
    """A test; what the models read of it is in tables, in row `at`."""

    at: int
    number: int
    seed: str
    position: int
    recipe: tuple[Any, ...]
    severity: float
    reference: Any
    states: IntArray


@dataclass(eq=False)
class _Seed:
    """What is known of the mutants of a seed: its runs, and how often it failed in each way.

    `recent` counts runs and `hits` failures, the older the less. `failures` counts all failures, and `once` the ways
    seen once.
    """

    runs: int = 0
    recent: float = 0.0
    hits: float = 0.0
    failures: int = 0
    once: int = 0
    ways: Counter[Way] = field(default_factory=Counter)

    def take(self, way: Way) -> None:
        """A run, and in which way it failed; empty if it passed."""
        self.runs += 1
        self.recent = _DECAY * self.recent + 1
        self.hits = _DECAY * self.hits + bool(way)
        if way:
            self.failures += 1
            self.ways[way] += 1
            self.once += {1: 1, 2: -1}.get(self.ways[way], 0)

    @property
    def row(self) -> tuple[float, ...]:
        """How often it failed lately, how often it ran and failed, in how many ways, and the odds of a new way.

        How likely the next failure is a new one is estimated as Good and Turing do: by the share of failures that
        happened once.
        """
        new = min(max((self.once + 1) / (self.failures + 1), _NEVER), 1 - _NEVER)
        rate = (self.hits + 0.1) / (self.recent + 1)
        counts = math.log1p(self.runs), math.log1p(self.failures), math.log1p(len(self.ways))
        return math.log(rate), *counts, math.log(new / (1 - new))


class Learned(Scheduler):
    """Takes the most promising of a few random candidates, using what it has learned so far.

    Four models learn from the runs. The first predicts the distance to failure, so it can learn from the first run on.
    The second predicts whether the run fails; the prediction of the first is one of its inputs. To it, a mutant that is
    rejected is one that passed. The third learns from the failures how likely the next is a new one; it begins with an
    estimate from how often the seed's failures were repeated. The product of the two chances decides, and the aim says
    how much less a failure counts if its seed has others. The fourth model predicts how many states are new, and
    decides a share of the mutants that depends on the aim.
    """

    def __init__(self, drawing: Drawing, aim: str = "balanced") -> None:
        if aim not in AIMS:
            raise InputError(f"unknown aim {aim!r}; choose one of {', '.join(AIMS)}")
        super().__init__(drawing)
        self._aim = aim
        self._tests: list[_Test] = []
        self._by_number: dict[int, _Test] = {}
        #: Of each test: its doubt, the logarithm of its distance (NaN if there is none), the runs made from it, whether
        #: it is a mutant, the length of its recipe, its severity.
        self._of_tests = _Table(6)
        #: Of each test: sums over its changes, its kinds as bits, and the position of its seed.
        self._sums = _Table(len(drawing.kinds), 1 + 2 * drawing.parameters)
        self._applied, self._positions = _Table(of=np.int64), _Table(of=np.int64)
        #: The rows of the seeds and of the mutants that may be changed further.
        self._fresh: list[int] = []
        self._kept: list[int] = []
        #: By the position of the seed.
        self._seeds: defaultdict[int, _Seed] = defaultdict(_Seed)
        self._of_seeds = _Table(len(_Seed().row))
        #: How many runs went through each state of the model, and how rare that makes it.
        self._visits = np.zeros(0, np.int64)
        self._rare = np.zeros(0)
        self._doubts: list[float] = []
        self._distances: list[float] = []
        self._known_scales: tuple[Scale, Scale] | None = None
        self._recent: list[float] = []
        #: The failures among the recent runs; the older, the less they count.
        self._failures = 0.0
        width = _OF_TEST + len(drawing.kinds) * (1 + 2 * drawing.parameters)
        self._nearing = Regression(width, penalty=_PENALTY)
        self._failing = Regression(width + 1, penalty=_PENALTY, bias=-2.0, logistic=True)
        self._differing = Regression(width + 2, penalty=10 * _PENALTY, logistic=True)
        self._differing.weights[-1] = 1.0  # of the odds estimated from the seed's own failures, which come first
        self._covering = Regression(width, penalty=_PENALTY)

    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        plan: list[Mutant] = []
        while (self._fresh or self._kept) and len(plan) < size:
            slots, several = size - len(plan), self._candidates
            tests = self._drawn(slots * several, rng)
            count = rng.integers(1, MOST_CHANGES + 1, len(tests))
            severity = self._of_tests.rows[tests, _SEVERITY]
            candidates = self._drawing.draw(self._applied.rows[tests], severity, count, rng)
            scores = self._scores(tests, candidates, slots, rng)
            chosen = scores.reshape(slots, several).argmax(1) + several * np.arange(slots)
            for at in chosen[candidates.count[chosen] > 0].tolist():
                test, changes = self._tests[tests[at]], self._drawing.make(candidates, at, rng)
                plan.append(Mutant(first + len(plan), test.number, test.seed, test.recipe, changes))
            if not candidates.count.any():
                raise self._drawing.no_room()
        for mutant in plan:
            queue.tests[mutant.parent].picked += 1
        return tuple(plan)

    def _drawn(self, count: int, rng: np.random.Generator) -> IntArray:
        """The tests of candidates; the share of the seeds does not depend on how many tests were kept."""
        share = _FROM_KEPT[self._aim] * self._rareness if self._fresh and self._kept else float(not self._fresh)
        from_kept = rng.random(count) < share
        place = rng.random(count)
        drawn = np.empty(count, np.int64)
        for group, taken in ((self._fresh, ~from_kept), (self._kept, from_kept)):
            drawn[taken] = np.array(group, np.int64)[(place[taken] * len(group)).astype(np.int64)]
        return drawn

    def _scores(self, tests: IntArray, candidates: Candidates, slots: int, rng: np.random.Generator) -> Floats:
        """How promising each candidate is; those of one slot in `slots` are next to each other."""
        features, seeds = self._features(tests, candidates), self._of_seeds.rows[self._positions.rows[tests]]
        nearer = self._with_nearness(features)
        failing = self._failing.predict(nearer) + _NOISE * rng.standard_normal(len(tests))
        differing = self._differing.predict(np.column_stack([nearer, seeds[:, _NEW]]))
        chance = -np.logaddexp(0, -failing) - np.logaddexp(0, -differing)  # the logarithm of both chances' product
        covering = np.repeat(rng.random(slots) < self._for_coverage, len(tests) // slots)
        worth = chance - _SPREAD[self._aim] * seeds[:, _WAYS]
        scores = np.where(covering, self._covering.predict(features), worth)
        return np.where(candidates.count > 0, scores, -np.inf)

    @property
    def _candidates(self) -> int:
        """How many candidates there are for each mutant."""
        rare, frequent = _CANDIDATES[self._aim]
        return round(frequent + (rare - frequent) * self._rareness)

    @property
    def _for_coverage(self) -> float:
        if not len(self._visits):
            return 0.0
        rare, frequent = _FOR_COVERAGE[self._aim]
        return frequent + (rare - frequent) * self._rareness

    @property
    def _rareness(self) -> float:
        """1 if no recent run failed, 0 from `_ENOUGH` failures on."""
        return max(0.0, 1 - self._failures / _ENOUGH)

    def _features(self, tests: IntArray, candidates: Candidates) -> Floats:
        """The inputs of the models, a row for each candidate: its test, its seed, then its changes."""
        known, (middle, width) = self._of_tests.rows[tests], zip(*self._scales, strict=True)
        of_test = np.ones((len(tests), _OF_TEST))
        of_test[:, 1:3] = _standardised(np.where(np.isnan(known[:, :2]), middle, known[:, :2]), middle, width)
        of_test[:, 3:6] = self._of_seeds.rows[self._positions.rows[tests], _OF_SEED]
        of_test[:, 6] = np.log1p(known[:, _TRIED])
        of_test[:, 7] = known[:, _IS_MUTANT]
        of_test[:, 8] = known[:, _LENGTH] + candidates.count
        of_test[:, 9] = candidates.severity
        of_test[:, 10] = self._rarity(tests)
        return np.concatenate([of_test, self._changes(tests, candidates).reshape(len(tests), -1)], axis=1)

    @property
    def _scales(self) -> tuple[Scale, Scale]:
        """Those of the doubts and of the distances of the seeds."""
        if self._known_scales is None:
            self._known_scales = _scale(self._doubts), _scale(self._distances)
        return self._known_scales

    def _with_nearness(self, features: Floats) -> Floats:
        """The features and the first model's prediction from them."""
        near = _standardised(self._nearing.predict(features), *self._scales[1])
        return np.concatenate([features, near[:, None]], axis=1)

    def _changes(self, tests: IntArray, candidates: Candidates) -> Floats:
        """Sums over the recipes with the new changes, by kind: of 1, of how hard each parameter is, and how far out."""
        sums = self._sums.rows[tests]
        rows, steps = np.nonzero(candidates.kinds >= 0)
        kinds = candidates.kinds[rows, steps]
        across = self._drawing.has[kinds] * (2 * candidates.places[rows, steps] - 1)
        np.add.at(sums, (rows, kinds), np.concatenate([np.ones((len(rows), 1)), across, np.square(across)], axis=1))
        return sums

    def _rarity(self, tests: IntArray) -> Floats:
        """How rarely the states of each test were visited, on average."""
        different, places = np.unique(tests, return_inverse=True)
        states = [self._tests[at].states for at in different.tolist()]
        lengths = np.array([len(each) for each in states])
        means = np.zeros(len(different))
        if lengths.any():
            starts = np.cumsum(lengths) - lengths
            there = lengths > 0
            means[there] = np.add.reduceat(self._rare[np.concatenate(states)], starts[there]) / lengths[there]
        return means[places]

    def learn(self, event: Event, *, gained: bool) -> None:
        if isinstance(event, Seeded):
            test = _Test(len(self._tests), event.number, event.seed, event.position, (), 0.0, event.reference, _NOTHING)
            self._take(event, test, 0.0)
            return
        test = self._by_number[event.parent]
        at, seed = np.array([test.at]), self._seeds[test.position]
        changes = self._drawing.candidate(event.changes, test.severity)
        way = self._way(event, test)
        new = self._visit(event)
        features = self._features(at, changes)
        nearer = self._with_nearness(features)[0]
        self._failing.learn(nearer, 1.0 if way else self._nearness(event))
        if way:
            self._differing.learn(
                np.append(nearer, self._of_seeds.rows[test.position, _NEW]), float(way not in seed.ways)
            )
        if event.distance is not None:
            self._nearing.learn(features[0], _logarithm(event.distance))
        if len(self._visits):
            self._covering.learn(features[0], float(np.log1p(new)))
        if event.outcome == "kept":
            recipe, severity = (*test.recipe, *event.changes), float(changes.severity[0])
            about = test.seed, test.position, recipe, severity, test.reference, _NOTHING
            self._take(event, _Test(len(self._tests), event.number, *about), self._changes(at, changes)[0])
        self._of_tests.rows[test.at, _TRIED] += 1
        self._failures += bool(way) - self._failures / _RECENT
        seed.take(way)
        self._of_seeds[test.position] = seed.row

    def _take(self, event: Event, test: _Test, sums: Floats | float) -> None:
        """Add a test that was kept; one that nothing may follow is not chosen."""
        doubt = math.nan if event.doubt is None else float(f"{event.doubt:.6g}")
        distance = math.nan if event.distance is None else _logarithm(event.distance)
        fresh = isinstance(event, Seeded)
        if event.visits is not None:
            test.states = event.visits.states
        self._tests.append(test)
        self._by_number[test.number] = test
        self._of_tests[test.at] = doubt, distance, 0, not fresh, len(test.recipe), test.severity
        self._sums[test.at], self._positions[test.at] = sums, test.position
        self._applied[test.at] = self._drawing.applied(test.recipe)
        if fresh:
            self._of_seeds[test.position] = self._seeds[test.position].row
            self._doubts += [] if math.isnan(doubt) else [doubt]
            self._distances += [] if math.isnan(distance) else [distance]
            self._known_scales = None
            self._visit(event)
        if self._drawing.allowed(test.recipe):
            (self._fresh if fresh else self._kept).append(test.at)

    def _visit(self, event: Event) -> int:
        """Count the visits of a run that passed, and return the number of states that are new."""
        if event.visits is None or event.outcome not in ("kept", "dropped"):
            return 0
        if not len(self._visits):
            self._visits = np.zeros(len(event.visits.model.states), np.int64)
            self._rare = np.ones(len(self._visits))
        states = event.visits.states
        visits = self._visits[states]
        self._visits[states] = visits + 1
        self._rare[states] = 1 / np.sqrt(visits + 2)
        return len(visits) - int(np.count_nonzero(visits))

    def _way(self, event: Ran, test: _Test) -> Way:
        """How the run failed: the kind, and which word became what; empty if it did not."""
        if event.outcome != "failed":
            return ()
        output = summarise(event.output)  # as it is read again when the campaign is resumed
        return event.reason, *word_errors(test.reference, output)

    def _nearness(self, event: Ran) -> float:
        """While failures are few, a run that passed counts as a part of one if it came as near as few others."""
        if event.distance is None or event.outcome == "failed":
            return 0.0
        counts = self._rareness > 0 and len(self._recent) >= _LEAST
        near = counts and event.distance >= float(np.quantile(self._recent, _NEAREST))
        self._recent = [*self._recent[1 - _RECENT :], event.distance]
        return 0.5 * self._rareness if near else 0.0


def _logarithm(distance: float) -> float:
    """Distances vary by orders of magnitude."""
    return math.log(max(distance, _CLOSEST))


def _scale(numbers: list[float]) -> Scale:
    """The mean of the numbers, and their deviation."""
    return (float(np.mean(numbers)), float(np.std(numbers)) or 1.0) if numbers else (0.0, 1.0)


def _standardised(values: Floats, middle: Any, width: Any) -> Floats:
    """How many deviations each value is from the mean."""
    inside = np.minimum(np.maximum((values - middle) / width, -_FAR), _FAR)  # np.clip takes five times as long
    return np.asarray(inside)
