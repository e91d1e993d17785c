"""Unaffected: the samples change, but volume, speed and clearness do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import Range, Samples, Transformation, fitted, peak

#: The gain of the compressor starts to fall this long before a loud sound, so that no onset is missed; its attack...
AHEAD_SECONDS = 0.01
ATTACK_SECONDS = 0.003
#: ...and the time after the sound in which it recovers by 8.7 dB.
RELEASE_SECONDS = 0.1

#: Length of the frames whose levels are compared, and the margin kept before the first and after the last loud frame:
#: words often begin and end with a much softer breath.
FRAME_SECONDS = 0.02
MARGIN_SECONDS = 0.1


@dataclass(frozen=True)
class DRC(Transformation):
    """Dynamic range compression: above `threshold_db` (0 is the peak), `ratio` dB of input become 1 dB of output.

    The overall level stays the same, so quiet sounds become louder and loud ones softer.
    """

    threshold_db: float
    ratio: float

    LIMITS: ClassVar[dict[str, Range]] = {"threshold_db": (-80, 0), "ratio": (1, 20)}
    RANGES: ClassVar[dict[str, Range]] = {"threshold_db": (-25, -10), "ratio": (1.5, 3)}

    def __call__(self, audio: Audio) -> Audio:
        loudest = peak(audio.samples)
        if self.ratio == 1 or self.threshold_db == 0 or loudest == 0:
            return audio
        samples = audio.samples.astype(np.float64) / loudest
        compressed = samples * self._gain(samples, audio.rate)
        makeup = np.sqrt(np.sum(np.square(samples)) / np.sum(np.square(compressed)))
        return fitted(audio, compressed * (makeup * loudest))

    def _gain(self, samples: Samples, rate: int) -> Samples:
        """The gain by the smooth, decoupled peak detector of Giannoulis, Massberg and Reiss (2012), with look-ahead.

        A level that falls by `step` dB per sample after each peak is a running maximum plus that slope: no loop needed.
        """
        from scipy import signal

        floor = 10 ** (self.threshold_db / 20)  # softer samples have no effect
        db = 20 * np.log10(np.maximum(np.abs(samples), floor))
        step = 20 / np.log(10) / (RELEASE_SECONDS * rate)
        slope = step * np.arange(len(samples))
        held = np.maximum.accumulate(db + slope) - slope
        excess = np.maximum(held - self.threshold_db, 0)
        keep = np.exp(-1 / (ATTACK_SECONDS * rate))
        ahead = round(AHEAD_SECONDS * rate)
        smooth = signal.lfilter([1 - keep], [1, -keep], np.pad(excess, (0, ahead), mode="edge"))[ahead:]
        gain: Samples = np.exp(smooth * ((1 / self.ratio - 1) * np.log(10) / 20))
        return gain


@dataclass(frozen=True)
class Trim(Transformation):
    """Cut both ends where they are `top_db` or more below the loudest moment; pauses inside stay."""

    top_db: float

    LIMITS: ClassVar[dict[str, Range]] = {"top_db": (1, 200)}
    RANGES: ClassVar[dict[str, Range]] = {"top_db": (30, 50)}

    def __call__(self, audio: Audio) -> Audio:
        span = self._kept(audio)
        return audio if span == slice(0, len(audio)) else audio.replace(audio.samples[span])

    def moved(self, seconds: Samples, audio: Audio) -> Samples:
        return seconds - float(self._kept(audio).start / audio.rate)

    def _kept(self, audio: Audio) -> slice:
        return loud(audio, self.top_db, margin_seconds=MARGIN_SECONDS)


def loud(audio: Audio, top_db: float, *, margin_seconds: float = 0.0) -> slice:
    """The samples from the first to the last frame less than `top_db` below the loudest; all of them if silent."""
    frame = max(1, round(FRAME_SECONDS * audio.rate))
    levels = frame_levels(audio.samples, frame)
    if not len(levels) or levels.max() == 0:
        return slice(0, len(audio))
    above = np.flatnonzero(levels > levels.max() * 10 ** (-top_db / 20))
    margin = round(margin_seconds * audio.rate)
    start, stop = int(above[0]) * frame - margin, (int(above[-1]) + 1) * frame + margin
    return slice(max(0, start), min(len(audio), stop))


def frame_levels(samples: npt.NDArray[np.floating], frame: int) -> Samples:
    """The root mean square of each frame about the overall mean; the last frame may be shorter."""
    if not len(samples):
        return np.zeros(0)
    centred = samples.astype(np.float64) - np.mean(samples, dtype=np.float64)
    starts = np.arange(0, len(samples), frame)
    sums = np.add.reduceat(np.square(centred), starts)
    return np.asarray(np.sqrt(sums / np.diff(np.append(starts, len(samples)))))
