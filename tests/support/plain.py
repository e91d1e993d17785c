"""The whole abstraction and all criteria again, slow and obvious: loops, dictionaries and sets.

This is the oracle of the tests and the baseline of the benchmarks. It shares no code with the package.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

Cell = tuple[int, ...]
#: The cells of one trace: N+1 of its states, N of its inputs.
Cells = tuple[list[Cell], list[Cell]]


def pca(vectors: np.ndarray, components: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the first principal axes, by singular value decomposition."""
    mean = vectors.mean(axis=0)
    axes = np.linalg.svd(vectors - mean, full_matrices=False)[2][:components]
    return mean, np.array([axis if axis[np.abs(axis).argmax()] > 0 else -axis for axis in axes])


def index(v: float, lower: float, upper: float, partitions: int) -> int:
    if upper == lower:
        return int(v > lower) - int(v < lower)
    if v == upper:
        return partitions - 1
    return math.floor((v - lower) / (upper - lower) * partitions)


def cells(rows: np.ndarray, lower: Sequence[float], upper: Sequence[float], partitions: int) -> list[Cell]:
    return [
        tuple(index(v, low, up, partitions) for v, low, up in zip(row, lower, upper, strict=True))
        for row in rows.tolist()
    ]


@dataclass
class Plain:
    """What traces visited: S, delta, X(s), and how often each input led from one state to another."""

    states: set[Cell] = field(default_factory=set)
    initial: set[Cell] = field(default_factory=set)
    transitions: set[tuple[Cell, Cell]] = field(default_factory=set)
    inputs: dict[Cell, set[Cell]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[tuple[Cell, Cell, Cell]] = field(default_factory=Counter)

    @classmethod
    def of(cls, traces: Iterable[Cells]) -> Plain:
        plain = cls()
        for states, inputs in traces:
            plain.states.update(states)
            plain.initial.add(states[0])
            for s, x, t in zip(states, inputs, states[1:], strict=False):
                plain.transitions.add((s, t))
                plain.inputs[s].add(x)
                plain.counts[s, x, t] += 1
        return plain

    def probability(self, s: Cell, x: Cell, t: Cell) -> float:
        total = sum(count for (a, b, _), count in self.counts.items() if (a, b) == (s, x))
        return self.counts[s, x, t] / total if total else 0.0


def distance(a: Cell, b: Cell) -> int:
    return sum(abs(i - j) for i, j in zip(a, b, strict=True))


def boundary(states: set[Cell], steps: int) -> set[Cell]:
    """Every cell in a box around the states, kept if its least distance from them is 1 to `steps`."""
    ranges = [range(min(c) - steps, max(c) + steps + 1) for c in zip(*states, strict=True)]
    return {cell for cell in itertools.product(*ranges) if 1 <= min(distance(cell, s) for s in states) <= steps}


def bscov(M: Plain, T: Plain) -> float:
    return len(T.states & M.states) / len(M.states)


def sbcov(M: Plain, T: Plain, steps: int) -> float:
    around = boundary(M.states, steps)
    return len(T.states & around) / len(around)


def btcov(M: Plain, T: Plain) -> float:
    return len(T.transitions & M.transitions) / len(M.transitions)


def iscov(M: Plain, T: Plain) -> float:
    both = T.states & M.states
    return sum(len(T.inputs[s] & M.inputs[s]) for s in both) / sum(len(x) for x in M.inputs.values())


def literal_iscov(M: Plain, T: Plain) -> float:
    return sum(len(T.inputs[s]) for s in T.states & M.states) / sum(len(x) for x in M.inputs.values())


def wicov(M: Plain, T: Plain) -> float:
    total = 0.0
    for s in T.states & M.states:
        for x in T.inputs[s] & M.inputs[s]:
            for t in {t for a, t in T.transitions if a == s}:
                total += M.probability(s, x, t)
    return total / sum(len(x) for x in M.inputs.values())


def same_input_wicov(M: Plain, T: Plain) -> float:
    total = 0.0
    for s in T.states & M.states:
        for x in T.inputs[s] & M.inputs[s]:
            for t in {t for a, b, t in T.counts if (a, b) == (s, x)}:
                total += M.probability(s, x, t)
    return total / sum(len(x) for x in M.inputs.values())
