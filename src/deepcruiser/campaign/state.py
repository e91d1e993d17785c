"""The changing state of a campaign. Only events change it, so a stored campaign is restored by applying them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.scheduler import Plan, Scheduler
from deepcruiser.coverage import Coverage

#: Without a model, nobody knows how many mutants a guide would keep; "random" then keeps this share.
_KEPT_UNMEASURED = 0.1


class State:
    """The queue, the coverages and the counts of a campaign."""

    def __init__(self, model: AbstractModel | None, guide: Guide, mutations: Mutations, scheduler: Scheduler) -> None:
        self.model = model
        self.guide = guide if model is not None else guide.without_model()
        self.mutations = mutations
        self.scheduler = scheduler
        self.queue = Queue(scheduler.allowed)
        criteria = self.guide.criteria if model is not None else ()
        #: The coverage of the queue, and that of all runs that did not fail.
        self.coverages = [Coverage(model, criterion) for criterion in criteria if model is not None]
        self.executed = [Coverage(model, criterion) for criterion in criteria if model is not None]
        self.runs = 0
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        #: By kind of change and outcome.
        self.by_kind: Counter[tuple[str, str]] = Counter()
        self.set_aside: Counter[str] = Counter()
        #: The coverage of the seeds.
        self.start: list[float] = []
        #: The number of the last run that brought new coverage.
        self.last_new = 0
        self._gained = 0
        self._planned = 0

    def plan(self, rng: np.random.Generator, size: int) -> Plan:
        """The next mutants to make; none when every test is spent."""
        plan = self.scheduler.plan(self.queue, self._planned + 1, size, rng)
        self._planned += len(plan)
        return plan

    def keeps(self, visits: Visits | None, rng: np.random.Generator, *, nearer: bool = False) -> bool:
        """Whether the guide lets a mutant with these visits into the queue: CoverageIncrease(cov, Q).

        `nearer` says whether it is nearer to failing than its parent.
        """
        if self.guide.keep == "random" and self.model is None:
            return rng.random() < _KEPT_UNMEASURED
        if self.guide.keep == "coverage+distance" and nearer:
            return True
        if self.guide.needs_model and visits is not None:
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

    def resume(self, events: Iterable[Event], pending: Iterable[Plan]) -> None:
        """Let stored events take effect, and the plans that were made and not yet run."""
        for event in events:
            if isinstance(event, Ran):
                self.queue.parent(event).picked += 1
            self.apply(event)
        self._planned = self.runs
        for plan in pending:
            self._planned += len(plan)
            for mutant in plan:
                self.queue.tests[mutant.parent].picked += 1

    def _seeded(self, event: Seeded) -> None:
        if event.outcome != "kept":
            self.set_aside[event.reason] += 1
            return
        self.queue.take(event)
        if event.visits is not None:
            for coverage in (*self.coverages, *self.executed):
                coverage.add(event.visits)
        self.scheduler.learn(event, gained=False)
        self.start = [coverage.value for coverage in self.coverages]

    def _ran(self, event: Ran) -> None:
        self.runs += 1
        self.outcomes[event.outcome] += 1
        for change in event.changes:
            self.by_kind[type(change).__name__, event.outcome] += 1
        if event.reason:
            self.reasons[event.reason] += 1
        passed = event.outcome in ("kept", "dropped")
        gained = False
        if passed and event.visits is not None:
            gained = sum(coverage.add(event.visits) for coverage in self.executed) > 0
        self.scheduler.learn(event, gained=gained)
        self._gained += gained
        self.last_new = event.number if gained else self.last_new
        self.queue.take(event)
        if event.outcome == "kept" and event.visits is not None:
            for coverage in self.coverages:
                coverage.add(event.visits)
