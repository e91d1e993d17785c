"""Why a test fails: the error, and the change that causes it or the states outside the training region.

The change that matters made a test fail that passed without it. Where several were made at once, it is the one that
suffices alone in most other tests with that error. The first tests decide what most have in common, so that later ones
move none of them to another finding.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.criteria import BoolArray
from deepcruiser.findings.finding import SEVERAL, Cause, Member
from deepcruiser.findings.kinds import Failure
from deepcruiser.findings.phrases import change_of, kind_of
from deepcruiser.findings.region import new_share, usual_share

#: The number of failing tests, the first ones, that decide what most have in common.
_FIRST = 200
#: A word is part of a cause if it alone is wrong in this many seeds after the same change.
_SEEDS_OF_A_WORD = 2
#: States outside the training region are the cause if tests there fail this many times as often as others that were
#: changed in the same way, and this would happen by chance with at most this probability.
_TIMES, _CHANCE = 4.0, 0.01


@dataclass(frozen=True, eq=False)
class Causes:
    """Finds the cause of each failing test of a campaign, using the first ones, in their order."""

    record: CampaignRecord
    first: Sequence[Member]

    @classmethod
    def of(cls, record: CampaignRecord, members: Sequence[Member]) -> Causes:
        return cls(record, sorted(members, key=lambda member: member.test.number)[:_FIRST])

    def __call__(self, member: Member) -> Cause:
        """The cause of a failing test."""
        if self._limit is not None and member.new > self._limit:
            return Cause(*member.failure.general.key, "", "outside")
        error, word, change = member.failure.general, _only_word(member.failure), self._change(member)
        if error.kind == "wrong words" and (word, change) in self._words:
            error = Failure(error.kind, word)
        return Cause(*error.key, change, "")

    def _change(self, member: Member) -> str:
        """The change that causes the failure, or `SEVERAL` if no single change is known to."""
        recipe = member.recipe if member.shrunk is not None else member.recipe[-member.test.added :]
        if len(recipe) == 1:
            return change_of(recipe[0])
        if member.shrunk is not None:
            return SEVERAL
        error, alone = member.failure.general, self._alone
        counts = {change: (alone[error, kind_of(change)], alone[error, change_of(change)]) for change in recipe}
        best = max(recipe, key=counts.__getitem__)
        return change_of(best) if any(counts[best]) else SEVERAL

    @cached_property
    def _alone(self) -> Counter[tuple[Failure, str]]:
        """How often each change suffices alone for each error, with its words and without them."""
        alone = [(member.failure.general, *member.recipe) for member in self.first if len(member.recipe) == 1]
        return Counter((error, name) for error, change in alone for name in {kind_of(change), change_of(change)})

    @cached_property
    def _words(self) -> set[tuple[str, str]]:
        """The words that are wrong alone in several seeds after the same change, with the change."""
        alone = {
            (word, self._change(member), member.test.seed)
            for member in self.first
            if (word := _only_word(member.failure))
        }
        counts = Counter((word, change) for word, change, _ in alone)
        return {pair for pair, count in counts.items() if count >= _SEEDS_OF_A_WORD}

    @cached_property
    def _limit(self) -> float | None:
        """The share of new cells above which the states are the cause of a failure; None if they never are."""
        if not any(member.new for member in self.first):
            return None
        tests, last = self.record.tests, self.first[-1].test.number
        seeds = {seed.position: seed.visits for seed in self.record.seeds}
        runs = [run for run in self.record.runs if run.number <= last and run.outcome != "rejected"]
        failed = np.array([run.outcome == "failed" for run in runs])
        new = np.array([new_share(seeds.get(tests[run.parent].position), run.visits) for run in runs])
        changes = [frozenset(map(change_of, run.changes)) for run in runs]
        usual = usual_share(s.visits for s in self.record.seeds if s.visits is not None and s.outcome == "kept")
        for limit in (0.0, usual):
            times, chance = _compared(new > limit, failed, changes)
            if times >= _TIMES and chance <= _CHANCE:
                return limit
        return None


def _only_word(failure: Failure) -> str:
    """The expected word, if no other is wrong."""
    words = {error.expected for error in failure.words}
    return words.pop() if len(words) == 1 else ""


def _compared(there: BoolArray, failed: BoolArray, kinds: Sequence[Hashable]) -> tuple[float, float]:
    """How many times as often tests fail there as others of their kind, and the probability of that by chance.

    The ratio is that of Mantel and Haenszel, with half a failure added to both sides so that none is 0.
    """
    from scipy.stats import hypergeom

    places = defaultdict[Hashable, list[int]](list)
    for place, kind in enumerate(kinds):
        places[kind].append(place)
    inside = outside = 0.5
    observed, chances = 0, np.ones(1)
    for alike in places.values():
        size, count, failing = len(alike), there[alike].sum(), failed[alike].sum()
        if not failing:
            continue
        found = (there & failed)[alike].sum()
        inside += found * (size - count) / size
        outside += (failing - found) * count / size
        observed += found
        chances = np.convolve(chances, hypergeom.pmf(np.arange(failing + 1), size, count, failing))
    return float(inside / outside), float(chances[observed:].sum())
