"""On a GPU: the same cells as on the CPU, the cost over bare inference, and a profile of the paper's size.

The paper profiled "about 90 billion 64-bit floats" of states of 2048: 44 million steps, if nothing else was counted.

python -m benchmarks.cuda [--steps 44000000]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.inference import Net
from benchmarks.timing import line
from deepcruiser.abstraction.probes import make_probes
from deepcruiser.abstraction.projections import Fit

GRIDS = (10, 20, 50, 100)


class DeepSpeechShaped(torch.nn.Module):
    """26 coefficients of 19 frames, three dense layers with clipped ReLU, an LSTM of 2048, dense, 29 outputs."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        sizes = (494, 2048, 2048, 2048)
        self.dense = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairwise(sizes))
        self.lstm = torch.nn.LSTM(2048, 2048, batch_first=True)
        self.after, self.out = torch.nn.Linear(2048, 2048), torch.nn.Linear(2048, 29)
        for parameter in self.parameters():
            reach = 1.7 * parameter.shape[-1] ** -0.5
            torch.nn.init.uniform_(parameter, -reach, reach, generator=generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.dense:
            x = layer(x).clamp(0, 20)
        letters: torch.Tensor = self.out(self.after(self.lstm(x)[0]).clamp(0, 20)).argmax(-1)
        return letters


class Slices:
    """Sequences that are windows of one long array on the GPU: a corpus without the cost of its transfer."""

    def __init__(self, sequences: int, steps: int) -> None:
        self.sequences, self.steps = sequences, steps
        self.frames = torch.randn(200_000, 494, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
        # Smooth, as speech is: each frame is mostly the one before.
        self.frames = torch.nn.functional.avg_pool1d(self.frames.T, 9, stride=1, padding=4).T.contiguous() * 3

    def __len__(self) -> int:
        return self.sequences

    def __iter__(self) -> Iterator[torch.Tensor]:
        starts = np.random.default_rng(0).integers(0, len(self.frames) - self.steps, self.sequences)
        return (self.frames[start : start + self.steps] for start in starts)


def same_cells() -> None:
    """Compare the states of one run on the GPU, abstracted there and on the CPU."""
    net = Net(2048, 2048, torch.Generator().manual_seed(0)).eval().cuda()
    rng = np.random.default_rng(0)
    runs = [
        run
        for _ in range(8)
        for run in dc.TorchSystem(net, "lstm").run([rng.standard_normal((250, 2048), np.float32) for _ in range(16)])
    ]
    on_gpu = [run.traced for run in runs]
    on_cpu = [dc.Trace(trace.states.cpu(), trace.inputs.cpu()) for trace in on_gpu]  # type: ignore[union-attr]
    gpu, cpu = dc.Profile.of(on_gpu), dc.Profile.of(on_cpu)
    shared = dc.Profile.of(on_gpu, projections=cpu.projections)
    for name, other in (("projections fitted on the CPU", shared), ("projections fitted on each", gpu)):
        differing = int((other.states[:] != cpu.states[:]).any(1).sum())
        for m in GRIDS:
            a, b = cpu.abstract(m), other.abstract(m)
            cells = sum(
                int((x != y).any(1).sum())
                for s, t in zip(on_cpu, on_gpu, strict=True)
                for x, y in zip(a.cells(s), b.cells(t), strict=True)
            )
            line(
                f"CPU and GPU cells of {len(cpu.states):,} states and {len(cpu.inputs):,} inputs, {a.name}, {name}",
                f"{cells} differ",
                "edges only",
            )
        print(f"   projected states that differ in a bit: {differing}", flush=True)


def over_bare(net: torch.nn.Module, *, batch_size: int, sequences: int = 2048, warm: bool = True) -> dict[str, float]:
    """The seconds of bare inference, `profile` and `cover` over sequences of 500 steps, each after a first time."""
    data = list(Slices(sequences, 500))
    system = dc.TorchSystem(net, "lstm", transcribe=lambda letters: letters)

    @torch.no_grad()
    def bare() -> None:
        for start in range(0, len(data), batch_size):
            net(torch.stack(data[start : start + batch_size]))
        torch.cuda.synchronize()

    model = dc.profile(system, data[: sequences // 4], batch_size=batch_size).abstract(20)
    versions: dict[str, Callable[[], object]] = {
        "bare": bare,
        "profile": lambda: dc.profile(system, data, batch_size=batch_size),
        "cover": lambda: dc.cover(model, system, data, batch_size=batch_size),
    }
    seconds: dict[str, float] = {}
    for name, run in versions.items():
        if warm:
            run()
        began = time.perf_counter()
        run()
        seconds[name] = time.perf_counter() - began
    for name, budget in (("profile", "1.25"), ("cover", "1.15")):
        what = f"DeepSpeech-shaped on a GPU, {500 * sequences:,} steps, bare {seconds['bare']:.2f} s: {name} / bare"
        line(what, f"{seconds[name] / seconds['bare']:.3f}", budget)
    return seconds


def parts(net: torch.nn.Module, *, batch_size: int) -> dict[str, float]:
    """The seconds of each part of `profile` and `cover` for one batch of 500 steps; nothing overlaps."""
    data = list(Slices(batch_size, 500))
    names = [str(position) for position in range(batch_size)]
    system = dc.TorchSystem(net, "lstm", transcribe=lambda letters: letters)
    runs = system.run(data)
    traces = [run.traced for run in runs]
    fitted = Fit.start(traces, names)()
    model = dc.profile(system, data, batch_size=batch_size).abstract(20)

    def bare() -> None:
        with torch.no_grad():
            net(torch.stack(data))

    versions: dict[str, Callable[[], object]] = {
        "bare": bare,
        "run and trace": lambda: system.run(data),
        "moments": lambda: Fit.start(traces, names)(),
        "axes": lambda: fitted.projections(3),
        "projection": lambda: model.projections.project(traces, names),
        "visits": lambda: model.visits(traces),
        "probes": lambda: make_probes(system, zip(names, data, strict=True)),
        "check of the probes": lambda: model.check(system),
    }
    seconds: dict[str, float] = {}
    for name, run in versions.items():
        for _ in range(3):
            torch.cuda.synchronize()
            began = time.perf_counter()
            run()
            torch.cuda.synchronize()
            seconds[name] = min(seconds.get(name, math.inf), time.perf_counter() - began)
        print(f"   {name}, one batch of {batch_size} x 500 steps: {1e3 * seconds[name]:.1f} ms", flush=True)
    return seconds


def paper_scale(net: torch.nn.Module, steps: int, *, batch_size: int, limit: float = math.inf) -> tuple[int, float]:
    """The steps profiled and the seconds, with four grids; fewer steps if a part of them says it would take longer."""
    system = dc.TorchSystem(net, "lstm", transcribe=lambda letters: letters)

    def run(steps: int) -> float:
        began = time.perf_counter()
        profile = dc.profile(system, Slices(steps // 500, 500), batch_size=batch_size)
        print(f"   {profile}: {time.perf_counter() - began:.1f} s", flush=True)
        for partitions in GRIDS:
            began_grid = time.perf_counter()
            print(f"   {profile.abstract(partitions)}: {time.perf_counter() - began_grid:.1f} s", flush=True)
        return time.perf_counter() - began

    if limit < math.inf:
        part = steps // 20
        spent = run(part)
        steps = min(steps, max(part, int(0.9 * (limit - spent) / spent * part)))
    total = run(steps)
    line(f"{steps:,} steps of LSTM-2048, four grids", f"{total:.1f} s", "40 s at 44 million")
    return steps, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=44_000_000)
    parser.add_argument("--batch-size", type=int, default=256)
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, numpy {np.__version__}", flush=True)
    same_cells()
    torch.set_float32_matmul_precision("high")  # TensorFloat-32 in the dense layers, as cuDNN has it in the LSTM
    net = DeepSpeechShaped(torch.Generator().manual_seed(0)).eval().cuda()
    over_bare(net, batch_size=options.batch_size)
    paper_scale(net, options.steps, batch_size=options.batch_size)


if __name__ == "__main__":
    main()
