"""Mel-frequency cepstral coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.features.mel import LogMel
from deepcruiser.features.spectrum import at_least, one_of

Norm = Literal["ortho", "htk", "none"]


@dataclass(frozen=True, kw_only=True)
class MFCC(LogMel):
    """The first `coefficients` of the cosine transform of log-mel `bins`. Other settings: see `LogMel`.

    * `norm`: "ortho" as in scipy and librosa; "htk" (and TensorFlow), where the first coefficient is larger by the
      square root of 2; "none" for twice the plain sum, as in scipy.
    * `lifter`: multiply coefficient n by 1 + lifter / 2 * sin(pi * n / lifter); 0 turns it off.
    * `energy`: replace the first coefficient by the logarithm of the frame's power.
    """

    coefficients: int = 13
    norm: Norm = "ortho"
    lifter: float = 0.0
    energy: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("coefficients", self.coefficients, 1)
        one_of("norm", self.norm, ("ortho", "htk", "none"))
        if self.coefficients > self.bins:
            raise InputError(
                f"{self.coefficients} coefficients need at least as many bins, not {self.bins}; raise bins="
            )

    @classmethod
    def deepspeech(cls, *, rate: int = 16000, window_ms: float = 32.0, step_ms: float = 20.0, context: int = 0) -> Self:
        """The 26 coefficients of Mozilla DeepSpeech (from 0.4) and Coqui STT, by TensorFlow's audio operations."""
        return cls(
            rate=rate,
            window_ms=window_ms,
            step_ms=step_ms,
            context=context,
            power=1.0,
            bins=40,
            low_hz=20.0,
            triangles="tensorflow",
            floor=1e-12,
            coefficients=26,
            norm="htk",
        )

    @classmethod
    def librosa(
        cls,
        *,
        rate: int = 22050,
        coefficients: int = 20,
        fft_size: int = 2048,
        step_samples: int = 512,
        bins: int = 128,
        padding: Literal["zeros", "reflect"] = "zeros",
    ) -> Self:
        """The defaults of `librosa.feature.mfcc`; before version 0.10 it padded with "reflect"."""
        return cls(
            rate=rate,
            window_samples=fft_size,
            step_samples=step_samples,
            fft_size=fft_size,
            padding=padding,
            decibels=True,
            top_db=80.0,
            bins=bins,
            mel="slaney",
            equal_area=True,
            coefficients=coefficients,
        )

    @classmethod
    def speech_features(
        cls,
        *,
        rate: int = 16000,
        window_ms: float = 25.0,
        step_ms: float = 10.0,
        coefficients: int = 13,
        bins: int = 26,
        fft_size: int = 512,
        taper: Literal["rectangular", "hamming-symmetric"] = "rectangular",
    ) -> Self:
        """The result of `python_speech_features.mfcc` for samples between -1 and 1."""
        return cls(
            rate=rate,
            window_ms=window_ms,
            step_ms=step_ms,
            fft_size=fft_size,
            taper=taper,
            padding="end",
            preemphasis=0.97,
            scaling="fft",
            floor=float(np.finfo(np.float64).eps),
            bins=bins,
            triangles="bins",
            coefficients=coefficients,
            lifter=22.0,
            energy=True,
        )

    @property
    def _width(self) -> int:
        return self.coefficients

    def _finish(self, logs: Tensor, spectrum: Tensor) -> Tensor:
        cosines = torch.from_numpy(transform(self.bins, self.coefficients, self.norm, self.lifter))
        values = logs @ cosines.to(logs.device)
        if self.energy:
            values[..., 0] = self._log(spectrum.sum(-1, keepdim=True))[..., 0]
        return values


@lru_cache(maxsize=64)
def transform(
    bins: int, coefficients: int, norm: Norm, lifter: float
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The matrix [bins, coefficients] of cosines, with the factor of each coefficient."""
    numbers = np.arange(coefficients)
    cosines = np.cos(np.pi / bins * np.outer(np.arange(bins) + 0.5, numbers))
    factors = np.full(coefficients, 2.0 if norm == "none" else np.sqrt(2 / bins))
    if norm == "ortho":
        factors[0] /= np.sqrt(2)
    if lifter:
        factors *= 1 + lifter / 2 * np.sin(np.pi * numbers / lifter)
    return np.asarray(cosines * factors)
