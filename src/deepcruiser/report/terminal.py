"""A running campaign in the terminal: as a screen, or as lines."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rich.console import Console, ConsoleDimensions, RenderableType
from rich.live import Live

from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.failed_test import FailedTest, input_text
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.state import State
from deepcruiser.errors import printable
from deepcruiser.report.format import clock, failure_details, failure_text, rate
from deepcruiser.report.history import History, Reading, budget_text, hint
from deepcruiser.report.screen import screen

Watch = Callable[[Status], None]
Past = Sequence[Mapping[str, Any]]

#: Seconds between two lines.
INTERVAL = 10.0
#: Bytes kept of what the system prints while the screen is shown.
_MOST_PRINTED = 1 << 20


def lines(say: Callable[[str], None], folder: Path, past: Past = (), *, every_run: bool = False) -> Watch:
    """A `watch` function that prints each failing test, or every run, at once, and a status line every ten seconds."""
    history, last, advice = History(past), -INTERVAL, ""
    if not past:
        say("running the seeds")

    def watch(status: Status) -> None:
        nonlocal last, advice
        for event in status.events:
            if isinstance(event, Ran) and event.outcome == "failed":
                say(failure_line(event, status.state, input_text(folder, event.number)))
            elif isinstance(event, Ran) and every_run:
                steps = " -> ".join(map(str, event.changes))
                reason = f" ({event.reason})" if event.reason else ""
                say(
                    f"run {event.number}: {event.outcome}{reason}; {status.state.queue.parent(event).seed}: ... {steps}"
                )
        reading = history.add(status)
        if time.monotonic() - last >= INTERVAL:
            last = time.monotonic()
            say(status_line(reading))
            if advice != (advice := hint(reading)) and advice:
                say(f"  hint: {advice}")

    return watch


def status_line(reading: Reading) -> str:
    """The state of the campaign in a line."""
    now = reading.points[-1].executed
    new = f"  last new at run {reading.last_new:,}" if reading.criteria else ""
    budget = f"  {budget_text(reading)}" if reading.share is not None else ""
    coverage = "".join(
        f"  {name} {start:.1%} -> {value:.1%}"
        for name, start, value in zip(reading.criteria, reading.start, now, strict=True)
    )
    return (
        f"{clock(reading.seconds)}  {reading.runs:,} runs ({rate(reading.speed, 1)}){coverage}  "
        f"queue {reading.live:,}/{reading.tests:,}  {sum(reading.failed.values()):,} failing, "
        f"{sum(reading.rejected.values()):,} rejected{new}{budget}"
    )


def failure_line(event: Ran, state: State, text: str | None) -> str:
    """A failing test in a line: what went wrong, and how it was made."""
    test = FailedTest.of(event, state.queue.tests[event.parent])
    summary = failure_text(test.kind, test.reference, test.output)
    described = {**test.to_dict(), "recipe": list(map(str, test.recipe)), "text": text}
    return f"failing test {event.number}: {'; '.join([summary, *failure_details(described)])}"


def has_screen() -> bool:
    """Whether standard error is a terminal that can show a screen."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


@contextmanager
def on_screen(title: str, past: Past = ()) -> Iterator[Watch]:
    """A `watch` function that shows the campaign on the whole terminal, which is restored at the end.

    Output of a model, a C library or another process is held back until the end.
    """
    latest: Reading | None = None
    history, began = History(past), time.monotonic()
    with _printing_later() as (terminal, trim):
        file = open(os.dup(terminal), "w", encoding=sys.stderr.encoding, errors="replace")  # noqa: SIM115
        console, at = Console(file=file, force_terminal=True), began

        def current() -> RenderableType:
            trim()
            columns, rows = os.get_terminal_size(terminal)
            console.size = ConsoleDimensions(columns or 80, rows or 24)  # some terminals do not report theirs
            now = time.monotonic() - at + (latest.seconds if latest is not None else 0.0)
            return screen(
                latest, title=title, seconds=now, height=console.height, ascii_only=console.options.ascii_only
            )

        def watch(status: Status) -> None:
            nonlocal latest, at
            reading = history.add(status)
            latest, at = reading, time.monotonic()

        live = Live(
            get_renderable=current,
            console=console,
            screen=True,
            refresh_per_second=2,
            redirect_stdout=False,  # rich would print on the screen
            redirect_stderr=False,
        )
        with file, live:
            yield watch


@contextmanager
def _printing_later() -> Iterator[tuple[int, Callable[[], None]]]:
    """Hold back everything that is printed, and print the last of it at the end.

    Gives a descriptor that still reaches the terminal, and a function that keeps the held output from filling the disk
    when it is called now and then.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    terminals = {number: os.dup(number) for number in (1, 2) if os.isatty(number)}
    with tempfile.TemporaryFile() as printed:

        def trim() -> None:
            if os.fstat(printed.fileno()).st_size > _MOST_PRINTED:
                os.ftruncate(printed.fileno(), 0)
                os.lseek(printed.fileno(), 0, os.SEEK_SET)

        for number in terminals:
            os.dup2(printed.fileno(), number)
        try:
            yield terminals[2], trim
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, terminal in terminals.items():
                os.dup2(terminal, number)
                os.close(terminal)
            _tell_printed(printed)


def _tell_printed(printed: IO[bytes]) -> None:
    size = printed.seek(0, os.SEEK_END)
    if size:
        printed.seek(max(0, size - 4000))
        last = printed.read().decode(errors="replace").splitlines()[-5:]
        print("meanwhile the system printed (last lines):", file=sys.stderr)
        for line in last:
            print(f"  {printable(line)}", file=sys.stderr)
