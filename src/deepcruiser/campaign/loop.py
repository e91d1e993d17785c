"""Algorithm 1: select, transform, run, judge. A generator that prints nothing, writes nothing and knows no clock."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.campaign.events import Event, Outcome, Ran, Seeded
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.guide import NEARER
from deepcruiser.campaign.scheduler import Mutant, Plan
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.campaign.state import State
from deepcruiser.campaign.verdict import moved_reference, seed_reference, verdict
from deepcruiser.errors import DeepCruiserError, InputError, described
from deepcruiser.oracles import Oracle
from deepcruiser.serialise import decode, encode


@dataclass(frozen=True, eq=False)
class Step:
    """The events of one batch, and what is needed to continue: the plans not yet run, and the random state."""

    events: tuple[Event, ...]
    pending: tuple[Plan, ...]
    random: dict[str, Any]


def loop(
    state: State,
    executor: Executor,
    oracle: Oracle,
    inputs: Inputs,
    rng: np.random.Generator,
    *,
    batch_size: int,
    ahead: int,
    pending: Iterable[Plan] = (),
    runs: int | None = None,
) -> Iterator[Step]:
    """Continue from `state`, batch by batch, until every test is spent or `runs` runs are done.

    The caller may stop iterating earlier. What is left of the last batch is pending, so that it is not lost.

    `ahead` batches are planned before the first of them is judged, so that the executor always has work. With
    batches of one and `ahead` of one, this is the algorithm to the letter.
    """
    waiting = deque((plan, executor.submit(plan)) for plan in pending)
    while True:
        while len(waiting) < ahead and (plan := state.plan(rng, batch_size)):
            waiting.append((plan, executor.submit(plan)))
        if not waiting:
            return
        plan, executions = waiting.popleft()
        events = []
        left = None if runs is None else max(0, runs - state.runs)
        for mutant, execution in islice(zip(plan, executions(), strict=True), left):
            event = judge(state, oracle, inputs, rng, mutant, execution)
            state.apply(event)
            events.append(event)
        rest = (plan[len(events) :],) if len(events) < len(plan) else ()
        yield Step(tuple(events), (*rest, *(plan for plan, _ in waiting)), dict(rng.bit_generator.state))
        if rest:
            return


def judge(
    state: State, oracle: Oracle, inputs: Inputs, rng: np.random.Generator, mutant: Mutant, execution: Execution
) -> Ran:
    """Failed(a', result), or else CoverageIncrease(cov, Q)."""
    planned = mutant.number, mutant.parent, mutant.changes
    if execution.invalid:
        return Ran(*planned, "rejected", execution.invalid, None, 0.0, None, execution.digest, None)
    seed = partial(inputs.make, mutant.seed, ())
    made = partial(inputs.make, mutant.seed, mutant.recipe)
    parent = state.queue.tests[mutant.parent]
    reference = parent.reference
    with _judging(oracle, mutant):
        result = execution.verdict or verdict(
            execution, oracle, lambda _: moved_reference(oracle, reference, seed, mutant.recipe, made)
        )
        follows = hasattr(oracle, "follow") and not isinstance(result.reference, Audio | np.ndarray)
        moved = decode(encode(result.reference)) if follows and result.kind == "wrong" else None
    visits = execution.visits if result.judged else None
    distance, before = _finite(result.distance, inputs, mutant), parent.distance
    nearer = distance is not None and before is not None and distance > NEARER * before
    keeps = not result.kind and state.keeps(visits, rng, nearer=nearer)
    outcome: Outcome = "failed" if result.kind else "kept" if keeps else "dropped"
    if outcome == "kept":
        inputs.keep(mutant.seed, mutant.recipe)
    doubt, digest = execution.doubt, execution.digest
    return Ran(*planned, outcome, result.kind, result.output, result.score, doubt, digest, visits, distance, moved)


@contextmanager
def _judging(oracle: Oracle, mutant: Mutant) -> Iterator[None]:
    """Say which input an oracle failed on."""
    try:
        yield
    except (Exception, SystemExit) as error:
        seed = f"the seed {mutant.seed!r}"
        what = f"the mutant of run {mutant.number:,} ({seed}, {_steps(mutant)})" if mutant.recipe else seed
        if isinstance(error, DeepCruiserError):
            raise type(error)(f"{what} cannot be judged: {error}") from None
        raise InputError(
            f"{what} cannot be judged, because the oracle {type(oracle).__name__} raised {described(error)}; "
            f"what was judged before is saved, so fix the oracle and run the same command again"
        ) from error


def _steps(mutant: Mutant) -> str:
    return " -> ".join(map(str, mutant.recipe))


def _finite(distance: float | None, inputs: Inputs, mutant: Mutant) -> float | None:
    """The distance, if it is a number; the first input for which it is not is named once."""
    if distance is None or math.isfinite(distance):
        return distance
    if not inputs.without_distance:
        inputs.without_distance = mutant.seed if not mutant.recipe else f"{mutant.seed} after {list(mutant.recipe)}"
        warnings.warn(
            f"the distance of {inputs.without_distance} to failure is {distance}: the campaign continues without it",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def sow(
    executor: Executor,
    oracle: Oracle,
    inputs: Inputs,
    *,
    batch_size: int,
    leave_out: Container[str] = (),
    keep_failing: bool = False,
) -> Iterator[Seeded]:
    """Run every seed but those to leave out.

    Those that cannot be read are set aside, and those that the system fails already, unless they are to be kept.
    """
    seeds = [Mutant.of_seed(position, name) for position, name in enumerate(inputs.seeds)]
    for start in range(0, len(seeds), batch_size):
        batch = seeds[start : start + batch_size]
        used = [mutant for mutant in batch if mutant.seed not in leave_out]
        executions = dict(zip([mutant.seed for mutant in used], executor.submit(used)() if used else (), strict=True))
        for mutant in batch:
            if mutant.seed in executions:
                seeded = judge_seed(oracle, mutant, executions[mutant.seed], inputs.seeds, keep_failing=keep_failing)
                yield replace(seeded, distance=_finite(seeded.distance, inputs, mutant))
            else:
                yield Seeded(-1 - mutant.number, mutant.seed, "rejected", "left out", None, None, 0.0, None, "", None)


def judge_seed(
    oracle: Oracle, mutant: Mutant, execution: Execution, seeds: Seeds, *, keep_failing: bool = False
) -> Seeded:
    """Whether a seed can be used: the system has to get it right, unless failing seeds are kept as well."""
    position, name = -1 - mutant.number, mutant.seed
    with _judging(oracle, mutant):
        result = verdict(execution, oracle, partial(seed_reference, oracle, seeds, name))
        reference = decode(encode(result.reference)) if result.judged else None  # as it is read again
    if not result.judged:
        message = execution.problem.message if execution.problem is not None else ""
        output = message or result.output
        return Seeded(position, name, "rejected", result.kind, output, None, 0.0, execution.doubt, "", None)
    judged = result.output, reference, result.score, execution.doubt
    if result.kind and not keep_failing:
        return Seeded(position, name, "rejected", "failed already", *judged, "", None)
    reason = "failed already" if result.kind else ""
    return Seeded(position, name, "kept", reason, *judged, execution.digest, execution.visits, result.distance)
