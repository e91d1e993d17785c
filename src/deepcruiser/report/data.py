"""The data of a report, read only from campaign folders: no system is loaded, and no file of the user is run."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from deepcruiser.alignment import Pieces, transcript_pieces
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.failed_test import FailedTest, different_failures, input_text
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.spec import Component
from deepcruiser.criteria import Criterion
from deepcruiser.errors import DeepCruiserError, InputError
from deepcruiser.findings.kinds import label_of
from deepcruiser.report.coverage_history import CoverageHistory, criteria_to_show
from deepcruiser.report.format import group_of
from deepcruiser.report.inputs import Inputs
from deepcruiser.report.salvage import Record, salvage
from deepcruiser.serialise import digest_of
from deepcruiser.transformations import to_dict

#: The names of the scores of oracles; other oracles' scores are not shown.
MEASURES = {"WordErrorRate": "WER", "CharacterErrorRate": "CER"}
#: The oracles that compare with the text or the label of a seed, if it has one.
_OF_TEXTS = (*MEASURES, "Disagreement")


class Fold(ABC):
    """A running total over the runs of a campaign."""

    def __init__(self, record: Record) -> None:
        self._record, self._read = record, 0
        self.update()

    def update(self) -> None:
        """Add the runs that the record has read since."""
        new = self._record.runs[self._read :]
        self._add(new)
        self._read += len(new)

    @abstractmethod
    def _add(self, runs: Sequence[Ran]) -> None:
        """Add some runs."""


F = TypeVar("F", bound=Fold)


class CampaignData:
    """One campaign of a report; `update` reads what was added to its folder since.

    `criteria` are those of the guide that are not built in, of which the folder has only the names.
    """

    def __init__(self, folder: str | os.PathLike[str], *, criteria: Sequence[Criterion] = ()) -> None:
        self.folder = Path(folder)
        self.record = _open(self.folder)
        self.inputs = Inputs(self.folder)
        measured, self._unknown = criteria_to_show(self.record, criteria)
        self.coverage = CoverageHistory(self.record, measured)
        self._folds: dict[type[Any], Any] = {}
        self._failures: dict[int, dict[str, Any]] = {}

    def update(self) -> None:
        """Read on."""
        self.record.update()
        self.coverage.update()
        for fold in self._folds.values():
            fold.update()

    def fold(self, kind: type[F]) -> F:
        """The running total of this kind, made on first use and then kept up to date."""
        if kind not in self._folds:
            self._folds[kind] = kind(self.record)
        total: F = self._folds[kind]
        return total

    @property
    def moment(self) -> tuple[int, str]:
        """The number of runs and the state; a page of another moment is out of date."""
        return len(self.record.runs), self.record.state

    @property
    def name(self) -> str:
        """The last two parts of the folder's path."""
        return "/".join(Path(os.path.abspath(self.folder)).parts[-2:])

    @property
    def measure(self) -> str:
        """What scores are called: WER, CER, or nothing if they are not shown."""
        return MEASURES.get(self.record.spec.oracle.type, "")

    @property
    def command(self) -> str:
        """The command line that starts the campaign; empty if it was started from Python."""
        return self.record.spec.command_line(os.fspath(self.folder)) if self.record.spec.system else ""

    def replay_command(self, number: int | None = None) -> str:
        """The command that replays a failing test, or all of them; empty if the folder alone does not suffice."""
        if self.record.state == "damaged" or not self.record.spec.system:
            return ""
        return shlex.join(["deepcruiser", "replay", os.fspath(self.folder), *([] if number is None else [str(number)])])

    def facts(self) -> dict[str, Any]:
        """What more than one section shows, as JSON."""
        record, failures = self.record, self.record.failed
        return {
            "name": self.name,
            "folder": os.fspath(self.folder),
            "state": record.state,
            "stopped": record.stopped,
            "warnings": self._warnings(),
            "system": record.spec.system or "",
            "system_fingerprint": str(record.identity.get("system") or ""),
            "data": record.spec.data or "",
            "model": self._model_facts(),
            "model_fingerprint": str(record.identity.get("model") or ""),
            "guide": _guide_text(record.spec.guide),
            "oracle": self._oracle_text(),
            "measure": self.measure,
            "runs": len(record.runs),
            "seconds": record.seconds,
            "seeds": len(record.seeds),
            "right": self._right(),
            "set_aside": dict(Counter(event.reason for event in record.seeds if event.outcome != "kept")),
            "coverage": self.coverage.table(),
            "failing_tests": len(failures),
            "failed": dict(Counter(test.kind for test in failures)),
            "failing_inputs": len({test.digest for test in failures}),
            "different_failures": different_failures(failures),
            "failing_seeds": len({test.seed for test in failures}),
            "first_failure": min((test.number for test in failures), default=None),
            "rejected": dict(Counter(group_of(run.reason) for run in record.runs if run.outcome == "rejected")),
        }

    def failures(self) -> list[dict[str, Any]]:
        """The failing tests as JSON."""
        for test in self.record.failed:
            if test.number not in self._failures:
                self._failures[test.number] = self._failure(test)
        return list(self._failures.values())

    def _failure(self, test: FailedTest) -> dict[str, Any]:
        summary = test.to_dict()
        return {
            **summary,
            "recipe": [str(change) for change in test.recipe],
            "text": input_text(self.folder, test.number),
            "position": test.position,
            "kinds": [to_dict(change)["name"] for change in test.recipe],
            "pieces": self._pieces(test),
            "replay": self.replay_command(test.number),
        }

    def _pieces(self, test: FailedTest) -> Pieces | None:
        """The expected and the actual answer, aligned; labels are not, since their words and letters say nothing."""
        labels = not self.measure and label_of(test.reference) and label_of(test.output)
        if test.kind != "wrong" or labels:
            return None
        return transcript_pieces(test.reference, test.output, by_character=self.measure == "CER")

    def _right(self) -> dict[str, int] | None:
        """How many seeds the system gets right before any change; None if it is compared with its own answers."""
        oracle, texts = self.record.spec.oracle, self.record.identity.get("texts of the seeds")
        unknown = digest_of([None] * len(self.record.seeds))
        if oracle.type not in _OF_TEXTS or oracle.parameters.get("against") == "output" or texts in (None, unknown):
            return None
        judged = [event for event in self.record.seeds if event.outcome == "kept" or event.reason == "failed already"]
        return {"right": sum(event.reason == "" for event in judged), "of": len(judged)}

    def _warnings(self) -> list[str]:
        """Warnings about parts of the folder that cannot be shown."""
        record = self.record
        warnings = [record.problem] if record.problem else []
        if record.model_problem:
            warnings.append(f"coverage and the state space are missing: {record.model_problem}")
        return [*warnings, *self._unknown, *self.coverage.warnings]

    def _model_facts(self) -> dict[str, Any] | None:
        model = self.record.model
        if model is None:
            return None
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

    def _oracle_text(self) -> str:
        try:
            return self.record.spec.build_oracle().name
        except InputError:  # an oracle of the user's
            return component_text(self.record.spec.oracle)


