"""How much a change changes: from 0, no change, to 1, the hard end of the range that it is drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepcruiser.audio import Audio
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

#: The value of each parameter at which there is no change, or none that anybody could hear. The upper cutoffs of
#: filters are left out: nothing is filtered from half the sample rate on.
NO_CHANGE: dict[type[Any], dict[str, float]] = {
    ChangeVolume: {"gain_db": 0},
    LowPassFilter: {},
    HighPassFilter: {"cutoff_hz": 0},
    PitchShift: {"semitones": 0},
    ChangeSpeed: {"factor": 1},
    AddWhiteNoise: {"snr_db": 120},
    ExtractHarmonic: {"amount": 0},
    DRC: {"ratio": 1, "threshold_db": 0},
    Trim: {"top_db": 200},
    AddBackgroundNoise: {"snr_db": 120},
    Reverb: {"direct_db": 120, "rt60_seconds": 0.01},
    Telephone: {"low_hz": 0},
    series.Jitter: {"snr_db": 120},
    series.Scale: {"factor": 1},
    series.Offset: {"amount": 0},
    series.TimeWarp: {"strength": 0},
    series.DropSamples: {"share": 0},
    series.DropGap: {"share": 0},
    text.Typos: {"share": 0},
    text.SwapLetters: {"share": 0},
    text.DropLetters: {"share": 0},
    text.FillerWords: {"share": 0},
    text.DoubleSpaces: {"share": 0},
}
_UPPER_CUTOFF: dict[type[Any], str] = {LowPassFilter: "cutoff_hz", Telephone: "high_hz"}

#: Levels in dB below the speech: 20 dB more are a tenth of the change.
_BELOW_SPEECH = ("snr_db", "direct_db", "top_db")
#: The highest frequency in an input that is no sound.
_HIGHEST_HZ = 8000.0


def parameters(change: Any, value: Any) -> dict[str, float]:
    """The parameters of a change that have a value without any change, and that value, for an input."""
    found = dict(NO_CHANGE.get(type(change), {}))
    if type(change) in _UPPER_CUTOFF:
        found[_UPPER_CUTOFF[type(change)]] = value.rate / 2 if isinstance(value, Audio) else _HIGHEST_HZ
    return {
        name: min(max(float(none), low), high) for name, none in found.items() for low, high in [_limits(change, name)]
    }


def _limits(change: Any, name: str) -> tuple[float, float]:
    low, high = type(change).LIMITS[name]
    return float(low), float(high)


def severity(recipe: Sequence[Any], value: Any = None) -> float:
    """The sum over the steps of a recipe for an input; a step without parameters counts as 1."""
    return sum(_severity_of(change, value) for change in recipe)


def _severity_of(change: Any, value: Any) -> float:
    places = [_place(change, name, none) for name, none in parameters(change, value).items()]
    return sum(places) / len(places) if places else 1.0


def _place(change: Any, name: str, none: float) -> float:
    """Where a parameter is between no change and the end of its range that is farthest from it."""
    hard = max(type(change).RANGES[name], key=lambda end: abs(end - none))
    now = float(getattr(change, name))
    if name in _BELOW_SPEECH:
        return float(10 ** ((hard - now) / 20))
    return abs(now - none) / abs(hard - none) if hard != none else 0.0
