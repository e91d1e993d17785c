"""From the failing tests of a campaign to findings: grouped by cause, the most important first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import InputError
from deepcruiser.findings.causes import Causes
from deepcruiser.findings.finding import Cause, Finding, Member
from deepcruiser.findings.kinds import is_spacing_only
from deepcruiser.findings.phrases import count_of
from deepcruiser.findings.region import new_share
from deepcruiser.findings.shrink import Shrunk, failure_of
from deepcruiser.oracles import Oracle


@dataclass(frozen=True, eq=False)
class Findings:
    """The findings of a campaign, the most important first.

    `apart` are the failing tests that did not fail when they were shrunk. `spacing` is the number of passing runs whose
    answer differs from what was expected in its spaces alone.
    """

    findings: tuple[Finding, ...]
    apart: tuple[tuple[FailedTest, Shrunk], ...]
    spacing: int

    @property
    def failing_tests(self) -> int:
        """The number of failing tests, without those apart."""
        return sum(len(finding.members) for finding in self.findings)

    def __repr__(self) -> str:
        counts = f"{count_of(self.failing_tests, 'failing test')}, {count_of(len(self.findings), 'finding')}"
        return "\n".join([counts, *(f"  {finding!r}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        return "".join(finding._repr_html_() for finding in self.findings[:5])


def find(record: CampaignRecord, shrunk: Mapping[int, Shrunk] | None = None) -> Findings:
    """Group the failing tests of a campaign by cause; `shrunk` has the shrunk tests by their number.

    Once there are 200 failures, further ones do not move earlier ones to another finding: see `Causes`.
    """
    oracle, shrunk = oracle_of(record), shrunk or {}
    seeds, members, apart = {seed.position: seed.visits for seed in record.seeds}, [], []
    for test in record.failed:
        mildest = shrunk.get(test.number)
        if mildest is not None and mildest.status != "shrunk":
            apart.append((test, mildest))
        else:
            new = new_share(seeds.get(test.position), test.visits)
            members.append(Member(test, failure_of(oracle, test), mildest, new))
    causes, groups = Causes.of(record, members), defaultdict[Cause, list[Member]](list)
    for member in members:
        groups[causes(member)].append(member)
    findings = [Finding(cause, tuple(sorted(tests, key=_worst_first))) for cause, tests in groups.items()]
    findings.sort(key=lambda finding: (-finding.rank, finding.id))
    return Findings(tuple(findings), tuple(apart), spacing_only(record))


def oracle_of(record: CampaignRecord) -> Oracle | None:
    """The oracle of a campaign: the one given to the record, or the one that its spec describes."""
    if record.oracle is not None:
        return record.oracle
    try:
        return record.spec.build_oracle()
    except InputError:  # a user's own, which a spec cannot hold
        return None


def _worst_first(member: Member) -> tuple[float, float, int, int]:
    return -member.wrongness, member.severity, len(member.recipe), member.test.number


def spacing_only(record: CampaignRecord) -> int:
    """The number of passing runs in which only the spaces differ."""
    oracle = oracle_of(record)
    if oracle is None or "spacing" not in getattr(oracle, "normalise", ()):
        return 0
    passed = [run for run in record.runs if run.outcome in ("kept", "dropped")]
    return sum(is_spacing_only(oracle, record.tests[run.parent].reference, run.output) for run in passed)
