"""Where mutants are made: in other processes, while the network runs on those made before."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.campaign.state import Plan

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
    """Makes the mutants of a plan in `workers` processes; with none, at once and here.

    A mutant depends on its recipe alone, so the number of workers changes nothing but the time.
    """

    def __init__(self, seeds: Mapping[str, Any], queue: Queue, invalid: Invalid, *, workers: int) -> None:
        self._seeds = seeds
        self._queue = queue
        self._invalid = invalid
        self._ready: OrderedDict[int, Any] = OrderedDict()
        self._pool: ProcessPoolExecutor | None = None
        if workers:
            context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
            if os.name == "posix":
                context.set_forkserver_preload(["deepcruiser.transformations"])
            self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_deaf_to_interrupts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def start(self, plan: Plan) -> list[Future[Mutant]]:
        """Begin to make the mutants of a plan."""
        made: list[Future[Mutant]] = []
        for number, transformation in plan:
            test = self._queue.tests[number]
            job = (transformation, self.input_of(test), self._seeds[test.seed], self._invalid)
            if self._pool is not None:
                made.append(self._pool.submit(make, *job))
            else:
                future: Future[Mutant] = Future()
                future.set_result(make(*job))
                made.append(future)
        return made

    def keep(self, number: int, value: Any) -> None:
        """Hold the input of a test ready."""
        self._ready[number] = value
        if len(self._ready) > _READY:
            self._ready.popitem(last=False)

    def input_of(self, test: Test) -> Any:
        """The input of a test, from its recipe if it is not at hand."""
        if not test.recipe:
            return self._seeds[test.seed]
        if test.number in self._ready:
            self._ready.move_to_end(test.number)
            return self._ready[test.number]
        value = self._seeds[test.seed]
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


def digest_of(value: Any) -> str:
    """A text that is the same for two inputs just when all their samples are."""
    digest = hashlib.sha256()
    samples = getattr(value, "samples", value)
    if isinstance(samples, np.ndarray):
        digest.update(f"{samples.dtype} {samples.shape} {getattr(value, 'rate', '')}".encode())
        digest.update(np.ascontiguousarray(samples).tobytes())
    else:
        digest.update(repr(value).encode())
    return digest.hexdigest()


def _deaf_to_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which then ends its workers
