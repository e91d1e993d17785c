"""The base of all front ends: from samples to frames to the logarithm of their spectrum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError

Taper = Literal["hann", "hann-symmetric", "hamming", "hamming-symmetric", "povey", "rectangular"]
Padding = Literal["none", "end", "zeros", "reflect"]
Scaling = Literal["none", "fft", "density"]

#: Raised cosines: (a - b cos(...)) ** power.
COSINES = {
    "hann": (0.5, 0.5, 1.0),
    "hamming": (0.54, 0.46, 1.0),
    "povey": (0.5, 0.5, 0.85),
    "rectangular": (1.0, 0.0, 1.0),
}


@dataclass(frozen=True, kw_only=True)
class FrontEnd(ABC):
    """The settings of a front end. Called with a signal it gives [frames, size], with a batch [batch, frames, size].

    A signal is an `Audio` (resampled to `rate` if needed), a numpy array or a torch tensor on any device. The result
    is of the same type (numpy for `Audio`) and precision; it is computed in double precision, so that arrays, CPUs and
    GPUs agree. Pad the signals of a batch with zeros at the end; `frames(length)` is the number of frames of a row.

    * `window_ms`, `step_ms`: length and distance of the frames; `window_samples` and `step_samples` override them.
    * `gain`: samples are multiplied by this first; 32768 for front ends made for whole numbers of 16 bits.
    * `fft_size`: by default the next power of two that holds the window. `taper`: the shape of the window; "hann" and
      "hamming" are periodic, the symmetric ones are those of `np.hanning` and `np.hamming`; "povey" is Kaldi's.
    * `padding`: "none" uses whole windows only; "end" adds zeros until the last sample is in a frame; "zeros" and
      "reflect" centre frame t at sample t * step, with zeros or the mirrored signal beyond the ends.
    * `preemphasis`: x[t] - preemphasis * x[t-1]. `per_frame`: each frame loses its mean, and then has a pre-emphasis of
      its own, in which its first sample precedes itself, as in Kaldi. `power`: 2 for power, 1 for magnitude.
      `scaling`: "fft" divides the power by `fft_size`, "density" gives power per Hz, one-sided.
    * The logarithm is log(max(value, floor) + offset), or 10 log10 with `decibels`; then values more than `top_db`
      below the signal's maximum are raised to that level.
    * `context`: number of frames on either side that are put beside each frame, zeros beyond the ends.
    """

    rate: int = 16000
    window_ms: float = 25.0
    step_ms: float = 10.0
    window_samples: int | None = None
    step_samples: int | None = None
    fft_size: int | None = None
    gain: float = 1.0
    taper: Taper = "hann"
    padding: Padding = "none"
    preemphasis: float = 0.0
    per_frame: bool = False
    power: float = 2.0
    scaling: Scaling = "none"
    floor: float = 1e-10
    offset: float = 0.0
    decibels: bool = False
    top_db: float | None = None
    context: int = 0

    def __post_init__(self) -> None:
        one_of("taper", self.taper, get_args(Taper))
        one_of("padding", self.padding, ("none", "end", "zeros", "reflect"))
        one_of("scaling", self.scaling, ("none", "fft", "density"))
        at_least("rate", self.rate, 1)
        at_least("window", self.window, 2)
        at_least("step", self.step, 1)
        at_least("fft_size", self.fft, self.window)
        at_least("context", self.context, 0)
        if not self.power > 0:
            raise InputError(f"power must be above 0 (2 for power, 1 for magnitude), not {self.power}")
        if not (self.floor >= 0 and self.offset >= 0 and self.floor + self.offset > 0):
            raise InputError(f"floor {self.floor} and offset {self.offset} must be 0 or more and one above 0")

    @property
    def window(self) -> int:
        """The number of samples in a frame."""
        return self.window_samples if self.window_samples is not None else round(self.window_ms * self.rate / 1000)

    @property
    def step(self) -> int:
        """The number of samples from one frame to the next."""
        return self.step_samples if self.step_samples is not None else round(self.step_ms * self.rate / 1000)

    @property
    def fft(self) -> int:
        """The length of the Fourier transform."""
        return self.fft_size if self.fft_size is not None else 1 << (self.window - 1).bit_length()

    @property
    def size(self) -> int:
        """The number of values in a row of the result."""
        return self._width * (2 * self.context + 1)

    def frames(self, samples: int) -> int:
        """The number of frames of a signal with this many samples."""
        if self.padding == "none":
            return max(0, (samples - self.window) // self.step + 1)
        if self.padding == "end":
            return 0 if samples == 0 else max(0, -((self.window - samples) // self.step)) + 1
        return max(0, (samples + self.fft // 2 * 2 - self.fft) // self.step + 1)

    def __call__(self, signal: Any) -> Any:
        if isinstance(signal, Audio):
            signal = (signal if signal.rate == self.rate else signal.resample(self.rate)).samples
        if isinstance(signal, np.ndarray):
            result: Tensor = self(torch.from_numpy(np.ascontiguousarray(signal)))
            return result.numpy()
        if not isinstance(signal, Tensor):
            raise InputError(f"a signal must be an Audio, a numpy array or a tensor, not a {type(signal).__name__}")
        if signal.ndim not in (1, 2):
            raise InputError(f"a signal must have the shape (samples,) or (batch, samples), not {tuple(signal.shape)}")
        if not signal.is_floating_point():
            raise InputError(f"samples must be floating-point numbers, not {signal.dtype}; divide int16 by 32768")
        spectrum = self._spectrum(signal.double())
        values = beside(self._finish(self._log(self._bands(spectrum)), spectrum), self.context)
        return values if signal.dtype == torch.float64 else values.float()

    def _spectrum(self, signal: Tensor) -> Tensor:
        """The power of the Fourier transform, [..., frames, fft // 2 + 1]."""
        signal = signal * self.gain
        if self.preemphasis and not self.per_frame:
            before = torch.nn.functional.pad(signal[..., :-1], (1, 0))[..., : signal.shape[-1]]
            signal = signal - self.preemphasis * before
        count = self.frames(signal.shape[-1])
        if count == 0:
            return signal.new_zeros((*signal.shape[:-1], 0, self.fft // 2 + 1))
        first = self.fft // 2 - (self.fft - self.window) // 2 if self.padding in ("zeros", "reflect") else 0
        missing = (count - 1) * self.step + self.window - first - signal.shape[-1]
        signal = padded(signal, first, max(0, missing), mirrored=self.padding == "reflect")
        windows = signal.unfold(-1, self.window, self.step)[..., :count, :]
        if self.per_frame:
            windows = windows - windows.mean(-1, keepdim=True)
            windows = windows - self.preemphasis * torch.cat((windows[..., :1], windows[..., :-1]), -1)
        shape = tapered(self.taper, self.window).to(signal.device)
        transformed = torch.fft.rfft(windows * shape, n=self.fft)
        spectrum: Tensor = transformed.real.square() + transformed.imag.square()
        if self.scaling == "fft":
            spectrum = spectrum / self.fft
        elif self.scaling == "density":
            # One-sided: frequencies other than 0 Hz and half the rate include their negative counterparts.
            spectrum[..., 1 : (self.fft + 1) // 2] *= 2
            spectrum = spectrum / (shape.square().sum() * self.rate)
        return spectrum if self.power == 2 else spectrum.pow(self.power / 2)

    def _log(self, values: Tensor) -> Tensor:
        values = values.clamp(min=self.floor) + self.offset
        if not self.decibels:
            return values.log()
        values = 10 * values.log10()
        if self.top_db is None or values.shape[-2] == 0:
            return values
        return values.maximum(values.amax((-2, -1), keepdim=True) - self.top_db)

    @property
    @abstractmethod
    def _width(self) -> int:
        """The number of values in a row without context."""

    def _bands(self, spectrum: Tensor) -> Tensor:
        """The values to take the logarithm of."""
        return spectrum

    def _finish(self, logs: Tensor, spectrum: Tensor) -> Tensor:
        """The features made from the logarithm."""
        return logs


@dataclass(frozen=True, kw_only=True)
class LogSpectrogram(FrontEnd):
    """The logarithm of the power spectrum, `fft_size // 2 + 1` values per frame. Settings: see `FrontEnd`."""

    @classmethod
    def ba_dls(cls) -> Self:
        """The features of Baidu's ba-dls-deepspeech: 161 bins of power per Hz, 20 ms windows of np.hanning every 10 ms.

        Keras recognisers based on it normalise each bin by its mean and deviation in their training data.
        """
        return cls(window_ms=20, fft_size=320, taper="hann-symmetric", scaling="density", floor=0.0, offset=1e-14)

    @property
    def _width(self) -> int:
        return self.fft // 2 + 1


@lru_cache(maxsize=64)
def tapered(taper: Taper, size: int) -> Tensor:
    """The shape of the window."""
    kind, _, symmetric = taper.partition("-")
    level, swing, power = COSINES[kind]
    whole = size - 1 if symmetric or kind == "povey" else size
    angles = 2 * torch.pi * torch.arange(size, dtype=torch.float64) / whole
    return (level - swing * angles.cos()).clamp(min=0) ** power


def padded(signal: Tensor, before: int, after: int, *, mirrored: bool) -> Tensor:
    """The signal padded with zeros, or mirrored at its first and last sample."""
    samples = signal.shape[-1]
    if not mirrored or samples == 0:
        return torch.nn.functional.pad(signal, (before, after))
    period = max(1, 2 * (samples - 1))
    places = torch.arange(-before, samples + after, device=signal.device) % period
    return signal[..., torch.minimum(places, period - places) if samples > 1 else places]


def beside(rows: Tensor, context: int) -> Tensor:
    """Every row with `context` rows on either side, in order of time."""
    if context == 0:
        return rows
    around = torch.nn.functional.pad(rows, (0, 0, context, context))
    return around.unfold(-2, 2 * context + 1, 1).transpose(-1, -2).flatten(-2)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise an error if the value is not one of the choices."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def at_least(name: str, value: int, least: int) -> None:
    """Raise an error unless the value is a whole number of at least `least`."""
    if not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of {least} or more, not {value!r}")
