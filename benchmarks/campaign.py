"""The time of a campaign over that of its transformations and inference alone, repeated sequentially."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.timing import line


class Listener(torch.nn.Module):
    """Frames of 10 ms, two LSTM layers, and the most frequent of 29 letters as the answer."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(160, size, 2, batch_first=True)
        self.out = torch.nn.Linear(size, 29)
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -(size**-0.5), size**-0.5, generator=generator)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        frames = samples[:, : samples.shape[1] // 160 * 160].reshape(len(samples), -1, 160) * 10
        letters: torch.Tensor = self.out(self.lstm(frames)[0]).argmax(-1)
        return letters


def utterances(count: int) -> list[dc.Audio]:
    """Audio of 1 to 3 s whose level rises and falls like syllables."""
    rng, made = np.random.default_rng(0), []
    for _ in range(count):
        t = np.arange(int(rng.integers(16000, 48000))) / 16000
        voice = sum(np.sin(2 * np.pi * rng.uniform(100, 250) * k * t) / k for k in range(1, 12))
        made.append(dc.Audio(0.1 * voice * np.abs(np.sin(2 * np.pi * rng.uniform(1.5, 3) * t)), 16000))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    net = Listener(options.size, torch.Generator().manual_seed(0)).eval()
    system = dc.TorchSystem(net, "lstm", transcribe=lambda letters: int(letters.bincount().argmax()))
    seeds = utterances(50)
    model = dc.profile(system, seeds).abstract(50)
    with tempfile.TemporaryDirectory() as folder:
        at: list[float] = []
        campaign = dc.fuzz(
            system,
            model,
            seeds,
            folder=Path(folder) / "x",
            oracle=dc.Disagreement(),
            runs=options.runs,
            workers=options.workers,
            watch=lambda _: at.append(time.perf_counter()),
        )
        took = at[-1] - at[0]  # from the first plan on: the seeds are run once, and processes start once

    runs = campaign.runs
    values: dict[int, dc.Audio] = {-1 - i: seed for i, seed in enumerate(seeds)}
    transforming = inferring = 0.0
    for start in range(0, len(runs), 16):
        batch = runs[start : start + 16]
        clock = time.perf_counter()
        for event in batch:
            values[event.number] = event.changes[0](values[event.parent])
        transforming += time.perf_counter() - clock
        clock = time.perf_counter()
        system.run([values[event.number] for event in batch if event.outcome != "rejected"])
        inferring += time.perf_counter() - clock
    line(
        f"campaign of {len(runs)} runs ({transforming:.1f} s transforming + {inferring:.1f} s inferring): all / both",
        f"{took / (transforming + inferring):.3f}",
        "1.10",
    )


if __name__ == "__main__":
    main()
