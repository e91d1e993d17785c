"""The report as one HTML page that needs no server and no other file but long audio next to it."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deepcruiser.files.atomic import atomic_write
from deepcruiser.findings.history import History
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.inputs import compressed
from deepcruiser.report.section import Section
from deepcruiser.report.sections import SECTIONS, collect
from deepcruiser.report.templates import asset, content_policy, template

#: The scripts that all sections use; `page.js` comes last and starts them.
SHARED_SCRIPTS = ("uplot.min.js", "elements.js")
STYLES = ("uplot.min.css", "page.css")
#: The licences that go along with vendored files.
LICENCES = {"uplot.min.js": "uplot.LICENSE"}


@dataclass(frozen=True)
class Page:
    """A report that a notebook shows; `html` is the page."""

    html: str
    path: Path | None

    def __repr__(self) -> str:
        return f"Report of {len(self.html) / 1e6:.1f} MB" + ("" if self.path is None else f" in {self.path}")

    def _repr_html_(self) -> str:
        # In its own frame, which keeps the page's rules about what may run and load.
        style = "width:100%;height:800px;border:1px solid #8884"
        return f"<iframe sandbox='allow-scripts allow-downloads' style='{style}' srcdoc='{escape(self.html)}'></iframe>"


def write_page(campaigns: Sequence[CampaignData], path: str | os.PathLike[str], *, embed: int = 25) -> None:
    """Write the report; the page holds the audio of the `embed` worst failing tests and links the rest."""
    target = Path(path)
    page = collect(ReportData.of(campaigns), page=True)
    audio = _embedded(page, campaigns, embed)
    links = [_link(campaign, i, target) for i, campaign in enumerate(campaigns)]
    html = render(page, audio=audio, links=links)
    with atomic_write(target) as file:
        file.write(html.encode(errors="backslashreplace"))
    _copy_audio(page, campaigns, target, set(audio))


def render(page: Mapping[str, Any], *, audio: Mapping[str, str], links: Sequence[str], live: bool = False) -> str:
    """The page as HTML."""
    sections = [section for section in SECTIONS if section.shown(page)]
    names = [*SHARED_SCRIPTS, *(script for section in sections for script in section.scripts), "page.js"]
    scripts = [_with_licence(name) for name in names]
    styles = [asset(name) for name in STYLES]
    policy = content_policy(
        scripts, styles, media="'self' blob: data: file:", images="data:", connections="'self'" if live else "'none'"
    )
    html: str = template("page.html").render(
        data=as_script({**page, "links": links, "live": live}),
        audio=as_script(audio),
        policy=policy,
        scripts=scripts,
        styles=styles,
        page=page,
        live=live,
        icon=base64.b64encode(asset("icon.svg").encode()).decode(),
        sections=[(section, render_section(section, page, live=live)) for section in sections],
    )
    return html


def render_section(section: Section, page: Mapping[str, Any], *, live: bool = False) -> str:
    """The HTML of one section."""
    html: str = template(f"{section.name}.html").render(section=section, page=page, live=live)
    return html


def render_waiting(folder: str | os.PathLike[str]) -> str:
    """The live page until the seeds have run."""
    html: str = template("waiting.html").render(style=asset("page.css"), folder=os.fspath(folder))
    return html


def as_script(data: Any) -> str:
    """JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _embedded(page: Mapping[str, Any], campaigns: Sequence[CampaignData], count: int) -> dict[str, str]:
    """The audio of the first failing tests and of the first findings' worst as data URLs, by campaign and file."""
    audio: dict[str, str] = {}
    worst = {(each["campaign"], each["tests"][0]) for each in page["findings"][:count]}
    for place, test in enumerate(page["failures"]):
        if place >= count and (test["campaign"], test["number"]) not in worst:
            continue
        for file in _recordings(test):
            name = f"{test['campaign']}/{file}"
            if name not in audio:
                data, kind = compressed(campaigns[test["campaign"]].inputs.audio(file))
                audio[name] = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return audio


def _recordings(test: Mapping[str, Any]) -> list[str]:
    """The files of a failing test's seed and of itself, as far as they are audio."""
    inputs = (test["input"].get("seed", {}), test["input"].get("mutant", {}))
    return [each["file"] for each in inputs if each.get("form") == "sound"]


def _link(campaign: CampaignData, number: int, target: Path) -> str:
    """Where the audio of a campaign is, as seen from the page."""
    if _is_inside(target, campaign):
        return os.path.relpath(campaign.folder.resolve(), target.resolve().parent).replace(os.sep, "/") + "/"
    return f"{quote(target.stem)}-sounds/{number}/"


def _copy_audio(
    page: Mapping[str, Any], campaigns: Sequence[CampaignData], target: Path, embedded: Collection[str]
) -> None:
    """Copy the audio that is not in the page to a folder next to it, unless it already lies below the page."""
    for test in page["failures"]:
        number, campaign = test["campaign"], campaigns[test["campaign"]]
        for file in () if _is_inside(target, campaign) else _recordings(test):
            copy = target.with_name(f"{target.stem}-sounds") / str(number) / file
            if f"{number}/{file}" not in embedded and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(campaign.folder / file, copy)


def _is_inside(target: Path, campaign: CampaignData) -> bool:
    return target.resolve().is_relative_to(campaign.folder.resolve())


def _with_licence(name: str) -> str:
    return f"/*\n{asset(LICENCES[name])}\n*/\n{asset(name)}" if name in LICENCES else asset(name)


def write_history(history: History, path: Path) -> None:
    """Write the page of findings over versions, which works from disk."""
    criteria = list(dict.fromkeys(name for version in history.versions for name in version.coverage))
    page = template("findings-history.html").render(
        history=history, differences=(None, *history.differences), criteria=criteria
    )
    with atomic_write(path) as file:
        file.write(page.encode(errors="backslashreplace"))
