"""A user's own parts: a sixth criterion, an oracle and an executor, each defined here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import deepcruiser as dc
from deepcruiser.abstraction.grid import IntArray
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Seeds
from tests.support import toy


def rare(model: dc.AbstractModel) -> IntArray:
    """The numbers of the states that training entered once."""
    arrivals = np.bincount(model.counts.target, weights=model.counts.count, minlength=len(model.states))
    return np.flatnonzero(arrivals == 1)


#: The share of the states that training entered only once.
RareStates = dc.Criterion(
    "RareStates",
    required=lambda M: np.isin(np.arange(len(M.states)), rare(M)).astype(float),
    visited=lambda T: (T.states,),
    cells=lambda M: M.cells_of_states(),
)


def plain_share(texts: Sequence[str]) -> float:
    """The same, computed with a set."""
    model, reader = toy.model(), toy.Reader()
    visited = {state for run in reader.run(texts) for state in model.visits(run.traced).states.tolist()}
    return len(visited & set(rare(model).tolist())) / len(rare(model))


def test_a_sixth_criterion_is_covered() -> None:
    texts = toy.texts(20, seed=5)
    report = dc.cover(toy.model(), toy.Reader(), texts, criteria=(RareStates, dc.BSCov))
    assert 0 < report[RareStates] == plain_share(texts) < 1
    assert "RareStates" in str(report)


def test_a_sixth_criterion_guides_a_campaign_that_is_resumed(tmp_path: Path) -> None:
    whole = toy.campaign(tmp_path / "whole", guide=RareStates, runs=160)
    for runs in (32, 96, 160):
        parts = toy.campaign(tmp_path / "parts", guide=RareStates, runs=runs)
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")
    kept = [parts.inputs.make(test.seed, test.recipe) for test in parts.tests.values()]
    assert parts.coverage(RareStates, queue=True).value == plain_share(kept)
    assert len(kept) > len(whole.seeds), "the criterion kept nothing: the test would show nothing"
    kept_by_states = toy.campaign(tmp_path / "states", guide=dc.BSCov, runs=160)
    assert len(kept_by_states.tests) > len(kept), "it kept as much as BSCov does"


@dataclass(frozen=True)
class Shouting:
    """Fails if an answer has at least this many letters more than the answer to the seed."""

    letters: int = 1

    @property
    def name(self) -> str:
        return f"an answer {self.letters} letters longer"

    def reference(self, text: str | None, output: Any) -> Any:
        return output

    def score(self, reference: Any, output: Any) -> float:
        return float(len(output) - len(reference))

    def fails(self, score: float) -> bool:
        return score >= self.letters


def test_an_oracle_of_ones_own_judges_a_campaign_that_is_resumed(tmp_path: Path) -> None:
    """Of "high" and "low", only low that became high is longer."""
    toy.campaign(tmp_path, oracle=Shouting(), runs=64)
    campaign = toy.campaign(tmp_path, oracle=Shouting(), runs=160)
    assert campaign.failed
    assert {(test.reference, test.output, test.score) for test in campaign.failed} == {("low", "high", 1.0)}
    assert not any(test.replay(toy.Reader()).differences for test in campaign.failed)
    assert campaign.spec.oracle.to_dict() == {"type": "Shouting", "letters": 1}
    assert dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS).failed[0].score == 1.0


class LateExecutor(dc.Executor):
    """Executes the mutants of a batch in reverse order, one by one, and counts them."""

    def __init__(self, local: LocalExecutor) -> None:
        self._local = local
        self.executed = 0
        self.closed = False

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], Sequence[dc.Execution]]:
        def run() -> list[dc.Execution]:
            self.executed += len(mutants)
            return [self._local.submit([mutant])()[0] for mutant in reversed(mutants)][::-1]

        return run

    def close(self) -> None:
        self.closed = True


def test_an_executor_of_ones_own_runs_a_campaign(tmp_path: Path) -> None:
    inputs = Inputs(Seeds(toy.seeds()))
    executor = LateExecutor(LocalExecutor(toy.Reader(), toy.model(), inputs, toy.MUTATIONS.invalid))
    campaign = toy.campaign(tmp_path / "late", executor=executor, runs=96)
    toy.campaign(tmp_path / "usual", runs=96)
    assert toy.rows(tmp_path / "late") == toy.rows(tmp_path / "usual")
    seeds = {seed.number: seed.number for seed in campaign.seeds}
    for run in campaign.runs:
        seeds[run.number] = seeds[run.parent]
    different = {(seeds[run.number], run.digest) for run in campaign.runs}
    assert executor.executed == len(toy.seeds()) + len(different)
    assert executor.closed
