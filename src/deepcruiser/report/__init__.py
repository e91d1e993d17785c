"""Showing a campaign: a screen or lines while it runs, and a report of its folder.

This file imports the page only when a report is made: `import deepcruiser` reads it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcruiser.campaign.record import CampaignRecord


@dataclass(frozen=True)
class Page:
    """A report that a notebook shows; `html` is the page."""

    html: str
    path: Path | None

    def __repr__(self) -> str:
        return f"Report of {len(self.html) / 1e6:.1f} MB" + ("" if self.path is None else f" in {self.path}")

    def _repr_html_(self) -> str:
        # In a frame of its own, which keeps the page's rules about what may run and load.
        style = "width:100%;height:800px;border:1px solid #8884"
        return f"<iframe sandbox='allow-scripts allow-downloads' style='{style}' srcdoc='{escape(self.html)}'></iframe>"


def report(
    *campaigns: CampaignRecord | str | os.PathLike[str], path: str | os.PathLike[str] | None = None, embed: int = 25
) -> Page:
    """The report of campaigns, given as records or by their folders: shown in a notebook, and written to `path`.

    The page holds the audio of the `embed` worst failing tests.
    """
    from deepcruiser.report.data import CampaignData
    from deepcruiser.report.page import write_page

    folders = [Path(getattr(campaign, "folder", campaign)) for campaign in campaigns]  # type: ignore[arg-type]
    data = [CampaignData(folder) for folder in folders]
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(path) if path is not None else Path(temporary) / "report.html"
        write_page(data, target, embed=embed)
        return Page(target.read_text(encoding="utf-8"), None if path is None else target)
