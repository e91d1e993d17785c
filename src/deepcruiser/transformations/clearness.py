"""Clearness: added noise, and removed hiss and clicks of consonants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Transformation, amplitude, fitted, level, peak

#: Windows of 64 ms resolve the harmonics of a voice; four of them overlap.
WINDOW_SECONDS = 0.064
OVERLAP = 4
SMALLEST_WINDOW = 16

#: Long sounds are harmonic and broad ones percussive: medians over this many windows and frequencies.
WINDOWS = 17
FREQUENCIES = 17


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
    broad, lasting = medians(power, FREQUENCIES), medians(power.T, WINDOWS).T
    # The medians of powers are the powers of the medians, so these are the soft masks of the magnitudes' squares.
    mask = broad / np.maximum(broad + lasting, np.finfo(np.float32).tiny)
    parts = fft.irfft(spectrum * mask, n=size) * window
    whole = np.zeros((len(frames) + OVERLAP - 1, hop))
    for part in range(OVERLAP):
        whole[part : part + len(frames)] += parts[:, part * hop : (part + 1) * hop]
    # Squared Hann windows, a quarter apart, add up to 3/2.
    return whole.ravel()[size : size + len(samples)] / 1.5


def medians(rows: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """The running median of `count` along each row.

    The rows are joined, each between its own mirror images: scipy is ten times as fast on one long row.
    """
    from scipy import ndimage

    margin = count // 2
    long = np.pad(rows, ((0, 0), (margin, margin)), mode="symmetric")
    result: npt.NDArray[np.float32] = ndimage.median_filter(long.ravel(), size=count, mode="nearest")
    return result.reshape(long.shape)[:, margin : margin + rows.shape[1]]
