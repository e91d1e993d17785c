"""Executing mutants with worker processes, which make mutants while the network runs on earlier ones."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.executors.local import Invalid, LocalExecutor, Made, make, read_seed
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs
from deepcruiser.errors import InputError


class ProcessExecutor(Executor):
    """Makes mutants in `workers` processes; the system runs in this one.

    If the processes are killed, mutants are made in this process from then on, with a warning.
    """

    def __init__(
        self, local: LocalExecutor, inputs: Inputs, invalid: Invalid, *, workers: int, kinds: tuple[Any, ...] = ()
    ) -> None:
        self._local, self._inputs, self._invalid = local, inputs, invalid
        self._sendable: set[type] = set()
        context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
        if os.name == "posix":
            context.set_forkserver_preload(["deepcruiser.transformations"])
        self._pool: ProcessPoolExecutor | None = ProcessPoolExecutor(
            workers, mp_context=context, initializer=start_worker
        )
        with _without_main((*kinds, invalid)):
            for _ in range(workers):  # they take seconds to start, while the seeds are already run
                self._pool.submit(os.getpid)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        making = [self._start(mutant) for mutant in mutants]
        return lambda: self._local.run(mutants, [made() for made in making])

    def _start(self, mutant: Mutant) -> Callable[[], Made]:
        if not mutant.recipe:
            return partial(read_seed, self._inputs, mutant.seed)
        parent = self._inputs.parent(mutant.seed, mutant.inherited)
        job = (mutant.changes, parent, self._inputs.seeds[mutant.seed], self._invalid)
        if self._pool is None:
            return partial(make, *job)
        for change in mutant.changes:
            if type(change) not in self._sendable:  # a pool that fails to send may hang at its end
                with _sending(job):
                    ForkingPickler.dumps(job)
                self._sendable.add(type(change))
        try:
            with _without_main((*mutant.changes, self._invalid)):
                return partial(self._made, self._pool.submit(make, *job), job)
        except BrokenProcessPool:
            return partial(self._made_here, job)

    def _made(self, future: Future[Made], job: tuple[Any, ...]) -> Made:
        try:
            with _sending(job):  # and back; errors of the job itself are caught by `make`
                return future.result()
        except BrokenProcessPool:
            return self._made_here(job)

    def _made_here(self, job: tuple[Any, ...]) -> Made:
        if self._pool is not None:
            message = "the worker processes were killed (out of memory?); mutants are made in this process from now on"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            self._pool = None
        return make(*job)


def start_worker() -> None:
    """Prepare a worker process: it ignores Ctrl-C, which the parent handles, and ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process with its parent; idle workers would otherwise outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _sending(job: tuple[Any, ...]) -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise
    except Exception as error:
        changes = " -> ".join(map(str, job[0]))
        raise InputError(
            f"{changes}, its input or the check of its result cannot be sent to another process ({error}): define "
            "them at the top of a module, or use workers=0"
        ) from error


@contextmanager
def _without_main(parts: tuple[Any, ...]) -> Iterator[None]:
    """Keep workers that start now from importing the calling script, unless one of the parts is defined there.

    They would run it, campaign and all, if it does not say `if __name__ == "__main__"`.
    """
    main = sys.modules["__main__"]
    if not any(getattr(part, "__module__", "") == "__main__" for part in parts):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
