"""Workers of a command: processes or a cluster, each of which makes the system and the data anew from their names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import click

from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import MismatchError
from deepcruiser.stream import Source
from deepcruiser.trace import System
from deepcruiser.workers import ProcessWorkers, Workers, device_for, enter

Held = TypeVar("Held")

#: `cluster`: where the workers are.
cluster = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on a Ray cluster: HOST:PORT, or auto on one of its machines. --workers then defaults to the number of "
    "its CPUs.",
)

#: `count`: the number of processes that run the system.
count = click.option(
    "--workers",
    "count",
    default=0,
    type=click.IntRange(min=0),
    help="Number of processes that run the system; affects only the speed.  [default: only this process]",
)


@dataclass(frozen=True)
class SystemLoader:
    """Makes a system again in a worker, and checks that it is the same."""

    name: str
    device: str
    fingerprint: str
    directory: str

    @classmethod
    def of(cls, name: str, system: System, *, device: str = "cpu") -> SystemLoader:
        return cls(name, device, str(getattr(system, "fingerprint", "")), os.getcwd())

    def load(self, number: int) -> System:
        import torch

        enter(self.directory)
        torch.set_num_threads(1)
        system = system_from(self.name, device=device_for(self.device, number))
        if str(getattr(system, "fingerprint", "")) != self.fingerprint:
            raise MismatchError(f"a worker loaded another network from {self.name!r}: do its files or versions differ?")
        return system


@dataclass(frozen=True)
class SourceLoader:
    """A system and data, for `profile` and `cover`."""

    system: SystemLoader
    data: str

    def __call__(self, number: int) -> Source:
        system, data = self.system.load(number), data_from(self.data)  # in this order: the first enters the folder
        return Source(system, data if isinstance(data, Sequence) else list(data))


def start(
    load: Callable[[int], Held], count: int | None, address: str | None, *, device: str = "cpu"
) -> Workers[Held] | None:
    """The workers that --workers and --cluster ask for; None for none."""
    if address is not None:
        from deepcruiser.cluster import RayWorkers

        return RayWorkers(load, count, address=address, on_gpus=device != "cpu")
    return ProcessWorkers(load, count, preload=["torch", type(load).__module__]) if count else None


@contextmanager
def of_source(
    name: str, system: System, data: str, count: int, address: str | None, *, device: str = "cpu"
) -> Iterator[Workers[Source] | None]:
    """Workers that run a system over data, for as long as they are needed; None for none."""
    load = SourceLoader(SystemLoader.of(name, system, device=device), data)
    workers = start(load, count or None, address, device=device)
    with contextlib.nullcontext() if workers is None else workers:
        yield workers
