"""Peak memory of profiling 1x and 10x the data, each in its own process."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.inference import Net
from benchmarks.timing import line


class Generated:
    """A data set that is generated while it is read, so that only the profile takes memory."""

    def __init__(self, sequences: int, steps: int, size: int) -> None:
        self.shape = sequences, steps, size

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):  # type: ignore[no-untyped-def]
        sequences, steps, size = self.shape
        return (np.random.default_rng(i).standard_normal((steps, size), np.float32) for i in range(sequences))


def peak(sequences: int) -> int:
    """Profile this number of sequences of 250 steps and return the peak memory of this process in kilobytes."""
    net = Net(64, 512, torch.Generator().manual_seed(0)).eval()
    dc.profile(dc.TorchSystem(net, state="lstm"), Generated(sequences, 250, 64))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    peaks = []
    for sequences in (256, 2560):
        command = [sys.executable, "-c", f"from benchmarks.memory import peak; print(peak({sequences}))"]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    line(
        f"memory of profile, LSTM-512, 64,000 and 640,000 steps: {peaks[0] / 1024:.0f} and {peaks[1] / 1024:.0f} MB",
        f"{peaks[1] / peaks[0]:.3f}",
        "0.9 to 1.1",
    )


if __name__ == "__main__":
    main()
