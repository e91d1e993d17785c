"""How often each transformation was applied to make a mutant, and with what outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from deepcruiser.campaign.events import Ran
from deepcruiser.report.data import Fold, ReportData
from deepcruiser.report.salvage import Record
from deepcruiser.report.section import Data, Section, runs_known
from deepcruiser.transformations import to_dict

_OUTCOMES = ("kept", "dropped", "failed", "rejected")


class OutcomeCounts(Fold):
    """The outcomes of the mutants by transformation."""

    def __init__(self, record: Record) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._scores: dict[str, list[float]] = {}
        super().__init__(record)

    def _add(self, runs: Sequence[Ran]) -> None:
        for event in runs:
            answered = event.outcome in ("kept", "dropped") or event.reason == "wrong"
            for change in event.changes:
                name = to_dict(change)["name"]
                self._counts.setdefault(name, Counter())[event.outcome] += 1
                if answered:
                    self._scores.setdefault(name, []).append(event.score)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each transformation, the most frequent first."""
        rows = [
            {
                "kind": name,
                "tried": counts.total(),
                **{outcome: counts[outcome] for outcome in _OUTCOMES},
                "mean_score": _mean(self._scores.get(name, [])),
            }
            for name, counts in self._counts.items()
        ]
        return sorted(rows, key=lambda row: -row["tried"])


def _mean(scores: list[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


def _data(report: ReportData) -> list[list[dict[str, Any]]]:
    return [each.fold(OutcomeCounts).rows() for each in report.campaigns]


def _text(data: Data) -> Iterator[str]:
    for campaign, rows in zip(data["campaigns"], data["transformations"], strict=True):
        if rows:
            name = f"  {campaign['name']}" if len(data["campaigns"]) > 1 else ""
            yield f"{'transformation':26} {'tried':>8} {'kept':>8} {'failed':>8} {'rejected':>8}{name}"
        for row in rows:
            yield f"  {row['kind']:24} {row['tried']:8,} {row['kept']:8,} {row['failed']:8,} {row['rejected']:8,}"


TRANSFORMATIONS = Section("transformations", "Transformations", _data, text=_text, shown=runs_known)
