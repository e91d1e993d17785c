"""Executing mutants on workers that do everything: they make mutants, run the system, and find what a run visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.audio import Audio
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.failed_test import InputFile
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Recipe, Seeds
from deepcruiser.campaign.verdict import Verdict, moved_reference, verdict
from deepcruiser.oracles import Oracle
from deepcruiser.trace import System
from deepcruiser.value_oracles import SystemDisagreement
from deepcruiser.workers import WorkerError, Workers

#: An execution without its visits, and the visits without the model, which every process has.
Sent = tuple[Execution, tuple[IntArray, ...] | None]
#: The files of failing inputs, by their positions in a batch.
Files = dict[int, InputFile]


@dataclass(frozen=True, eq=False)
class CampaignWorker:
    """The objects that a worker of a campaign holds."""

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
    ) -> CampaignWorker:
        inputs, invalid = Inputs(Seeds(seeds)), (mutations or Mutations()).invalid
        return cls(inputs, LocalExecutor(system, model, inputs, invalid, limit_seconds=limit_seconds))


class WorkerExecutor(Executor):
    """Executes each batch on one of several workers, so that only recipes and results are sent.

    The workers also judge, unless references are as large as sounds, and send the files of failing inputs. `reference`
    gives what the answer to a mutant is compared with. While the workers start, which takes seconds, batches are
    executed by `local`, in this process.
    """

    def __init__(
        self,
        workers: Workers[CampaignWorker],
        model: AbstractModel | None,
        local: LocalExecutor,
        *,
        oracle: Oracle | None = None,
        reference: Callable[[Mutant], Any] = lambda _: None,
    ) -> None:
        self._workers, self._model, self._local = workers, model, local
        self._oracle, self._reference = _packed(oracle), reference
        self._files: dict[tuple[str, Recipe], InputFile] = {}

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        if not self._workers.ready:
            return self._local.submit(mutants)
        references = tuple(self._reference(mutant) if mutant.recipe else None for mutant in mutants)
        large = any(isinstance(reference, Audio | np.ndarray) for reference in references)
        job = (tuple(mutants), b"", ()) if large else (tuple(mutants), self._oracle, references)
        future = self._workers.submit(_execute, job)
        return lambda: self._received(future, mutants)

    def file(self, seed: str, recipe: Recipe) -> InputFile | None:
        return self._files.pop((seed, recipe), None)

    def close(self) -> None:
        self._workers.close()

    def _received(self, future: Future[tuple[list[Sent], Files]], mutants: Sequence[Mutant]) -> list[Execution]:
        try:
            sent, files = future.result()
        except WorkerError as error:
            message = error.with_remedy(self._workers.count, len(mutants))
            raise WorkerError(f"{message} in a new folder; the same command resumes what is saved") from None
        for position, file in files.items():
            self._files[mutants[position].seed, mutants[position].recipe] = file
        return [
            execution
            if arrays is None or self._model is None
            else replace(execution, visits=Visits(self._model, *arrays))
            for execution, arrays in sent
        ]


def _packed(oracle: Oracle | None) -> bytes:
    """An oracle for other processes; nothing if it cannot be sent, or holds a system that they need not have."""
    if oracle is None or isinstance(oracle, SystemDisagreement):
        return b""
    try:
        return bytes(ForkingPickler.dumps(oracle))
    except Exception:  # whatever the user's objects raise
        return b""


def _execute(
    worker: CampaignWorker, job: tuple[tuple[Mutant, ...], bytes, tuple[Any, ...]]
) -> tuple[list[Sent], Files]:
    mutants, packed, references = job
    made = [worker.executor.make(mutant) for mutant in mutants]
    executions = worker.executor.run(mutants, made)
    files: Files = {}
    with suppress(Exception):  # of an oracle that this process cannot make or use: the parent judges in any case
        oracle: Oracle | None = ForkingPickler.loads(packed) if packed else None
        for position, mutant in enumerate(mutants if oracle is not None else ()):
            execution, value = executions[position], made[position].value
            if not mutant.recipe or execution.invalid:
                continue
            judged = _verdict(worker, oracle, mutant, execution, references[position], value)
            executions[position] = replace(execution, verdict=judged, scores=None)
            file = InputFile.of(value) if judged.kind else None
            files.update({} if file is None else {position: file})
    return [
        (replace(each, visits=None), None if each.visits is None else each.visits.arrays) for each in executions
    ], files


def _verdict(
    worker: CampaignWorker, oracle: Oracle | None, mutant: Mutant, execution: Execution, reference: Any, value: Any
) -> Verdict:
    seed = partial(worker.inputs.make, mutant.seed, ())

    def moved(_: Any) -> Any:
        return moved_reference(oracle, reference, seed, mutant.recipe, lambda: value)

    return verdict(execution, oracle, moved)
