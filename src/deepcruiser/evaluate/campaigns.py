"""The campaigns behind RQ3 and RQ4: the tool's own loop, on runs that all campaigns share."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import INPUT_PARTITIONS
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.alignment import word_errors
from deepcruiser.campaign.drawing import Drawing
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.loop import judge_seed, loop
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.scheduler import Mutant, Plan, Scheduler
from deepcruiser.campaign.seeds import Inputs
from deepcruiser.campaign.spec import CampaignSpec, Component
from deepcruiser.campaign.state import State
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import FIVE, BSCov, Criterion, criterion
from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.evaluate.experiment import WORK, Experiment
from deepcruiser.evaluate.records import Record
from deepcruiser.evaluate.run_cache import CachedExecutor
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import parse_json, read_bytes
from deepcruiser.trace import Run
from deepcruiser.transformations.severity import severity


@dataclass(frozen=True)
class Arm:
    """One way to run a campaign: the guide, the model that it looks at, and how tests and changes are chosen.

    `window` is the number of batches that planning is ahead; 0 stands for a batch size and a window of one run.
    `matched` is another arm: run by run, the mutants are as severe as in its campaign of the same number and have as
    many changes, but the seed, the kinds and the parameters are random.
    """

    criterion: str
    partitions: int
    keep: Any = "coverage"
    select: str = "uniform"
    pick: str = "uniform"
    aim: str = ""
    severity: str | float = "unlimited"
    window: int = 2
    matched: Arm | None = None

    def scheduler(self, mutations: Mutations) -> Scheduler:
        """The scheduler of a campaign of this arm."""
        option = {"aim": self.aim} if self.aim else {} if self.select == "chains" else {"pick": self.pick}
        spec = CampaignSpec(scheduler=Component(self.select, option), severity=self.severity)
        return spec.build_scheduler(mutations)

    @property
    def columns(self) -> dict[str, Any]:
        """What tells the arms of RQ3 and RQ4 apart in a table."""
        return {
            "guide": self.guide,
            **{name: getattr(self, name) for name in ("criterion", "partitions", "select", "pick")},
        }

    @property
    def guide(self) -> str:
        return self.criterion if self.keep == "coverage" else self.keep

    @property
    def choice(self) -> str:
        """How tests and transformations are chosen: `uniform, uniform`, or the name of one that chooses both."""
        return self.select if self.aim else f"{self.select}, {self.pick}"


def arms(partitions: Sequence[int], base: int) -> list[Arm]:
    """All arms that RQ3 compares: choices are uniform, except where strategies are compared."""
    guided = [Arm(BSCov.name, m) for m in partitions]
    others = [Arm(each.name, base) for each in FIVE if each is not BSCov]
    baselines = [*(Arm(BSCov.name, m, "random") for m in partitions), Arm(BSCov.name, base, "none")]
    return [*guided, *others, *baselines, *strategies(base)[1:]]


def strategies(base: int) -> list[Arm]:
    """Ways to select a test and pick a transformation, the uniform first and the defaults of `fuzz` last."""
    pairs = [("uniform", "uniform"), ("recent", "uniform"), ("decay", "uniform"), ("rarity", "uniform")]
    pairs += [("uniform", "thompson"), ("rarity", "thompson")]
    defaults = Arm(BSCov.name, base, "coverage+distance", "learned", aim="balanced", severity="normal")
    return [*(Arm(BSCov.name, base, select=select, pick=pick) for select, pick in pairs), defaults]


def panel(experiment: Experiment, base: int) -> list[tuple[Criterion, AbstractModel]]:
    """The measured coverages of every campaign: BSCov on all grids, and the other criteria on one."""
    models = experiment.models
    return [(BSCov, model) for model in models.values()] + [(c, models[base]) for c in FIVE if c is not BSCov]


@dataclass(frozen=True)
class Budget:
    """The length of a campaign: runs, minutes, or both, whichever ends first.

    The minutes are those that making and running each batch took when it ran first, so that a campaign which is asked
    for again, or by several processes, is as long as it was.
    """

    runs: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.runs is None and self.minutes is None:
            raise InputError("a campaign needs a number of runs or of minutes")
        if self.runs is not None and self.runs < 1:
            raise InputError(f"--runs must be at least 1, not {self.runs}")
        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise InputError(f"--minutes must be above 0, not {self.minutes:g}")

    def spent(self, runs: int, seconds: float) -> bool:
        """Whether this number of runs, which took this long, is enough."""
        over = self.minutes is not None and seconds >= 60 * self.minutes
        return over or (self.runs is not None and runs >= self.runs)

    def __str__(self) -> str:
        parts = [f"{self.runs:,} runs"] if self.runs is not None else []
        parts += [f"{self.minutes:g} minutes"] if self.minutes is not None else []
        return " or ".join(parts)


#: The default budget of a campaign.
RUNS = Budget(256)


@dataclass(frozen=True)
class Task:
    """A campaign to run: an arm, its random seed, its budget, and the names of its seeds, which were gathered."""

    arm: Arm
    number: int
    budget: Budget
    base: int
    seeds: tuple[str, ...]


def run_campaign(experiment: Experiment, task: Task) -> dict[str, Any]:
    """The result of a campaign, read from its file if it has run before."""
    plain = asdict(task)
    plain["runs"] = plain["budget"]["runs"]  # the names of campaigns limited by runs must not change
    plain |= {} if task.budget.minutes is None else {"minutes": task.budget.minutes}
    del plain["budget"]
    key: list[Any] = [
        {name: plain[name] for name in ("arm", "number", "runs", "base", "seeds", "minutes") if name in plain},
        experiment.components,
        experiment.partitions,
    ]
    key += [] if experiment.input_partitions == INPUT_PARTITIONS else [experiment.input_partitions]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    path = experiment.folder / WORK / f"{name[:32]}.campaign"
    if path.is_file():
        experiment.cache.watch(task.budget.runs or 0, 0)
        return _read(path)
    result = _campaign(experiment, task)
    with atomic_write(path) as file:
        file.write(json.dumps(result).encode())
    return result


def _campaign(experiment: Experiment, task: Task) -> dict[str, Any]:
    arm, size = task.arm, experiment.batch_size if task.arm.window else 1
    model, guide = experiment.models[arm.partitions], Guide((criterion(arm.criterion),), arm.keep)
    scheduler = arm.scheduler(experiment.mutations)
    if arm.matched is not None:
        pattern = run_campaign(experiment, replace(task, arm=arm.matched))
        scheduler = Matched(
            Drawing(experiment.mutations, math.inf), [(run["changes"], run["severity"]) for run in pattern["ran"]]
        )
    state = State(model, guide, experiment.mutations, scheduler)
    measured, rng = Measured(experiment, task.base), np.random.default_rng(task.number)
    inputs = Inputs(experiment.seeds)
    executor = CachedExecutor(experiment.cache, model, experiment.components)
    for position, record in enumerate(experiment.cache.gathered([(name, ()) for name in task.seeds])):
        seed = Mutant.of_seed(position, record.seed)
        sown = judge_seed(experiment.oracle, seed, executor.execution(record), experiment.seeds)
        state.apply(sown)
        if sown.outcome == "kept":
            measured.add(record, kept=True)
    if not len(state.queue):
        raise InputError(f"the system fails all {len(task.seeds)} seeds by the oracle, {experiment.oracle.name}")
    history, ran = [measured.now(0)], []
    ahead = 1 if size == 1 else arm.window
    for step in loop(state, executor, experiment.oracle, inputs, rng, batch_size=size, ahead=ahead):
        for event in step.events:
            if isinstance(event, Ran):
                record = executor.records[event.number]
                if event.outcome in ("kept", "dropped"):
                    measured.add(record, kept=event.outcome == "kept")
                ran.append(_noted(event, record, state.queue.tests[event.parent].reference))
        if state.runs % experiment.batch_size == 0:
            history.append(measured.now(state.runs))
        if task.budget.spent(state.runs, sum(executor.seconds.values())):
            break
    return {"history": history, "ran": ran, "seconds": executor.seconds}


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
        "changes": len(record.recipe),
        "severity": severity(record.recipe),
        "errors": word_errors(reference, event.output) if event.outcome == "failed" else [],
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        result: dict[str, Any] = parse_json(read_bytes(path))
    except (DeepCruiserError, ValueError) as error:
        raise FileError(f"{str(path)!r} is damaged ({error}): remove it, and the campaign runs again") from None
    return result


#: Candidates for each mutant; the one whose severity is nearest is taken.
_CANDIDATES = 32


class Matched(Scheduler):
    """Plans mutants of random seeds; mutant i has as many changes as `targets[i - 1]` and nearly its severity."""

    def __init__(self, drawing: Drawing, targets: Sequence[tuple[int, float]]) -> None:
        super().__init__(drawing)
        self._targets = targets

    def plan(self, queue: Queue, first: int, size: int, rng: np.random.Generator) -> Plan:
        seeds = [test for test in queue.live if not test.recipe]
        plan = []
        for number in range(first, first + size if seeds else first):
            seed = seeds[rng.integers(len(seeds))]
            plan.append(Mutant(number, seed.number, seed.seed, (), self.changes(number, rng)))
            seed.picked += 1
        return tuple(plan)

    def changes(self, number: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """The changes of mutant `number`."""
        count, wanted = self._targets[(number - 1) % len(self._targets)]
        nothing = np.zeros(_CANDIDATES)
        candidates = self._drawing.draw([0] * _CANDIDATES, nothing, np.full(_CANDIDATES, count), rng)
        off = np.abs(candidates.severity - wanted) + 100.0 * np.abs(candidates.count - count)
        return self._drawing.make(candidates, int(off.argmin()), rng)
