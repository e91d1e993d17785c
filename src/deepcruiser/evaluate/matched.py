"""A scheduler that repeats the severity and the number of changes of another campaign, and is random in all else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deepcruiser.campaign.drawing import Drawing
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.scheduler import Mutant, Plan, Scheduler

#: Candidates for each mutant; the one whose severity is nearest is taken.
_CANDIDATES = 32


class Matched(Scheduler):
    """Plans mutants of random seeds; mutant i has as many changes as `targets[i - 1]` and nearly its severity."""

    def __init__(self, drawing: Drawing, targets: Sequence[tuple[int, float]]) -> None:
        self._drawing, self._targets = drawing, targets

    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        seeds = [test for test in queue.live if not test.recipe]
        plan = []
        for number in range(first, first + size if seeds else first):
            changes, severity = self._targets[(number - 1) % len(self._targets)]
            seed = seeds[rng.integers(len(seeds))]
            nothing = np.zeros(_CANDIDATES)
            candidates = self._drawing.draw([0] * _CANDIDATES, nothing, np.full(_CANDIDATES, changes), rng)
            off = np.abs(candidates.severity - severity) + 100.0 * np.abs(candidates.count - changes)
            made = self._drawing.make(candidates, int(off.argmin()), rng)
            plan.append(Mutant(number, seed.number, seed.seed, (), made))
            seed.picked += 1
        return tuple(plan)
