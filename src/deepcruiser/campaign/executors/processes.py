"""Executing mutants with processes that make them, while the system, which stays in this one, runs on earlier ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.executors.local import Invalid, LocalExecutor, Made, make, read_seed
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs
from deepcruiser.workers import ProcessWorkers, WorkerError

#: The changes, what they are applied to, and the seed.
Job = tuple[tuple[Any, ...], Any, Any]


class ProcessExecutor(Executor):
    """Makes mutants in `workers` processes; the system runs in this one.

    If the processes are killed again and again, mutants are made in this process from then on, with a warning.
    """

    def __init__(
        self, local: LocalExecutor, inputs: Inputs, invalid: Invalid, *, workers: int, kinds: tuple[Any, ...] = ()
    ) -> None:
        self._local, self._inputs, self._invalid = local, inputs, invalid
        self._workers = ProcessWorkers(partial(_hold, invalid), workers, parts=(*kinds, invalid), preload=[__name__])
        self._broken = False

    def close(self) -> None:
        self._workers.close()

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        making = [self._start(mutant) for mutant in mutants]
        return lambda: self._local.run(mutants, [made() for made in making])

    def _start(self, mutant: Mutant) -> Callable[[], Made]:
        if not mutant.recipe:
            return partial(read_seed, self._inputs, mutant.seed)
        parent = self._inputs.parent(mutant.seed, mutant.inherited)
        job = mutant.changes, parent, self._inputs.seeds[mutant.seed]
        if self._broken:
            return partial(_make, self._invalid, job)
        future = self._workers.submit(_make, job)

        def made() -> Made:
            try:
                return _make(self._invalid, job) if self._broken else future.result()
            except WorkerError as error:
                self._broken = True
                self._workers.close()
                message = f"the worker processes were killed ({error}); mutants are made in this process from now on"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
                return _make(self._invalid, job)

        return made


def _hold(invalid: Invalid, number: int) -> Invalid:
    return invalid


def _make(invalid: Invalid, job: Job) -> Made:
    return make(*job, invalid)
