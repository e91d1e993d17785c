"""The validity gate: it rejects mutants that people would not understand, because they are not the system's failures.

A mutant may differ from its seed in length, pitch and phase, so samples cannot be compared. The gate compares the
length with that of the seed's speech, the loudness, and the spectrum: levels in eight bands of the telephone range,
which is enough for words, moment by moment along the best alignment in time (dynamic time warping).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.errors import MismatchError
from deepcruiser.transformations.base import decibels, number, peak
from deepcruiser.transformations.unaffected import FRAME_SECONDS, MARGIN_SECONDS, frame_levels, loud

T = TypeVar("T")

#: Full scale minus the last of 16 bits; a sample that reaches it may have been clipped.
FULL_SCALE = 1 - 2**-15

#: Frames this much below the loudest one do not count as speech when the length of the seed's speech is measured.
SPEECH_DB = 30

#: The comparison is from the first to the last moment less than this below the loudest one. Few noises reach it, and
#: silence around the words, which is similar in all recordings, is left out.
CORE_DB = 25

#: Eight bands of the telephone range, equally wide on the mel scale.
LOWEST_HZ, HIGHEST_HZ, BANDS = 300, 3400, 8
WINDOW_SECONDS = 0.032

#: The distance between moments that are compared, or more for long audio. The level of a moment is the mean over a
#: little more than that, so that the position of the first moment hardly matters.
MOMENT_SECONDS = 0.048
MOST_MOMENTS = 250
OVERLAP = 5 / 3

#: 0 dB is the level that a tenth of the speech exceeds; levels this much below it count as silent.
LOUD_SHARE = 0.9
FLOOR_DB = 22


@dataclass(frozen=True)
class Validity:
    """The limits for a mutant; `reason` says why it is rejected.

    The defaults accept real speech after transformations in their default ranges, with room to spare, and reject audio
    that is no longer the same utterance; docs/transformations.md has the figures.
    """

    #: Shorter audio cannot contain a word.
    min_seconds: float = 0.1
    #: The loudest 20 ms must reach this level (full scale is 0).
    min_level_db: float = -60.0
    #: This share of the samples may be at full scale, besides those of the seed and a scaled peak.
    max_clipped: float = 0.001
    #: The mutant may be this many times as long as the seed, and the seed's speech this many times as long as it.
    max_stretch: float = 1.3
    #: The loudest 20 ms may be this much louder or softer than the seed's.
    max_level_change_db: float = 20.0
    #: Limit of the root mean square difference of the levels in the bands.
    max_distance_db: float = 4.25

    def __post_init__(self) -> None:
        for name, least in (("min_seconds", 0), ("min_level_db", -200), ("max_clipped", 0), ("max_stretch", 1)):
            number(f"Validity: {name}", getattr(self, name), (least, np.inf))
        for name in ("max_level_change_db", "max_distance_db"):
            number(f"Validity: {name}", getattr(self, name), (0, np.inf))

    def reason(self, seed: Audio, mutant: Audio) -> str | None:
        """Why the mutant is rejected, in a few words; None if it is valid."""
        if seed.rate != mutant.rate:
            raise MismatchError(f"the seed has {seed.rate} Hz and its mutant {mutant.rate} Hz; resample one of them")
        if mutant.seconds < self.min_seconds:
            return f"too short: {mutant.seconds:.2f} s"
        level_db = _loudest_db(mutant)
        if level_db < self.min_level_db:
            return "silent"
        if _at_full_scale(mutant) - _of_seed(_at_full_scale, seed) > 1 + self.max_clipped * len(mutant):
            return "clipped"
        speech_seconds = _of_seed(_speech_seconds, seed)
        if mutant.seconds * self.max_stretch < speech_seconds:
            return f"too short: {mutant.seconds:.2f} s for {speech_seconds:.2f} s of speech"
        if mutant.seconds > seed.seconds * self.max_stretch:
            return f"too long: {mutant.seconds:.2f} s for {seed.seconds:.2f} s"
        change_db = level_db - _of_seed(_loudest_db, seed)
        if abs(change_db) > self.max_level_change_db:
            return f"too far from the seed: {abs(change_db):.1f} dB {'louder' if change_db > 0 else 'softer'}"
        apart_db = distance_db(seed, mutant)
        return f"too far from the seed: {apart_db:.1f} dB" if apart_db > self.max_distance_db else None


#: The measurements of each seed while it is in use, because a seed is compared with many mutants.
_measured: WeakKeyDictionary[Audio, dict[Any, Any]] = WeakKeyDictionary()


def _of_seed(measure: Callable[..., T], seed: Audio, *arguments: float) -> T:
    """`measure(seed, *arguments)`, which is computed once."""
    results = _measured.setdefault(seed, {})
    key = (measure, *arguments)
    if key not in results:
        results[key] = measure(seed, *arguments)
    result: T = results[key]
    return result


def distance_db(seed: Audio, other: Audio) -> float:
    """The distance of two recordings of one rate: 0 if only the volume differs, 4 or more if the words differ."""
    seconds = max(MOMENT_SECONDS, max(seed.seconds, other.seconds) / MOST_MOMENTS)
    first, second = _of_seed(_moments, seed, seconds), _moments(other, seconds)
    squares = np.square(first).sum(1)[:, np.newaxis] + np.square(second).sum(1) - 2 * first @ second.T
    return float(np.sqrt(_warped(np.maximum(squares, 0) / BANDS)))


def _moments(audio: Audio, seconds: float) -> npt.NDArray[np.float64]:
    """The level in dB of each band at each moment, at least the floor."""
    from scipy import fft, ndimage, signal

    hop = max(1, round(WINDOW_SECONDS * audio.rate / 2))
    samples = audio.samples[loud(audio, CORE_DB, margin_seconds=MARGIN_SECONDS)]
    padded = np.pad(samples / np.float32(peak(samples) or 1), (hop, 3 * hop))
    frames = np.lib.stride_tricks.sliding_window_view(padded, 2 * hop)[::hop]
    power = np.square(np.abs(fft.rfft(frames * signal.get_window("hann", 2 * hop).astype(np.float32))))
    bands = (power @ _bands(hop, audio.rate)).astype(np.float64)
    step = max(1, round(seconds * audio.rate / hop))
    smooth = ndimage.uniform_filter1d(bands, max(1, round(step * OVERLAP)), axis=0, mode="nearest")
    reference = float(np.quantile(smooth.mean(1), LOUD_SHARE))
    return np.asarray(10 * np.log10(np.maximum(smooth[::step] / (reference or 1), 10 ** (-FLOOR_DB / 10))))


@lru_cache(maxsize=8)
def _bands(hop: int, rate: int) -> npt.NDArray[np.float32]:
    """The weight of each frequency in each band: triangles that overlap by half, equally wide on the mel scale."""
    mel = np.log1p(np.arange(hop + 1) * rate / (2 * hop) / 700)
    low, high = np.log1p(LOWEST_HZ / 700), np.log1p(HIGHEST_HZ / 700)
    at = (mel - low) / (high - low) * BANDS
    return np.asarray(np.maximum(0, 1 - np.abs(at[:, np.newaxis] - np.arange(BANDS) - 0.5)), dtype=np.float32)


def _warped(cost: npt.NDArray[np.float64]) -> float:
    """The mean cost along the cheapest path from corner to corner; a diagonal step counts twice.

    Computed one antidiagonal at a time, because its cells depend only on the two antidiagonals before it.
    """
    rows, columns = cost.shape
    # Row d of `here` is antidiagonal d: entry i + 1 is the cost of (i, d - i), or infinite without such a cell.
    here = np.full((rows + columns - 1, rows + 1), np.inf)
    row = np.arange(rows)[:, np.newaxis]
    here[row + np.arange(columns), row + 1] = cost
    twice = 2 * here
    before, last = np.full(rows + 1, np.inf), twice[0]
    aside, across = np.empty(rows), np.empty(rows)
    for diagonal in range(1, rows + columns - 1):
        now = here[diagonal]
        np.minimum(last[:-1], last[1:], out=aside)
        np.add(aside, now[1:], out=aside)
        np.add(before[:-1], twice[diagonal, 1:], out=across)
        np.minimum(aside, across, out=now[1:])
        before, last = last, now
    return float(last[rows] / (rows + columns))


def _speech_seconds(audio: Audio) -> float:
    speech = loud(audio, SPEECH_DB)
    return float((speech.stop - speech.start) / audio.rate)


def _loudest_db(audio: Audio) -> float:
    levels = frame_levels(audio.samples, max(1, round(FRAME_SECONDS * audio.rate)))
    return decibels(float(levels.max())) if len(levels) else -np.inf


def _at_full_scale(audio: Audio) -> int:
    return int(np.count_nonzero(np.abs(audio.samples) >= FULL_SCALE))
