"""The time of profile and cover over bare inference by the same network on the same batches."""

from __future__ import annotations

import argparse

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.timing import alternate, line, ratio


class Net(torch.nn.Module):
    """The core of a recogniser: frames, an LSTM, letters."""

    def __init__(self, input_size: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(input_size, size, batch_first=True)
        self.out = torch.nn.Linear(size, 29)
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -(size**-0.5), size**-0.5, generator=generator)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.lstm(frames)[0])
        return logits


def measure(size: int, *, sequences: int, steps: int, batch_size: int, rounds: int, device: str) -> None:
    """Inputs as large as the state, as in DeepSpeech, which has three dense layers of that size before the LSTM."""
    net = Net(size, size, torch.Generator().manual_seed(0)).eval().to(device)
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((steps, size), np.float32) for _ in range(sequences)]
    system = dc.TorchSystem(net, state="lstm")
    model = dc.profile(system, data, batch_size=batch_size).abstract(20)

    @torch.no_grad()
    def bare() -> None:
        for start in range(0, len(data), batch_size):
            net(torch.from_numpy(np.stack(data[start : start + batch_size])).to(device)).cpu()

    versions = {
        "bare": bare,
        "profile": lambda: dc.profile(system, data, batch_size=batch_size),
        "cover": lambda: dc.cover(model, system, data, batch_size=batch_size),
    }
    seconds = alternate(versions, rounds=rounds)
    per_step = min(seconds["bare"]) / (sequences * steps) * 1e6
    what = f"LSTM-{size} on {device}, {sequences} x {steps} steps, bare {per_step:.0f} us a step:"
    line(f"{what} profile / bare", f"{ratio(seconds, 'profile', 'bare'):.3f}", "1.25")
    line(f"{what} cover / bare", f"{ratio(seconds, 'cover', 'bare'):.3f}", "1.05")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    measure(512, sequences=400, steps=100, batch_size=16, rounds=options.rounds, device=options.device)
    measure(2048, sequences=200, steps=100, batch_size=16, rounds=options.rounds, device=options.device)


if __name__ == "__main__":
    main()
