"""What results look like in a notebook: cards of HTML, players for sounds, and plots where matplotlib is installed."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

from deepcruiser.errors import InputError

_CARD = "border:1px solid #8884;border-radius:6px;padding:8px 12px;margin:4px 0;max-width:60em"
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top;white-space:pre-wrap"


class Html(str):
    """Finished HTML, which is not escaped again."""


def card(title: str, rows: Iterable[Sequence[Any]] = (), *, below: str = "") -> Html:
    """A title, a table, and HTML below it. Everything but `Html` is escaped."""
    table = "".join(f"<tr>{''.join(f'<td style={_CELL!r}>{_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table>{table}</table>" if table else ""
    return Html(f"<div style={_CARD!r}><b style='white-space:pre-wrap'>{_html(title)}</b>{table}{below}</div>")


def bar(share: float) -> Html:
    """A share as a bar."""
    width = 100 * min(1.0, max(0.0, share))
    inside = f"<div style='background:#0072b2;height:8px;width:{width:.1f}%'></div>"
    return Html(f"<div style='background:#8883;width:12em;margin-top:5px'>{inside}</div>")


def player(wav: bytes) -> Html:
    """A player for a sound."""
    return Html(f"<audio controls preload='none' src='data:audio/wav;base64,{base64.b64encode(wav).decode()}'></audio>")


def text(value: str) -> Html:
    """A text below a card; empty if the text is empty."""
    return Html(f"<div style='white-space:pre-wrap'>{escape(value)}</div>" if value else "")


def _html(value: Any) -> str:
    return value if isinstance(value, Html) else escape(str(value))


def axes(ax: Any, *, height: float = 4.0) -> Any:
    """These axes, or new ones."""
    if ax is not None:
        return ax
    pyplot = extra("matplotlib.pyplot", "plot()")
    return pyplot.subplots(figsize=(6.0, height), layout="constrained")[1]


def extra(module: str, purpose: str) -> Any:
    """A module of the extra `plot`; an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InputError(f"{purpose} needs {package}: pip install 'deepcruiser[plot]'") from error
