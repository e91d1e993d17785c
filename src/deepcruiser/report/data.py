"""All that a report shows of a campaign, read from its folder alone: no network, no file of the user's is run."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepcruiser.alignment import transcript_pieces
from deepcruiser.campaign.events import Event, Ran
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.criteria import Criterion, criterion
from deepcruiser.errors import InputError
from deepcruiser.report.coverage_history import CoverageHistory
from deepcruiser.report.format import group_of
from deepcruiser.report.inputs import Inputs
from deepcruiser.transformations import to_dict

#: The course of coverage is read at about so many moments at a time.
_MOMENTS = 300


class Gathering:
    """What is known of a campaign; `update` reads what has been added to the folder since."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.inputs = Inputs(self.folder)
        self.record = CampaignRecord.open(self.folder)
        self.failures: list[dict[str, Any]] = []
        self._kinds: dict[str, Counter[str]] = {}
        self._rejected: Counter[str] = Counter()
        self._course: list[dict[str, Any]] = []
        self._guide = _criteria(self.record)
        self._history = None if self.record.model is None else CoverageHistory(self.record.model, self._guide)
        self._start: list[float] = []
        self._read = self._moments = 0
        self._take()

    @property
    def moment(self) -> tuple[int, str]:
        """How many runs are known, and whether it is running, unfinished or finished: what makes a page a new one."""
        return self._read, self.record.state

    def update(self) -> None:
        """Read on."""
        self.record.update()
        self._take()

    def _take(self) -> None:
        """Take note of what the record has read since the last time."""
        moments = self.record.moments[self._moments :]
        step = max(1, len(moments) // _MOMENTS)
        if not self._moments:
            for seed in self.record.seeds:
                self._count(seed)
            self._start = [] if self._history is None else self._history.values()
        for i, (runs, seconds) in enumerate(moments):
            for event in self.record.runs[self._read : runs]:
                self._count(event)
                self._note(event)
            self._read = min(runs, len(self.record.runs))
            if i % step == 0 or i == len(moments) - 1:
                values = [] if self._history is None else [round(value, 6) for value in self._history.values()]
                self._course.append({"runs": runs, "seconds": seconds, "values": values})
        self._moments = len(self.record.moments)
        if len(self._course) > 4 * _MOMENTS:
            self._course = [*self._course[:-1:2], self._course[-1]]

    def _count(self, event: Event) -> None:
        if self._history is not None:
            self._history.add(event)

    def _note(self, event: Ran) -> None:
        for change in event.changes:
            counts = self._kinds.setdefault(to_dict(change)["name"], Counter())
            counts[event.outcome] += 1
            if event.outcome in ("kept", "dropped") or event.reason == "wrong":
                counts["judged"] += 1
                counts["score"] += event.score  # type: ignore[assignment]
        if event.outcome == "rejected":
            self._rejected[group_of(event.reason)] += 1
        elif event.outcome == "failed":
            self.failures.append(self._failure(self.record[event.number]))

    def _failure(self, test: FailedTest) -> dict[str, Any]:
        by_character = self._measure == "CER"
        pieces = (
            transcript_pieces(test.reference, test.output, by_character=by_character) if test.kind == "wrong" else None
        )
        return {
            **test.to_dict(),
            "recipe": [str(step) for step in test.recipe],
            "position": test.position,
            "kinds": [to_dict(step)["name"] for step in test.recipe],
            "pieces": pieces,
        }

    @property
    def _measure(self) -> str:
        """What a score is called: WER, CER, or nothing where any other answer fails."""
        return {"WordErrorRate": "WER", "CharacterErrorRate": "CER"}.get(self.record.spec.oracle.type, "")

    def report(self) -> dict[str, Any]:
        """Everything but the failing tests, as JSON holds it."""
        record, found = self.record, self.failures
        configuration = {**record.spec.to_dict(), **record.identity}
        return {
            "name": "/".join(Path(os.path.abspath(self.folder)).parts[-2:]),
            "folder": os.fspath(self.folder),
            "configuration": configuration,
            "versions": dict(record.versions),
            "stopped": record.stopped,
            "state": record.state,
            "command": self._command(),
            "guide": record.spec.build_guide().name,
            "oracle": _oracle_name(record),
            "measure": self._measure,
            "runs": self._read,
            "seconds": record.seconds,
            "seeds": len(record.seeds),
            "kept": [event.seed for event in record.seeds if event.outcome == "kept"],
            "set_aside": dict(Counter(event.reason for event in record.seeds if event.outcome != "kept")),
            "tests": len(record.tests),
            "model": self._described(),
            "coverage": self._coverage(),
            "course": {"names": [] if self._history is None else self._history.names, "rows": self._course},
            "failing_tests": len(found),
            "failed": dict(Counter(test["kind"] for test in found)),
            "failing_inputs": len({test["sha256"] for test in found}),
            "failing_seeds": len({test["position"] for test in found}),
            "first_failure": min((test["number"] for test in found), default=None),
            "rejected": dict(self._rejected),
            "transformations": [_row(kind, counts) for kind, counts in self._kinds.items()],
        }

    def space(self) -> dict[str, Any] | None:
        """The picture of the state space; None where there is no model."""
        return None if self._history is None else self._history.space()

    def _coverage(self) -> list[dict[str, Any]]:
        if self._history is None:
            return []
        guides = {criterion.name for criterion in self._guide}
        return [
            {
                "name": executed.criterion.name,
                "start": start,
                "queue": queue.value if queue.criterion.name in guides else None,
                "executed": executed.value,
            }
            for executed, queue, start in zip(self._history.executed, self._history.queue, self._start, strict=True)
        ]

    def _described(self) -> dict[str, Any] | None:
        model = self.record.model
        if model is None:
            return {"said": self.record.model_problem} if self.record.model_problem else None
        return {
            "name": model.name,
            "states": len(model.states),
            "transitions": len(model.transitions),
            "choices": len(model.choices),
            "traces": model.origin.traces,
            "steps": model.origin.steps,
            "state_name": model.origin.state_name,
            "size": model.projections.states.size,
            "explained": model.projections.states.explained,
            "fingerprint": model.fingerprint,
        }

    def _command(self) -> dict[str, Any]:
        """What to type to run the campaign; nothing for one that was started in Python."""
        spec = self.record.spec
        return (
            {} if spec.system is None else {"typed": spec.command_line(str(self.folder)), "ingredients": spec.to_dict()}
        )


def _criteria(record: CampaignRecord) -> tuple[Criterion, ...]:
    """The criteria of the guide, as far as they are known by name."""
    criteria = []
    for name in record.spec.guide.parameters.get("criteria", ()):
        with contextlib.suppress(InputError):
            criteria.append(criterion(name))
    return tuple(criteria)


def _oracle_name(record: CampaignRecord) -> str:
    try:
        return record.spec.build_oracle().name
    except InputError:  # the user's own
        return record.spec.oracle.type


def _row(kind: str, counts: Mapping[str, int]) -> dict[str, Any]:
    outcomes = {name: counts.get(name, 0) for name in ("kept", "dropped", "failed", "rejected")}
    judged = counts.get("judged", 0)
    return {
        "kind": kind,
        "tried": sum(outcomes.values()),
        **outcomes,
        "mean_score": counts.get("score", 0) / judged if judged else None,
    }
