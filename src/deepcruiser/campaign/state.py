"""All that evolves in a campaign. It changes by events only, so a stored campaign is its events, applied again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.campaign.scheduler import SELECT, Picker
from deepcruiser.campaign.territory import Territory
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import BSCov, Criterion
from deepcruiser.errors import InputError

Plan = tuple[tuple[int, Any], ...]

#: Without a model nobody knows how many mutants a guide would keep: "random" keeps this share of them.
_KEPT_UNMEASURED = 0.1


@dataclass(frozen=True)
class Guide:
    """What lets a mutant into the queue.

    `keep` is "guided": what increases one of the criteria; "random": any mutant, with the probability that one
    increases them; "none": nothing, so that all mutants are made of seeds. The last two are baselines, and the
    criteria are only measured.
    """

    criteria: tuple[Criterion, ...] = (BSCov,)
    keep: Literal["guided", "random", "none"] = "guided"

    @classmethod
    def of(cls, given: Guide | Criterion | Sequence[Criterion] | str) -> Guide:
        """A guide from a criterion, several, or the word "random" or "none"."""
        if isinstance(given, Guide):
            return given
        if isinstance(given, Criterion):
            return cls((given,))
        if given == "random":
            return cls(keep="random")
        if given == "none":
            return cls(keep="none")
        if isinstance(given, str) or not given or not all(isinstance(each, Criterion) for each in given):
            raise InputError(f"a guide is a criterion, several of them, 'random' or 'none', not {given!r}")
        return cls(tuple(given))

    @property
    def name(self) -> str:
        if not self.criteria:
            return self.keep
        criteria = ", ".join(criterion.name for criterion in self.criteria)
        return criteria if self.keep == "guided" else f"{self.keep} ({criteria} measured)"

    def unmeasured(self) -> Guide:
        """The same guide without a model, which measures nothing."""
        if self.keep == "guided" or self.criteria not in ((), (BSCov,)):
            raise InputError(
                f"the guide {self.name!r} needs a model of the system's states: profile the system and give the model; "
                "or, of a system that shows no states, guide='none' or 'random'"
            )
        return replace(self, criteria=())


class State:
    """The queue, the coverages and the counts of a campaign."""

    def __init__(
        self, model: AbstractModel | None, guide: Guide, mutations: Mutations, *, select: str, pick: str
    ) -> None:
        if select not in SELECT:
            raise InputError(f"tests are selected by {', '.join(SELECT)}, not {select!r}")
        self.model = model
        self.guide = guide if model is not None else guide.unmeasured()
        self.mutations = mutations
        self.select = SELECT[select]
        self.picker = Picker(pick)
        self.territory = Territory(model)
        self.queue = Queue(visits=np.zeros(0 if model is None else len(model.states), np.int64))
        #: What the queue covers, and what everything covers that ran without failing.
        criteria = self.guide.criteria if model is not None else ()
        self.coverages = [Coverage(model, criterion) for criterion in criteria if model is not None]
        self.executed = [Coverage(model, criterion) for criterion in criteria if model is not None]
        self.runs = 0
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        #: Per kind of transformation and outcome.
        self.by_kind: Counter[tuple[str, str]] = Counter()
        self.set_aside: Counter[str] = Counter()
        self.start: list[float] = []
        #: The number of the last run that brought new coverage.
        self.last_new = 0
        self._gained = 0

    def plan(self, rng: np.random.Generator, size: int) -> Plan:
        """The next mutants to make: tests and transformations. Empty when all tests are spent."""
        plan = []
        for _ in range(size if self.queue.live else 0):
            test = self.select(self.queue, rng)
            kind = self.picker.pick(self.mutations.allowed(test.recipe), rng)
            plan.append((test.number, self.mutations.draw(kind, rng)))
            test.picked += 1
        return tuple(plan)

    def keeps(self, visits: Visits | None, rng: np.random.Generator) -> bool:
        """Whether the guide lets a mutant with these visits into the queue."""
        if self.guide.keep == "random" and self.model is None:
            return rng.random() < _KEPT_UNMEASURED
        if self.guide.keep == "guided" and visits is not None:
            return any(coverage.gain(visits) > 0 for coverage in self.coverages)
        if self.guide.keep == "none":
            return False
        passed = self.outcomes["kept"] + self.outcomes["dropped"]
        return rng.random() < (1 + self._gained) / (1 + passed)

    def apply(self, event: Event) -> None:
        """Let an event take effect."""
        if isinstance(event, Seeded):
            self._seeded(event)
        else:
            self._ran(event)

    def apply_again(self, events: Iterable[Event], plan: Plan) -> None:
        """Let stored events take effect, and the plan that was made behind them."""
        for event in events:
            if isinstance(event, Ran):
                self.queue.tests[event.parent].picked += 1
            self.apply(event)
        for number, _ in plan:
            self.queue.tests[number].picked += 1

    def _seeded(self, event: Seeded) -> None:
        if event.outcome != "kept":
            self.set_aside[event.reason] += 1
            return
        test = Test(-1 - event.position, event.seed, (), None, event.reference, event.visited)
        self.queue.add(test, live=bool(self.mutations.allowed(())))
        self.queue.count(event.visited)
        for coverages in (self.coverages, self.executed):
            for coverage, news in zip(coverages, event.news, strict=True):
                coverage.take(news)
        self.start = [coverage.value for coverage in self.coverages]

    def _ran(self, event: Ran) -> None:
        parent, kind = self.queue.tests[event.parent], type(event.transformation).__name__
        self.runs += 1
        self.outcomes[event.outcome] += 1
        self.by_kind[kind, event.outcome] += 1
        if event.reason:
            self.reasons[event.reason] += 1
        gained = any(len(kind) for news in event.executed for kind in news)
        self.picker.learn(kind, kept=gained)
        if event.outcome not in ("kept", "dropped"):
            return
        self._gained += gained
        self.last_new = event.number if gained else self.last_new
        self.queue.count(event.visited)
        for coverage, news in zip(self.executed, event.executed, strict=True):
            coverage.take(news)
        if event.outcome == "kept":
            for coverage, news in zip(self.coverages, event.news, strict=True):
                coverage.take(news)
            recipe = (*parent.recipe, event.transformation)
            test = Test(event.number, parent.seed, recipe, parent.number, parent.reference, event.visited)
            self.queue.add(test, live=bool(self.mutations.allowed(recipe)))
