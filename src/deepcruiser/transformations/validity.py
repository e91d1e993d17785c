"""The gate that keeps mutants which nobody would understand out of a campaign: they are no failures of the system.

A mutant may be longer or shorter than its seed, higher or lower, shifted by a filter or by the silence that was cut,
so the samples cannot be compared. What can: how long it is against the speech of the seed, how loud it is, and its
sound as such: levels in eight bands of the telephone's range, which is enough for words, moment by moment, along the
best alignment in time (dynamic time warping).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.errors import MismatchError
from deepcruiser.transformations.base import decibels, number, peak
from deepcruiser.transformations.unaffected import FRAME_SECONDS, MARGIN_SECONDS, frame_levels, loud

#: Full scale but for the last of 16 bits; a sample that reaches it was, or might have been, cut off.
FULL_SCALE = 1 - 2**-15

#: What is this much below the loudest moment is no speech when it comes to how long the seed's speech is.
SPEECH_DB = 30

#: What is compared begins and ends with the first and the last moment less than this below the loudest: few noises
#: reach it, and silence around the words, which is easily alike, has no say.
CORE_DB = 25

#: Eight bands, equally wide to the ear, of what a telephone lets through.
LOWEST_HZ, HIGHEST_HZ, BANDS = 300, 3400, 8
WINDOW_SECONDS = 0.032

#: The levels of all moments this far apart are compared, or further, so that there are never too many of them; each is
#: the mean over a little more than that, so that it hardly matters where the first moment lies.
MOMENT_SECONDS = 0.048
MOST_MOMENTS = 250
OVERLAP = 5 / 3

#: 0 dB is the level that a tenth of the speech exceeds, and what is this much below counts as silent, whatever it is.
LOUD_SHARE = 0.9
FLOOR_DB = 22


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
    #: This share of the samples may be at full scale, beyond those of the seed and one to which a peak was scaled.
    max_clipped: float = 0.001
    #: The mutant may be so many times as long as the seed, and the seed's speech so many times as long as the mutant.
    max_stretch: float = 1.3
    #: The loudest 20 ms may be this much louder or softer than the seed's.
    max_level_change_db: float = 20.0
    #: The root mean square difference of the levels in the bands.
    max_distance_db: float = 4.25

    def __post_init__(self) -> None:
        for name, least in (("min_seconds", 0), ("min_level_db", -200), ("max_clipped", 0), ("max_stretch", 1)):
            number(f"Validity: {name}", getattr(self, name), (least, np.inf))
        for name in ("max_level_change_db", "max_distance_db"):
            number(f"Validity: {name}", getattr(self, name), (0, np.inf))

    def reason(self, seed: Audio, mutant: Audio) -> str | None:
        """Why the mutant is not worth a run, in a few words; None when it is."""
        if seed.rate != mutant.rate:
            raise MismatchError(f"the seed has {seed.rate} Hz and its mutant {mutant.rate} Hz; resample one of them")
        if mutant.seconds < self.min_seconds:
            return f"too short: {mutant.seconds:.2f} s"
        level_db = _loudest_db(mutant)
        if level_db < self.min_level_db:
            return "silent"
        if _at_full_scale(mutant) - _at_full_scale(seed) > 1 + self.max_clipped * len(mutant):
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
    """How far apart two sounds of one rate are: 0 when only the volume differs, 4 or more when the words do."""
    seconds = max(MOMENT_SECONDS, max(one.seconds, other.seconds) / MOST_MOMENTS)
    first, second = _moments(one, seconds), _moments(other, seconds)
    squares = np.square(first).sum(1)[:, np.newaxis] + np.square(second).sum(1) - 2 * first @ second.T
    return float(np.sqrt(_warped(np.maximum(squares, 0) / BANDS)))


def _moments(audio: Audio, seconds: float) -> npt.NDArray[np.float64]:
    """The level in dB of each band in each moment; none is below the floor."""
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
    """The share of each frequency in each band: triangles that overlap by half, equally wide on the mel scale."""
    mel = np.log1p(np.arange(hop + 1) * rate / (2 * hop) / 700)
    low, high = np.log1p(LOWEST_HZ / 700), np.log1p(HIGHEST_HZ / 700)
    at = (mel - low) / (high - low) * BANDS
    return np.asarray(np.maximum(0, 1 - np.abs(at[:, np.newaxis] - np.arange(BANDS) - 0.5)), dtype=np.float32)


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
    return float(last[rows] / (rows + columns))


def _loudest_db(audio: Audio) -> float:
    levels = frame_levels(audio.samples, max(1, round(FRAME_SECONDS * audio.rate)))
    return decibels(float(levels.max())) if len(levels) else -np.inf


def _at_full_scale(audio: Audio) -> int:
    return int(np.count_nonzero(np.abs(audio.samples) >= FULL_SCALE))
