"""How coverage grew over the runs of each campaign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepcruiser.report.data import ReportData
from deepcruiser.report.format import markdown_table, percent
from deepcruiser.report.section import Data, Section, runs_known


def _data(report: ReportData) -> list[dict[str, Any]]:
    """For each campaign the criteria, and their values at some moments."""
    return [{"criteria": each.coverage.names, "moments": each.coverage.moments} for each in report.campaigns]


def _text(data: Data) -> Iterator[str]:
    for campaign in data["campaigns"]:
        if campaign["coverage"]:
            name = f"  {campaign['name']}" if len(data["campaigns"]) > 1 else ""
            yield f"{'coverage':14} {'seeds':>8} {'all runs':>8}{name}"
        for each in campaign["coverage"]:
            yield f"  {each['name']:12} {each['start']:8.2%} {each['executed']:8.2%}"


def _markdown(data: Data) -> Iterator[str]:
    """The table, unless the comparison already has it."""
    coverage = data["campaigns"][0]["coverage"]
    if len(data["campaigns"]) == 1 and coverage:
        rows = [[each["name"], percent(each["start"]), percent(each["executed"])] for each in coverage]
        yield from markdown_table(["coverage", "seeds", "all runs"], rows)


COVERAGE = Section(
    "coverage", "Coverage", _data, scripts=("coverage.js",), text=_text, markdown=_markdown, shown=runs_known
)
