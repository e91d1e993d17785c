"""Values as text for people: safe on a terminal and in Markdown, whatever a model or a file says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from deepcruiser.errors import printable
from deepcruiser.serialise import readable


def quoted(value: Any, *, width: int = 80) -> str:
    """An answer of a system, with texts in quotes so that an empty one can be seen."""
    return printable(repr(readable(value)), width=width)


def failure_text(kind: str, reference: Any, output: Any, *, score: float | None = None) -> str:
    """What went wrong in a failing test: `'open the door' became 'hope in the door' (67%)`, or `crash: ValueError`."""
    if kind != "wrong":
        return f"{kind}: {printable(output, width=120)}"
    # A label that is a text in a table equals the number that a system returns.
    right = printable(reference) if isinstance(reference, str) and isinstance(output, int) else quoted(reference)
    return f"{right} became {quoted(output)}" + ("" if score is None else f" ({score:.0%})")


def failure_details(test: Mapping[str, Any]) -> list[str]:
    """More of a failing test, a line each: the answer to the unchanged seed, an input that is text, and the recipe."""
    text = [] if test["text"] is None else [f"input: {quoted(test['text'], width=200)}"]
    recipe = printable(f"{test['seed']}: {' -> '.join(test['recipe'])}")
    return [f"unchanged seed: {quoted(test['seed_output'])}", *text, recipe]


def percent(share: float) -> str:
    """A share with two decimals: 47.61%."""
    return f"{share:.2%}"


def duration(seconds: float) -> str:
    """How long something took: 0.8 s, or 1:02:03 from a minute on."""
    return clock(seconds) if seconds >= 60 else f"{max(0.0, seconds):.1f} s"


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds: 1:02:03."""
    whole = int(max(0.0, seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def counted(counts: Mapping[str, int]) -> str:
    """Counts in one line, the largest first: `90 wrong, 8 crash`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {printable(what, width=60)}" for what, count in ordered if count)


def rate(runs: float, seconds: float) -> str:
    """Runs per second, with a decimal below 10."""
    speed = runs / seconds if seconds > 0 else 0.0
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s"


def group_of(reason: str) -> str:
    """A reason for rejection without its figures: `too short` for `too short: 0.05 s`."""
    return reason.partition(":")[0].strip()


def markdown_text(text: str, *, width: int = 200) -> str:
    """A text escaped so that Markdown and HTML see no markup, link or mention in it."""
    return re.sub(
        r"[\\`*_{}\[\]<>&#!|~@]|://",
        lambda match: "".join(f"&#{ord(char)};" for char in match[0]),
        printable(text, width=width),
    )


def markdown_code(text: str) -> str:
    """A text in the typeface of code."""
    return f"`{printable(text, width=400).replace('`', chr(39))}`"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, between blank lines."""
    yield ""
    yield _row(map(markdown_text, heads))
    yield _row(["---"] * len(heads))
    for row in rows:
        yield _row(map(markdown_text, row))
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
