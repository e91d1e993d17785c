"""The campaigns of all arms, and comparisons between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.evaluate.campaigns import Arm, Budget, Task, arms, panel, run_campaign
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.mutants import choose_seeds, is_right
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.statistics import Median, RankTest, mann_whitney, median

#: A campaign as read from its file, and a figure of it.
Campaign = Mapping[str, Any]
Measure = Callable[[Campaign], float]


@dataclass(frozen=True, eq=False)
class Campaigns:
    """The results of the campaigns of each arm."""

    experiment: Experiment
    base: int
    seeds: int
    budget: Budget
    by_arm: Mapping[Arm, Sequence[Campaign]]

    @property
    def count(self) -> int:
        return len(next(iter(self.by_arm.values())))

    @property
    def seconds(self) -> float:
        """The time of the runs; runs that several campaigns share count once."""
        batches = [campaign["seconds"] for several in self.by_arm.values() for campaign in several]
        return float(sum({name: seconds for each in batches for name, seconds in each.items()}.values()))

    @property
    def total_runs(self) -> int:
        return sum(len(campaign["ran"]) for several in self.by_arm.values() for campaign in several)

    def place(self, criterion: str, partitions: int) -> int:
        """The position of a criterion on a grid in the list of measured coverages."""
        model = self.experiment.models[partitions]
        names = [(str(each), of.name) for each, of in panel(self.experiment, self.base)]
        return names.index((criterion, model.name))

    def values(self, arm: Arm, measure: Measure) -> list[float]:
        return [measure(campaign) for campaign in self.by_arm[arm]]

    def median(self, arm: Arm, measure: Measure) -> Median:
        return median(self.values(arm, measure))

    def against(self, arm: Arm, other: Arm, measure: Measure) -> RankTest:
        return mann_whitney(self.values(arm, measure), self.values(other, measure))

    def each(
        self, arms: Iterable[tuple[Arm, Mapping[str, Any]]], measures: Mapping[str, Measure]
    ) -> Iterator[dict[str, Any]]:
        """A row for each campaign: what names its arm, its number, and its measures."""
        for arm, names in arms:
            for number, campaign in enumerate(self.by_arm[arm]):
                yield {**names, "campaign": number, **{name: measure(campaign) for name, measure in measures.items()}}

    def random(self, partitions: int) -> Arm:
        return Arm("BSCov", partitions, "random")

    @property
    def none(self) -> Arm:
        return Arm("BSCov", self.base, "none")

    @property
    def how(self) -> str:
        """A note on what is compared and what the figures in the tables mean."""
        some = next(iter(self.by_arm))
        confidence = self.median(some, lambda campaign: float(len(campaign["ran"]))).confidence
        return (
            f"Each line is the result of {self.count} campaigns of {self.budget}, which differ in their random seed. "
            f"All use the same {self.seeds:,} seeds, which the system answers without an error. In brackets: the "
            f"{confidence:.1%} confidence interval of the median. p: two-sided exact rank test of Mann and Whitney, "
            "not corrected for the number of comparisons. A: the chance that a campaign of the first kind exceeds one "
            "of the other; 0.5 means no difference."
        )


def at(campaign: Campaign, *, place: int, what: str, step: int = -1) -> float:
    """A coverage of a campaign, by default at its end."""
    return float(campaign["history"][step][what][place])


def distinct(
    campaign: Campaign, *, runs: int | None = None, above: float = -math.inf, least: float = 0.0, most: float = math.inf
) -> float:
    """Failures that differ in their seed or their errors: of the first runs, with such a score and severity."""
    failed = (
        (run["seed"], run["reason"], *run["errors"])
        for run in campaign["ran"][:runs]
        if run["outcome"] == "failed" and run["score"] > above and least <= run["severity"] < most
    )
    return float(len(set(failed)))


def failing_seeds(campaign: Campaign, *, runs: int | None = None) -> float:
    """Seeds with a failure among the first runs."""
    return float(len({run["seed"] for run in campaign["ran"][:runs] if run["outcome"] == "failed"}))


def rejected(campaign: Campaign) -> float:
    """The share of the mutants that the validity gate rejected."""
    return float(np.mean([run["outcome"] == "rejected" for run in campaign["ran"]]))


def compare(
    pool: Pool, *, seeds: int, budget: Budget, campaigns: int, base: int, every: Sequence[Arm] = ()
) -> Campaigns:
    """Run all campaigns, by default those of RQ3; read those that have run before."""
    experiment = pool.experiment
    if campaigns < 1:
        raise InputError(f"--campaigns must be at least 1, not {campaigns}")
    if base not in experiment.partitions:
        raise InputError(f"--base {base} must be one of the partitions, {', '.join(map(str, experiment.partitions))}")
    right = choose_seeds(pool, seeds, accept=is_right, what="answered without an error")
    names = tuple(record.seed for record in right)
    every = every or arms(experiment.partitions, base)
    experiment.cache.gather(right)
    tasks, results = [], []
    for matched in (False, True):  # arms that follow others come last
        # Campaigns with the same number start with the same runs, so they come one after the other and share them.
        some = [arm for arm in every if (arm.matched is not None) == matched]
        units = [Task(arm, number, budget, base, names) for number in range(campaigns) for arm in some]
        inputs = (budget.runs or 0) * len(units)
        results += pool.do(run_campaign, units, stage="running campaigns", inputs=inputs) if units else []
        tasks += units
    by_arm = {arm: [done for task, done in zip(tasks, results, strict=True) if task.arm == arm] for arm in every}
    return Campaigns(experiment, base, seeds, budget, by_arm)
