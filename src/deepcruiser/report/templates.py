"""The templates, styles and scripts of the pages, and the policy that lets nothing else run in them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from deepcruiser.errors import DeepCruiserError
from deepcruiser.report.format import counted, duration, rate

ASSETS = Path(__file__).parent / "assets"


@cache
def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    try:
        return (ASSETS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise DeepCruiserError(f"the file {name!r} of the package is missing: install deepcruiser again") from error


@cache
def template(name: str) -> Any:
    """A template in `assets/`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=duration,
        rate=rate,
        counted=counted,
        setting=_setting,
        count=lambda value: "–" if value is None else f"{value:,}",
        share=lambda value: (
            "–" if value is None else f"{value:.1%}" if value >= 0.0995 or not value else f"{value:.2%}"
        ),
    )
    return environment.get_template(name)


def _setting(value: Any) -> str:
    """A value of the campaign's spec as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_setting(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value))
    return str(value)


def content_policy(
    scripts: Iterable[str], styles: Iterable[str], *, media: str, images: str = "'none'", connections: str = "'none'"
) -> str:
    """The Content-Security-Policy of a page: only these scripts and styles may run, and nothing else loads."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            f"media-src {media}",
            f"img-src {images}",
            f"connect-src {connections}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
