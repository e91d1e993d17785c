"""Augmentation of a batch of speech on the GPU: rooms, noise, other talkers, vocal tracts, gaps."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from deepcruiser.systems.builtin.speech.network import RATE, mask
from training.pool import sent

TEMPO = (0.86, 1.16)
#: Frames after a change of tempo are padded to a multiple of this, whatever the tempo, so that few shapes occur.
EVEN = 96


class Sounds:
    """Draws changes from a generator of its own; `noises` are recordings [count, samples] to put behind speech."""

    def __init__(self, device: torch.device, *, seed: int, noises: Tensor | None = None) -> None:
        self.device = device
        self.generator = torch.Generator(device).manual_seed(seed)
        self.rng = np.random.default_rng(seed)  # for what the CPU decides: to ask the GPU would be to wait for it
        self.noises = noises

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=self.generator, device=self.device)

    def waves(self, waves: Tensor, lengths: Tensor) -> Tensor:
        """Rooms and noise, each for a share of the batch."""
        lengths = sent(lengths, self.device)
        rows = len(waves)
        waves = waves / (rms(waves, lengths) + 1e-5)[:, None]
        if self.rng.random() < 0.5:
            waves = torch.where(self.uniform(0, 1, rows, 1) < 0.6, self.in_room(waves), waves)
        noise = self.noise(waves)
        level = 10 ** (-self.uniform(3, 35, rows, 1) / 20) * (self.uniform(0, 1, rows, 1) < 0.6)
        speech = rms(waves, lengths)[:, None]
        return (waves + noise * speech * level) * mask(lengths, waves.shape[1])

    def in_room(self, waves: Tensor) -> Tensor:
        """An echo that dies away in 0.1 to 0.6 s, behind the sound itself."""
        rows, samples = waves.shape
        size = RATE // 2
        seconds = torch.arange(size, device=self.device) / RATE
        decay = torch.exp(-6.9 * seconds / self.uniform(0.1, 0.6, rows, 1))
        tail = torch.randn(rows, size, generator=self.generator, device=self.device) * decay
        tail = tail * self.uniform(0.02, 0.25, rows, 1) * (seconds > self.uniform(0.001, 0.01, rows, 1))
        tail[:, 0] = 1
        length = 1 << (samples + size - 1).bit_length()
        spectrum = torch.fft.rfft(waves, length) * torch.fft.rfft(tail, length)
        heard: Tensor = torch.fft.irfft(spectrum, length)
        return heard[:, :samples]

    def noise(self, waves: Tensor) -> Tensor:
        """For each row noise of some colour, a recording, or the other talkers of the batch; at the power of 1."""
        rows, samples = waves.shape
        white = torch.randn(rows, samples, generator=self.generator, device=self.device)
        spectrum = torch.fft.rfft(white)
        bins = torch.arange(spectrum.shape[1], device=self.device).clamp(min=samples // 400) / spectrum.shape[1]
        coloured = torch.fft.irfft(spectrum * bins ** -self.uniform(0, 1.2, rows, 1), samples)
        talkers = waves.roll(1, 0)
        for others in range(2, 2 + int(self.rng.integers(5))):
            talkers = talkers + waves.roll(others, 0).roll(samples // others, 1)
        kind = self.uniform(0, 1, rows, 1)
        noise = torch.where(kind < 0.4, coloured, torch.where(kind < 0.7, talkers, self.recorded(rows, samples)))
        return noise / (noise.square().mean(1, keepdim=True).sqrt() + 1e-5)

    def recorded(self, rows: int, samples: int) -> Tensor:
        if self.noises is None:
            return torch.randn(rows, samples, generator=self.generator, device=self.device)
        which = torch.randint(len(self.noises), (rows, 1), generator=self.generator, device=self.device)
        start = (self.uniform(0, 1, rows, 1) * self.noises.shape[1]).long()
        places = (start + torch.arange(samples, device=self.device)) % self.noises.shape[1]
        return self.noises[which, places]

    def frames(self, frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Another tempo, and mel bins shifted as by a longer or shorter vocal tract; counts are on the CPU."""
        rows, longest, bins = frames.shape
        chosen = torch.from_numpy(self.rng.uniform(*TEMPO, rows).astype(np.float32))
        changed = (counts / chosen).long().clamp(min=1)
        after = math.ceil(longest / TEMPO[0] / EVEN) * EVEN
        tempo, throat = sent(chosen, self.device), self.uniform(0.88, 1.12, rows)
        time = torch.arange(after, device=self.device) * tempo[:, None]
        mel = torch.arange(bins, device=self.device) + 1.0
        lowest, highest = (2595 * math.log10(1 + hz / 700) for hz in (20, 7600))
        hz = 700 * (10 ** ((lowest + mel * (highest - lowest) / (bins + 1)) / 2595) - 1)
        moved = (2595 * (1 + hz * throat[:, None] / 700).log10() - lowest) * (bins + 1) / (highest - lowest) - 1
        grid = torch.stack(
            (
                (moved * 2 / (bins - 1) - 1)[:, None, :].expand(rows, after, bins),
                (time * 2 / (longest - 1) - 1)[:, :, None].expand(rows, after, bins),
            ),
            -1,
        )
        warped = functional.grid_sample(frames[:, None], grid, padding_mode="border", align_corners=True)
        return warped[:, 0], changed

    def gaps(self, frames: Tensor, counts: Tensor) -> Tensor:
        """SpecAugment: bands of bins and stretches of time set to the mean; a stretch for each second or so."""
        rows, longest, bins = frames.shape
        kept = torch.ones_like(frames, dtype=torch.bool)
        bin_at, time_at = torch.arange(bins, device=self.device), torch.arange(longest, device=self.device)
        for _ in range(2):
            width = self.uniform(0, 22, rows, 1)
            start = self.uniform(0, 1, rows, 1) * (bins - width)
            kept &= ((bin_at < start) | (bin_at >= start + width))[:, None, :]
        there = sent(counts, self.device)
        for _ in range(max(1, int(counts.max()) // 120)):
            width = self.uniform(0, 22, rows, 1)
            start = self.uniform(0, 1, rows, 1) * there[:, None]
            kept &= ((time_at < start) | (time_at >= start + width))[:, :, None]
        return frames * kept


def rms(waves: Tensor, lengths: Tensor) -> Tensor:
    """The root mean square of each row's own samples; what lies behind them is zero."""
    return (waves.square().sum(1) / lengths.clamp(min=1)).sqrt()
