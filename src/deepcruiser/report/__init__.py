"""Showing a campaign: a screen or lines while it runs, and a report of its folder.

This file imports the page only when a report is made: `import deepcruiser` reads it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcruiser.campaign.record import CampaignRecord
    from deepcruiser.report.page import Page


def report(
    *campaigns: CampaignRecord | str | os.PathLike[str], path: str | os.PathLike[str] | None = None, embed: int = 25
) -> Page:
    """The report of campaigns, given as records or by their folders: shown in a notebook, and written to `path`.

    The page holds the audio of the `embed` worst failing tests.
    """
    import tempfile
    from pathlib import Path

    from deepcruiser.report.data import CampaignData
    from deepcruiser.report.page import Page, write_page

    folders = [Path(getattr(campaign, "folder", campaign)) for campaign in campaigns]  # type: ignore[arg-type]
    data = [CampaignData(folder) for folder in folders]
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(path) if path is not None else Path(temporary) / "report.html"
        write_page(data, target, embed=embed)
        return Page(target.read_text(encoding="utf-8"), None if path is None else target)
