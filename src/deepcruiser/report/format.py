"""Texts from models, data and files, made fit for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def printable(value: Any, *, width: int = 200) -> str:
    """A value on one line, of what every terminal can take: control characters escaped, the rest cut off."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[: 4 * width])
    return text if len(text) <= width else text[: width - 3] + "..."


def quoted(value: Any, *, width: int = 80) -> str:
    """An answer of a system: texts in quotes, so that an empty one is seen."""
    return printable(repr(value), width=width)


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds: 1:02:03."""
    whole = int(max(0.0, seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def counted(counts: Mapping[str, int]) -> str:
    """The most frequent first: `90 wrong, 8 crash`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {printable(what, width=60)}" for what, count in ordered if count)


def rate(runs: float, seconds: float) -> str:
    """Runs per second, with a digit behind the point where that says something."""
    speed = runs / seconds if seconds > 0 else 0.0
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s"


def group_of(reason: str) -> str:
    """The kind of a reason for which a mutant was rejected, without its figures: `too short` of `too short: 0.05 s`."""
    return reason.partition(":")[0].strip()
