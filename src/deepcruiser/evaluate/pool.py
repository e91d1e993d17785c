"""Working side by side: processes that each have the experiment, and one count of what they have done."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import torch

from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.evaluate.experiment import ABOUT, Experiment
from deepcruiser.stream import Progress
from deepcruiser.workers import enter, one_thread, start_worker

if TYPE_CHECKING:
    from deepcruiser.cluster import RayWorkers

Unit = TypeVar("Unit")
Result = TypeVar("Result")
#: Seconds between two looks at what the processes have done.
_INTERVAL = 0.5
#: Seconds that a process has to finish its batch after an interruption.
_PATIENCE = 5.0


class Workers:
    """Does pieces of work for an experiment, here, in `jobs` processes or on a Ray cluster, with the same results.

    `load` makes the experiment again in another process. What has been run is on disk, so whoever is interrupted loses
    a batch at most. The machines of a `cluster` share the experiment's folder.
    """

    def __init__(
        self,
        experiment: Experiment,
        load: Callable[[], Experiment] | None = None,
        *,
        jobs: int = 1,
        cluster: str | None = None,
        on_gpus: bool = False,
        watch: Callable[[Progress], None] | None = None,
    ) -> None:
        if jobs < 1:
            raise InputError(f"at least 1 job is needed, not {jobs}")
        if jobs > 1 and load is None:
            raise InputError(f"{jobs} jobs need a function that loads the experiment in another process")
        self.experiment = experiment
        self._watch = watch
        self._pool: ProcessPoolExecutor | None = None
        self._cluster: RayWorkers[_Counted] | None = None
        if cluster is not None and load is not None:
            from deepcruiser.cluster import RayWorkers

            held = partial(_Counted, load, os.getcwd())
            self._cluster = RayWorkers(held, jobs if jobs > 1 else None, address=cluster, on_gpus=on_gpus)
        elif jobs > 1:
            context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
            self._others = set(multiprocessing.active_children())
            self._counts: Any = context.Array("q", 2)
            self._stop = context.Event()
            begin: Callable[[], None] = partial(_begin, load, self._counts, self._stop)
            self._pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._cluster is not None:
            self._cluster.close()
        if self._pool is None:
            return
        self._stop.set()
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - self._others if kind is not None else ():
            process.join(_PATIENCE)
            process.terminate()  # whatever it waits for; what it has done is on disk

    def do(
        self, work: Callable[[Experiment, Unit], Result], units: Sequence[Unit], *, stage: str, inputs: int
    ) -> list[Result]:
        """The results of all pieces, in their order; `inputs` is how many there are to run in all of them.

        Pieces and results go through pipes, so what is large goes by way of the laboratory's folder.
        """
        progress = Progress(inputs, stage=stage, watch=self._watch)
        if self._cluster is not None:
            submitted = [self._cluster.submit(_do_counted, (work, unit)) for unit in units]
            for future in as_completed(submitted):
                progress.advance(future.result()[1], steps=future.result()[2])
            return [future.result()[0] for future in submitted]
        if self._pool is None:
            return self._do_here(work, units, progress)
        before = list(self._counts)
        futures = [self._pool.submit(_do, work, unit) for unit in units]
        pending: set[Future[Any]] = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=_INTERVAL, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                progress.done, progress.steps = (now - was for now, was in zip(self._counts, before, strict=True))
                progress.advance(0)
        except BrokenProcessPool:
            raise DeepCruiserError(
                "a process ended before its work was done (out of memory?): the same command resumes where it stopped, "
                "and needs less memory with fewer --jobs"
            ) from None
        return [future.result() for future in futures]

    def _do_here(
        self, work: Callable[[Experiment, Unit], Result], units: Sequence[Unit], progress: Progress
    ) -> list[Result]:
        def count(inputs: int, steps: int) -> None:
            progress.advance(inputs, steps=steps)

        self.experiment.cache.watch = count
        with one_thread():
            return [work(self.experiment, unit) for unit in units]


class _Counted:
    """The experiment on a machine of a cluster, and a count of the inputs and steps that were run."""

    def __init__(self, load: Callable[[], Experiment], directory: str, number: int) -> None:
        enter(directory)
        torch.set_num_threads(1)
        self.experiment, self.inputs, self.steps = load(), 0, 0
        folder = self.experiment.folder
        if not (folder / ABOUT).is_file():
            raise FileError(f"the folder {str(folder)!r} is not there: all machines of a cluster have to share it")
        self.experiment.cache.watch = self._count

    def _count(self, inputs: int, steps: int) -> None:
        self.inputs, self.steps = self.inputs + inputs, self.steps + steps


def _do_counted(held: _Counted, job: tuple[Callable[[Experiment, Any], Any], Any]) -> tuple[Any, int, int]:
    work, unit = job
    inputs, steps = held.inputs, held.steps
    result = work(held.experiment, unit)
    return result, held.inputs - inputs, held.steps - steps


class _Stopped(BaseException):
    """The one who asked has gone; not an Exception, so that nobody takes it for a crash of the system."""


_experiment: Experiment | None = None


def _begin(load: Callable[[], Experiment] | None, counts: Any, stop: Any) -> None:
    global _experiment
    start_worker()  # Ctrl-C is for the parent, which then sets `stop`
    torch.set_num_threads(1)

    def count(inputs: int, steps: int) -> None:
        with counts.get_lock():
            counts[0] += inputs
            counts[1] += steps
        if stop.is_set():
            raise _Stopped

    assert load is not None
    _experiment = load()
    _experiment.cache.watch = count


def _do(work: Callable[[Experiment, Unit], Result], unit: Unit) -> Result:
    assert _experiment is not None
    return work(_experiment, unit)
