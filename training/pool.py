"""All training speech in one tensor on the GPU, growing while shards appear, and batches drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from deepcruiser.systems.builtin.speech.network import RATE
from training.shards import Utterance, read_shard, spelled

#: Batches that are drawn at a time, and sorted by length.
AHEAD = 24


@dataclass
class Batch:
    """Padded samples on the device; texts, and the lengths of both, where the loss wants them: on the CPU."""

    waves: Tensor
    lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    utterances: list[Utterance]


@dataclass
class Pool:
    """Utterances by share (the part of a shard's name before its dot), their samples end to end in `store`."""

    folder: Path
    device: torch.device
    hours: float
    store: Tensor = field(init=False)
    used: int = 0
    shares: dict[str, list[Utterance]] = field(default_factory=dict)
    seconds: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    seen: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = torch.empty(int(self.hours * 3600 * 16_000), dtype=torch.int16, device=self.device)

    def refresh(self, limit: int = 1_000_000) -> None:
        """Take in the shards that have appeared, at most `limit` of them."""
        for path in sorted(set(self.folder.glob("*.json")) - self.seen)[:limit]:
            utterances, samples = read_shard(path)
            if self.used + len(samples) > len(self.store):
                return
            self.seen.add(path)
            self.store[self.used : self.used + len(samples)] = torch.from_numpy(samples).to(self.device)
            share = self.shares.setdefault(path.name.split(".")[0], [])
            share += [
                Utterance(each.id, each.text, each.voice, each.start + self.used, each.samples) for each in utterances
            ]
            self.used += len(samples)
        self.seconds = {name: np.array([each.seconds for each in share]) for name, share in self.shares.items()}

    def hours_of(self, share: str) -> float:
        return float(self.seconds[share].sum()) / 3600

    def batch(self, utterances: list[Utterance]) -> Batch:
        """A batch padded to whole seconds, so that cuDNN and cuFFT see only a few shapes and cache their plans."""
        longest = math.ceil(max(each.seconds for each in utterances)) * RATE
        lengths = torch.tensor([each.samples for each in utterances])
        starts = sent(torch.tensor([each.start for each in utterances]), self.device)
        places = torch.arange(longest, device=self.device)
        own = places < sent(lengths, self.device)[:, None]
        waves = self.store[torch.where(own, starts[:, None] + places, 0)].float() / 32768 * own
        targets = [spelled(each.text) for each in utterances]
        sizes = torch.tensor([len(each) for each in targets])
        return Batch(waves, lengths, torch.from_numpy(np.concatenate(targets)), sizes, utterances)

    def batches(
        self, mix: Mapping[str, float], rng: np.random.Generator, *, seconds: float, most: int, longest: float
    ) -> Iterator[Batch]:
        """A few dozen batches of like lengths: utterances drawn by share of time, none over `longest` seconds."""
        chosen: list[Utterance] = []
        for share, part in mix.items():
            lengths = self.seconds.get(share, np.zeros(0))
            fit = np.flatnonzero((lengths >= 0.3) & (lengths <= longest))
            if len(fit):
                count = round(part * seconds * AHEAD / lengths[fit].mean())
                chosen += [self.shares[share][number] for number in rng.choice(fit, size=count)]
        chosen.sort(key=lambda each: each.samples, reverse=True)
        groups: list[list[Utterance]] = []
        while chosen:
            size = max(1, min(most, int(seconds / math.ceil(chosen[0].seconds))))
            group, chosen = chosen[:size], chosen[size:]
            again = rng.integers(len(group), size=size - len(group))  # the last one, filled up to a size seen before
            groups.append(group + [group[number] for number in again])
        for number in rng.permutation(len(groups)):
            yield self.batch(groups[number])


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A small tensor on the device, without waiting for what the device is doing."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
