"""The campaigns behind RQ3 and RQ4: the tool's own loop, on runs that all campaigns share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jiwer
import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.atomic import atomic_write
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.executors.local import Problem
from deepcruiser.campaign.executors.processes import Mutant, Workshop
from deepcruiser.campaign.loop import loop
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.seeds import Seeds, sow
from deepcruiser.campaign.state import Guide, Plan, State
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import FIVE, BSCov, Criterion, criterion
from deepcruiser.errors import FileError, InputError
from deepcruiser.evaluate.experiment import WORK, Experiment
from deepcruiser.evaluate.records import Batch, Record
from deepcruiser.evaluate.run_cache import Laboratory
from deepcruiser.trace import Run


@dataclass(frozen=True)
class Arm:
    """One way to run a campaign: the guide, the model that it looks at, and how tests and changes are chosen."""

    criterion: str
    partitions: int
    keep: Any = "guided"
    select: str = "uniform"
    pick: str = "uniform"

    @property
    def guide(self) -> str:
        return self.criterion if self.keep == "guided" else self.keep


def arms(partitions: Sequence[int], base: int) -> list[Arm]:
    """All that RQ3 compares: choices are uniform, as in the paper, but where strategies are compared themselves."""
    guided = [Arm(BSCov.name, m) for m in partitions]
    others = [Arm(each.name, base) for each in FIVE if each is not BSCov]
    baselines = [*(Arm(BSCov.name, m, "random") for m in partitions), Arm(BSCov.name, base, "none")]
    return [*guided, *others, *baselines, *strategies(base)[1:]]


def strategies(base: int) -> list[Arm]:
    """Ways to select a test and pick a transformation, the paper's first and the tool's own last."""
    pairs = [("uniform", "uniform"), ("recent", "uniform"), ("decay", "uniform"), ("rarity", "uniform")]
    pairs += [("uniform", "thompson"), ("rarity", "thompson")]
    return [Arm(BSCov.name, base, select=select, pick=pick) for select, pick in pairs]


def panel(experiment: Experiment, base: int) -> list[tuple[Criterion, AbstractModel]]:
    """What is measured in every campaign: BSCov on all grids, and the other criteria on one."""
    models = experiment.models
    return [(BSCov, model) for model in models.values()] + [(c, models[base]) for c in FIVE if c is not BSCov]


@dataclass(frozen=True)
class Task:
    """A campaign to run: an arm, its random seed, its runs, and the names of its seeds, which were gathered."""

    arm: Arm
    number: int
    runs: int
    base: int
    seeds: tuple[str, ...]


def run_campaign(experiment: Experiment, task: Task) -> dict[str, Any]:
    """What a campaign came to, from its file if it is known."""
    name = hashlib.sha256(json.dumps([asdict(task), experiment.components, experiment.partitions]).encode()).hexdigest()
    path = experiment.folder / WORK / f"{name[:32]}.campaign"
    if path.is_file():
        experiment.laboratory.watch(task.runs, 0)
        return _read(path)
    found = _campaign(experiment, task)
    with atomic_write(path) as file:
        file.write(json.dumps(found).encode())
    return found


class Known(Seeds):
    """Seeds whose inputs are what came of them."""

    def __init__(self, seeds: Seeds, records: Sequence[Record]) -> None:
        self._records = {record.seed: record for record in records}
        self._texts = {name: seeds.text(name) for name in self._records}

    def text(self, name: str) -> str | None:
        return self._texts[name]

    def __getitem__(self, name: str) -> Record:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


class Bench(Workshop):
    """A workshop whose mutants are what came of them: a batch is made and run when the first of it is asked for."""

    def __init__(self, laboratory: Laboratory, queue: Queue) -> None:
        super().__init__(laboratory.seeds, queue, laboratory.mutations.invalid, workers=0)
        self._laboratory = laboratory
        self._tests = queue.tests
        #: The seconds that each batch took, by its name.
        self.seconds: dict[str, float] = {}

    def start(self, plan: Plan) -> list[Callable[[], Mutant]]:
        tests = self._tests
        recipes = [(tests[number].seed, (*tests[number].recipe, change)) for number, change in plan]
        known: list[Batch] = []

        def made(place: int) -> Mutant:
            if not known:
                known.append(self._laboratory.batch(recipes))
                self.seconds[self._laboratory.name_of(recipes)] = known[0].seconds
            record = known[0].records[place]
            return Mutant(record, record.invalid, record.digest)

        return [partial(made, place) for place in range(len(plan))]

    def keep(self, number: int, value: Any) -> None:
        """There is nothing to keep: the laboratory has it."""


def _campaign(experiment: Experiment, task: Task) -> dict[str, Any]:
    arm, components = task.arm, experiment.components
    guide = Guide((criterion(arm.criterion),), arm.keep)
    state = State(
        experiment.models[arm.partitions], guide, experiment.mutations, select=arm.select, pick=arm.pick
    )  # fmt: skip
    measured = Measured(experiment, task.base)
    rng = np.random.default_rng(task.number)

    def run(values: list[Record]) -> list[Run | Problem]:
        return [record.result(components) for record in values]

    seeds = Known(experiment.seeds, experiment.laboratory.gathered([(name, ()) for name in task.seeds]))
    for sown in sow(seeds, state.coverages, run, experiment.oracle, batch_size=experiment.batch_size):
        state.apply(sown)
        if sown.outcome == "kept":
            measured.add(seeds[sown.seed], kept=True)
    if not len(state.queue):
        raise InputError(f"the system fails all {len(seeds)} seeds by the oracle, {experiment.oracle.name}")
    history, ran = [measured.now(0)], []
    with Bench(experiment.laboratory, state.queue) as bench:
        for step in loop(state, bench, run, experiment.oracle, rng, batch_size=experiment.batch_size):
            for event, record in zip(step.events, step.inputs, strict=True):
                if isinstance(event, Ran):
                    if event.outcome in ("kept", "dropped"):
                        measured.add(record, kept=event.outcome == "kept")
                    ran.append(_noted(event, record, state.queue.tests[event.parent].reference))
            history.append(measured.now(state.runs))
            if state.runs >= task.runs:
                break
    return {"history": history, "ran": ran, "seconds": bench.seconds}


class Measured:
    """The coverages of a panel: of the queue, and of everything that ran without failing."""

    def __init__(self, experiment: Experiment, base: int) -> None:
        self._components, pairs = experiment.components, panel(experiment, base)
        self._models = {id(model): model for _, model in pairs}
        self._queue, self._executed = ([Coverage(model, each) for each, model in pairs] for _ in range(2))

    def add(self, record: Record, *, kept: bool) -> None:
        result = record.result(self._components)
        assert isinstance(result, Run)
        visits = {key: model.visits(result.traced) for key, model in self._models.items()}
        for coverage in [*self._executed, *(self._queue if kept else ())]:
            coverage.add(visits[id(coverage.model)])

    def now(self, runs: int) -> dict[str, Any]:
        queue, executed = ([coverage.value for coverage in each] for each in (self._queue, self._executed))
        return {"runs": runs, "queue": queue, "executed": executed}


def _noted(event: Ran, record: Record, reference: Any) -> dict[str, Any]:
    return {
        "seed": record.seed,
        "outcome": event.outcome,
        "reason": event.reason,
        "score": event.score,
        "errors": word_errors(reference, event.output) if event.outcome == "failed" else [],
    }


def word_errors(reference: Any, output: Any) -> list[str]:
    """What became of which word, in order: the same list is the same failure, however it sounded."""
    if not isinstance(reference, str) or not isinstance(output, str):
        return [repr(output)[:200]]
    right, heard = reference.lower().split(), output.lower().split()
    if not right:
        return heard
    (chunks,) = jiwer.process_words(" ".join(right), " ".join(heard)).alignments
    return [
        f"{' '.join(right[c.ref_start_idx : c.ref_end_idx])} > {' '.join(heard[c.hyp_start_idx : c.hyp_end_idx])}"
        for c in chunks
        if c.type != "equal"
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FileError(f"{str(path)!r} is damaged ({error}): remove it, and the campaign runs again") from None
    return found
