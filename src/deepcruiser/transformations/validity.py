"""The gate that keeps mutants which nobody would understand out of a campaign: they are no failures of the system.

A mutant may be longer or shorter than its seed, higher or lower, shifted by a filter or by the silence that was cut, so
the samples cannot be compared. What can: how long it is against the speech of the seed, how loud it is, and its sound as
such: levels in eight bands of the telephone's range, which is enough for words, moment by moment, along the best
alignment in time (dynamic time warping).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.transformations.transformation import decibels, peak
from deepcruiser.transformations.unaffected import FRAME_SECONDS, frame_levels, loud

#: Full scale but for the last of 16 bits; a sample that reaches it was, or might have been, cut off.
FULL_SCALE = 1 - 2**-15

#: What is this much below the loudest moment is no speech when it comes to how long the seed's speech is.
SPEECH_DB = 30

#: Eight bands, equally wide to the ear, of what a telephone lets through.
LOWEST_HZ, HIGHEST_HZ, BANDS = 300, 3400, 8
WINDOW_SECONDS = 0.032

#: Levels are averaged over moments of this length, or longer ones, so that there are never too many.
MOMENT_SECONDS = 0.08
MOST_MOMENTS = 250

#: What is this much below the loudest moment counts as silent, whatever is in it.
FLOOR_DB = 30


@dataclass(frozen=True)
class Validity:
    """What a mutant may be; `reason` says why one is not.

    The default limits hold for whatever the default ranges make of real speech, with room to spare, and stop what is no
    longer the same utterance; docs/transformations.md has the figures.
    """

    #: Shorter audio holds no word.
    min_seconds: float = 0.1
    #: The loudest 20 ms must reach this, with full scale at 0.
    min_level_db: float = -60.0
    #: This share of the samples, beyond the seed's own, may be at full scale.
    max_clipped: float = 0.001
    #: The mutant may be this many times as long as the seed, and the seed's speech this many times as long as the mutant.
    max_stretch: float = 1.3
    #: The loudest 20 ms may be this much louder or softer than the seed's.
    max_level_change_db: float = 20.0
    #: The root mean square difference of the levels in the bands.
    max_distance_db: float = 5.0

    def __post_init__(self) -> None:
        for name, least in (("min_seconds", 0), ("max_clipped", 0), ("max_stretch", 1), ("max_distance_db", 0)):
            if not getattr(self, name) >= least:
                raise InputError(f"{name} must be {least} or more, not {getattr(self, name)!r}")

    def reason(self, seed: Audio, mutant: Audio) -> str | None:
        """Why the mutant is not worth a run, in a few words; None when it is."""
        if seed.rate != mutant.rate:
            raise MismatchError(f"the seed has {seed.rate} Hz and its mutant {mutant.rate} Hz; resample one of them")
        if mutant.seconds < self.min_seconds:
            return f"too short: {mutant.seconds:.2f} s"
        level_db = _loudest_db(mutant)
        if level_db < self.min_level_db:
            return "silent"
        if _clipped(mutant) - _clipped(seed) > self.max_clipped:
            return "clipped"
        speech = loud(seed, SPEECH_DB)
        speech_seconds = (speech.stop - speech.start) / seed.rate
        if mutant.seconds * self.max_stretch < speech_seconds:
            return f"too short: {mutant.seconds:.2f} s for {speech_seconds:.2f} s of speech"
        if mutant.seconds > seed.seconds * self.max_stretch:
            return f"too long: {mutant.seconds:.2f} s for {seed.seconds:.2f} s"
        change_db = level_db - _loudest_db(seed)
        if abs(change_db) > self.max_level_change_db:
            return f"too far from the seed: {abs(change_db):.1f} dB {'louder' if change_db > 0 else 'softer'}"
        apart_db = distance_db(seed, mutant)
        return f"too far from the seed: {apart_db:.1f} dB" if apart_db > self.max_distance_db else None


def distance_db(one: Audio, other: Audio) -> float:
    """How far apart two sounds of the same rate are: 0 for the same but for volume, 6 or more for other words."""
    step = max(MOMENT_SECONDS, max(one.seconds, other.seconds) / MOST_MOMENTS)
    first, second = _moments(one, step), _moments(other, step)
    squares = np.square(first).sum(1)[:, np.newaxis] + np.square(second).sum(1) - 2 * first @ second.T
    return float(np.sqrt(_warped(np.maximum(squares, 0) / BANDS)))


def _moments(audio: Audio, seconds: float) -> npt.NDArray[np.float64]:
    """The level in dB of each band in each moment; 0 is that of the loudest moment's bands, and none is below the floor."""
    hop = max(1, round(WINDOW_SECONDS * audio.rate / 2))
    padded = np.pad(audio.samples / np.float32(peak(audio.samples) or 1), (hop, 3 * hop))
    frames = np.lib.stride_tricks.sliding_window_view(padded, 2 * hop)[::hop]
    power = np.square(np.abs(fft.rfft(frames * signal.get_window("hann", 2 * hop).astype(np.float32))))
    bands = power @ _bands(hop, audio.rate)
    count = max(1, round(seconds * audio.rate / hop))
    starts = np.arange(0, len(bands), count)
    energy = np.add.reduceat(bands, starts, dtype=np.float64) / np.diff(np.append(starts, len(bands)))[:, np.newaxis]
    loudest = energy.mean(1).max()
    return np.asarray(10 * np.log10(np.maximum(energy / (loudest or 1), 10 ** (-FLOOR_DB / 10))))


@lru_cache(maxsize=8)
def _bands(hop: int, rate: int) -> npt.NDArray[np.float32]:
    """The share of each frequency in each band: triangles that overlap by half, equally wide on the mel scale."""
    mel = np.log1p(np.arange(hop + 1) * rate / (2 * hop) / 700)
    low, high = np.log1p(LOWEST_HZ / 700), np.log1p(HIGHEST_HZ / 700)
    at = (mel - low) / (high - low) * BANDS
    return np.maximum(0, 1 - np.abs(at[:, np.newaxis] - np.arange(BANDS) - 0.5)).astype(np.float32)


def _warped(cost: npt.NDArray[np.float64]) -> float:
    """The mean cost along the cheapest path from corner to corner; a step aside counts 1, one ahead in both counts 2.

    Diagonal by diagonal, for the cells of one depend only on the two before it.
    """
    rows, columns = cost.shape
    flipped = np.ascontiguousarray(cost[:, ::-1])
    before = last = np.full(rows + 1, np.inf)  # by row, one earlier: entry i + 1 is row i
    for diagonal in range(rows + columns - 1):
        first, stop = max(0, diagonal - columns + 1), min(rows, diagonal + 1)
        here = flipped.diagonal(columns - 1 - diagonal)
        now = np.full(rows + 1, np.inf)
        if diagonal == 0:
            now[1] = 2 * here[0]
        else:
            aside = np.minimum(last[first:stop], last[first + 1 : stop + 1])
            now[first + 1 : stop + 1] = np.minimum(aside + here, before[first:stop] + 2 * here)
        before, last = last, now
    return float(last[rows]) / (rows + columns)


def _loudest_db(audio: Audio) -> float:
    levels = frame_levels(audio.samples, max(1, round(FRAME_SECONDS * audio.rate)))
    return decibels(float(levels.max())) if len(levels) else -np.inf


def _clipped(audio: Audio) -> float:
    """The share of samples at full scale; a single one, which a transformation may have scaled to it, does not count."""
    return max(0, int(np.count_nonzero(np.abs(audio.samples) >= FULL_SCALE)) - 1) / max(1, len(audio))
