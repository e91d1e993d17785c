"""How far the runs of each campaign left the training region, and the failing tests that went furthest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from deepcruiser.campaign.events import Event, Seeded
from deepcruiser.monitor.scores import outside_share
from deepcruiser.report.data import Fold, ReportData
from deepcruiser.report.format import markdown_table, percent
from deepcruiser.report.salvage import Record
from deepcruiser.report.section import Data, Section, runs_known

#: Number of failing tests that are named.
_NAMED = 10
_KINDS = ("seeds", "passing runs", "failing runs")


class OutsideShares(Fold):
    """The share of the cells of each run that profiling never visited."""

    def __init__(self, record: Record) -> None:
        self._shares: dict[str, list[float]] = {kind: [] for kind in _KINDS}
        self._failing: list[tuple[float, int]] = []
        self._add(record.seeds)
        super().__init__(record)

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.visits is None or not (kind := _kind(event)):
                continue
            share = outside_share(event.visits)
            self._shares[kind].append(share)
            if kind == "failing runs":
                self._failing.append((share, event.number))

    def rows(self) -> list[dict[str, Any]]:
        """A row for seeds, passing and failing runs, of which there are any."""
        return [
            {
                "runs": kind,
                "number": len(shares),
                "median": float(np.median(shares)),
                "tenth": float(np.quantile(shares, 0.9)),
                "most": max(shares),
            }
            for kind, shares in self._shares.items()
            if shares
        ]

    def furthest(self) -> list[dict[str, Any]]:
        """The failing tests that went furthest, the furthest first."""
        ordered = sorted(self._failing, key=lambda pair: (-pair[0], pair[1]))[:_NAMED]
        return [{"number": number, "outside": share} for share, number in ordered if share > 0]


def _kind(event: Event) -> str:
    if isinstance(event, Seeded):
        return "seeds"
    return {"kept": "passing runs", "dropped": "passing runs", "failed": "failing runs"}.get(event.outcome, "")


def _data(report: ReportData) -> list[dict[str, Any]]:
    folds = [campaign.fold(OutsideShares) for campaign in report.campaigns]
    return [{"rows": fold.rows(), "furthest": fold.furthest()} for fold in folds]


def _shown(data: Data) -> bool:
    return runs_known(data) and any(each["rows"] for each in data["unusual"])


def _text(data: Data) -> Iterator[str]:
    for campaign, each in zip(data["campaigns"], data["unusual"], strict=True):
        if each["rows"]:
            name = f"  {campaign['name']}" if len(data["campaigns"]) > 1 else ""
            yield f"{'cells outside':16} {'runs':>8} {'median':>8} {'a tenth':>8} {'most':>8}{name}"
        for row in each["rows"]:
            values = " ".join(f"{row[value]:8.2%}" for value in ("median", "tenth", "most"))
            yield f"  {row['runs']:14} {row['number']:8,} {values}"


def _markdown(data: Data) -> Iterator[str]:
    for each in data["unusual"]:
        rows = [
            [row["runs"], f"{row['number']:,}", *(percent(row[value]) for value in ("median", "tenth", "most"))]
            for row in each["rows"]
        ]
        if rows:
            yield from markdown_table(["cells outside", "runs", "median", "90th percentile", "maximum"], rows)


UNUSUAL = Section("unusual", "Distance from training", _data, text=_text, markdown=_markdown, shown=_shown)
