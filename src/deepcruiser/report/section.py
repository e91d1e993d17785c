"""A section of the report as one object: its data, and every form in which the data are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deepcruiser.report.data import ReportData

#: The data of a whole report as JSON holds them: facts about each campaign, and an entry for each section.
Data = Mapping[str, Any]


def _nothing(data: Data) -> Iterable[str]:
    return ()


def _always(data: Data) -> bool:
    return True


def runs_known(data: Data) -> bool:
    """Whether the runs of any campaign could be read; of a damaged one only failing tests may be left."""
    return any(campaign["state"] != "damaged" for campaign in data["campaigns"])


@dataclass(frozen=True)
class Section:
    """A part of the report. To add one, write a module of this kind and its template, and list it in `SECTIONS`.

    `data` collects what the section shows; it becomes the entry `name` of the report's data, which `--json` prints and
    from which all other forms are made. A section that only shows facts about the campaigns needs none. On the page,
    the section is the template `assets/NAME.html`, and `scripts` draw what a template cannot.
    """

    name: str
    title: str
    data: Callable[[ReportData], Any] | None = None
    #: The same data with everything else that the page needs, such as pictures.
    page_data: Callable[[ReportData], Any] | None = None
    #: Files in `assets/`; the last one calls `registerSection(NAME, ...)`.
    scripts: tuple[str, ...] = ()
    #: Lines for `--text` and `--markdown`.
    text: Callable[[Data], Iterable[str]] = _nothing
    markdown: Callable[[Data], Iterable[str]] = _nothing
    #: Whether there is anything to show, in any form.
    shown: Callable[[Data], bool] = _always
    #: Whether the template changes while a campaign runs, so that a live page renders it again.
    live: bool = True
