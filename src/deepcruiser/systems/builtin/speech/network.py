"""The recogniser's network: log-mel frames through convolutions and unidirectional LSTMs to letters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepcruiser.features import LogMel

#: The symbols of the network, in the order of its outputs; the blank of CTC comes last.
ALPHABET = " abcdefghijklmnopqrstuvwxyz'"
BLANK = len(ALPHABET)
RATE = 16_000

#: 10 ms frames of log-mel energies. The floor is that of the quiet between words at the loudness of `front`.
MEL = LogMel(
    rate=RATE, taper="hann-symmetric", padding="zeros", bins=80, low_hz=20, high_hz=7_600, floor=0, offset=3e-5
)

#: Every recording is scaled to this root mean square first.
LOUDNESS = 0.05
#: Number of quiet 10 ms frames after every recording, because a letter is often written late.
TRAIL = 30
#: 10 ms frames in one step of the LSTMs.
STRIDE = 3


@dataclass(frozen=True)
class Shape:
    """The sizes of a `Recogniser`; the default ones are those of the built-in network."""

    width: int = 512
    layers: int = 4
    blocks: int = 3
    hidden: int = 768
    channels: tuple[int, int] = (32, 64)
    kernel: int = 11


class Recogniser(nn.Module):
    """Sound to letters: `net(waves, lengths)` gives the scores [batch, steps, letters and blank].

    Two convolutions over time and frequency make 30 ms steps of 10 ms frames, blocks of depthwise convolutions look
    half a second ahead and back, and LSTMs that read forward only carry the state. What lies behind a recording's
    end is masked wherever a convolution could see it, so that neighbours in a batch never change a result.
    """

    def __init__(self, shape: Shape = Shape()) -> None:
        super().__init__()
        self.shape = shape
        width, (first, second) = shape.width, shape.channels
        self.first = nn.Conv2d(1, first, 5, stride=(1, 2), padding=2)
        self.second = nn.Conv2d(first, second, 3, stride=(STRIDE, 2), padding=1)
        self.inward = nn.Linear(second * MEL.bins // 4, width)
        self.inward_norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, shape.hidden, shape.kernel) for _ in range(shape.blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(shape.layers))
        self.lstms = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(shape.layers))
        self.middle_norm = nn.LayerNorm(width)
        self.outward_norm = nn.LayerNorm(width)
        self.outward = nn.Linear(width, len(ALPHABET) + 1)
        self.dropout = nn.Dropout(0.0)
        self.early_dropout = nn.Dropout(0.0)

    @staticmethod
    def steps(samples: int) -> int:
        """The number of steps that the LSTMs make of a number of samples."""
        return (MEL.frames(samples) + TRAIL - 1) // STRIDE + 1

    @staticmethod
    def steps_of(counts: Tensor) -> Tensor:
        """The same of numbers of frames."""
        return (counts + TRAIL - 1) // STRIDE + 1

    def forward(self, waves: Tensor, lengths: Tensor) -> Tensor:
        frames, counts = front(waves, lengths.to(waves.device))
        return self.scores(frames, counts)[0]

    def scores(self, frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of normalised frames [batch, time, bins], and in training those of the middle layer too."""
        x = functional.pad(frames, (0, 0, 0, TRAIL))[:, None]
        x = functional.gelu(self.first(x)) * mask(counts + TRAIL, x.shape[2])[:, None, :, None]
        x = functional.gelu(self.second(x))
        own = mask(self.steps_of(counts), x.shape[2])[:, :, None]
        x = self.early_dropout(self.inward_norm(self.inward(x.permute(0, 2, 1, 3).flatten(2)))) * own
        for block in self.blocks:
            x = block(x, self.early_dropout) * own
        middle = x
        for number, (norm, lstm) in enumerate(zip(self.norms, self.lstms, strict=True), 1):
            x = x + self.dropout(lstm(norm(x))[0])
            middle = x if number == len(self.lstms) // 2 else middle
        middle = self.outward(self.middle_norm(middle)) if self.training else middle
        return self.outward(self.outward_norm(x)), middle


class Block(nn.Module):
    """A depthwise convolution over time and two dense layers, beside the way straight through."""

    def __init__(self, width: int, hidden: int, kernel: int) -> None:
        super().__init__()
        self.over_time = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor, dropout: nn.Module) -> Tensor:
        around = self.norm(self.over_time(x.transpose(1, 2)).transpose(1, 2))
        y: Tensor = dropout(self.down(dropout(functional.gelu(self.up(around)))))
        return x + y


def front(waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Normalised log-mel frames [batch, time, bins] of padded samples [batch, time], and how many each has."""
    return normalised(*log_mel(waves, lengths))


def log_mel(waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Log-mel frames at equal loudness."""
    waves = waves * mask(lengths, waves.shape[1])
    power = waves.square().sum(1) / lengths.clamp(min=1)
    waves = waves * (LOUDNESS / (power.sqrt() + 1e-5))[:, None]
    frames: Tensor = MEL(waves)
    return frames, lengths // MEL.step + 1  # MEL.frames, for all at once


def normalised(frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean 0 and deviation 1 of every bin over a recording's own frames; zeros behind them."""
    own = mask(counts, frames.shape[1])[..., None]
    n = counts[:, None, None]
    centred = (frames - (frames * own).sum(1, keepdim=True) / n) * own
    deviation = (centred.square().sum(1, keepdim=True) / n).sqrt()
    return centred / (deviation + 0.1), counts


def mask(lengths: Tensor, longest: int) -> Tensor:
    """True where a row of a batch is its own, False if it is padding."""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]
