"""Running a system that may crash, hang, or answer with what is no number."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.trace import Run, System


@dataclass(frozen=True)
class Problem:
    """What came instead of a run: "crash" or "time-out", and what was said."""

    kind: str
    said: str


def run_all(system: System, inputs: Sequence[Any], *, limit_seconds: float | None) -> list[Run | Problem]:
    """Run a batch; if it fails as a whole, each input alone, so that one of them spoils no other."""
    if not inputs:
        return []
    try:
        with _limit(limit_seconds):
            runs: list[Run | Problem] = list(system.run(inputs))
    except Exception as error:
        if len(inputs) > 1:
            return [run_all(system, [value], limit_seconds=limit_seconds)[0] for value in inputs]
        kind = "time-out" if isinstance(error, TimeoutError) else "crash"
        return [Problem(kind, f"{type(error).__name__}: {error}")]
    if len(runs) != len(inputs):
        raise InputError(f"{system!r} gave {len(runs)} runs for a batch of {len(inputs)} inputs: one each is needed")
    return runs


@contextmanager
def _limit(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError when the block takes longer. Signals do this, which only the main thread gets."""
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def late(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
