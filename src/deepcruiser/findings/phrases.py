"""Transformations in the words of a title: what was done to the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from deepcruiser.transformations import (
    DRC,
    AddBackgroundNoise,
    AddWhiteNoise,
    ChangeSpeed,
    ChangeVolume,
    ExtractHarmonic,
    HighPassFilter,
    LowPassFilter,
    PitchShift,
    Reverb,
    Telephone,
    Trim,
)
from deepcruiser.transformations.recipe import UnknownChange


def name_of(change: Any) -> str:
    """The name of a transformation, also of one whose class is not at hand."""
    return change.name if isinstance(change, UnknownChange) else type(change).__name__


def phrase(recipe: Iterable[Any]) -> str:
    """What a recipe does, to follow the word "when": "sped up to 1.07 x and high-passed at 180 Hz"."""
    changes = list(recipe)
    phrases = [_PHRASES[type(change)](change) for change in changes if type(change) in _PHRASES]
    if others := [name_of(change) for change in changes if type(change) not in _PHRASES]:
        phrases.append(f"changed by {' and '.join(others)}")
    return " and ".join(phrases)


def count_of(number: int, noun: str) -> str:
    """A number of things: "1 seed", "7 seeds"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _volume(change: ChangeVolume) -> str:
    return f"made {'louder' if change.gain_db > 0 else 'softer'} by {abs(change.gain_db):.3g} dB"


def _pitch(change: PitchShift) -> str:
    return f"pitched {'up' if change.semitones > 0 else 'down'} by {abs(change.semitones):.3g} semitones"


def _speed(change: ChangeSpeed) -> str:
    return f"{'sped up' if change.factor > 1 else 'slowed down'} to {change.factor:.3g} x"


_PHRASES: dict[type[Any], Callable[[Any], str]] = {
    ChangeVolume: _volume,
    LowPassFilter: lambda change: f"low-passed at {change.cutoff_hz:,.0f} Hz",
    HighPassFilter: lambda change: f"high-passed at {change.cutoff_hz:,.0f} Hz",
    PitchShift: _pitch,
    ChangeSpeed: _speed,
    AddWhiteNoise: lambda change: f"mixed with white noise {change.snr_db:.3g} dB below",
    AddBackgroundNoise: lambda change: f"mixed with a recording {change.snr_db:.3g} dB below",
    ExtractHarmonic: lambda change: f"reduced to its harmonic part by {change.amount:.0%}",
    DRC: lambda change: f"compressed {change.ratio:.3g} : 1 above {change.threshold_db:.3g} dB",
    Trim: lambda change: f"trimmed at {change.top_db:.3g} dB",
    Reverb: lambda change: f"put into a room that rings for {change.rt60_seconds:.2g} s",
    Telephone: lambda change: f"sent over a telephone line ({change.low_hz:,.0f} to {change.high_hz:,.0f} Hz)",
}