def _open(folder: Path) -> Record:
    """The record of a campaign, or what is left of a damaged one."""
    try:
        return CampaignRecord.open(folder)
    except DeepCruiserError as error:
        # Damage has a cause in the database; a folder of another format, or without a campaign, is refused without one.
        salvaged = salvage(folder, error) if error.__cause__ is not None else None
        if salvaged is None:
            raise
        return salvaged


def _guide_text(guide: Component) -> str:
    criteria = ", ".join(guide.parameters.get("criteria", ()))
    if guide.type.startswith("coverage"):
        return f"{criteria} or distance" if guide.type.endswith("distance") else criteria
    return f"{guide.type} ({criteria} measured)" if criteria else guide.type


def component_text(component: Component) -> str:
    """A part of a campaign in a line: `WordErrorRate(above=0.3)`."""
    parameters = ", ".join(f"{name}={value}" for name, value in component.parameters.items())
    return f"{component.type}({parameters})" if parameters else component.type


@dataclass(frozen=True)
class ReportData:
    """One campaign, or several that are judged against the first."""

    campaigns: Sequence[CampaignData]
    facts: list[dict[str, Any]]
    #: The failing tests of all campaigns, the worst first.
    failures: list[dict[str, Any]]

    @classmethod
    def of(cls, campaigns: Sequence[CampaignData]) -> Self:
        """What the campaigns hold at this moment."""
        failures = [[{"campaign": i, **test} for test in each.failures()] for i, each in enumerate(campaigns)]
        if len(campaigns) > 1:
            _mark_new(failures)
        worst = sorted(
            (test for some in failures for test in some),
            key=lambda test: (-test["score"], len(test["recipe"]), test["number"], test["campaign"]),
        )
        facts = [each.facts() for each in campaigns]
        ends = [each.folder.resolve().name for each in campaigns]
        if 1 < len(campaigns) == len(set(ends)):  # short enough for column headings
            facts = [{**each, "name": end} for each, end in zip(facts, ends, strict=True)]
        return cls(campaigns, facts, worst)


def _mark_new(failures: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Set `elsewhere` in each failing test: "both", or "gone" if only the first campaign has it, or "new" if not that.

    Two failing tests are the same if they come from the same seed by the same recipe or with the same answer.
    """
    keys = [{key for test in some for key in _keys(test)} for some in failures]
    for number, some in enumerate(failures):
        others = set[Any]().union(*keys[1:]) if number == 0 else keys[0]
        for test in some:
            known = any(key in others for key in _keys(test))
            test["elsewhere"] = "both" if known else "gone" if number == 0 else "new"


def _keys(test: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    yield "recipe", test["seed"], tuple(test["recipe"])
    if test["kind"] == "crash":  # the rest of the message may hold numbers and addresses
        yield "crash", test["seed"], str(test["output"]).partition(":")[0]
    elif test["kind"] == "wrong" and isinstance(test["output"], str) and " " in test["output"].strip():
        # An answer of one word, such as a label, says too little to tell failures apart.
        yield "answer", test["seed"], " ".join(test["output"].lower().split())
