"""What the scheduler learned to prefer, and the failures by the severity of their recipes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.preferences import Preferences, learns
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.report.data import Fold, ReportData
from deepcruiser.report.salvage import Record
from deepcruiser.report.section import Data, Section
from deepcruiser.transformations.severity import severity

#: Above which severity a bin begins; it includes its upper end.
_BINS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


class Learned(Fold):
    """The preferences, and the runs and failures by severity."""

    def __init__(self, record: Record) -> None:
        self.preferences = Preferences(learns=learns(record.spec.scheduler))
        self._bins = [[0, 0] for _ in _BINS]
        super().__init__(record)

    def _add(self, runs: Sequence[Ran]) -> None:
        for event in runs:
            assert isinstance(self._record, CampaignRecord), "the recovered part has no runs"
            parent = self._record.tests[event.parent]
            self.preferences.take(event, parent.seed, parent.recipe)
            amount = severity((*parent.recipe, *event.changes))
            counts = self._bins[max(0, bisect_left(_BINS, amount - 1e-9) - 1)]
            counts[0] += event.outcome != "rejected"
            counts[1] += event.outcome == "failed"

    def to_dict(self) -> dict[str, Any] | None:
        """What the section shows; None if there are too few runs."""
        if not self.preferences.known:
            return None
        ends = [f"{low:g} to {high:g}" for low, high in pairwise(_BINS)] + [f"above {_BINS[-1]:g}"]
        bins = [
            {"severity": name, "runs": runs, "failed": failed}
            for name, (runs, failed) in zip(ends, self._bins, strict=True)
            if runs
        ]
        return {**self.preferences.to_dict(), "bins": bins}


def _data(report: ReportData) -> list[dict[str, Any] | None]:
    return [each.fold(Learned).to_dict() for each in report.campaigns]


def _shown(data: Data) -> bool:
    return any(data["learned"])


def _text(data: Data) -> Iterator[str]:
    for campaign, learned in zip(data["campaigns"], data["learned"], strict=True):
        if learned:
            name = f"{campaign['name']}: " if len(data["campaigns"]) > 1 else ""
            yield f"{name}{learned['text']}"
            yield f"{'severity':14} {'runs':>8} {'failed':>8}"
            for row in learned["bins"]:
                yield f"  {row['severity']:12} {row['runs']:8,} {row['failed']:8,}"


LEARNED = Section("learned", "What it learned", _data, text=_text, shown=_shown)
