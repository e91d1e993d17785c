"""Where mutants are made: in other processes, while the network runs on those made before."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import ModuleType, TracebackType
from typing import Any, Self

from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.campaign.serialise import digest_of
from deepcruiser.campaign.state import Plan
from deepcruiser.errors import InputError

#: Inputs of so many tests are held ready; the others are made again from their recipes.
_READY = 256

Invalid = Callable[[Any, Any], str | None]


@dataclass(frozen=True, eq=False)
class Mutant:
    """A transformed input, and why it is not valid, if it is not."""

    value: Any
    invalid: str
    digest: str


class Workshop:
    """Makes the mutants of a plan in `workers` processes; with none, here and when they are asked for.

    A mutant depends on its recipe alone, so the number of workers changes nothing but the time, and if the processes
    are killed, the mutants are made here.
    """

    def __init__(
        self, seeds: Mapping[str, Any], queue: Queue, invalid: Invalid, *, workers: int, kinds: tuple[Any, ...] = ()
    ) -> None:
        self.seeds = seeds
        self._queue = queue
        self._invalid = invalid
        self._ready: OrderedDict[int, Any] = OrderedDict()
        self._sendable: set[type] = set()
        self._pool: ProcessPoolExecutor | None = None
        if workers:
            context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
            if os.name == "posix":
                context.set_forkserver_preload(["deepcruiser.transformations"])
            self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_work)
            with _without_main((*kinds, invalid)):
                for _ in range(workers):  # they take seconds to start, and the seeds can run meanwhile
                    self._pool.submit(os.getpid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def start(self, plan: Plan) -> list[Callable[[], Mutant]]:
        """Begin to make the mutants of a plan; each is there when it is called for."""
        return [self._start(transformation, self._queue.tests[number]) for number, transformation in plan]

    def _start(self, transformation: Any, test: Test) -> Callable[[], Mutant]:
        job = (transformation, self.input_of(test), self.seeds[test.seed], self._invalid)
        if self._pool is None:
            return partial(make, *job)
        if type(transformation) not in self._sendable:  # a pool that fails to send may hang at its end
            with _sending(job):
                ForkingPickler.dumps(job)
            self._sendable.add(type(transformation))
        try:
            with _without_main(job):
                return partial(self._made, self._pool.submit(make, *job), job)
        except BrokenProcessPool:
            return partial(self._made_here, job)

    def _made(self, future: Future[Mutant], job: tuple[Any, ...]) -> Mutant:
        try:
            with _sending(job):  # and back; errors of the job's own are caught by `make`
                return future.result()
        except BrokenProcessPool:
            return self._made_here(job)

    def _made_here(self, job: tuple[Any, ...]) -> Mutant:
        if self._pool is not None:
            said = "the worker processes were killed (out of memory?): mutants are made in this process from now on"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
            self._pool = None
        return make(*job)

    def keep(self, number: int, value: Any) -> None:
        """Hold the input of a test ready."""
        self._ready[number] = value
        if len(self._ready) > _READY:
            self._ready.popitem(last=False)

    def input_of(self, test: Test) -> Any:
        """The input of a test, from its recipe if it is not at hand."""
        if not test.recipe:
            return self.seeds[test.seed]
        if test.number in self._ready:
            self._ready.move_to_end(test.number)
            return self._ready[test.number]
        value = self.seeds[test.seed]
        for transformation in test.recipe:
            value = transformation(value)
        self.keep(test.number, value)
        return value


def make(transformation: Any, value: Any, seed: Any, invalid: Invalid) -> Mutant:
    """One mutant; a transformation that fails makes none, and says why."""
    try:
        mutant = transformation(value)
        return Mutant(mutant, invalid(seed, mutant) or "", digest_of(mutant))
    except Exception as error:
        return Mutant(None, f"not made: {type(error).__name__}: {error}", "")


def _begin_work() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which then ends its workers
    threading.Thread(target=_end_with_the_campaign, daemon=True).start()


def _end_with_the_campaign() -> None:
    """Idle workers wait for work from a queue that they hold open themselves, and would outlive a killed campaign."""
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
        raise InputError(
            f"{job[0]}, its input or the check of its result cannot go to another process ({error}): define them "
            "at the top of a module, or give workers=0"
        ) from error


@contextmanager
def _without_main(job: tuple[Any, ...]) -> Iterator[None]:
    """Workers that start here do not import the script that the campaign was called from, unless the job is from there.

    They would run it, campaign and all, if it does not say `if __name__ == "__main__"`.
    """
    main = sys.modules["__main__"]
    if not any(getattr(part, "__module__", "") == "__main__" for part in job):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
