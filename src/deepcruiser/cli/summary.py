"""The progress and the results of a campaign, for machines and for people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from deepcruiser.campaign.events import Event, Seeded
from deepcruiser.campaign.failed_test import FailedTest, different_failures
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.preferences import Preferences, learns
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.criteria import Criterion
from deepcruiser.findings.phrases import count_of
from deepcruiser.report.format import counted, duration, failure_details, failure_text, group_of, rate
from deepcruiser.serialise import summarise
from deepcruiser.transformations import to_dict
from deepcruiser.transformations.severity import severity

#: The number of failing tests to show.
WORST = 3
#: A campaign of this many runs without a failing test should change something.
_MANY_RUNS = 200


def summary(record: CampaignRecord) -> dict[str, Any]:
    """All figures of a campaign, as JSON."""
    guide, failed = record.spec.build_guide(), record.failed
    rejected = [event.reason for event in record.runs if event.outcome == "rejected"]
    return {
        "folder": os.fspath(record.folder),
        "stopped": record.stopped,
        "runs": len(record.runs),
        "seconds": record.seconds,
        "guide": guide.name,
        "coverage": {criterion.name: _coverage(record, criterion) for criterion in guide.criteria if record.model},
        "failing_tests": len(failed),
        "failed": dict(Counter(test.kind for test in failed)),
        "failing_inputs": len({test.digest for test in failed}),
        "different_failures": different_failures(failed),
        "failing_seeds": len({test.seed for test in failed}),
        "first_failure": min((test.number for test in failed), default=None),
        "worst": [failure_dict(test) for test in worst(failed)],
        "rejected": dict(Counter(map(group_of, rejected))),
        "severity_budget": record.spec.severity,
        "severity": _severity(record),
        "learned": preferences(record),
        "seeds": len(record.seeds),
        "set_aside": dict(Counter(event.reason for event in record.seeds if event.outcome != "kept")),
    }


def _severity(record: CampaignRecord) -> float:
    """The mean severity of the mutants."""
    amounts = [severity((*record.tests[event.parent].recipe, *event.changes)) for event in record.runs]
    return sum(amounts) / max(1, len(amounts))


def preferences(record: CampaignRecord) -> dict[str, Any] | None:
    """The preferences of the campaign; None if there are too few runs."""
    result = Preferences(learns=learns(record.spec.scheduler))
    for event in record.runs:
        parent = record.tests[event.parent]
        result.take(event, parent.seed, parent.recipe)
    return result.to_dict() if result.known else None


def _coverage(record: CampaignRecord, criterion: Criterion) -> dict[str, float]:
    model, start = record.model, [seed.visits for seed in record.seeds if seed.visits is not None]
    assert model is not None
    return {
        "start": criterion.of(model, start),
        "queue": record.coverage(criterion, queue=True).value,
        "executed": record.coverage(criterion).value,
    }


def worst(failed: Sequence[FailedTest], count: int = WORST) -> list[FailedTest]:
    """The tests to look at first: by score, then by length of recipe; from different seeds as far as possible."""
    ordered = sorted(failed, key=lambda test: (-test.score, len(test.recipe), test.number))
    chosen: list[FailedTest] = []
    for other_seed in (True, False):
        for test in ordered:
            known = {test.seed for test in chosen} if other_seed else {test.digest for test in chosen}
            if len(chosen) < count and (test.seed if other_seed else test.digest) not in known:
                chosen.append(test)
    return chosen


def failure_dict(test: FailedTest) -> dict[str, Any]:
    """A failing test as JSON, with its recipe to read, and its input if that is a text."""
    return {**test.to_dict(), "recipe": [str(step) for step in test.recipe], "text": test.text}


def as_text(figures: dict[str, Any]) -> str:
    """The figures of a campaign as text."""
    lines = [
        f"{figures['runs']:,} runs in {duration(figures['seconds'])} ({rate(figures['runs'], figures['seconds'])}), "
        f"guide: {figures['guide']}; stopped: {figures['stopped']}"
    ]
    if figures["coverage"]:
        lines.append(f"{'coverage':14} {'start':>8} {'queue':>8} {'all runs':>8}")
    for name, values in figures["coverage"].items():
        lines.append(f"  {name:12} {values['start']:8.2%} {values['queue']:8.2%} {values['executed']:8.2%}")
    if figures["set_aside"]:
        lines.append(f"seeds set aside: {counted(figures['set_aside'])}, of {figures['seeds']:,}")
    if figures["rejected"]:
        lines.append(f"mutants rejected: {counted(figures['rejected'])}")
    if figures["learned"]:
        lines.append(figures["learned"]["text"])
    if not figures["failing_tests"]:
        return "\n".join([*lines, _without_failures(figures)])
    lines.append(
        f"failing tests: {counted(figures['failed'])}; {count_of(figures['failing_inputs'], 'different input')}, from "
        f"{count_of(figures['failing_seeds'], 'seed')}; the first in run {figures['first_failure']:,}. The worst:"
    )
    for test in figures["worst"]:
        lines += [f"  {line}" for line in failure_lines(test)]
    lines.append(f"all of them are in {os.path.join(figures['folder'], 'failed')}")
    return "\n".join(lines)


def _without_failures(figures: dict[str, Any]) -> str:
    """The line for a campaign without failures; after many runs, with advice."""
    if figures["runs"] < _MANY_RUNS:
        return "no failing tests"
    return (
        f"no failing tests in {figures['runs']:,} runs: change the inputs more "
        f"(--severity is {figures['severity_budget']}), or use a stricter oracle"
    )


def failure_lines(test: dict[str, Any]) -> list[str]:
    """A failing test in a few lines: how it failed, and how it was made."""
    one_label = test["score"] == 1.0 and " " not in str(test["reference"])  # it is right or wrong, without degrees
    score = None if one_label else test["score"]
    summary = failure_text(test["kind"], test["reference"], test["output"], score=score)
    return [f"{test['number']}: {summary}", *(f"    {line}" for line in failure_details(test))]


def status_dict(status: Status) -> dict[str, Any]:
    """The latest events and counts, as JSON."""
    state = status.state
    names = [criterion.name for criterion in state.guide.criteria]
    return {
        "type": "batch" if state.runs else "seeds",
        "runs": state.runs,
        "seconds": round(status.seconds, 3),
        "queue": len(state.queue),
        "live": len(state.queue.live),
        "failed": state.outcomes["failed"],
        "rejected": state.outcomes["rejected"],
        "coverage": {name: coverage.value for name, coverage in zip(names, state.coverages, strict=True)},
        "executed": {name: coverage.value for name, coverage in zip(names, state.executed, strict=True)},
        "events": [_event_dict(event) for event in status.events],
    }


def _event_dict(event: Event) -> dict[str, Any]:
    what: dict[str, Any]
    if isinstance(event, Seeded):
        what = {"seed": event.seed, "reference": summarise(event.reference)}
    else:
        what = {"number": event.number, "parent": event.parent, "changes": [to_dict(c) for c in event.changes]}
    return {
        **what,
        "outcome": event.outcome,
        "reason": event.reason,
        "output": summarise(event.output),
        "score": event.score,
        "doubt": event.doubt,
        "sha256": event.digest,
    }
