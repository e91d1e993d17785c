"""Changes of numeric series that keep what they tell: arrays of floating-point numbers, [time] or [time, channels].

Nothing is known of a series' units, so each change is measured by the channel's own mean and deviation. The shape and
the precision stay; what is not a number (a missing value) has no say and stays none.
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

#: A warped series has so many places of its own speed, the ends included.
SPEEDS = 5


@dataclass(frozen=True)
class SeriesChange(Change):
    """A change of a numeric series that keeps what it tells: the same value, the same numbers."""

    def __call__(self, series: Series) -> Series:
        """The changed series, in the same shape and precision; the very same object when it has no numbers."""
        columns = _columns(series)
        if not columns.size:
            return series
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what the precision cannot hold becomes infinite, and the gate rejects it
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
    """Make all swings about the channel's mean `factor` times as large."""

    factor: float

    LIMITS: ClassVar[dict[str, Range]] = {"factor": (0.01, 100)}
    RANGES: ClassVar[dict[str, Range]] = {"factor": (0.9, 1.1)}

    def _changed(self, columns: Columns) -> Columns:
        mean = spread(columns)[0]
        return mean + (columns - mean) * self.factor


@dataclass(frozen=True)
class Offset(SeriesChange):
    """Move every channel by `amount` times its deviation, up or, below 0, down."""

    amount: float

    LIMITS: ClassVar[dict[str, Range]] = {"amount": (-100, 100)}
    RANGES: ClassVar[dict[str, Range]] = {"amount": (-0.1, 0.1)}

    def _changed(self, columns: Columns) -> Columns:
        return columns + self.amount * spread(columns)[1]


@dataclass(frozen=True)
class TimeWarp(SeriesChange):
    """Let time pass faster here and slower there, by up to 1 + `strength` each way before all is fitted to the length.

    The first and the last step stay where they are, no step overtakes another, and all channels go together. Between
    steps the series is a straight line, so no value lies beyond its neighbours.
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
        places = np.linspace(0, SPEEDS - 1, steps - 1)  # of the ways between steps
        speeds = (1 + self.strength) ** np.interp(places, np.arange(SPEEDS), exponents)
        passed = np.concatenate([[0.0], np.cumsum(speeds)])
        times = passed * ((steps - 1) / passed[-1])
        return np.stack([np.interp(times, np.arange(steps), column) for column in columns.T], axis=1)


@dataclass(frozen=True)
class DropSamples(SeriesChange):
    """Lose a `share` of the steps, one here and one there; the last value before is held, as receivers do."""

    share: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"share": (0, 0.9)}
    RANGES: ClassVar[dict[str, Range]] = {"share": (0.01, 0.05)}

    def _changed(self, columns: Columns) -> Columns:
        steps = np.arange(len(columns))
        count = min(max(round(self.share * len(columns)), self.share > 0), len(columns) - 1)
        lost = np.random.default_rng(self.seed).permutation(steps[1:])[:count]
        held = steps.copy()
        held[lost] = 0
        return columns[np.maximum.accumulate(held)]


@dataclass(frozen=True)
class DropGap(SeriesChange):
    """Lose a `share` of the steps in one piece, which begins at `where`: 0 at the second step, 1 as late as it fits.

    The last value before is held.
    """

    where: float
    share: float

    LIMITS: ClassVar[dict[str, Range]] = {"where": (0, 1), "share": (0, 0.9)}
    RANGES: ClassVar[dict[str, Range]] = {"where": (0, 1), "share": (0.01, 0.05)}

    def _changed(self, columns: Columns) -> Columns:
        count = min(max(round(self.share * len(columns)), self.share > 0), len(columns) - 1)
        first = 1 + round(self.where * (len(columns) - 1 - count))
        changed = columns.copy()
        changed[first : first + count] = columns[first - 1]
        return changed


Kinds = tuple[type[SeriesChange], ...]

#: At most one of each may come: the height of the swings, their times, what is lost, and noise.
HEIGHT: Kinds = (Scale, Offset)
TIME: Kinds = (TimeWarp,)
LOSS: Kinds = (DropSamples, DropGap)
NOISE: Kinds = (Jitter,)
FAMILIES: tuple[Kinds, ...] = (HEIGHT, TIME, LOSS, NOISE)
KINDS: Kinds = HEIGHT + TIME + LOSS + NOISE


@dataclass(frozen=True)
class SeriesValidity:
    """What a mutant of a series may be; `reason` says why one is not. Each channel is looked at by itself."""

    #: The mutant may be so many times as long as the seed, and the seed as the mutant.
    max_stretch: float = 1.3
    #: It may go this far beyond the seed's least and greatest value, in deviations of the seed.
    max_beyond: float = 1.0
    #: Its deviation may be so many times the seed's, or the seed's its.
    max_spread: float = 1.3

    def __post_init__(self) -> None:
        for name, least in (("max_stretch", 1), ("max_beyond", 0), ("max_spread", 1)):
            number(f"SeriesValidity: {name}", getattr(self, name), (least, np.inf))

    def reason(self, seed: Series, mutant: Series) -> str | None:
        """Why the mutant is not worth a run, in a few words; None when it is."""
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
    """The mean and the deviation of each column's finite numbers; 0 and 0 where there are none."""
    finite = np.isfinite(columns)
    count = np.maximum(finite.sum(0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(finite, columns, 0).sum(0) / count
        squares = np.square(np.where(finite, columns - mean, 0)).sum(0)
    return mean, np.sqrt(squares / count)


def _ends(columns: Columns) -> tuple[Columns, Columns]:
    """The least and the greatest finite number of each column; infinities the wrong way round where there are none."""
    finite = np.isfinite(columns)
    least = np.where(finite, columns, np.inf).min(0, initial=np.inf)
    return least, np.where(finite, columns, -np.inf).max(0, initial=-np.inf)


def _columns(series: Any) -> Columns:
    if not isinstance(series, np.ndarray) or series.dtype.kind != "f" or series.ndim == 0:
        given = f"{series.dtype} array of shape {series.shape}" if isinstance(series, np.ndarray) else type(series)
        raise InputError(f"a series must be a floating-point numpy array [time, ...], not a {given}: convert it")
    return series.reshape(len(series), math.prod(series.shape[1:])).astype(np.float64)
