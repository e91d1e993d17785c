"""Failing tests without a campaign: only what grouping needs of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.transformations import PAPER

WORDS = "play the song now open a door please stop it".split()


@dataclass
class Record:
    """The failing tests of an invented campaign."""

    failed: list[FailedTest]
    oracle: Any = field(default_factory=dc.WordErrorRate)
    seeds: Sequence[Any] = ()
    runs: Sequence[Any] = ()
    tests: dict[int, Any] = field(default_factory=dict)


def failed_test(
    number: int, seed: str, recipe: tuple[Any, ...], reference: Any, output: Any, **more: Any
) -> FailedTest:
    values: dict[str, Any] = {
        "position": 0, "kind": "wrong", "doubt": None, "digest": f"{number:064x}", "visits": None,
        "score": dc.WordErrorRate().score(reference, output) if isinstance(output, str) else 1.0,
    }  # fmt: skip
    values |= {"reference": reference, "seed_reference": reference, "output": output}
    return FailedTest(number=number, seed=seed, recipe=recipe, **{**values, **more})


def random_failures(count: int, *, seed: int = 0) -> list[FailedTest]:
    """Sentences in which words were replaced, left out and added, by recipes of one to four steps."""
    rng = np.random.default_rng(seed)
    tests = []
    for number in range(1, count + 1):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=int(rng.integers(1, 9)))]
        heard = list(words)
        for _ in range(int(rng.integers(1, 4))):
            place, what = int(rng.integers(len(heard) + 1)), int(rng.integers(3))
            new = WORDS[rng.integers(len(WORDS))][: int(rng.integers(1, 5))]
            heard[place : place + (what != 0)] = [new] if what != 2 else []
        if heard == words:
            heard = []
        recipe = tuple(PAPER[i].draw(rng) for i in rng.integers(len(PAPER), size=int(rng.integers(1, 5))))
        tests.append(failed_test(number, f"s{rng.integers(100)}", recipe, " ".join(words), " ".join(heard)))
    return tests
