"""Progress bars in terminals and notebooks, and lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from deepcruiser.stream import Progress

P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[Progress], None]

#: Seconds between two lines if the output is not a terminal.
_INTERVAL = 10.0


def with_bar(function: Callable[P, T]) -> Callable[P, T]:
    """A function with a keyword `watch` that by default shows a bar in a terminal or a notebook."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        if options.get("watch") is not None or not is_watched():
            return function(*args, **options)
        with watching() as watch:
            options["watch"] = watch
            return function(*args, **options)

    return run


def is_watched() -> bool:
    """Whether a bar is visible: in a notebook or a terminal."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Watch]:
    """A function that shows the progress of a pass over data: as a bar if somebody sees it, otherwise as lines."""
    if quiet:
        yield lambda _: None
    elif is_watched():
        with _bars() as bars:
            began: dict[str, float] = {}

            def watch(progress: Progress) -> None:
                since = began.setdefault(progress.stage, time.monotonic())
                text = f"{progress.done:,} of {progress.total:,} inputs, {_rate(progress, since)}"
                bars(progress.stage, progress.done, progress.total, text)

            yield watch
    else:
        yield _Lines()


@contextmanager
def watching_share() -> Iterator[Callable[[str, float | None], None]]:
    """A function that shows a text and a share of 1 as a bar; shows nothing if nobody sees it."""
    if not is_watched():
        yield lambda text, share: None
        return
    with _bars() as bars:
        yield lambda text, share: bars("", 100 * (share or 0.0), None if share is None else 100.0, text)


@contextmanager
def _bars() -> Iterator[Callable[[str, float, float | None, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[text]}")
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: float, total: float | None, text: str) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total, text=text)
            bar.update(tasks[name], completed=done, total=total, text=text)

        yield show


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
            print(
                f"{progress.stage}: {progress.done:,} of {progress.total:,} inputs, "
                f"{_rate(progress, self._began)}, {left:.0f} s left",
                file=sys.stderr,
            )


def _rate(progress: Progress, began: float) -> str:
    return f"{progress.steps / max(1e-9, time.monotonic() - began):,.0f} steps/s"
