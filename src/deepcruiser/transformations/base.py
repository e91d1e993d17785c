"""What all transformations share: checked parameters and drawing; and, those of sound, no new clipping."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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
    """A change of an input that keeps its meaning, with its parameters chosen: the same value, the same result.

    A subclass is a frozen dataclass of numbers and says for each which values make sense (`LIMITS`) and between which
    it is drawn unless told otherwise (`RANGES`). A field `seed` is a whole number and always drawn from all seeds.
    """

    LIMITS: ClassVar[Mapping[str, Range]] = {}
    RANGES: ClassVar[Mapping[str, Range]] = {}

    def __post_init__(self) -> None:
        for name, limits in self.LIMITS.items():
            object.__setattr__(self, name, number(f"{type(self).__name__}: {name}", getattr(self, name), limits))
        if "seed" in _fields(self):
            object.__setattr__(self, "seed", _seed(type(self).__name__, getattr(self, "seed", None)))

    @abstractmethod
    def __call__(self, value: Any, /) -> Any:
        """The changed input; what was given is never changed in place."""

    @classmethod
    def draw(cls, rng: np.random.Generator, **ranges: Any) -> Self:
        """Choose the parameters at random: uniformly in `RANGES`, or in the ranges given by parameter.

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
        if "seed" in _fields(cls):
            chosen["seed"] = int(rng.integers(SEEDS))
        return chosen


@dataclass(frozen=True)
class Transformation(Change):
    """A change of sound that keeps what is said: the same value, the same samples."""

    @abstractmethod
    def __call__(self, audio: Audio) -> Audio:
        """The changed sound, at the same rate; the very same object when there is nothing to change."""

    def moved(self, seconds: Samples, audio: Audio) -> Samples:
        """Where in the changed sound the moments of the audio are; those that were cut off lie outside of it."""
        return seconds


def fitted(audio: Audio, samples: npt.NDArray[Any]) -> Audio:
    """The new samples of an audio, scaled down as a whole if a peak would exceed full scale and the old peak.

    So what lies in [-1, 1] stays there without clipping, and what was recorded louder becomes no louder.
    """
    limit = max(1.0, peak(audio.samples))
    loudest = peak(samples)
    if loudest > limit:
        samples = samples * (limit / loudest)
    # The last bit of the division, and of the step to float32, may round up.
    return audio.replace(np.clip(samples, -limit, limit).astype(np.float32))


def peak(samples: npt.NDArray[Any]) -> float:
    """The greatest distance from zero; 0.0 when there are no samples."""
    return float(max(samples.max(), -samples.min())) if len(samples) else 0.0


def level(samples: npt.NDArray[Any]) -> float:
    """The root mean square about the mean, since nobody hears a constant; 0.0 when there are no samples."""
    return float(np.std(samples, dtype=np.float64)) if len(samples) else 0.0


def decibels(ratio: float) -> float:
    """A ratio of amplitudes in dB; minus infinity for 0."""
    return 20 * math.log10(ratio) if ratio > 0 else -math.inf


def amplitude(db: float) -> float:
    """The ratio of amplitudes that so many dB stand for."""
    return float(10 ** (db / 20))


def _fields(transformation: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(transformation)}


def number(name: str, value: Any, limits: Range) -> float:
    """The value as a float, if it is a number within the limits."""
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def _range(name: str, value: Any, limits: Range) -> Range:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"the range of {name} must be two numbers, the least and the greatest, not {value!r}")
    low, high = (number(f"the range of {name}", end, limits) for end in value)
    if low > high:
        raise InputError(f"the range of {name} must begin with the least, not {value!r}")
    return low, high


def _seed(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < SEEDS:
        raise InputError(f"{name}: seed must be a whole number from 0 to {SEEDS - 1}, not {value!r}")
    return int(value)
