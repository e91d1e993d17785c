"""How good a recording is to test with: its level, its noise, its clipping and its length.

A seed that is soft, noisy or clipped is wrongly heard for reasons of its own, and what a transformation does to it is
no longer mild.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.transformations.base import decibels
from deepcruiser.transformations.unaffected import FRAME_SECONDS, frame_levels
from deepcruiser.transformations.validity import FULL_SCALE

#: Speech is the level that a tenth of the moments exceed; a tenth of them are below the level of noise.
_SPEECH, _NOISE = 0.9, 0.1


@dataclass(frozen=True)
class Quality:
    """Measurements of a recording; levels in dB with full scale at 0.

    `noise_db` is the level of the softest moments: without a pause it is that of soft speech. `clipped` is the share of
    the samples at full scale.
    """

    seconds: float
    level_db: float
    noise_db: float
    clipped: float

    @classmethod
    def of(cls, audio: Audio) -> Self:
        frame = max(1, round(FRAME_SECONDS * audio.rate))
        levels = frame_levels(audio.samples, frame)
        if len(levels):  # digital silence is not what a microphone recorded
            starts = np.arange(0, len(audio), frame)
            flat = np.maximum.reduceat(audio.samples, starts) == np.minimum.reduceat(audio.samples, starts)
            levels = levels[~flat]
        speech, noise = (decibels(float(np.quantile(levels, q))) if len(levels) else -np.inf for q in (_SPEECH, _NOISE))
        clipped = float(np.mean(np.abs(audio.samples) >= FULL_SCALE)) if len(audio) else 0.0
        return cls(audio.seconds, speech, noise, clipped)

    @property
    def snr_db(self) -> float:
        """How far the noise lies below the speech; not a number for silence."""
        return self.level_db - self.noise_db


@dataclass(frozen=True)
class QualityLimits:
    """The limits beyond which a recording is doubtful as a seed; `reasons` says why."""

    min_seconds: float = 0.5
    min_level_db: float = -45.0
    min_snr_db: float = 15.0
    max_clipped: float = 0.0005

    def reasons(self, quality: Quality) -> list[str]:
        """The reasons why the recording is doubtful, a word each; empty for a good one."""
        doubtful = {
            "short": quality.seconds < self.min_seconds,
            "soft": quality.level_db < self.min_level_db,
            "noisy": quality.snr_db < self.min_snr_db,
            "clipped": quality.clipped > self.max_clipped,
        }
        return [word for word, is_so in doubtful.items() if is_so]
