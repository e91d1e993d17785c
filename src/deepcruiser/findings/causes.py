"""Why a test fails: the error, the change that causes it, and whether its states are outside the training region.

The change that matters made a test fail that passed without it. Where several were made at once, it is the one that
suffices alone in most other tests with that error. The first tests decide what most have in common, so that later ones
move none of them to another finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.findings.finding import SEVERAL, Cause, Member
from deepcruiser.findings.kinds import Failure
from deepcruiser.findings.phrases import change_of, kind_of, name_of
from deepcruiser.findings.region import Regions

#: The number of failing tests, the first ones, that decide what most have in common.
_FIRST = 200
#: A word is part of a cause if this many seeds have it: others can hardly be wrong in more than one.
_SEEDS_OF_A_WORD = 3
#: Where training never was is a cause if tests fail there this many times as often as elsewhere...
_TIMES = 2.0
#: ...and if this part of all changes that were tried matters there.
_CHANGES = 0.5


@dataclass(frozen=True, eq=False)
class Causes:
    """Finds the cause of each failing test of a campaign, using the first ones, in their order."""

    record: CampaignRecord
    regions: Regions
    first: Sequence[Member]

    @classmethod
    def of(cls, record: CampaignRecord, regions: Regions, members: Sequence[Member]) -> Causes:
        return cls(record, regions, sorted(members, key=lambda member: member.test.number)[:_FIRST])

    def __call__(self, member: Member) -> Cause:
        """The cause of a failing test."""
        if member.region == "outside" and self._outside_matters:
            return Cause(*member.failure.general.key, "", "outside")
        return Cause(*self._error(member.failure).key, self._change(member), "")

    def _error(self, failure: Failure) -> Failure:
        """The error without the words and labels, except for a word that several seeds have."""
        general, (word, *others) = failure.general, sorted({error.expected for error in failure.words}) or [""]
        common = general.kind == "wrong words" and word in self._common_words and not others
        return Failure(general.kind, word) if common else general

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
    def _common_words(self) -> frozenset[str]:
        references = [seed.reference for seed in self.record.seeds if isinstance(seed.reference, str)]
        counts = Counter(word for reference in references for word in set(reference.split()))
        return frozenset(word for word, count in counts.items() if count >= _SEEDS_OF_A_WORD)

    @cached_property
    def _outside_matters(self) -> bool:
        """Whether tests fail outside the training region, and mostly there, whichever change leads there."""
        outside = [member for member in self.first if member.region == "outside"]
        if not outside:
            return False
        record, last = self.record, self.first[-1].test.number
        runs = [run for run in record.runs if run.number <= last and run.outcome != "rejected"]
        tried = {name_of(change) for run in runs for change in run.changes}
        matter = {self._change(replace(member, shrunk=None)).partition("(")[0] for member in outside} - {SEVERAL}
        if len(matter) < max(2, _CHANGES * len(tried)):
            return False
        regions = Counter(
            (self.regions.of(record.tests[run.parent].position, run.visits), run.outcome == "failed") for run in runs
        )
        (there, elsewhere) = (
            regions[where, True] / max(1, regions[where, True] + regions[where, False])
            for where in ("outside", "inside")
        )
        return there >= _TIMES * elsewhere
