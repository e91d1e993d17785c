"""Algorithm 1: select, transform, run, judge. A generator that prints nothing, writes nothing and knows no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.campaign.events import Outcome, Ran, Step
from deepcruiser.campaign.executors.local import Problem
from deepcruiser.campaign.executors.processes import Mutant, Workshop
from deepcruiser.campaign.state import Plan, State
from deepcruiser.campaign.verdict import expected, verdict
from deepcruiser.oracles import Oracle
from deepcruiser.trace import Run

Results = Sequence[Run | Problem]
_NOTHING = np.empty(0, np.int64)


def loop(
    state: State,
    workshop: Workshop,
    run: Callable[[list[Any]], Results],
    oracle: Oracle,
    rng: np.random.Generator,
    *,
    batch_size: int,
    plan: Plan | None = None,
) -> Iterator[Step]:
    """Go on from `state`, batch by batch, until every test is spent; the caller stops earlier by not asking on.

    While a batch runs, the next one is planned and made already, from the queue as it was before; with batches of one
    nothing is done ahead, and this is the algorithm to the letter.
    """
    plan = state.plan(rng, batch_size) if plan is None else plan
    making = workshop.start(plan)
    while plan:
        ahead = state.plan(rng, batch_size) if batch_size > 1 else ()
        making_ahead = workshop.start(ahead)
        mutants = [made() for made in making]
        results = iter(run([mutant.value for mutant in mutants if not mutant.invalid]))
        events = []
        for (parent, transformation), mutant in zip(plan, mutants, strict=True):
            result = None if mutant.invalid else next(results)
            event = judge(state, oracle, rng, parent, transformation, mutant, result, seeds=workshop.seeds)
            state.apply(event)
            if event.outcome == "kept":
                workshop.keep(event.number, mutant.value)
            events.append(event)
        if batch_size == 1:
            ahead = state.plan(rng, batch_size)
            making_ahead = workshop.start(ahead)
        yield Step(tuple(events), ahead, dict(rng.bit_generator.state), tuple(mutant.value for mutant in mutants))
        plan, making = ahead, making_ahead


def judge(
    state: State,
    oracle: Oracle,
    rng: np.random.Generator,
    parent: int,
    transformation: Any,
    mutant: Mutant,
    result: Run | Problem | None,
    *,
    seeds: Mapping[str, Any],
) -> Ran:
    """Failed(a', result), or else CoverageIncrease(cov, Q)."""

    def ran(outcome: Outcome, reason: str, output: Any, score: float = 0.0, *, visited: IntArray = _NOTHING) -> Ran:
        return Ran(
            state.runs + 1, parent, transformation, outcome, reason, output, score, mutant.digest, visited, (), ()
        )

    if result is None:
        return ran("rejected", mutant.invalid, None)
    test = state.queue.tests[parent]

    def reference(output: Any) -> Any:
        recipe = (*test.recipe, transformation)
        return expected(oracle, test.reference, seed=lambda: seeds[test.seed], recipe=recipe, mutant=mutant.value)

    found = verdict(result, state.model, oracle, reference=reference)
    visits = found.visits
    visited = _NOTHING if visits is None else visits.states
    if visits is not None:
        state.territory.add(visits, "failed" if found.kind else "passed")
    if found.kind:
        return ran("failed", found.kind, found.output, found.score, visited=visited)
    kept = state.keeps(visits, rng)
    outcome = ran("kept" if kept else "dropped", "", found.output, found.score, visited=visited)
    if visits is None:
        return outcome
    return replace(
        outcome,
        news=tuple(coverage.new(visits) for coverage in state.coverages) if kept else (),
        executed=tuple(coverage.new(visits) for coverage in state.executed),
    )
