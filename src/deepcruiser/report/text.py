"""The report as text: for the log of a CI job, and in Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from deepcruiser.report.section import Data
from deepcruiser.report.sections import SECTIONS


def as_text(data: Data) -> str:
    """The report in lines, without colours, for logs."""
    return _joined(list(section.text(data)) for section in SECTIONS if section.shown(data))


def as_markdown(data: Data) -> str:
    """The report as a pull request shows it: tables, and the worst failing tests folded away."""
    return _joined(list(section.markdown(data)) for section in SECTIONS if section.shown(data))


def _joined(parts: Iterable[list[str]]) -> str:
    return "\n\n".join("\n".join(lines).strip("\n") for lines in parts if lines)
