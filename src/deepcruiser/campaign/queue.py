"""The tests that mutants are made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.errors import FileError

_NOTHING = np.empty(0, np.int64)


@dataclass
class Test:
    """An input of the queue as a recipe: a seed, and the changes that were applied to it, in order.

    `states` are the states of the model that it visits, `picked` counts the mutants planned from it, and `kept` those
    of them that entered the queue.
    """

    number: int
    seed: str
    #: The place of the seed among all seeds.
    position: int
    recipe: tuple[Any, ...]
    parent: int | None
    reference: Any
    states: IntArray
    #: The system's answer to the unchanged seed.
    seed_output: Any = None
    #: Its distance to failure.
    distance: float | None = None
    picked: int = 0
    kept: int = 0

    #: So that pytest does not collect it as a test.
    __test__ = False


class Queue:
    """The tests in the order in which they came, seeds first; those that may still be changed are live.

    Seed number i has the number -1 - i, and the mutant of run n the number n, so a number always names the same test.
    `allowed` gives the kinds of change that may follow a recipe; a test without any is spent.
    """

    def __init__(self, allowed: Callable[[tuple[Any, ...]], Sequence[Any]] = lambda recipe: ()) -> None:
        self.tests: dict[int, Test] = {}
        self.live: list[Test] = []
        self._allowed = allowed

    def take(self, event: Event) -> None:
        """Add the test of an event, if it was kept."""
        if event.outcome != "kept":
            return
        states = _NOTHING if event.visits is None else event.visits.states
        if isinstance(event, Seeded):
            seed = event.number, event.seed, event.position
            test = Test(*seed, (), None, event.reference, states, event.output, event.distance)
        else:
            parent = self.tests[event.parent]
            parent.kept += 1
            recipe = (*parent.recipe, *event.changes)
            seed = event.number, parent.seed, parent.position
            output, distance = parent.seed_output, event.distance
            test = Test(*seed, recipe, parent.number, parent.reference, states, output, distance)
        self.tests[test.number] = test
        if self._allowed(test.recipe):
            self.live.append(test)

    def parent(self, event: Ran) -> Test:
        """The test that a mutant was made from."""
        if event.parent not in self.tests:
            raise FileError(f"run {event.number:,} was made from test {event.parent}, which is not in the queue")
        return self.tests[event.parent]

    def __len__(self) -> int:
        return len(self.tests)
