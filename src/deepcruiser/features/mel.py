"""Log-mel features: bands of equal width on the mel scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.features.spectrum import FrontEnd, at_least, one_of

Array = npt.NDArray[np.float64]
Triangles = Literal["hz", "mel", "tensorflow", "bins"]

#: Slaney's scale: 200/3 Hz a mel up to 1000 Hz, then 27 mel for every factor of 6.4.
SLANEY_HZ, SLANEY_MEL, SLANEY_STEP = 1000.0, 15.0, np.log(6.4) / 27


@dataclass(frozen=True, kw_only=True)
class LogMel(FrontEnd):
    """The logarithm of the power in `bins` bands of equal width on the mel scale. Other settings: see `FrontEnd`.

    * `low_hz`, `high_hz`: where the first band begins and the last one ends; `high_hz` defaults to half the rate.
    * `mel`: the scale, "htk" or "slaney". `equal_area`: divide each band by half its width in Hz, as Slaney does.
    * `triangles`: the sides of the bands are straight over "hz" (librosa, torchaudio) or "mel" (Kaldi); "tensorflow"
      is "mel" without the lowest bins, which TensorFlow's Mfcc omits; "bins" puts the corners on whole bins of the
      Fourier transform (python_speech_features).
    """

    bins: int = 80
    low_hz: float = 0.0
    high_hz: float | None = None
    mel: Literal["htk", "slaney"] = "htk"
    equal_area: bool = False
    triangles: Triangles = "hz"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("bins", self.bins, 1)
        one_of("mel", self.mel, ("htk", "slaney"))
        one_of("triangles", self.triangles, ("hz", "mel", "tensorflow", "bins"))
        if not 0 <= self.low_hz < self._high <= self.rate / 2:
            raise InputError(
                f"low_hz {self.low_hz} and high_hz {self._high} must lie between 0 and {self.rate / 2}, half the rate"
            )

    @classmethod
    def kaldi(cls, *, rate: int = 16000, bins: int = 40) -> Self:
        """The result of Kaldi's compute-fbank-feats without dither and energy, for samples between -1 and 1."""
        return cls(
            rate=rate,
            gain=32768.0,
            taper="povey",
            preemphasis=0.97,
            per_frame=True,
            floor=float(np.finfo(np.float32).tiny),
            bins=bins,
            low_hz=20.0,
            triangles="mel",
        )

    @property
    def _high(self) -> float:
        return self.rate / 2 if self.high_hz is None else self.high_hz

    @property
    def _width(self) -> int:
        return self.bins

    def _bands(self, spectrum: Tensor) -> Tensor:
        weights = filters(
            self.bins, self.rate, self.fft, self.low_hz, self._high, self.mel, self.triangles, self.equal_area
        )
        return spectrum @ torch.from_numpy(weights).to(spectrum.device)


@lru_cache(maxsize=64)
def filters(
    bins: int, rate: int, fft: int, low_hz: float, high_hz: float, mel: str, triangles: str, equal_area: bool
) -> Array:
    """[fft // 2 + 1, bins]: how much of each frequency goes into each band."""
    to_mel, to_hz = SCALES[mel]
    mels = np.linspace(to_mel(low_hz), to_mel(high_hz), bins + 2)
    corners = to_hz(mels)
    places = np.arange(fft // 2 + 1) * (rate / fft)
    if triangles == "bins":
        corners = np.floor((fft + 1) * corners / rate)
        places = np.arange(fft // 2 + 1, dtype=np.float64)
    elif triangles in ("mel", "tensorflow"):
        corners, places = mels, to_mel(places)
    rising = np.diff(corners)[:-1]
    falling = np.diff(corners)[1:]
    with np.errstate(divide="ignore", invalid="ignore"):  # no slope between two corners on one bin
        up = np.where(rising > 0, (places[:, None] - corners[:-2]) / rising, places[:, None] >= corners[1:-1])
        down = np.where(falling > 0, (corners[2:] - places[:, None]) / falling, places[:, None] < corners[1:-1])
    weights = np.maximum(0, np.minimum(up, down))
    if triangles == "tensorflow":
        weights[: int(1.5 + low_hz * fft / rate)] = 0
    if equal_area:
        edges = to_hz(mels)
        weights *= 2 / (edges[2:] - edges[:-2])
    return np.asarray(weights, dtype=np.float64)


def htk_mel(hz: Any) -> Any:
    return 2595 * np.log10(1 + np.asarray(hz) / 700)


def htk_hz(mel: Any) -> Any:
    return 700 * (10 ** (np.asarray(mel) / 2595) - 1)


def slaney_mel(hz: Any) -> Any:
    hz = np.asarray(hz, dtype=np.float64)
    above = SLANEY_MEL + np.log(np.maximum(hz, SLANEY_HZ) / SLANEY_HZ) / SLANEY_STEP
    return np.where(hz < SLANEY_HZ, hz * SLANEY_MEL / SLANEY_HZ, above)


def slaney_hz(mel: Any) -> Any:
    mel = np.asarray(mel, dtype=np.float64)
    above = SLANEY_HZ * np.exp(SLANEY_STEP * (np.maximum(mel, SLANEY_MEL) - SLANEY_MEL))
    return np.where(mel < SLANEY_MEL, mel * SLANEY_HZ / SLANEY_MEL, above)


SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "htk": (htk_mel, htk_hz),
    "slaney": (slaney_mel, slaney_hz),
}
