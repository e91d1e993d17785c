"""Failed(a', result): what makes an answer a failure, the same for seeds, for mutants and for replays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deepcruiser.campaign.executors.base import Execution
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.errors import InputError
from deepcruiser.oracles import Oracle, distance, is_finite
from deepcruiser.trace import Run


@dataclass(frozen=True, eq=False)
class Verdict:
    """How an execution was judged: `kind` is the kind of failure, empty if the answer is right."""

    kind: str
    output: Any
    reference: Any = None
    score: float = 0.0
    distance: float | None = None

    @property
    def judged(self) -> bool:
        """Whether the oracle judged the answer as right or wrong, so that its visits count."""
        return self.kind in ("", "wrong")


def verdict(execution: Execution, oracle: Oracle | None, reference: Callable[[Any], Any]) -> Verdict:
    """Judge an execution; `reference` maps the answer to what it is compared with. A replay may have no oracle."""
    problem = execution.problem
    if problem is not None and problem.kind != "not finite":
        return Verdict(problem.kind, problem.message)
    if problem is not None or not is_finite(execution.output):
        return Verdict("not finite", execution.output)
    if oracle is None:
        return Verdict("", execution.output)
    expected = reference(execution.output)
    score = oracle.score(expected, execution.output)
    if not math.isfinite(score):
        raise InputError(f"the oracle {type(oracle).__name__} returned the score {score!r}, not a finite number")
    score = float(score)  # also for a number of numpy
    run = Run(execution.output, None, execution.doubt, execution.scores)
    return Verdict(
        "wrong" if oracle.fails(score) else "", execution.output, expected, score, distance(oracle, expected, run)
    )


def seed_reference(oracle: Oracle, seeds: Seeds, name: str, output: Any) -> Any:
    """The reference for the answer to a seed."""
    reference = oracle.reference(seeds.text(name), output)
    return moved_reference(oracle, reference, lambda: seeds[name], (), lambda: seeds[name])


def moved_reference(
    oracle: Oracle | None, reference: Any, seed: Callable[[], Any], recipe: Sequence[Any], mutant: Callable[[], Any]
) -> Any:
    """The reference for the answer to a mutant: that of its seed, moved by the changes if the oracle follows them."""
    follow = getattr(oracle, "follow", None)
    return reference if follow is None else follow(reference, seed(), recipe, mutant())
