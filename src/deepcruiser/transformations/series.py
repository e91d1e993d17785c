"""Transformations of numeric series, arrays [time] or [time, channels], that keep their meaning.

The units of a series are unknown, so each change is relative to the channel's mean and standard deviation. Shape and
precision stay. Missing values (NaN) are ignored and stay missing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.transformations.base import Change, Range, amplitude, number

Series = npt.NDArray[np.floating[Any]]
Columns = npt.NDArray[np.float64]

#: The number of points in a warped series that have their own speed, including the ends.
SPEEDS = 5


@dataclass(frozen=True)
class SeriesChange(Change):
    """A change of a numeric series that keeps its meaning. The same value gives the same numbers."""

    def __call__(self, series: Series) -> Series:
        """The changed series in the same shape and precision; the same object if it is empty."""
        columns = _columns(series)
        if not columns.size:
            return series
        # Values too large for the precision become infinite, and the validity gate rejects them.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._changed(columns).reshape(series.shape).astype(series.dtype)

    @abstractmethod
    def _changed(self, columns: Columns) -> Columns:
        """A new array [time, channels]."""


@dataclass(frozen=True)
class Jitter(SeriesChange):
    """Add white noise to each channel, `snr_db` below its deviation (lower is noisier); constants stay constant."""

    snr_db: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"snr_db": (-60, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"snr_db": (20, 40)}

    def _changed(self, columns: Columns) -> Columns:
        noise = np.random.default_rng(self.seed).standard_normal(columns.shape)
        return columns + noise * (spread(columns)[1] * amplitude(-self.snr_db))


@dataclass(frozen=True)
class Scale(SeriesChange):
    """Multiply the deviations from the channel's mean by `factor`."""

    factor: float

    LIMITS: ClassVar[dict[str, Range]] = {"factor": (0.01, 100)}
    RANGES: ClassVar[dict[str, Range]] = {"factor": (0.9, 1.1)}

    def _changed(self, columns: Columns) -> Columns:
        mean = spread(columns)[0]
        return mean + (columns - mean) * self.factor


@dataclass(frozen=True)
class Offset(SeriesChange):
    """Add `amount` times its standard deviation to every channel."""

    amount: float

    LIMITS: ClassVar[dict[str, Range]] = {"amount": (-100, 100)}
    RANGES: ClassVar[dict[str, Range]] = {"amount": (-0.1, 0.1)}

    def _changed(self, columns: Columns) -> Columns:
        return columns + self.amount * spread(columns)[1]


@dataclass(frozen=True)
class TimeWarp(SeriesChange):
    """Vary the speed of time by a factor of up to 1 + `strength` in each direction; the length stays.

    The first and last steps stay in place, the order of steps stays, and all channels move together. Values between
    steps are interpolated linearly.
    """

    strength: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"strength": (0, 10)}
    RANGES: ClassVar[dict[str, Range]] = {"strength": (0.05, 0.2)}

    def _changed(self, columns: Columns) -> Columns:
        steps = len(columns)
        if steps < 3 or self.strength == 0:
            return columns
        exponents = np.random.default_rng(self.seed).uniform(-1, 1, SPEEDS)
        places = np.linspace(0, SPEEDS - 1, steps - 1)  # of the intervals between steps
        speeds = (1 + self.strength) ** np.interp(places, np.arange(SPEEDS), exponents)
        passed = np.concatenate([[0.0], np.cumsum(speeds)])
        times = passed * ((steps - 1) / passed[-1])
        return np.stack([np.interp(times, np.arange(steps), column) for column in columns.T], axis=1)


@dataclass(frozen=True)
class DropSamples(SeriesChange):
    """Drop a random `share` of the steps and hold the value before, as receivers do."""

    share: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"share": (0, 0.9)}
    RANGES: ClassVar[dict[str, Range]] = {"share": (0.01, 0.05)}

    def _changed(self, columns: Columns) -> Columns:
        steps = np.arange(len(columns))
        count = min(max(round(self.share * len(columns)), 1 if self.share > 0 else 0), len(columns) - 1)
        lost = np.random.default_rng(self.seed).permutation(steps[1:])[:count]
        held = steps.copy()
        held[lost] = 0
        return columns[np.maximum.accumulate(held)]


