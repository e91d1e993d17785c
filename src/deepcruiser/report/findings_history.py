"""Findings over versions as a page."""

from __future__ import annotations

from pathlib import Path

from deepcruiser.files.atomic import atomic_write
from deepcruiser.findings.history import History
from deepcruiser.report.page import ASSETS


def write_history(history: History, path: Path) -> None:
    """Write the page, which works from disk."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined)
    criteria = list(dict.fromkeys(name for version in history.versions for name in version.coverage))
    page = environment.get_template("findings-history.html").render(
        history=history, differences=(None, *history.differences), criteria=criteria
    )
    with atomic_write(path) as file:
        file.write(page.encode(errors="backslashreplace"))
