"""Progress bars, and messages that several commands print."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from deepcruiser.cli.output import say
from deepcruiser.stream import Progress

#: Seconds between two lines if the output is not a terminal.
_INTERVAL = 10.0


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the progress of a pass over data: a bar in a terminal, otherwise a line now and then."""
    if quiet:
        yield lambda _: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        tasks: dict[str, tuple[TaskID, float]] = {}

        def watch(progress: Progress) -> None:
            if progress.stage not in tasks:
                task = bar.add_task(progress.stage, total=progress.total, rate="")
                tasks[progress.stage] = task, time.monotonic()
            task, began = tasks[progress.stage]
            bar.update(task, completed=progress.done, total=progress.total, rate=_rate(progress, began))

        yield watch


class _Lines:
    def __init__(self) -> None:
        self._stage = ""
        self._began = self._printed = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._began, self._printed = progress.stage, now, now
        if now - self._printed >= _INTERVAL or progress.done == progress.total:
            self._printed = now
            left = (now - self._began) * max(0.0, progress.total / max(1, progress.done) - 1)
            say(
                f"{progress.stage}: {progress.done:,} of {progress.total:,} inputs, "
                f"{_rate(progress, self._began)}, {left:.0f} s left",
                err=True,
            )


def _rate(progress: Progress, began: float) -> str:
    return f"{progress.steps / max(1e-9, time.monotonic() - began):,.0f} steps/s"


def print_skipped(skipped: Mapping[str, str]) -> None:
    """Name the inputs that were left out."""
    if skipped:
        say(f"left out {len(skipped):,} inputs that could not be read:", err=True)
        for name, reason in list(skipped.items())[:10]:
            say(f"  {name}: {reason}", err=True)
        if len(skipped) > 10:
            say(f"  and {len(skipped) - 10:,} more (--json lists all of them)", err=True)


def program(ctx: click.Context) -> str:
    """The name that the program was started by: `deepcruiser` or `python -m deepcruiser`."""
    name = ctx.find_root().info_name or ""
    return name if name.startswith("python") else "deepcruiser"


def typed(ctx: click.Context) -> str:
    """The command line as it was typed."""
    return f"{program(ctx)} {shlex.join(ctx.obj)}"
