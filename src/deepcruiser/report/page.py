"""The report as one page: everything that it needs is inside, and nothing in it asks for more."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deepcruiser.atomic import atomic_write
from deepcruiser.errors import DeepCruiserError
from deepcruiser.report.sections.comparison import compared, mark_new, verdicts
from deepcruiser.report.data import Gathering
from deepcruiser.report.format import clock, counted, rate
from deepcruiser.report.sounds import compressed

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (
    "uplot.min.js",
    "wavesurfer.min.js",
    "elements.js",
    "coverage.js",
    "state_space.js",
    "inputs.js",
    "details.js",
    "failures.js",
)
#: What goes along with whose copies.
LICENCES = {"uplot.min.js": "uplot.LICENSE", "wavesurfer.min.js": "wavesurfer.LICENSE"}
STYLES = ("uplot.min.css", "page.css")
SECTIONS = ("summary", "comparison", "transformations", "reproduce")
#: Failing tests beyond so many bytes are left out of the page.
_ROOM = 2_200_000
#: So many seeds are named.
_SEEDS = 200


def gathered(campaigns: Sequence[Gathering]) -> dict[str, Any]:
    """All of some campaigns, as JSON holds it; the first is compared with the others."""
    found = [[{"campaign": i, **test} for test in each.failures] for i, each in enumerate(campaigns)]
    told = [each.report() for each in campaigns]
    rows: list[dict[str, Any]] = []
    if len(campaigns) > 1:
        mark_new(found)
        rows = compared(told, found)
    worst = sorted(
        (test for some in found for test in some),
        key=lambda test: (-test["score"], len(test["recipe"]), test["number"], test["campaign"]),
    )
    return {
        "made": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": version("deepcruiser"),
        "campaigns": told,
        "compared": rows,
        "verdicts": verdicts(rows, told) if rows else [],
        "failures": worst,
    }


def shown(data: dict[str, Any], campaigns: Sequence[Gathering]) -> dict[str, Any]:
    """What a page holds: the same with the inputs and the pictures, and of many failing tests the worst.

    A failing test whose input was already made by another recipe is marked with `again`.
    """
    failures: list[dict[str, Any]] = []
    room, inputs = _ROOM, set[tuple[int, str]]()
    for test in data["failures"]:
        gathering = campaigns[test["campaign"]]
        replay = replay_command(data["campaigns"][test["campaign"]], test["number"])
        test = {**test, "replay": replay, "input": gathering.inputs.of(test["number"], test["position"])}
        which = test["campaign"], test.pop("sha256")
        test |= {"again": True} if which in inputs else {}
        inputs.add(which)
        room -= len(json.dumps(test))
        if room < 0:
            break
        failures.append(test)
    return {
        **data,
        "campaigns": [_without_lists(told) for told in data["campaigns"]],
        "failures": failures,
        "left_out": len(data["failures"]) - len(failures),
        "spaces": [each.space() for each in campaigns],
    }


def _without_lists(told: Mapping[str, Any]) -> dict[str, Any]:
    """A campaign of which the page needs not every seed."""
    names = told["configuration"].get("seeds") or told["kept"]
    configuration = {key: value for key, value in told["configuration"].items() if key != "seeds"}
    short = {key: value for key, value in told.items() if key != "kept"}
    return {**short, "configuration": configuration, "seed_names": names[:_SEEDS]}


def replay_command(told: Mapping[str, Any], number: int | str = "") -> str:
    """What makes a failing test again; a campaign that was begun in Python does not say what it was made with."""
    more = "" if told["command"] else " --system FILE.py:NAME --data PATH"
    return " ".join(f"deepcruiser replay {shlex.quote(told['folder'])} {number}{more}".split())


def sounds_of(page: dict[str, Any], campaigns: Sequence[Gathering], count: int) -> dict[str, str]:
    """The sounds of the first failing tests as texts, by campaign and file; seeds are there once."""
    sounds: dict[str, str] = {}
    for test in page["failures"][:count]:
        for which in ("seed", "mutant"):
            about = test["input"].get(which, {})
            name = f"{test['campaign']}/{about.get('file')}"
            if about.get("form") == "sound" and name not in sounds:
                data, kind = compressed(campaigns[test["campaign"]].inputs.audio(about["file"]))
                sounds[name] = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return sounds


def write_page(campaigns: Sequence[Gathering], path: str | os.PathLike[str], *, embed: int = 25) -> dict[str, Any]:
    """Write the report; the sounds of the `embed` worst failing tests are inside, the others beside it."""
    target = Path(path)
    data = gathered(campaigns)
    page = shown(data, campaigns)
    sounds = sounds_of(page, campaigns, embed)
    links = [_link(gathering, i, target) for i, gathering in enumerate(campaigns)]
    html = rendered(page, sounds=sounds, links=links)
    with atomic_write(target) as file:
        file.write(html.encode(errors="backslashreplace"))
    _copy_sounds(page, campaigns, target, set(sounds))
    return data


def rendered(page: dict[str, Any], *, sounds: dict[str, str], links: list[str], live: bool = False) -> str:
    """The page as HTML."""
    nonce = secrets.token_urlsafe(16)
    scripts = [_with_licence(name) for name in (*SCRIPTS, "page.js")]
    styles = [_asset(name) for name in STYLES]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, scripts)),
        # The one that is not ours to hash is made by wavesurfer, which takes a nonce.
        "style-src": " ".join([*map(_hash, styles), f"'nonce-{nonce}'"]),
        "media-src": "'self' blob: data: file:",
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    html: str = _template("page.html").render(
        data=as_script({**page, "links": links, "live": live, "nonce": nonce}),
        sounds=as_script(sounds),
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        scripts=scripts,
        styles=styles,
        page=page,
        live=live,
        icon=base64.b64encode(_asset("icon.svg").encode()).decode(),
        **{name: section(name, page) for name in SECTIONS},
    )
    return html


def section(name: str, page: dict[str, Any]) -> str:
    """One of the sections that need no script."""
    html: str = _template(f"{name}.html").render(page=page, told=page["campaigns"][0])
    return html


def as_script(data: Any) -> str:
    """JSON that cannot end the script element it stands in, nor a line of one."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _link(gathering: Gathering, number: int, target: Path) -> str:
    """Where the sounds of a campaign are, as seen from the page."""
    if _is_inside(target, gathering):
        return os.path.relpath(gathering.folder.resolve(), target.resolve().parent).replace(os.sep, "/") + "/"
    return f"{quote(target.stem)}-sounds/{number}/"


