"""Speed: change the tempo and keep the pitch, or change the pitch and keep the tempo.

Both use Signalsmith Stretch, which keeps speech natural where a plain phase vocoder does not. It works in blocks of
0.12 s. Audio shorter than one block is returned unchanged, and so is audio below 1,000 Hz, where the blocks become so
small that it may not terminate. Without a change it returns almost, but not exactly, its input, so it is not called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from python_stretch.Signalsmith import Stretch

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Samples, Transformation, fitted, peak

SHORTEST_SECONDS = 0.12
LOWEST_RATE = 1000


@dataclass(frozen=True)
class PitchShift(Transformation):
    """Raise (above 0) or lower the pitch by `semitones`; the tempo and the length stay."""

    semitones: float

    LIMITS: ClassVar[dict[str, Range]] = {"semitones": (-12, 12)}
    RANGES: ClassVar[dict[str, Range]] = {"semitones": (-2, 2)}

    def __call__(self, audio: Audio) -> Audio:
        return audio if self.semitones == 0 else stretched(audio, semitones=self.semitones)


@dataclass(frozen=True)
class ChangeSpeed(Transformation):
    """Play `factor` times as fast; the pitch stays, and the length is divided by `factor`."""

    factor: float

    LIMITS: ClassVar[dict[str, Range]] = {"factor": (0.25, 4)}
    RANGES: ClassVar[dict[str, Range]] = {"factor": (0.85, 1.15)}

    def __call__(self, audio: Audio) -> Audio:
        return audio if self.factor == 1 else stretched(audio, factor=self.factor)

    def moved(self, seconds: Samples, audio: Audio) -> Samples:
        return seconds if _is_too_short(audio) else seconds / self.factor


def stretched(audio: Audio, *, factor: float = 1.0, semitones: float = 0.0) -> Audio:
    if _is_too_short(audio):
        return audio
    # It computes squares in float32, which would overflow for very loud samples.
    scale = max(1.0, peak(audio.samples))
    stretch = Stretch(0)  # 0 seeds its own noise, which it uses above twofold stretching
    stretch.preset(1, audio.rate)
    stretch.setTransposeSemitones(semitones)
    stretch.setTimeFactor(factor)
    changed = np.asarray(stretch.process((audio.samples / np.float32(scale))[np.newaxis]))[0]
    return fitted(audio, changed.astype(np.float64) * scale)


def _is_too_short(audio: Audio) -> bool:
    return audio.seconds < SHORTEST_SECONDS or audio.rate < LOWEST_RATE
