"""Timing of versions that take turns, so that a slow moment of the machine affects them all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def alternate(versions: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """The seconds that each version took in each of `rounds` rounds, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in versions}
    for turn in range(rounds + 1):
        for name, run in versions.items():
            began = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def ratio(seconds: Mapping[str, list[float]], over: str, under: str) -> float:
    """The median over the rounds of one version's time over another's."""
    return statistics.median(a / b for a, b in zip(seconds[over], seconds[under], strict=True))


def line(what: str, value: str, budget: str) -> None:
    print(f"{what:74} {value:>16}   budget {budget}", flush=True)
