"""Transformations in words, for the title of a finding."""

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
    series,
    text,
)
from deepcruiser.transformations.recipe import NAMES, UnknownChange
from deepcruiser.transformations.severity import parameters


def name_of(change: Any) -> str:
    """The name of a transformation, also of one whose class is unknown."""
    return change.name if isinstance(change, UnknownChange) else type(change).__name__


#: Kinds that are one change to a reader.
_ALIKE = ((text.Typos, text.SwapLetters, text.DropLetters), (series.DropSamples, series.DropGap))


def change_of(change: Any) -> str:
    """The effect of a change: its name, with its direction if it has two, or the names of similar kinds.

    "ChangeSpeed(factor < 1)", "DropSamples or DropGap".
    """
    for kinds in _ALIKE:
        if type(change) in kinds:
            return " or ".join(kind.__name__ for kind in kinds)
    for name, none in parameters(type(change)).items() if type(change) in NAMES.values() else ():
        low, high = type(change).RANGES[name]
        if low < none < high:
            return f"{name_of(change)}({name} {'<' if getattr(change, name) < none else '>'} {none:g})"
    return name_of(change)


def kind_of(change: Any) -> str:
    """The same with its words: "FillerWords um"."""
    values = change.parameters if isinstance(change, UnknownChange) else vars(change)
    return " ".join([change_of(change), *(value for value in values.values() if isinstance(value, str))])


def phrase(recipe: Iterable[Any]) -> str:
    """The effect of a recipe, to follow the word "when": "sped up to 1.07 x and high-passed at 180 Hz"."""
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


def _scale(change: series.Scale) -> str:
    return f"{'stretched' if change.factor > 1 else 'flattened'} to {change.factor:.3g} x"


def _offset(change: series.Offset) -> str:
    return f"shifted {'up' if change.amount > 0 else 'down'} by {abs(change.amount):.3g} deviations"


def _style(change: text.ChangeCase) -> str:
    return f"written in {change.style} case"


_PHRASES: dict[type[Any], Callable[[Any], str]] = {
    ChangeVolume: _volume,
    LowPassFilter: lambda change: f"low-passed at {change.cutoff_hz:,.0f} Hz",
    HighPassFilter: lambda change: f"high-passed at {change.cutoff_hz:,.0f} Hz",
    PitchShift: _pitch,
    ChangeSpeed: _speed,
    AddWhiteNoise: lambda change: f"mixed with white noise at {change.snr_db:.3g} dB SNR",
    AddBackgroundNoise: lambda change: f"mixed with recorded noise at {change.snr_db:.3g} dB SNR",
    ExtractHarmonic: lambda change: f"reduced to its harmonic part by {change.amount:.0%}",
    DRC: lambda change: f"compressed {change.ratio:.3g}:1 above {change.threshold_db:.3g} dB",
    Trim: lambda change: f"trimmed at both ends {change.top_db:.3g} dB below the peak",
    Reverb: lambda change: f"put into a room with an RT60 of {change.rt60_seconds:.2g} s",
    Telephone: lambda change: f"sent over a telephone line ({change.low_hz:,.0f} to {change.high_hz:,.0f} Hz)",
    series.Jitter: lambda change: f"mixed with noise at {change.snr_db:.3g} dB SNR",
    series.Scale: _scale,
    series.Offset: _offset,
    series.TimeWarp: lambda change: f"warped in time by up to {change.strength:.2g}",
    series.DropSamples: lambda change: f"received with {change.share:.2%} of the samples lost",
    series.DropGap: lambda change: f"received with a gap of {change.share:.2%}",
    text.Typos: lambda change: "written with typing errors",
    text.SwapLetters: lambda change: "written with swapped letters",
    text.DropLetters: lambda change: "written with missing letters",
    text.ChangeCase: _style,
    text.FillerWords: lambda change: f"padded with {change.word!r}",
    text.DoubleSpaces: lambda change: "written with double spaces",
    text.DropPunctuation: lambda change: "written without punctuation",
}
