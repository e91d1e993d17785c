"""Time of models and boundaries from a profile, compared with plain Python."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the budgets are for one core

import time

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.timing import alternate, line
from tests.support import plain

GRIDS = (10, 20, 50, 100)


def wandering(rng: np.random.Generator, traces: int, steps: int, size: int = 8) -> list[dc.Trace]:
    """Smooth random traces, similar to the states of a network on speech."""
    states = np.cumsum(rng.standard_normal((traces, steps + 1, size), np.float32) * 0.3, axis=1)
    states = np.tanh(states - states[:, :1])
    return [dc.Trace(s, rng.standard_normal((steps, size), np.float32)) for s in states]


def models(profile: dc.Profile) -> None:
    seconds = alternate({"four grids": lambda: [profile.abstract(m) for m in GRIDS]}, rounds=3)["four grids"]
    line(f"models of {profile.origin.steps:,} steps on four grids", f"{min(seconds):.2f} s", "1 s")


def boundaries(rng: np.random.Generator) -> None:
    """A model of about 240,000 states, the size of the paper's finest: a dense cloud in the middle of the grid."""
    cells = np.tanh(rng.standard_normal((700_000, 3)) * 0.5)
    trace = dc.Trace(np.concatenate([np.zeros((1, 3)), cells]), np.ones((len(cells), 1)))
    model = dc.Profile.of([trace], components=3).abstract(100)
    began = time.perf_counter()
    sizes = [len(model.boundary(steps)) for steps in range(1, 7)]
    seconds = time.perf_counter() - began
    line(
        f"boundaries of 1 to 6 steps ({sizes[0]:,}..{sizes[-1]:,} cells) of {len(model.states):,} states",
        f"{seconds:.2f} s",
        "1 s",
    )


def against_plain(rng: np.random.Generator) -> None:
    """Everything from the traces to the five coverages, by the package and in loops over dictionaries and sets."""
    profiled, tests = wandering(rng, 50, 400), wandering(rng, 10, 400)
    began = time.perf_counter()
    model = dc.Profile.of(profiled, components=3).abstract(20)
    ours = [c(model, tests) for c in (dc.BSCov, dc.BTCov, dc.ISCov, dc.WICov)]
    fast = time.perf_counter() - began

    began = time.perf_counter()
    project = [
        plain.pca(np.concatenate([getattr(t, part) for t in profiled]).astype(float), 3)
        for part in ("states", "inputs")
    ]
    rows = [
        [((getattr(t, part) - mean) @ axes.T).astype(np.float32) for t in profiled + tests]
        for part, (mean, axes) in zip(("states", "inputs"), project, strict=True)
    ]
    result = []
    for part, partitions in zip(rows, (20, 10), strict=True):
        every = np.concatenate(part[: len(profiled)])
        result.append([plain.cells(r, every.min(0).tolist(), every.max(0).tolist(), partitions) for r in part])
    both = list(zip(*result, strict=True))
    M, T = plain.Plain.of(both[: len(profiled)]), plain.Plain.of(both[len(profiled) :])
    totals: dict[tuple[plain.Cell, plain.Cell], int] = {}
    for (s, x, _), count in M.counts.items():
        totals[s, x] = totals.get((s, x), 0) + count
    successors: dict[plain.Cell, set[plain.Cell]] = {}
    for s, t in T.transitions:
        successors.setdefault(s, set()).add(t)
    weighted = sum(
        M.counts[s, x, t] / totals[s, x]
        for s in T.states & M.states
        for x in T.inputs[s] & M.inputs[s]
        for t in successors.get(s, ())
    )
    theirs = [plain.bscov(M, T), plain.btcov(M, T), plain.iscov(M, T), weighted / len(totals)]
    slow = time.perf_counter() - began
    assert np.allclose(ours, theirs, atol=2e-3), (ours, theirs)  # two PCAs round differently at the edges of cells
    line("the whole abstraction of 24,000 steps: plain Python / ours", f"{slow / fast:.0f} x", "none")


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    models(dc.Profile.of(wandering(rng, 1000, 400)))
    boundaries(rng)
    against_plain(rng)


if __name__ == "__main__":
    main()
