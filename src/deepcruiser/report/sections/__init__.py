"""The sections of the report, in the order in which every form of it shows them, and the report as text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import version
from typing import Any

from deepcruiser.report.data import ReportData
from deepcruiser.report.section import Data, Section
from deepcruiser.report.sections.comparison import COMPARISON
from deepcruiser.report.sections.coverage import COVERAGE
from deepcruiser.report.sections.failures import FAILURES
from deepcruiser.report.sections.findings import FINDINGS
from deepcruiser.report.sections.learned import LEARNED
from deepcruiser.report.sections.mistakes import MISTAKES
from deepcruiser.report.sections.reproduce import REPRODUCE
from deepcruiser.report.sections.state_space import STATE_SPACE
from deepcruiser.report.sections.summary import SUMMARY
from deepcruiser.report.sections.transformations import TRANSFORMATIONS
from deepcruiser.report.sections.unusual import UNUSUAL

SECTIONS: tuple[Section, ...] = (
    SUMMARY,
    COMPARISON,
    FINDINGS,
    FAILURES,
    MISTAKES,
    COVERAGE,
    STATE_SPACE,
    UNUSUAL,
    TRANSFORMATIONS,
    LEARNED,
    REPRODUCE,
)


def collect(report: ReportData, *, page: bool = False) -> dict[str, Any]:
    """The data of all sections as JSON holds them; for a page, with what only a page shows."""
    data: dict[str, Any] = {
        "made": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": version("deepcruiser"),
        "campaigns": report.facts,
    }
    for section in SECTIONS:
        if make := (section.page_data if page else None) or section.data:
            data[section.name] = make(report)
    return data


def as_text(data: Data) -> str:
    """The report in lines, without colours, for logs."""
    return _joined(list(section.text(data)) for section in SECTIONS if section.shown(data))


def as_markdown(data: Data) -> str:
    """The report as a pull request shows it: tables, and the worst failing tests folded away."""
    return _joined(list(section.markdown(data)) for section in SECTIONS if section.shown(data))


def _joined(parts: Iterable[list[str]]) -> str:
    return "\n\n".join("\n".join(lines).strip("\n") for lines in parts if lines)