def _copy_sounds(page: dict[str, Any], campaigns: Sequence[Gathering], target: Path, inside: set[str]) -> None:
    """Put the sounds that are not in the page beside it, unless it lies in the campaign's folder, as they do."""
    for test in page["failures"]:
        number, gathering = test["campaign"], campaigns[test["campaign"]]
        for about in (test["input"].get("seed", {}), test["input"].get("mutant", {})):
            if about.get("form") != "sound" or f"{number}/{about['file']}" in inside or _is_inside(target, gathering):
                continue
            copy = target.with_name(f"{target.stem}-sounds") / str(number) / about["file"]
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(gathering.folder / about["file"], copy)


def _is_inside(target: Path, gathering: Gathering) -> bool:
    return target.resolve().is_relative_to(gathering.folder.resolve())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _with_licence(name: str) -> str:
    return f"/*\n{_asset(LICENCES[name])}\n*/\n{_asset(name)}" if name in LICENCES else _asset(name)


@cache
def _asset(name: str) -> str:
    try:
        return (ASSETS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise DeepCruiserError(f"the package is not whole, its file {name!r} is missing: install it again") from error


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clock=clock,
        rate=rate,
        replay=replay_command,
        counted=counted,
        count=lambda value: "–" if value is None else f"{value:,}",
        share=lambda value: (
            "–" if value is None else f"{value:.1%}" if value >= 0.0995 or not value else f"{value:.2%}"
        ),
    )
    return environment.get_template(name)
