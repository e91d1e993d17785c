"""The base of all transformations: checked parameters, drawing at random, and no new clipping of audio."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError

Samples = npt.NDArray[np.float64]
Range = tuple[float, float]

#: Seeds are drawn below this.
SEEDS = 2**32


@dataclass(frozen=True)
class Change(ABC):
    """A change of an input that keeps its meaning, with its parameters chosen. The same value gives the same result.

    A subclass is a frozen dataclass of numbers. `LIMITS` gives the allowed values of each, `RANGES` the default range
    to draw from. A field `seed` is a whole number and is always drawn from all seeds.
    """

    LIMITS: ClassVar[Mapping[str, Range]] = {}
    RANGES: ClassVar[Mapping[str, Range]] = {}

    def __post_init__(self) -> None:
        for name, limits in self.LIMITS.items():
            object.__setattr__(self, name, number(f"{type(self).__name__}: {name}", getattr(self, name), limits))
        if "seed" in field_names(type(self)):
            object.__setattr__(self, "seed", _seed(type(self).__name__, getattr(self, "seed", None)))

    @abstractmethod
    def __call__(self, value: Any, /) -> Any:
        """The changed input; the input itself is never modified."""

    @classmethod
    def draw(cls, rng: np.random.Generator, **ranges: Any) -> Self:
        """Draw the parameters uniformly from `RANGES`, or from the ranges given by name.

        `AddWhiteNoise.draw(rng, snr_db=(25, 35))`. Drawn numbers have four digits, so the repr is the exact value.
        """
        return cls(**cls._drawn(rng, ranges))

    @classmethod
    def _drawn(cls, rng: np.random.Generator, ranges: Mapping[str, Any]) -> dict[str, Any]:
        for name in ranges:
            if name not in cls.RANGES:
                raise InputError(f"{cls.__name__} draws no {name!r}; its ranges are: {', '.join(cls.RANGES)}")
        chosen: dict[str, Any] = {}
        for name in cls.RANGES:
            low, high = _range(f"{cls.__name__}: {name}", ranges.get(name, cls.RANGES[name]), cls.LIMITS[name])
            chosen[name] = min(max(float(f"{rng.uniform(low, high):.4g}"), low), high)
        if "seed" in field_names(cls):
            chosen["seed"] = int(rng.integers(SEEDS))
        return chosen


@dataclass(frozen=True)
class Transformation(Change):
    """A change of audio that keeps what is said. The same value gives the same samples."""

    @abstractmethod
    def __call__(self, audio: Audio) -> Audio:
        """The changed audio at the same rate; the same object if nothing changes."""

    def moved(self, seconds: Samples, audio: Audio) -> Samples:
        """The times in the changed audio that correspond to `seconds` in the audio; cut-off times lie outside of it."""
        return seconds


def fitted(audio: Audio, samples: npt.NDArray[Any]) -> Audio:
    """The audio with new samples, scaled down if their peak exceeds both full scale and the old peak.

    Samples in [-1, 1] stay there without clipping, and louder recordings do not become louder.
    """
    limit = max(1.0, peak(audio.samples))
    loudest = peak(samples)
    if loudest > limit:
        samples = samples * (limit / loudest)
    # The division and the conversion to float32 may round up in the last bit.
    return audio.replace(np.clip(samples, -limit, limit).astype(np.float32))


def peak(samples: npt.NDArray[Any]) -> float:
    """The largest absolute value; 0.0 if there are no samples."""
    return float(max(samples.max(), -samples.min())) if len(samples) else 0.0


def level(samples: npt.NDArray[Any]) -> float:
    """The root mean square about the mean, because a constant is inaudible; 0.0 if there are no samples."""
    return float(np.std(samples, dtype=np.float64)) if len(samples) else 0.0


def decibels(ratio: float) -> float:
    """A ratio of amplitudes in dB; minus infinity for 0."""
    return 20 * math.log10(ratio) if ratio > 0 else -math.inf


def amplitude(db: float) -> float:
    """The ratio of amplitudes for a level in dB."""
    return float(10 ** (db / 20))


@cache
def field_names(kind: Any) -> Set[str]:
    """The names of the fields of a dataclass, in order."""
    return {field.name: None for field in dataclasses.fields(kind)}.keys()


def number(name: str, value: Any, limits: Range) -> float:
    """The value as a float; an error unless it is a number within the limits."""
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def _range(name: str, value: Any, limits: Range) -> Range:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"the range of {name} must be two numbers, a minimum and a maximum, not {value!r}")
    low, high = (number(f"the range of {name}", end, limits) for end in value)
    if low > high:
        raise InputError(f"the range of {name} must start with the smaller number, not {value!r}")
    return low, high


def _seed(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < SEEDS:
        raise InputError(f"{name}: seed must be a whole number from 0 to {SEEDS - 1}, not {value!r}")
    return int(value)
