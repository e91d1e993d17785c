"""What to try next: Select(Q), which the paper leaves to heuristics, and PickTransform(a), which is random there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepcruiser.campaign.drawing import MOST_CHANGES, Drawing
from deepcruiser.campaign.events import Event, Ran
from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.transformations.severity import severity

#: `Rarity` takes the best of this many tests, drawn at random.
_SAMPLE = 8
#: Tests and changes are drawn this often until one is within the budget of severity.
_TRIES = 1000


@dataclass(frozen=True)
class Mutant:
    """A planned mutant: run `number`, made by applying `changes` to the test `parent`.

    `inherited` is the parent's own recipe. A seed is a mutant without changes.
    """

    number: int
    parent: int
    seed: str
    inherited: tuple[Any, ...]
    changes: tuple[Any, ...]

    @classmethod
    def of_seed(cls, position: int, name: str) -> Mutant:
        """A seed to be run, by its place among all seeds."""
        return cls(-1 - position, -1 - position, name, (), ())

    @property
    def recipe(self) -> tuple[Any, ...]:
        """Everything that is applied to the seed, in order."""
        return self.inherited + self.changes


Plan = tuple[Mutant, ...]


class Scheduler(ABC):
    """Plans mutants from the live tests of a queue, and learns from their results."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing

    def allowed(self, recipe: tuple[Any, ...]) -> Sequence[Any]:
        """The kinds of change that may follow a recipe; a test without any is spent."""
        return self._drawing.allowed(recipe)

    @abstractmethod
    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        """The next `size` mutants, numbered from `first`; none when no test is live."""

    def learn(self, event: Event, *, gained: bool) -> None:  # noqa: B027 (most have nothing to learn)
        """Take note of an event; `gained` says whether it covered anything new."""


class Select(ABC):
    """Chooses the test to mutate."""

    @abstractmethod
    def choose(self, queue: Queue, rng: np.random.Generator) -> Test:
        """A live test of the queue."""

    def learn(self, event: Event) -> None:  # noqa: B027
        """Take note of an event."""


class Uniform(Select):
    """Any test, all equally likely."""

    def choose(self, queue: Queue, rng: np.random.Generator) -> Test:
        return queue.live[rng.integers(len(queue.live))]


class Recent(Select):
    """Prefers newer tests: the chance halves with every tenth of the queue, from its end."""

    def choose(self, queue: Queue, rng: np.random.Generator) -> Test:
        halves = rng.exponential(1 / np.log(2))
        return queue.live[-1 - int(halves * max(1, len(queue.live) / 10)) % len(queue.live)]


class Decay(Uniform):
    """Any test, accepted with P = max(0.3, 0.8 - times picked / 5), after DeepHunter, which goes through its queue."""

    def choose(self, queue: Queue, rng: np.random.Generator) -> Test:
        while True:
            test = super().choose(queue, rng)
            if rng.random() < max(0.3, 0.8 - test.picked / 5):
                return test


class Rarity(Uniform):
    """Of a few random tests, the one whose states few runs visited and whose mutants were kept most often."""

    def __init__(self) -> None:
        #: How many runs went through each state of the model.
        self._visits = np.zeros(0, np.int64)

    def choose(self, queue: Queue, rng: np.random.Generator) -> Test:
        sample = [Uniform.choose(self, queue, rng) for _ in range(_SAMPLE)]
        return max(sample, key=self._worth)

    def _worth(self, test: Test) -> float:
        rare = float((1 / (1 + self._visits[test.states])).mean()) if len(test.states) else 0.0
        return rare * (1 + test.kept) / (1 + test.picked)

    def learn(self, event: Event) -> None:
        if event.visits is not None and event.outcome in ("kept", "dropped"):
            if not len(self._visits):
                self._visits = np.zeros(len(event.visits.model.states), np.int64)
            self._visits[event.visits.states] += 1


class Pick(ABC):
    """Chooses the kind of change."""

    @abstractmethod
    def choose(self, kinds: tuple[Any, ...], rng: np.random.Generator) -> Any:
        """One of the kinds that are allowed."""

    def learn(self, kind: str, *, gained: bool) -> None:  # noqa: B027
        """Learn from the result of a change of this kind."""


class UniformPick(Pick):
    """Any kind, all equally likely."""

    def choose(self, kinds: tuple[Any, ...], rng: np.random.Generator) -> Any:
        return kinds[rng.integers(len(kinds))]


class Thompson(Pick):
    """Thompson sampling: draw each kind's rate of success from Beta(1 + successes, 1 + failures), take the best.

    Kinds that brought new coverage are tried more often, and none is given up.
    """

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._gained: Counter[str] = Counter()

    def choose(self, kinds: tuple[Any, ...], rng: np.random.Generator) -> Any:
        gained = np.array([self._gained[kind.__name__] for kind in kinds])
        tried = np.array([self._tried[kind.__name__] for kind in kinds])
        return kinds[int(rng.beta(1 + gained, 1 + tried - gained).argmax())]

    def learn(self, kind: str, *, gained: bool) -> None:
        self._tried[kind] += 1
        self._gained[kind] += gained


class OneChange(Scheduler):
    """Selects a test, picks a kind of change for it, and draws its parameters: one change to each mutant."""

    def __init__(self, select: Select, pick: Pick, drawing: Drawing) -> None:
        super().__init__(drawing)
        self._select, self._pick = select, pick

    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        plan = []
        for number in range(first, first + size if queue.live else first):
            test, change = self._draw(queue, rng)
            plan.append(Mutant(number, test.number, test.seed, test.recipe, (change,)))
            test.picked += 1
        return tuple(plan)

    def _draw(self, queue: Queue, rng: np.random.Generator) -> tuple[Test, Any]:
        """A test and a change for it within the budget of severity."""
        mutations = self._drawing.mutations
        for _ in range(_TRIES):
            test = self._select.choose(queue, rng)
            change = mutations.draw(self._pick.choose(mutations.allowed(test.recipe), rng), rng)
            if severity((*test.recipe, change)) <= self._drawing.budget:
                return test, change
        raise self._drawing.no_room()

    def learn(self, event: Event, *, gained: bool) -> None:
        self._select.learn(event)
        for change in event.changes if isinstance(event, Ran) else ():
            self._pick.learn(type(change).__name__, gained=gained)


class Chains(Scheduler):
    """Adds one to three random changes at once to any test; a baseline for schedulers that learn."""

    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        plan: list[Mutant] = []
        for _ in range(_TRIES):
            if not queue.live or len(plan) == size:
                return tuple(plan)
            tests = [queue.live[place] for place in rng.integers(len(queue.live), size=size - len(plan))]
            count = rng.integers(1, MOST_CHANGES + 1, len(tests))
            applied = [self._drawing.applied(test.recipe) for test in tests]
            candidates = self._drawing.draw(applied, np.array([severity(test.recipe) for test in tests]), count, rng)
            for at in np.flatnonzero(candidates.count).tolist():
                changes = self._drawing.make(candidates, at, rng)
                plan.append(Mutant(first + len(plan), tests[at].number, tests[at].seed, tests[at].recipe, changes))
                tests[at].picked += 1
        raise self._drawing.no_room()


#: How a test is chosen, and how the kind of change, by the names of the spec and of the command line.
SELECT: dict[str, type[Select]] = {"uniform": Uniform, "recent": Recent, "decay": Decay, "rarity": Rarity}
PICK: dict[str, type[Pick]] = {"uniform": UniformPick, "thompson": Thompson}
