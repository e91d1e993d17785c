"""The findings: failing tests with one cause together, the most important first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import FileError, printable
from deepcruiser.findings.cluster import find
from deepcruiser.findings.finding import Finding
from deepcruiser.findings.phrases import count_of
from deepcruiser.findings.results import read_shrunk
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.format import markdown_table
from deepcruiser.report.section import Data, Section

#: Findings listed as text, and on the page.
_LISTED, _ON_PAGE = 10, 200


def _data(report: ReportData, most: int | None = None) -> list[dict[str, Any]]:
    """Those of the first campaign come last if others are judged against it."""
    numbers = [*range(1, len(report.campaigns)), 0]
    return [finding for number in numbers for finding in _of(number, report.campaigns[number])[:most]]


def _page_data(report: ReportData) -> list[dict[str, Any]]:
    return _data(report, _ON_PAGE)


def _of(number: int, campaign: CampaignData) -> list[dict[str, Any]]:
    """The findings of a campaign; a damaged one has none, since grouping needs its runs."""
    record = campaign.record
    if not isinstance(record, CampaignRecord):
        return []
    try:
        shrunk = read_shrunk(record, system=str(record.identity.get("system") or ""))
    except FileError:  # `deepcruiser findings` says so, and shrinks again
        shrunk = {}
    return [{"campaign": number, **_finding(finding)} for finding in find(record, shrunk).findings]


def _finding(finding: Finding) -> dict[str, Any]:
    shrunk = finding.worst.shrunk
    return {
        "id": finding.id,
        "title": finding.title,
        "explanation": finding.explanation,
        "mildest": finding.mildest,
        "rank": finding.rank,
        "seeds": len(finding.seeds),
        "tests": [member.test.number for member in finding.members],
        "shrunk": None if shrunk is None else [str(change) for change in shrunk.recipe],
        "counts": finding.counts(),
    }


def _text(data: Data) -> Iterator[str]:
    rows = data["findings"]
    if rows:
        yield f"{count_of(len(rows), 'finding')}, the most important first:"
    for each in rows[:_LISTED]:
        yield f"  {printable(each['title'])}  [{each['id']}]"
        tests = count_of(len(each["tests"]), "failing test")
        yield f"      {tests}, such as {each['tests'][0]}; severity {each['mildest']:.2g}"
    if (rest := len(rows) - _LISTED) > 0:
        yield f"  and {rest:,} more: deepcruiser findings {printable(data['campaigns'][0]['folder'])}"


def _markdown(data: Data) -> Iterator[str]:
    if data["findings"]:
        rows = [
            [each["title"], f"{len(each['tests']):,}", f"{each['mildest']:.2g}", str(each["tests"][0])]
            for each in data["findings"][:_LISTED]
        ]
        yield from markdown_table(["finding", "failing tests", "severity", "worst"], rows)


FINDINGS = Section(
    "findings",
    "Findings",
    _data,
    page_data=_page_data,
    scripts=("findings.js",),
    text=_text,
    markdown=_markdown,
    shown=lambda data: bool(data["findings"]),
)
