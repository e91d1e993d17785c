"""Labels, and spans of time in which something is heard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepcruiser.decoding.scores import as_array
from deepcruiser.errors import InputError


def classify(scores: Any, labels: Sequence[Any]) -> Any:
    """The label with the highest score: one of [classes], a list of [batch, classes]."""
    table = as_array(scores)
    if table.ndim not in (1, 2) or table.shape[-1] != len(labels):
        raise InputError(f"scores must be [{len(labels)}] or [batch, {len(labels)}], as many as labels: {table.shape}")
    best = table.argmax(-1)
    return labels[int(best)] if table.ndim == 1 else [labels[number] for number in best.tolist()]


def spans(
    probabilities: Any,
    *,
    seconds_per_step: float,
    above: float = 0.5,
    below: float = 0.35,
    shortest_seconds: float = 0.25,
    pause_seconds: float = 0.1,
    pad_seconds: float = 0.03,
) -> list[tuple[float, float]]:
    """The times at which something is present, as (start, end) in seconds, from its probability in each step.

    A span begins when the probability reaches `above` and ends when it falls below `below`, unless it reaches `above`
    again within `pause_seconds`. Spans shorter than `shortest_seconds` are dropped; the others are widened by
    `pad_seconds` on either side, to the middle of the pause at most.
    """
    values = as_array(probabilities)
    if values.ndim != 1:
        raise InputError(f"probabilities must be [steps], one number each, not {values.shape}")
    if not seconds_per_step > 0:
        raise InputError(f"seconds_per_step must be above 0, not {seconds_per_step}")
    if not below <= above:
        raise InputError(f"below={below} must not be greater than above={above}")
    result: list[tuple[int, int]] = []
    start = end = -1
    for number, value in enumerate(values.tolist()):
        if start >= 0 and end >= 0 and number * seconds_per_step - end * seconds_per_step >= pause_seconds:
            result.append((start, end))
            start = end = -1
        if value >= above:
            start, end = (number if start < 0 else start), -1
        elif value < below and start >= 0 and end < 0:
            end = number
    if start >= 0:
        result.append((start, end if end >= 0 else len(values)))
    long = [
        (first * seconds_per_step, last * seconds_per_step)
        for first, last in result
        if (last - first) * seconds_per_step >= shortest_seconds
    ]
    total = len(values) * seconds_per_step
    widened = []
    for number, (first, last) in enumerate(long):
        earliest = (long[number - 1][1] + first) / 2 if number else 0.0
        latest = (last + long[number + 1][0]) / 2 if number + 1 < len(long) else total
        widened.append((max(earliest, first - pad_seconds), min(latest, last + pad_seconds)))
    return widened
