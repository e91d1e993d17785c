"""Severity: how much of a recipe a listener would notice.

0 is no change, 1 the strongest single change of the paper's nine in our ranges (the paper gives none).

    severity(recipe) = sum over its changes of weight(kind) * mean over the parameters of their place

The place of a parameter is 0 at the value of no change and 1 at the end of its default range that is farthest from it.
The weight of a kind is what is lost at that end, the mean of the losses of PESQ and STOI, relative to AddWhiteNoise;
docs/transformations.md has the figures. Ranges of the user's change no severity, so recipes of several campaigns
compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError
from deepcruiser.transformations import series, text
from deepcruiser.transformations.beyond_paper import AddBackgroundNoise, Reverb, Telephone
from deepcruiser.transformations.clearness import AddWhiteNoise, ExtractHarmonic
from deepcruiser.transformations.speed import ChangeSpeed, PitchShift
from deepcruiser.transformations.unaffected import DRC, Trim
from deepcruiser.transformations.volume import ChangeVolume, HighPassFilter, LowPassFilter

#: The value of each parameter at which there is no change, or no audible one. The upper cutoffs of
#: filters are left out: nothing is filtered from half the sample rate on. A class of the user's may have a `NO_CHANGE`.
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

#: The severity of a kind at the far end of its range, where it is not 1. Nothing is below 0.2: PESQ and STOI see no
#: difference in volume or in trimmed silence, but a listener may.
WEIGHTS: dict[type[Any], float] = {
    ChangeVolume: 0.2,
    LowPassFilter: 0.2,
    HighPassFilter: 0.5,
    PitchShift: 0.5,
    ChangeSpeed: 0.5,
    ExtractHarmonic: 0.6,
    DRC: 0.8,
    Trim: 0.2,
    AddBackgroundNoise: 0.75,
    Reverb: 1.1,
    Telephone: 1.2,
}

#: Named severities: that of the strongest single change of the nine, twice that, and four times.
LEVELS = {"mild": 1.0, "normal": 2.0, "hard": 4.0, "unlimited": math.inf}

#: Levels in dB below the speech: 20 dB more are a tenth of the change.
_BELOW_SPEECH = ("snr_db", "direct_db", "top_db")
#: The highest frequency if the input is unknown or is not a sound.
_HIGHEST_HZ = 8000.0


def budget(level: str | float) -> float:
    """The most severity of a recipe, from a name or a number."""
    try:
        value = LEVELS[level] if isinstance(level, str) and level in LEVELS else float(level)
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(level, bool) or not value > 0:
        raise InputError(f"severity must be {', '.join(LEVELS)} or a number above 0, not {level!r}")
    return value


def parameters(kind: Any, value: Any = None) -> Mapping[str, float]:
    """The parameters of a kind of change that have a value without any change, and that value, for an input."""
    return _parameters(kind, value.rate / 2 if isinstance(value, Audio) else _HIGHEST_HZ)


@cache
def _parameters(kind: Any, highest_hz: float) -> Mapping[str, float]:
    neutral = dict(NO_CHANGE.get(kind, getattr(kind, "NO_CHANGE", {})))
    if kind in _UPPER_CUTOFF:
        neutral[_UPPER_CUTOFF[kind]] = highest_hz
    limits: Mapping[str, Any] = getattr(kind, "LIMITS", {})
    ends = {name: limits.get(name, (none, none)) for name, none in neutral.items() if name in kind.RANGES}
    return {name: float(min(max(neutral[name], low), high)) for name, (low, high) in ends.items()}


def severity(recipe: Sequence[Any], value: Any = None) -> float:
    """The severity of a recipe, for an input where the rate of a sound matters."""
    return float(sum(severity_of(type(change), partial(getattr, change), value) for change in recipe))


def severity_of(kind: type[Any], parameter: Callable[[str], Any], value: Any = None) -> Any:
    """The severity of changes of one kind, given their parameters by name: numbers, or arrays of several changes."""
    places = [_place(kind, name, parameter(name), none) for name, none in parameters(kind, value).items()]
    return WEIGHTS.get(kind, 1.0) * (sum(places) / len(places) if places else 1.0)


def _place(kind: type[Any], name: str, now: Any, none: float) -> Any:
    """The position of a parameter between no change and the farthest end of its range."""
    hard = float(max(kind.RANGES[name], key=lambda end: abs(end - none)))
    if name in _BELOW_SPEECH:
        return 10 ** ((hard - now) / 20)
    return abs(now - none) / abs(hard - none) if hard != none else 0.0 * now
