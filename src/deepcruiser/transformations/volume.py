"""Volume: gain, low-pass filter and high-pass filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Samples, Transformation, amplitude, fitted

#: Order of the Butterworth filters: 24 dB per octave, steep enough and without ringing.
ORDER = 4


@dataclass(frozen=True)
class ChangeVolume(Transformation):
    """Make the audio louder (above 0 dB) or softer by `gain_db`, at most up to full scale."""

    gain_db: float

    LIMITS: ClassVar[dict[str, Range]] = {"gain_db": (-120, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"gain_db": (-10, 10)}

    def __call__(self, audio: Audio) -> Audio:
        if self.gain_db == 0:
            return audio
        return fitted(audio, audio.samples.astype(np.float64) * amplitude(self.gain_db))


@dataclass(frozen=True)
class LowPassFilter(Transformation):
    """Remove frequencies above `cutoff_hz`; the audio is unchanged if that is half the rate or more."""

    cutoff_hz: float

    LIMITS: ClassVar[dict[str, Range]] = {"cutoff_hz": (1, 1e6)}
    RANGES: ClassVar[dict[str, Range]] = {"cutoff_hz": (3400, 7000)}

    def __call__(self, audio: Audio) -> Audio:
        if self.cutoff_hz >= audio.rate / 2:
            return audio
        return fitted(audio, filtered(audio, self.cutoff_hz, "lowpass"))


@dataclass(frozen=True)
class HighPassFilter(Transformation):
    """Remove frequencies below `cutoff_hz`: none at 0, all at half the rate or more."""

    cutoff_hz: float

    LIMITS: ClassVar[dict[str, Range]] = {"cutoff_hz": (0, 1e6)}
    RANGES: ClassVar[dict[str, Range]] = {"cutoff_hz": (50, 300)}

    def __call__(self, audio: Audio) -> Audio:
        if self.cutoff_hz == 0:
            return audio
        if self.cutoff_hz >= audio.rate / 2:
            return audio.replace(np.zeros_like(audio.samples))
        return fitted(audio, filtered(audio, self.cutoff_hz, "highpass"))


def filtered(audio: Audio, cutoff_hz: float, kind: str, *, order: int = ORDER) -> Samples:
    """The samples after a Butterworth filter ('lowpass' or 'highpass')."""
    from scipy import signal

    if not len(audio):
        return np.zeros(0)  # scipy raises an error
    sections = signal.butter(order, cutoff_hz, kind, fs=audio.rate, output="sos")
    result: Samples = signal.sosfilt(sections, audio.samples.astype(np.float64))
    return result
