"""The tests that mutants are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray


@dataclass
class Test:
    """An input of the queue as a recipe: a seed, and the transformations that were applied to it, in order.

    `picked` counts how often mutants of it were asked for, `kept` how many of them entered the queue.
    """

    number: int
    seed: str
    recipe: tuple[Any, ...]
    parent: int | None
    reference: Any
    visited: IntArray
    picked: int = 0
    kept: int = 0

    #: So that pytest does not take it for a test of its own.
    __test__ = False


@dataclass
class Queue:
    """The tests in the order in which they came, seeds first; those that may still be transformed are live.

    Seed number i has the number -1 - i, and the mutant of run n the number n, so that a number names one test for good.
    """

    tests: dict[int, Test] = field(default_factory=dict)
    live: list[Test] = field(default_factory=list)
    #: How many runs went through each state of the model.
    visits: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, test: Test, *, live: bool) -> None:
        self.tests[test.number] = test
        if live:
            self.live.append(test)
        if test.parent is not None:
            self.tests[test.parent].kept += 1

    def count(self, visited: IntArray) -> None:
        """Note the states that a run went through."""
        self.visits[visited] += 1

    def __len__(self) -> int:
        return len(self.tests)
