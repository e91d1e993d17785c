"""Sounds of about 4 s and workers that hold the built-in recogniser, for `benchmarks.scale`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch

import deepcruiser as dc
from deepcruiser.campaign.executors.local import executions_of, run_all
from deepcruiser.campaign.executors.workers import CampaignWorker
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.corpora.read import read_corpus
from deepcruiser.corpora.samples import Labelled
from deepcruiser.stream import Source, input_of
from deepcruiser.systems.builtin.speech import SEEDS
from deepcruiser.systems.load import load_system
from deepcruiser.workers import device_for


@dataclass(frozen=True)
class Speech:
    """What the workers make anew: the recogniser on a device, and `count` sounds."""

    device: str
    folder: str | None
    count: int
    name: str = "english-letters"

    def system(self, number: int = 0) -> dc.System:
        return load_system(self.name, device=device_for(self.device, number))

    def sounds(self) -> list[Labelled]:
        """Recordings of 3 to 5 s of a corpus, or pairs of those in the package, joined."""
        if self.folder is not None:
            read = ((sample, input_of(sample)) for sample in read_corpus(self.folder))
            fitting = (Labelled(str(s.id), audio, s.text) for s, audio in read if 3 <= audio.seconds <= 5)
            return list(islice(fitting, self.count))
        parts = list(read_corpus(SEEDS))
        pairs = [(parts[i % len(parts)], parts[(i + 1 + i // len(parts)) % len(parts)]) for i in range(self.count)]
        return [
            Labelled(f"{number:03}", _join(a.input, b.input), f"{a.text} {b.text}")
            for number, (a, b) in enumerate(pairs)
        ]

    def source(self, number: int) -> Source:
        torch.set_num_threads(1)
        return Source(self.system(number), self.sounds())


@dataclass(frozen=True)
class Benches:
    """Makes what a worker of a campaign holds."""

    speech: Speech
    model: str

    def __call__(self, number: int) -> CampaignWorker:
        torch.set_num_threads(1)
        return CampaignWorker.of(self.speech.system(number), dc.AbstractModel.load(self.model), self.speech.sounds())


@dataclass(frozen=True)
class Sources:
    """Makes what a worker of `profile` and `cover` holds."""

    speech: Speech

    def __call__(self, number: int) -> Source:
        return self.speech.source(number)


def idle(held: Any, seconds: float) -> None:
    time.sleep(seconds)


def transform(worker: CampaignWorker, job: tuple[Sequence[Mutant], bool]) -> tuple[float, list[Any]]:
    """The seconds that the changes of some mutants and their gate take, without those of their parents."""
    mutants, wanted = job
    parents = [worker.inputs.parent(mutant.seed, mutant.inherited) for mutant in mutants]
    seeds = [worker.inputs.seeds[mutant.seed] for mutant in mutants]
    began = time.perf_counter()
    values = []
    for mutant, seed, value in zip(mutants, seeds, parents, strict=True):
        for change in mutant.changes:
            value = change(value)
        if not dc.Mutations().invalid(seed, value):
            values.append(value)
    return time.perf_counter() - began, values if wanted else []


def phases(worker: CampaignWorker, mutants: Sequence[Mutant]) -> dict[str, float]:
    """The seconds that a worker takes for each part of its work on a batch."""
    executor, clock = worker.executor, [time.perf_counter()]
    made = [executor.make(mutant) for mutant in mutants]
    clock.append(time.perf_counter())
    valid = [each for each in made if not each.invalid]
    runs = run_all(executor._system, [each.value for each in valid], limit_seconds=None)
    clock.append(time.perf_counter())
    executions_of([each.digest for each in valid], runs, executor._model)
    clock.append(time.perf_counter())
    return dict(zip(("mutants", "network", "visits"), (b - a for a, b in pairwise(clock)), strict=True))


def _join(one: Any, other: Any) -> dc.Audio:
    joined: dc.Audio = one.replace(np.concatenate([one.samples, other.resample(one.rate).samples]))
    return joined
