"""Which findings are new, fixed or still failing from one version of a network to the next."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deepcruiser.campaign.events import Event
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.coverage import Coverage
from deepcruiser.findings.cluster import find
from deepcruiser.findings.suite import Suite

#: What two findings of different versions are compared by: the kind of failure, what was expected, what came, and the
#: change. The region of the state space is left out: it is another one in every version.
Symptom = tuple[str, str, str, str]


@dataclass(frozen=True)
class Seen:
    """A finding in one version: the number of its seeds, and the run that found it first."""

    title: str
    seeds: int
    first: int


@dataclass(frozen=True, eq=False)
class Version:
    """A campaign or a suite in a history.

    `failures` and `coverage`, that of all runs that passed under each criterion of the guide, are those after
    `History.runs` runs. A suite has no runs: each of its tests is a failure.
    """

    name: str
    runs: int | None
    findings: Mapping[Symptom, Seen]
    failures: int
    coverage: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Difference:
    """Which findings are new, fixed or still failing, compared with the version before."""

    new: tuple[Seen, ...]
    fixed: tuple[Seen, ...]
    still: tuple[Seen, ...]


@dataclass(frozen=True, eq=False)
class History:
    """Versions in the order given, compared after `runs` runs, which all campaigns among them have."""

    versions: tuple[Version, ...]
    runs: int

    @property
    def differences(self) -> tuple[Difference, ...]:
        """From each version to the next."""
        pairs = zip(self.versions, self.versions[1:], strict=False)
        return tuple(self._difference(before, now) for before, now in pairs)

    def _difference(self, before: Version, now: Version) -> Difference:
        """A longer campaign finds more, so only findings within the same number of runs count as new or fixed."""
        one, other = before.findings, now.findings
        new = [seen for symptom, seen in other.items() if symptom not in one and seen.first <= self.runs]
        fixed = [seen for symptom, seen in one.items() if symptom not in other and seen.first <= self.runs]
        still = [seen for symptom, seen in other.items() if symptom in one]
        return Difference(tuple(new), tuple(fixed), tuple(still))


def history(versions: Iterable[CampaignRecord | Suite]) -> History:
    """Compare campaigns, or the suites made from them, across versions of a network, the oldest first."""
    versions = tuple(versions)
    runs = min((len(each.runs) for each in versions if isinstance(each, CampaignRecord)), default=0)
    return History(tuple(_of_suite(v) if isinstance(v, Suite) else _of_campaign(v, runs) for v in versions), runs)


def open_version(folder: str | os.PathLike[str]) -> CampaignRecord | Suite:
    """The campaign or the suite in a folder."""
    is_suite = Path(folder, "suite.json").is_file()
    return Suite.read(folder) if is_suite else CampaignRecord.open(folder)


def _of_suite(suite: Suite) -> Version:
    findings = {case.symptom: Seen(case.title, 1, 0) for case in suite.cases}
    return Version(os.fspath(suite.folder), None, findings, len(suite.cases), {})


def _of_campaign(record: CampaignRecord, runs: int) -> Version:
    findings: dict[Symptom, Seen] = {}
    for finding in find(record).findings:
        symptom = finding.cause.symptom
        first = min(member.test.number for member in finding.members)
        other = findings.get(symptom)  # in another region
        if other is None:
            findings[symptom] = Seen(finding.title, len(finding.seeds), first)
        else:
            findings[symptom] = Seen(other.title, other.seeds + len(finding.seeds), min(first, other.first))
    failures = sum(run.outcome == "failed" for run in record.runs[:runs])
    return Version(os.fspath(record.folder), len(record.runs), findings, failures, _coverage(record, runs))


def _coverage(record: CampaignRecord, runs: int) -> dict[str, float]:
    if record.model is None:
        return {}
    coverages = [Coverage(record.model, criterion) for criterion in record.spec.build_guide().criteria]
    events: list[Event] = [*record.seeds, *record.runs[:runs]]
    for event in events:
        if event.visits is not None and event.outcome in ("kept", "dropped"):
            for coverage in coverages:
                coverage.add(event.visits)
    return {coverage.criterion.name: coverage.value for coverage in coverages}
