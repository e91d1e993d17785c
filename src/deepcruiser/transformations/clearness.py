"""Clearness: added noise, and removed hiss and clicks of consonants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Transformation, amplitude, fitted, level, peak

#: Windows of 64 ms resolve the harmonics of a voice; four of them overlap.
WINDOW_SECONDS = 0.064
OVERLAP = 4
SMALLEST_WINDOW = 16

#: Long sounds are harmonic and broad ones percussive: medians over this many windows and this many frequencies.
WIDTH = 17
#: Number of medians that are computed at a time, so that they stay in the processor's cache.
_BLOCK = 2**14

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class AddWhiteNoise(Transformation):
    """Add white noise `snr_db` below the level of the whole audio (lower is noisier); silence stays silent."""

    snr_db: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"snr_db": (-60, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"snr_db": (30, 45)}

    def __call__(self, audio: Audio) -> Audio:
        noise = np.random.default_rng(self.seed).standard_normal(len(audio), dtype=np.float32)
        return mixed(audio, noise, self.snr_db)


@dataclass(frozen=True)
class ExtractHarmonic(Transformation):
    """Keep the harmonic part (the voice) and remove the share `amount` of the rest, 0 to 1."""

    amount: float

    LIMITS: ClassVar[dict[str, Range]] = {"amount": (0, 1)}
    RANGES: ClassVar[dict[str, Range]] = {"amount": (0.2, 0.7)}

    def __call__(self, audio: Audio) -> Audio:
        loudest = peak(audio.samples)
        if self.amount == 0 or loudest == 0:
            return audio
        # With a peak of 1, no square overflows or vanishes, and the result does not depend on the volume.
        samples = audio.samples.astype(np.float64) / loudest
        return fitted(audio, (samples - self.amount * percussive(samples, audio.rate)) * loudest)


def mixed(audio: Audio, noise: npt.NDArray[np.float32], snr_db: float) -> Audio:
    """The audio plus noise of the same length, scaled to be exactly `snr_db` below it."""
    speech_level, noise_level = level(audio.samples), level(noise)
    if speech_level == 0 or noise_level == 0:
        return audio
    gain = speech_level / noise_level * amplitude(-snr_db)
    return fitted(audio, audio.samples.astype(np.float64) + noise * np.float64(gain))


def percussive(samples: npt.NDArray[np.float64], rate: int) -> npt.NDArray[np.float64]:
    """The part that is broad in frequency and short in time (Fitzgerald's median filters with soft masks)."""
    from scipy import fft, signal

    hop = max(SMALLEST_WINDOW, round(WINDOW_SECONDS * rate)) // OVERLAP
    size = hop * OVERLAP
    window = signal.get_window("hann", size)
    padded = np.pad(samples, (size, size + -len(samples) % hop))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    spectrum = fft.rfft((frames * window).astype(np.float32))
    power = np.square(np.abs(spectrum))
    broad, lasting = medians(power.T).T, medians(power)
    # The medians of powers are the powers of the medians, so these are the soft masks of the magnitudes' squares.
    mask = broad / np.maximum(broad + lasting, np.finfo(np.float32).tiny)
    parts = fft.irfft(spectrum * mask, n=size).reshape(-1, OVERLAP, hop)
    whole = np.zeros((len(frames) + OVERLAP - 1, hop))
    for part, shape in enumerate(window.reshape(OVERLAP, hop)):
        whole[part : part + len(frames)] += parts[:, part] * shape
    # Squared Hann windows, a quarter apart, add up to 3/2.
    return whole.ravel()[size : size + len(samples)] / 1.5


def medians(values: Rows) -> Rows:
    """The running median of 17 rows; beyond the first and the last row, the rows are mirrored."""
    margin = WIDTH // 2
    padded = np.pad(values, ((margin, margin), (0, 0)), mode="symmetric")
    result = np.empty_like(values)
    columns = max(1, _BLOCK // len(padded))
    for start in range(0, values.shape[1], columns):
        block = slice(start, start + columns)
        result[:, block] = _medians(padded[:, block].copy(order="K"))
    return result


def _medians(rows: Rows) -> Rows:
    """The median of every 17 rows that follow one another.

    Whole rows are compared, and neighbouring windows share most of the sorting: sorted pairs make sorted fours, these
    make eights, and a window is two eights and its last row. This is faster than to sort one value after another.
    """
    ordered = [rows]  # the 1, 2, 4, 8 rows from each row on, in ascending order
    while len(ordered) < WIDTH // 2:
        ordered = _merged(ordered, [each[len(ordered) :] for each in ordered])
    later = [each[WIDTH // 2 :] for each in reversed(ordered)]
    # Of two sorted eights, the eight smallest are the minima of first and last, second and last but one, and so on.
    pairs = [_sorted(a, b) for a, b in zip(ordered, later, strict=True)]
    low = reduce(np.maximum, [pair[0] for pair in pairs])
    high = reduce(np.minimum, [pair[1] for pair in pairs])
    return np.minimum(np.maximum(low[:-1], rows[WIDTH - 1 :]), high[:-1])


def _sorted(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    a = a[: len(b)]
    return np.minimum(a, b), np.maximum(a, b)


def _merged(a: list[Rows], b: list[Rows]) -> list[Rows]:
    """Two sorted lists as one, by Batcher's odd-even merge."""
    if len(a) == 1:
        return [*_sorted(a[0], b[0])]
    even, odd = _merged(a[::2], b[::2]), _merged(a[1::2], b[1::2])
    inner = [each for one, other in zip(even[1:], odd, strict=False) for each in _sorted(one, other)]
    return [even[0], *inner, odd[-1]]
