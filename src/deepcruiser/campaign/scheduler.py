"""Which test to mutate next, and how: the strategies of Select(Q) and PickTransform(a)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.errors import InputError

Select = Callable[[Queue, np.random.Generator], Test]

#: Among so many tests, drawn at random, `rarity` takes the best.
_SAMPLE = 8


def uniform(queue: Queue, rng: np.random.Generator) -> Test:
    """Any test, each as likely as another."""
    return queue.live[rng.integers(len(queue.live))]


def recent(queue: Queue, rng: np.random.Generator) -> Test:
    """The later a test came, the likelier: the chance falls by half over the last tenth of the queue, and so on."""
    halves = rng.exponential(1 / np.log(2))
    return queue.live[-1 - int(halves * max(1, len(queue.live) / 10)) % len(queue.live)]


def decay(queue: Queue, rng: np.random.Generator) -> Test:
    """DeepHunter's: any test, accepted with P = 0.8 - times / 5, but not under 0.3, by how often it was picked."""
    while True:
        test = uniform(queue, rng)
        if rng.random() < max(0.3, 0.8 - test.picked / 5):
            return test


def rarity(queue: Queue, rng: np.random.Generator) -> Test:
    """Among a few random tests, the one through the states that fewest runs visited and whose mutants brought most."""
    sample = [uniform(queue, rng) for _ in range(_SAMPLE)]

    def worth(test: Test) -> float:
        rare = float((1 / (1 + queue.visits[test.visited])).mean()) if len(test.visited) else 0.0
        return rare * (1 + test.kept) / (1 + test.picked)

    return max(sample, key=worth)


#: By name, for a command line and a folder's configuration.
SELECT: Mapping[str, Select] = {"uniform": uniform, "recent": recent, "decay": decay, "rarity": rarity}


class Picker:
    """Picks the kind of transformation: uniformly, as the paper does, or by Thompson sampling.

    Thompson sampling draws for each kind a rate of success from what is known of it, Beta(1 + kept, 1 + the rest),
    and takes the best: kinds that brought new coverage are tried more, and none is given up.
    """

    def __init__(self, how: str) -> None:
        if how not in ("uniform", "thompson"):
            raise InputError(f"the transformation is picked 'uniform' or 'thompson', not {how!r}")
        self._thompson = how == "thompson"
        self.tried: dict[str, int] = {}
        self.kept: dict[str, int] = {}

    def pick(self, kinds: tuple[Any, ...], rng: np.random.Generator) -> Any:
        if not self._thompson:
            return kinds[rng.integers(len(kinds))]
        kept = np.array([self.kept.get(kind.__name__, 0) for kind in kinds])
        tried = np.array([self.tried.get(kind.__name__, 0) for kind in kinds])
        return kinds[int(rng.beta(1 + kept, 1 + tried - kept).argmax())]

    def learn(self, name: str, *, kept: bool) -> None:
        self.tried[name] = self.tried.get(name, 0) + 1
        self.kept[name] = self.kept.get(name, 0) + kept