@dataclass(frozen=True)
class DropGap(SeriesChange):
    """Drop a `share` of the steps in one gap and hold the value before it.

    `where` is the position of the gap: 0 starts at the second step, 1 as late as possible.
    """

    where: float
    share: float

    LIMITS: ClassVar[dict[str, Range]] = {"where": (0, 1), "share": (0, 0.9)}
    RANGES: ClassVar[dict[str, Range]] = {"where": (0, 1), "share": (0.01, 0.05)}

    def _changed(self, columns: Columns) -> Columns:
        count = min(max(round(self.share * len(columns)), 1 if self.share > 0 else 0), len(columns) - 1)
        first = 1 + round(self.where * (len(columns) - 1 - count))
        changed = columns.copy()
        changed[first : first + count] = columns[first - 1]
        return changed


Kinds = tuple[type[SeriesChange], ...]

#: At most one of each is applied: amplitude, time, lost values and noise.
HEIGHT: Kinds = (Scale, Offset)
TIME: Kinds = (TimeWarp,)
LOSS: Kinds = (DropSamples, DropGap)
NOISE: Kinds = (Jitter,)
FAMILIES: tuple[Kinds, ...] = (HEIGHT, TIME, LOSS, NOISE)
KINDS: Kinds = HEIGHT + TIME + LOSS + NOISE


@dataclass(frozen=True)
class SeriesValidity:
    """The limits for a mutant of a series; `reason` says why it is rejected. Each channel is checked by itself."""

    #: The mutant may be this many times as long as the seed, and the seed as the mutant.
    max_stretch: float = 1.3
    #: Values may lie this far outside the seed's range, in standard deviations of the seed.
    max_beyond: float = 1.0
    #: The standard deviation may be this many times that of the seed, or the reverse.
    max_spread: float = 1.3

    def __post_init__(self) -> None:
        for name, least in (("max_stretch", 1), ("max_beyond", 0), ("max_spread", 1)):
            number(f"SeriesValidity: {name}", getattr(self, name), (least, np.inf))

    def reason(self, seed: Series, mutant: Series) -> str | None:
        """Why the mutant is rejected, in a few words; None if it is valid."""
        if seed.shape[1:] != mutant.shape[1:]:
            return f"other channels: {mutant.shape[1:]} where the seed has {seed.shape[1:]}"
        if len(mutant) * self.max_stretch < len(seed) or len(mutant) > len(seed) * self.max_stretch:
            return f"{'too short' if len(mutant) < len(seed) else 'too long'}: {len(mutant)} steps for {len(seed)}"
        ours, theirs = _columns(seed), _columns(mutant)
        missing = np.count_nonzero(~np.isfinite(theirs)) - np.count_nonzero(~np.isfinite(ours))
        if missing > 0 and len(seed) == len(mutant):
            return f"not finite: {missing} values more than in the seed"
        (_, deviation), (_, now) = spread(ours), spread(theirs)
        if np.any(now > deviation * self.max_spread) or np.any(now * self.max_spread < deviation):
            return "too far from the seed: swings of another size"
        room = self.max_beyond * deviation
        least, greatest = _ends(ours)
        low, high = _ends(theirs)
        if np.any(low < least - room) or np.any(high > greatest + room):
            return "too far from the seed: values beyond its own"
        return None


def spread(columns: Columns) -> tuple[Columns, Columns]:
    """The mean and standard deviation of the finite numbers of each column; 0 and 0 if there are none."""
    finite = np.isfinite(columns)
    count = np.maximum(finite.sum(0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(finite, columns, 0).sum(0) / count
        squares = np.square(np.where(finite, columns - mean, 0)).sum(0)
    return mean, np.sqrt(squares / count)


def _ends(columns: Columns) -> tuple[Columns, Columns]:
    """The smallest and largest finite number of each column; inf and -inf if there are none."""
    finite = np.isfinite(columns)
    least = np.where(finite, columns, np.inf).min(0, initial=np.inf)
    return least, np.where(finite, columns, -np.inf).max(0, initial=-np.inf)


def _columns(series: Any) -> Columns:
    if not isinstance(series, np.ndarray) or series.dtype.kind != "f" or series.ndim == 0:
        kind = f"{series.dtype} array of shape {series.shape}" if isinstance(series, np.ndarray) else type(series)
        raise InputError(f"a series must be a floating-point numpy array [time, ...], not a {kind}: convert it")
    return series.reshape(len(series), math.prod(series.shape[1:])).astype(np.float64)
