"""Executing mutants on workers that do everything: they make mutants, run the system, and find what a run visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Recipe, Seeds
from deepcruiser.trace import System
from deepcruiser.workers import Workers

#: An execution without its visits, and the visits without the model, which every process has.
Sent = tuple[Execution, tuple[IntArray, ...] | None]


@dataclass(frozen=True, eq=False)
class Bench:
    """What a worker of a campaign holds."""

    inputs: Inputs
    executor: LocalExecutor

    @classmethod
    def of(
        cls,
        system: System,
        model: AbstractModel | None,
        seeds: Iterable[Any],
        *,
        mutations: Mutations | None = None,
        limit_seconds: float | None = 60.0,
    ) -> Bench:
        inputs, invalid = Inputs(Seeds(seeds)), (mutations or Mutations()).invalid
        return cls(inputs, LocalExecutor(system, model, inputs, invalid, limit_seconds=limit_seconds))


class WorkerExecutor(Executor):
    """Executes each batch on one of several workers, so that only recipes and results are sent.

    While the workers start, which takes seconds, batches are executed by `local`, in this process.
    """

    def __init__(self, workers: Workers[Bench], model: AbstractModel | None, local: LocalExecutor) -> None:
        self._workers, self._model, self._local = workers, model, local

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        if not self._workers.ready:
            return self._local.submit(mutants)
        future = self._workers.submit(_execute, tuple(mutants))
        return lambda: self._received(future)

    def make(self, recipes: Sequence[tuple[str, Recipe]]) -> list[Any] | None:
        if not self._workers.ready:
            return None
        futures = [self._workers.submit(_make, recipe) for recipe in recipes]
        return [future.result() for future in futures]

    def close(self) -> None:
        self._workers.close()

    def _received(self, future: Future[list[Sent]]) -> list[Execution]:
        return [
            execution
            if arrays is None or self._model is None
            else replace(execution, visits=Visits(self._model, *arrays))
            for execution, arrays in future.result()
        ]


def _execute(bench: Bench, mutants: Sequence[Mutant]) -> list[Sent]:
    executions = bench.executor.submit(mutants)()
    return [(replace(each, visits=None), None if each.visits is None else each.visits.arrays) for each in executions]


def _make(bench: Bench, recipe: tuple[str, Recipe]) -> Any:
    return bench.inputs.make(*recipe)
