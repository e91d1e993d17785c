"""Running a campaign: the loop, its folder, its clock, and when it stops."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.probes import Probe, changed, make_probes
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.executors.base import Executor
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.executors.repeats import Repeats, are_shared
from deepcruiser.campaign.executors.workers import CampaignWorker, WorkerExecutor
from deepcruiser.campaign.failed_test import FailedTest, InputFile
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.loop import Step, loop, sow
from deepcruiser.campaign.mutations import Mutations, never_invalid
from deepcruiser.campaign.paths import WORST, keep_paths
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.scheduler import Mutant, Plan
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.campaign.spec import CampaignSpec, Component, guide_component, mutations_component, unknown
from deepcruiser.campaign.state import State
from deepcruiser.campaign.store import MODEL, Store, versions
from deepcruiser.criteria import Criterion
from deepcruiser.errors import FileError, InputError, MismatchError
from deepcruiser.oracles import Oracle
from deepcruiser.progress import watching_share
from deepcruiser.serialise import digest_of, readable, summarise
from deepcruiser.trace import System
from deepcruiser.transformations import from_dict
from deepcruiser.value_oracles import SystemDisagreement
from deepcruiser.workers import Workers


@dataclass(frozen=True)
class Status:
    """The status of a running campaign: the latest events and the state after them, and how far its budget is used.

    `share` is None without a budget of runs or minutes.
    """

    state: State
    events: tuple[Event, ...]
    seconds: float
    resumed: bool
    share: float | None = None

    @property
    def line(self) -> str:
        """The state of the campaign in a few words."""
        return f"{self.state.runs:,} runs, {self.state.outcomes['failed']:,} failed"


def fuzz(
    system: System,
    model: AbstractModel | None,
    seeds: Iterable[Any],
    *,
    folder: str | os.PathLike[str],
    spec: CampaignSpec | None = None,
    guide: Guide | Criterion | Sequence[Criterion] | str | None = None,
    oracle: Oracle | None = None,
    against: System | None = None,
    mutations: Mutations | None = None,
    executor: Executor | None = None,
    leave_out: Collection[str] = (),
    workers: int | Workers[CampaignWorker] | None = None,
    watch: Callable[[Status], None] | None = None,
    **settings: Any,
) -> CampaignRecord:
    """Look for inputs that the system gets wrong: transform the seeds, keep what increases coverage, save what fails.

    `settings` are fields of `CampaignSpec`: seed, batch_size, window, scheduler, minutes, runs, until_coverage,
    limit_seconds, validity, keep_failing_seeds. The campaign stops after `minutes`, after `runs`, at `until_coverage`
    of the first criterion, when every test is spent, or at Ctrl-C; the same call on the same folder resumes it, as if
    it had never stopped.

    With `against`, another system is run on every mutant, and the oracle compares the two answers.

    `workers` processes make the mutants, one for every two cores by default; their number changes only the time.
    `ProcessWorkers` or `RayWorkers`, whose workers hold the system, make and run them. `executor` runs the mutants
    elsewhere. Seeds whose names are in `leave_out` are not used. `model` is None for a system that reports no states;
    the guide is then "none" or "random".
    """
    spec = _spec(spec or CampaignSpec(), guide, oracle, mutations, settings)
    guide = Guide.of(guide) if guide is not None else spec.build_guide()
    oracle = oracle if oracle is not None else spec.build_oracle()
    oracle = oracle if against is None else SystemDisagreement(against, oracle)
    mutations = mutations if mutations is not None else spec.build_mutations()
    workers = max(1, (os.cpu_count() or 1) // 2) if workers is None else workers
    if spec.limit_seconds is not None and not hasattr(signal, "setitimer"):
        message = f"on this operating system only programs (process: ...) are ended after {spec.limit_seconds:g} s"
        warnings.warn(f"{message}, so a network that hangs stops the campaign", RuntimeWarning, stacklevel=2)
    if isinstance(workers, int) and workers < 0:
        raise InputError(f"workers must be at least 0, not {workers}")
    if model is not None:
        model.origin.check(system)
    elif spec.until_coverage is not None:
        raise InputError(f"until_coverage={spec.until_coverage:g} needs a model: use runs or minutes")
    inputs = Inputs(Seeds(seeds), recent=2 * spec.batch_size)
    if unknown_names := sorted(set(leave_out) - set(inputs.seeds)):
        raise InputError(
            f"the seed {unknown_names[0]!r} is to be left out, but none of the {len(inputs.seeds):,} seeds has that "
            "name: correct the list of seeds to leave out"
        )
    state = State(model, guide, mutations, spec.build_scheduler(mutations))
    for coverage in state.coverages if guide.needs_model else ():
        if not len(coverage.covered):
            message = f"{coverage.criterion.name} requires nothing of {coverage.model.name}, so no mutant increases it"
            warnings.warn(f"{message}: choose another guide", RuntimeWarning, stacklevel=2)
    with watching_share() as show, Store.open(folder, write=True) as store, _interruptions() as interrupted:
        watch = watch or (lambda status: show(status.line, status.share))
        store.configure(spec, _identity(system, model, inputs.seeds, leave_out, against))
        executor = executor or _executor(system, state, inputs, oracle, spec, workers)
        with executor:
            left_out = frozenset(leave_out)
            repeats = Repeats(executor, inputs) if are_shared(inputs.seeds, mutations, oracle) else None
            session = _Session(
                spec, system, state, executor, repeats, oracle, inputs, left_out, store, watch, interrupted
            )
            stopped = session.run()
        store.put("stopped", stopped)
    record = CampaignRecord.open(folder, seeds=seeds, model=model, oracle=oracle, mutations=mutations)
    if stopped != "interrupted":
        keep_paths(record, system, record.failed[:WORST])
    return record


def _spec(
    spec: CampaignSpec, guide: Any, oracle: Oracle | None, mutations: Mutations | None, settings: dict[str, Any]
) -> CampaignSpec:
    """The spec with everything that was passed separately."""
    names = [each.name for each in fields(CampaignSpec)]
    for name, value in settings.items():
        if name not in names:
            raise unknown("setting", name, names, value=value)
    if isinstance(settings.get("scheduler"), str):
        settings = {**settings, "scheduler": Component(settings["scheduler"])}
    if guide is not None:
        settings["guide"] = guide_component(Guide.of(guide))
    if oracle is not None:
        settings["oracle"] = Component.of(oracle)
    if mutations is not None:
        settings["mutations"] = mutations_component(mutations)
    return replace(spec, **settings)


def _identity(
    system: System, model: AbstractModel | None, seeds: Seeds, leave_out: Collection[str], against: System | None
) -> dict[str, Any]:
    """The facts that must be the same on resuming but are not part of a spec."""
    return {
        "model": "" if model is None else model.fingerprint,
        "system": str(getattr(system, "fingerprint", "")),
        "other system": str(getattr(against, "fingerprint", "" if against is None else type(against).__name__)),
        "seeds": list(seeds),
        "seeds left out": sorted(leave_out),
        "texts of the seeds": digest_of([seeds.text(name) for name in seeds]),
    }


def _executor(
    system: System,
    state: State,
    inputs: Inputs,
    oracle: Oracle,
    spec: CampaignSpec,
    workers: int | Workers[CampaignWorker],
) -> Executor:
    model, mutations = state.model, state.mutations
    invalid = mutations.invalid if spec.validity else never_invalid
    local = LocalExecutor(system, model, inputs, invalid, limit_seconds=spec.limit_seconds)
    if isinstance(workers, Workers):

        def reference(mutant: Mutant) -> Any:
            return state.queue.tests[mutant.parent].reference

        return WorkerExecutor(workers, model, local, oracle=oracle, reference=reference)
    if not workers:
        return local
    from deepcruiser.campaign.executors.processes import ProcessExecutor

    return ProcessExecutor(local, inputs, invalid, workers=workers, kinds=mutations.kinds)


@dataclass(frozen=True, eq=False)
class _Session:
    """A campaign that is being run: the loop on one side, folder, clock and watcher on the other."""

    spec: CampaignSpec
    system: System
    state: State
    executor: Executor
    repeats: Repeats | None
    oracle: Oracle
    inputs: Inputs
    leave_out: frozenset[str]
    store: Store
    watch: Callable[[Status], None]
    interrupted: threading.Event

    def run(self) -> str:
        """Run until it is time to stop, and return the reason."""
        rng = np.random.default_rng(self.spec.seed)
        resumed = self.store.meta("random") is not None
        before = self.store.moments()[-1][1] if resumed else 0.0
        began = time.monotonic()
        pending: tuple[Plan, ...] = ()
        if resumed:
            pending = self._resume(rng)
            self._show((), before, time.monotonic() - began)
        else:
            self._begin(rng, began)
        self.store.put("stopped", "")
        steps = loop(
            self.state,
            self.repeats or self.executor,
            self.oracle,
            self.inputs,
            rng,
            batch_size=self.spec.batch_size,
            ahead=self.spec.ahead,
            pending=pending,
            runs=self.spec.runs,
        )
        while not (stopped := self._why_stop(time.monotonic() - began)):
            step = next(steps, None)
            if step is None:
                return "every test is spent"
            self._save(step, before, began)
        return stopped

    def _show(self, events: tuple[Event, ...], before: float, seconds: float) -> None:
        """Call the watcher; `before` are the seconds of earlier sessions, `seconds` those of this one."""
        spec = self.spec
        used = [self.state.runs / spec.runs] if spec.runs else []
        used += [seconds / (spec.minutes * 60)] if spec.minutes else []
        share = min(1.0, max(used)) if used else None
        self.watch(Status(self.state, events, before + seconds, before > 0, share))

    def _why_stop(self, seconds: float) -> str:
        spec, state = self.spec, self.state
        if self.interrupted.is_set():
            return "interrupted"
        if spec.minutes is not None and seconds >= spec.minutes * 60:
            return f"{spec.minutes:g} minutes are over"
        if spec.runs is not None and state.runs >= spec.runs:
            return f"{state.runs:,} runs are done"
        if spec.until_coverage is not None and state.coverages[0].value >= spec.until_coverage:
            return f"{state.guide.criteria[0]} reached {state.coverages[0].value:.1%}"
        return ""

    def _begin(self, rng: np.random.Generator, began: float) -> None:
        """Run the seeds."""
        if self.state.model is not None:
            self.state.model.check(self.system)
        self.store.put("versions", versions())
        events: list[Seeded] = []
        sown = sow(
            self.executor,
            self.oracle,
            self.inputs,
            batch_size=self.spec.batch_size,
            leave_out=self.leave_out,
            keep_failing=self.spec.keep_failing_seeds,
        )
        for event in sown:
            self.state.apply(event)
            events.append(event)
            if self.interrupted.is_set():
                raise KeyboardInterrupt  # there is nothing to save before all seeds are judged
        _check_seeds(events, self.state)
        self.state.mutations.check(self.inputs.seeds[next(event.seed for event in events if event.outcome == "kept")])
        if self.state.model is not None:
            self.state.model.save(self.store.folder / MODEL)
        # A changed decoder changes the answers with the greatest doubt first.
        doubtful = sorted((e for e in events if e.outcome == "kept"), key=lambda event: -(event.doubt or 0.0))
        probes = make_probes(self.system, ((e.seed, self.inputs.seeds[e.seed]) for e in doubtful), store=False)
        self.store.put("probes", [probe.to_dict() for probe in probes])
        self._save(Step(tuple(events), (), dict(rng.bit_generator.state)), 0.0, began)

    def _resume(self, rng: np.random.Generator) -> tuple[Plan, ...]:
        """Restore the state where the campaign stopped, and return the plans that were not yet run."""
        read_change = partial(from_dict, kinds=self.state.mutations.kinds)
        with self.store.usable():
            self.state.resume(self._seeds_unchanged(), ())
            probes = [Probe.from_dict(data) for data in self.store.meta("probes") or ()]
        if change := changed(self.system, probes, lambda probe: self.inputs.seeds[probe.name]):
            raise MismatchError(
                f"since the campaign in {os.fspath(self.store.folder)!r} began, {change}; resume it with the original "
                "system, or use another folder"
            )
        with self.store.usable():
            runs = self.store.runs(self.state.model, read_change)
            self.state.resume(runs if self.repeats is None else self.repeats.read(runs, self.state.queue), ())
            if (made := self.store.moments()[-1][0]) != self.state.runs:
                raise FileError(
                    f"the campaign is damaged: {made:,} runs were made, but {self.state.runs:,} can be read"
                )
            plans, number = [], self.state.runs
            for stored in self.store.pending(read_change):
                plan = []
                for parent, changes in stored:
                    number, test = number + 1, self.state.queue.tests[parent]
                    plan.append(Mutant(number, parent, test.seed, test.recipe, changes))
                plans.append(tuple(plan))
            self.state.resume((), plans)
            rng.bit_generator.state = self.store.meta("random")
        return tuple(plans)

    def _seeds_unchanged(self) -> Iterator[Seeded]:
        """The stored events of the seeds, after checking that each seed is unchanged since the campaign began."""
        for event in self.store.seeds(self.state.model):
            if event.outcome == "kept" and digest_of(self.inputs.seeds[event.seed]) != event.digest:
                raise MismatchError(f"the seed {event.seed!r} has changed since the campaign began: use another folder")
            yield event

    def _save(self, step: Step, before: float, began: float) -> None:
        failing = [event for event in step.events if isinstance(event, Ran) and event.outcome == "failed"]
        tests = [FailedTest.of(event, self.state.queue.tests[event.parent]) for event in failing]
        failures = {}
        for test in tests:
            file = self.executor.file(test.seed, test.recipe)
            file = InputFile.of(self.inputs.make(test.seed, test.recipe)) if file is None else file
            failures[test.number] = file, test.to_dict()
            self.store.keep_seed(test.position, partial(self.inputs.make, test.seed, ()))
        seconds = time.monotonic() - began
        self.store.save(step, runs=self.state.runs, seconds=before + seconds, failures=failures)
        self._show(step.events, before, seconds)


def _check_seeds(events: Sequence[Seeded], state: State) -> None:
    """Refuse seeds that cannot be used."""
    kept = [event for event in events if event.outcome == "kept"]
    if not kept:
        first, reasons = events[0], Counter(event.reason for event in events)
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        answer, remedy = str(readable(summarise(first.output))), ""
        if first.reason == "failed already":
            answer = f"expected {readable(summarise(first.reference))!r}, got {readable(summarise(first.output))!r}"
        if any(event.reason == "failed already" for event in events):
            remedy = (
                "; do rate, features and transcribe match the training? against='output' (--against output) compares "
                "with the system's own answers instead"
            )
        raise InputError(
            f"none of the {len(events):,} seeds can be used ({counts}); the first, {first.seed!r}: {first.reason} "
            f"({answer}){remedy}"
        )
    if state.model is None or len(state.model.states) == len(state.model.initial):
        return
    visited = [event.visits.states for event in kept if event.visits is not None]
    if not any(len(np.setdiff1d(states, state.model.initial)) for states in visited):
        raise InputError(
            "the seeds reach no state of the model but the initial one: is it a model of another system, or audio at "
            "another rate?"
        )


@contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event, so that the current batch is finished and saved; a second one stops at once."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.getsignal(signal.SIGINT)

    def note(signum: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
