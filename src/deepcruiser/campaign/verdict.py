"""Failed(a', result): what makes an answer a failure, the same for seeds, for mutants and for replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.executors.local import Problem
from deepcruiser.errors import InputError
from deepcruiser.oracles import Oracle, is_finite
from deepcruiser.trace import Run


@dataclass(frozen=True, eq=False)
class Verdict:
    """How an answer was judged: `kind` is the way it fails, empty if it does not; `said` is what there is to say of it.

    There are visits if there is a model and the oracle was asked, that is, of answers that are right or "wrong".
    """

    kind: str
    output: Any
    said: str = ""
    reference: Any = None
    score: float = 0.0
    visits: Visits | None = None


def expected(
    oracle: Oracle | None, reference: Any, *, seed: Callable[[], Any], recipe: Sequence[Any], mutant: Any
) -> Any:
    """What the answer to a mutant is compared with: the reference of its seed, or where that is now if it moves."""
    follow = getattr(oracle, "follow", None)
    return reference if follow is None else follow(reference, seed(), recipe, mutant)


def verdict(
    result: Run | Problem, model: AbstractModel | None, oracle: Oracle | None, *, reference: Callable[[Any], Any]
) -> Verdict:
    """Judge an answer; `reference` gives what it is compared with, and gets the answer.

    A campaign may have no model, and a replay no oracle; then there are no visits, or no score.
    """
    if isinstance(result, Problem):
        return Verdict(result.kind, result.said, result.said)
    if not is_finite(result.output):
        return Verdict("not finite", result.output)
    trace = result.trace if model is None else result.traced
    try:
        visits = None if model is None or trace is None else model.visits(trace)
    except InputError as error:  # states that are not finite, or so far out that no cell has a number there
        return Verdict("not finite", result.output, str(error))
    if visits is None and trace is not None and not is_finite(trace.states):
        return Verdict("not finite", result.output)
    if oracle is None:
        return Verdict("", result.output, visits=visits)
    compared = reference(result.output)
    score = oracle.score(compared, result.output)
    return Verdict("wrong" if oracle.fails(score) else "", result.output, "", compared, score, visits)
