"""Transformations beyond the paper, off by default: recorded noise, reverberation and a telephone line."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from deepcruiser.audio import AUDIO_SUFFIXES, Audio
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.transformations.base import Range, Transformation, amplitude, fitted, peak
from deepcruiser.transformations.clearness import mixed
from deepcruiser.transformations.volume import filtered

#: The delay of the first echo of a small room.
FIRST_ECHO_SECONDS = 0.003

#: Companding as in G.711: 8 bits, mu = 255.
MU = 255.0
STEPS = 127


@dataclass(frozen=True)
class AddBackgroundNoise(Transformation):
    """Add a recording `snr_db` below the audio's level, starting at `start` (0 to 1) and repeated as needed.

    `digest` is the fingerprint of the recording, set when the change is drawn. A file that has changed since then is
    refused, because it would give other samples. Leave it empty to skip this check.
    """

    recording: str
    start: float
    snr_db: float
    digest: str = ""

    LIMITS: ClassVar[dict[str, Range]] = {"start": (0, 1), "snr_db": (-60, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"start": (0, 1), "snr_db": (30, 45)}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("recording", "digest"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"AddBackgroundNoise: {name} must be a text, not {getattr(self, name)!r}")

    def __call__(self, audio: Audio) -> Audio:
        noise = _recording(self.recording, audio.rate, *_version(self.recording))
        if self.digest and self.digest != _digest(self.recording):
            raise MismatchError(f"{self.recording} has changed: its digest was {self.digest}; restore the old file")
        first = int(self.start * len(noise))
        return mixed(audio, noise.samples.take(np.arange(first, first + len(audio)), mode="wrap"), self.snr_db)

    @classmethod
    def draw(cls, rng: np.random.Generator, *, folder: str | os.PathLike[str] | None = None, **ranges: Any) -> Self:
        """Draw a recording from the folder, the position to start at, and the level."""
        if folder is None:
            raise InputError("AddBackgroundNoise needs a folder of recordings: draw(rng, folder='noise')")
        files = (path for path in Path(folder).glob("*") if path.suffix.lower() in AUDIO_SUFFIXES and path.is_file())
        recordings = sorted(map(str, files))
        if not recordings:
            raise InputError(f"there are no recordings ({', '.join(AUDIO_SUFFIXES)}) in the folder {folder}")
        recording = recordings[int(rng.integers(len(recordings)))]
        chosen = cls._drawn(rng, ranges)
        return cls(recording, **chosen, digest=_digest(recording))


@dataclass(frozen=True)
class Reverb(Transformation):
    """Add the reverberation of a room that decays by 60 dB in `rt60_seconds`, `direct_db` below the direct sound.

    The impulse response is decaying noise (Polack's model), drawn from `seed`. The tail after the end is cut off.
    """

    rt60_seconds: float
    direct_db: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"rt60_seconds": (0.01, 10), "direct_db": (-60, 120)}
    RANGES: ClassVar[dict[str, Range]] = {"rt60_seconds": (0.1, 0.3), "direct_db": (10, 20)}

    def __call__(self, audio: Audio) -> Audio:
        from scipy import signal

        first = round(FIRST_ECHO_SECONDS * audio.rate)
        count = round(self.rt60_seconds * audio.rate)
        if count == 0 or len(audio) <= first:
            return audio
        seconds = np.arange(count) / audio.rate
        room = np.random.default_rng(self.seed).standard_normal(count) * 10 ** (-3 * seconds / self.rt60_seconds)
        room *= amplitude(-self.direct_db) / np.sqrt(np.sum(np.square(room)))
        samples = audio.samples.astype(np.float64)
        echo = signal.fftconvolve(samples, room)[: len(audio) - first]
        samples[first:] += echo
        return fitted(audio, samples)


@dataclass(frozen=True)
class Telephone(Transformation):
    """Keep the band from `low_hz` to `high_hz`, and round to the 8 bits of a telephone line (mu-law of G.711)."""

    low_hz: float
    high_hz: float

    LIMITS: ClassVar[dict[str, Range]] = {"low_hz": (0, 2000), "high_hz": (2000, 1e6)}
    RANGES: ClassVar[dict[str, Range]] = {"low_hz": (150, 300), "high_hz": (3300, 3800)}

    def __call__(self, audio: Audio) -> Audio:
        band = audio
        if 0 < self.low_hz < audio.rate / 2:
            band = fitted(band, filtered(band, self.low_hz, "highpass"))
        if self.high_hz < audio.rate / 2:
            band = fitted(band, filtered(band, self.high_hz, "lowpass", order=10))
        loudest = peak(band.samples)
        if loudest == 0:
            return band
        samples = band.samples.astype(np.float64) / loudest
        code = np.rint(np.log1p(MU * np.abs(samples)) / np.log1p(MU) * STEPS)
        return fitted(audio, np.copysign(np.expm1(code / STEPS * np.log1p(MU)) / MU, samples) * loudest)


def _version(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0  # reading the file will raise the error
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=32)
def _recording(path: str, rate: int, *version: int) -> Audio:
    """The recording at a rate; read again if the version of the file changes."""
    return Audio.read(path).resample(rate)


@lru_cache(maxsize=1024)
def _crc(path: str, *version: int) -> str:
    return f"{zlib.crc32(Audio.read(path).samples.tobytes()):08x}"


def _digest(path: str) -> str:
    return _crc(path, *_version(path))
