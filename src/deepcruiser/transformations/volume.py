"""Volume: louder and softer, and what a filter takes away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Samples, Transformation, amplitude, fitted

#: Butterworth, 24 dB an octave: beyond the cutoff it is soon quiet, and it does not ring.
ORDER = 4


@dataclass(frozen=True)
class ChangeVolume(Transformation):
    """Make everything louder (above 0 dB) or softer by `gain_db`; never louder than full scale allows."""

    gain_db: float

    LIMITS: ClassVar[dict[str, Range]] = {"gain_db": (-120, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"gain_db": (-10, 10)}

    def __call__(self, audio: Audio) -> Audio:
        if self.gain_db == 0:
            return audio
        return fitted(audio, audio.samples.astype(np.float64) * amplitude(self.gain_db))


@dataclass(frozen=True)
class LowPassFilter(Transformation):
    """Take away what lies above `cutoff_hz`; nothing does from half the rate on, so the audio is unchanged there."""

    cutoff_hz: float

    LIMITS: ClassVar[dict[str, Range]] = {"cutoff_hz": (1, 1e6)}
    RANGES: ClassVar[dict[str, Range]] = {"cutoff_hz": (3400, 7000)}

    def __call__(self, audio: Audio) -> Audio:
        if self.cutoff_hz >= audio.rate / 2:
            return audio
        return fitted(audio, filtered(audio, self.cutoff_hz, "lowpass"))


@dataclass(frozen=True)
class HighPassFilter(Transformation):
    """Take away what lies below `cutoff_hz`: nothing at 0, and everything from half the rate on."""

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
    """What a Butterworth filter ('lowpass' or 'highpass') lets through."""
    from scipy import signal

    if not len(audio):
        return np.zeros(0)  # which scipy refuses
    sections = signal.butter(order, cutoff_hz, kind, fs=audio.rate, output="sos")
    result: Samples = signal.sosfilt(sections, audio.samples.astype(np.float64))
    return result
