"""Pieces of work for an experiment: one after the other here, or side by side on workers that each hold it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.evaluate.experiment import ABOUT, Experiment
from deepcruiser.stream import Progress
from deepcruiser.workers import ProcessWorkers, WorkerError, Workers, enter, one_thread

Unit = TypeVar("Unit")
Result = TypeVar("Result")
Work = Callable[[Experiment, Unit], Result]


class Pool:
    """Does the work of an experiment in this process, in `jobs` processes or on a Ray cluster, with equal results.

    `load` makes the experiment again in the process of a number. What has been run is on disk, so whoever is
    interrupted loses a batch at most. The machines of a `cluster` share the experiment's folder.
    """

    def __init__(
        self,
        experiment: Experiment,
        load: Callable[[int], Experiment] | None = None,
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
        self._workers: Workers[Experiment] | None = None
        if cluster is not None and load is not None:
            from deepcruiser.cluster import RayWorkers

            held = partial(_load, load, os.getcwd())
            self._workers = RayWorkers(held, jobs if jobs > 1 else None, address=cluster, on_gpus=on_gpus)
        elif jobs > 1 and load is not None:
            self._workers = ProcessWorkers(
                partial(_load, load, os.getcwd()), jobs, parts=(load,), preload=["torch", __name__]
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workers is not None:
            self._workers.close()

    def do(self, work: Work[Unit, Result], units: Sequence[Unit], *, stage: str, inputs: int) -> list[Result]:
        """The results of all pieces, in their order; `inputs` is how many there are to run in all of them.

        Pieces and results go through pipes, so what is large goes by way of the experiment's folder.
        """
        progress = Progress(inputs, stage=stage, watch=self._watch)
        if self._workers is None:
            with one_thread():
                return [_do(self.experiment, (work, unit), progress)[0] for unit in units]
        futures = [self._workers.submit(_do, (work, unit)) for unit in units]
        try:
            for future in as_completed(futures):
                _, done = future.result()
                progress.advance(done.done, steps=done.steps)
        except WorkerError:
            raise DeepCruiserError(
                "a process ended before its work was done (out of memory?): the same command resumes where it stopped, "
                "and needs less memory with fewer --jobs"
            ) from None
        return [future.result()[0] for future in futures]


def _load(load: Callable[[int], Experiment], directory: str, number: int) -> Experiment:
    import torch

    enter(directory)
    torch.set_num_threads(1)
    experiment = load(number)
    if not (experiment.folder / ABOUT).is_file():
        raise FileError(
            f"the folder {str(experiment.folder)!r} is not there: all machines of a cluster have to share it"
        )
    return experiment


def _do(
    experiment: Experiment, job: tuple[Work[Unit, Result], Unit], progress: Progress | None = None
) -> tuple[Result, Progress]:
    """Do a piece of work, and count the inputs that are run for it."""
    work, unit = job
    counts = progress or Progress(0)
    experiment.cache.watch = lambda inputs, steps: counts.advance(inputs, steps=steps)
    return work(experiment, unit), counts
