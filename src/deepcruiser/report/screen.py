"""The status screen of a campaign, in the spirit of AFL's: a pure function from a reading to a rich renderable."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from deepcruiser.errors import printable
from deepcruiser.report.format import clock, counted, rate
from deepcruiser.report.history import Point, Reading, Row, budget_text, hint

#: From the smallest to the largest; the second set is for ASCII terminals.
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
_SPARK_WIDTH = 28
_BAR_WIDTH = 12
#: Lines of the frame, the counts with a blank line, and two headings; lines of a hint with a blank one.
_OTHER_LINES, _HINT_LINES = 2 + 5 + 2, 3


def screen(
    reading: Reading | None, *, title: str = "", seconds: float = 0.0, height: int = 24, ascii_only: bool = False
) -> RenderableType:
    """The screen after `seconds`, for a terminal of `height` lines; without a reading, the seeds are still running."""
    name = Text(f" deepcruiser: {printable(title, width=40)} ", style="bold")
    stop = Text(" Ctrl-C finishes the batch, saves and stops ")
    if reading is None:
        body: RenderableType = Text(f"running the seeds, {clock(seconds)}")
    else:
        advice = hint(reading)
        name.append(_progress(reading, ascii_only=ascii_only))
        more = bool(reading.last_failure) + bool(reading.prefers) + len(reading.criteria)
        room = height - _OTHER_LINES - more - (_HINT_LINES if advice else 0)
        body = Group(
            _counts(reading, max(seconds, reading.seconds)),
            Text(),
            _coverage(reading, ascii_only=ascii_only),
            *([Text()] if len(reading.rows) < room else []),
            _transformations(reading.rows, room=max(1, room)),
            *([Text(), Text(advice, style="yellow")] if advice else []),
        )
    return Panel(body, title=name, subtitle=stop, title_align="left", subtitle_align="left")


def sparkline(points: Sequence[Point], criterion: int, *, width: int = _SPARK_WIDTH, ascii_only: bool = False) -> str:
    """One coverage over time, scaled from its least to its greatest value."""
    bars = _ASCII_BARS if ascii_only else _BARS
    if not points:
        return ""
    times = [point.seconds for point in points]
    first, last = times[0], times[-1]
    at = [first + (last - first) * step / max(1, width - 1) for step in range(width - 1)]
    values = [points[max(0, bisect_right(times, when) - 1)].executed[criterion] for when in at]
    values.append(points[-1].executed[criterion])
    low, high = min(values), max(values)
    if high <= low:
        return bars[0] * width
    return "".join(bars[round((value - low) / (high - low) * (len(bars) - 1))] for value in values)


def _progress(reading: Reading, *, ascii_only: bool) -> str:
    """How much of the budget is used, as a bar, and the time that is left."""
    if reading.share is None:
        return ""
    full = round(reading.share * _BAR_WIDTH)
    done, rest = ("#", "-") if ascii_only else ("\u2501", "\u254c")
    return f"{done * full}{rest * (_BAR_WIDTH - full)} {budget_text(reading)} "


def _counts(reading: Reading, seconds: float) -> RenderableType:
    runs, rejected, failed = reading.runs, sum(reading.rejected.values()), sum(reading.failed.values())
    aside = sum(reading.set_aside.values())
    since = clock(seconds - reading.last_new_seconds)
    new = f"{runs - reading.last_new:,} runs ago, {since}" if reading.last_new else "none yet"
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="bold", no_wrap=True, min_width=len("failing tests"))
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_row("run time", clock(seconds), "runs", f"{runs:,}  ({rate(reading.speed, 1)})")
    table.add_row("seeds", f"{reading.seeds:,}" + (f"  ({aside:,} set aside)" if aside else ""), "last new", new)
    table.add_row(
        "queue",
        f"{reading.tests:,}  ({reading.live:,} live)",
        "rejected",
        f"{rejected:,}" + (f"  ({rejected / runs:.1%})" if rejected else ""),
    )
    kinds = Table.grid(padding=(0, 2), expand=True)
    kinds.add_column(style="bold", no_wrap=True)
    kinds.add_column(ratio=1, no_wrap=True, overflow="ellipsis", style="bold red" if failed else "")
    kinds.add_row("failing tests", Text(f"{failed:,}" + (f"  ({counted(reading.failed)})" if failed else "")))
    if reading.last_failure:
        kinds.add_row("last of them", Text(printable(reading.last_failure)))
    if reading.prefers:
        kinds.add_row("prefers", Text(printable(reading.prefers), style="not bold default"))
    return Group(table, kinds)


def _coverage(reading: Reading, *, ascii_only: bool) -> RenderableType:
    table = _table("coverage", "start", "queue", "all runs")
    table.add_column("all runs, over time", no_wrap=True, ratio=1)
    for number, name in enumerate(reading.criteria):
        now = reading.points[-1].executed[number]
        line = Text(sparkline(reading.points, number, ascii_only=ascii_only), style="green")
        table.add_row(name, *(f"{value:.2%}" for value in (reading.start[number], reading.queue[number], now)), line)
    return table


def _transformations(rows: Sequence[Row], *, room: int) -> RenderableType:
    """A row for each kind; the last row sums up those for which there is no room."""
    if len(rows) > room:
        rest = rows[room - 1 :]
        sums = [sum(getattr(row, name) for row in rest) for name in ("tried", "kept", "failed", "rejected")]
        rows = [*rows[: room - 1], Row(f"{len(rest)} others", *sums)]
    table = _table("transformation", "tried", "kept", "failed", "rejected")
    for row in rows:
        failed = Text(f"{row.failed:,}", style="red" if row.failed else "")
        table.add_row(
            Text(printable(row.kind, width=26)), f"{row.tried:,}", f"{row.kept:,}", failed, f"{row.rejected:,}"
        )
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold cyan", pad_edge=False)
    table.add_column(first, no_wrap=True, min_width=26 if first == "transformation" else 14)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True, min_width=8)
    return table
