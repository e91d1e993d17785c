"""Running a campaign: the loop, its folder, its clock, and when it stops."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event, Ran, Seeded, Step
from deepcruiser.campaign.executors.local import run_all
from deepcruiser.campaign.executors.processes import Workshop
from deepcruiser.campaign.loop import loop
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.record import Campaign
from deepcruiser.campaign.seeds import Seeds, sow
from deepcruiser.campaign.serialise import as_json, digest_of
from deepcruiser.campaign.state import Guide, State
from deepcruiser.campaign.store import MODEL, Store
from deepcruiser.campaign.versions import versions
from deepcruiser.criteria import BSCov, Criterion
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.oracles import Oracle, WordErrorRate
from deepcruiser.trace import System


@dataclass(frozen=True)
class Status:
    """What a campaign tells while it runs: what just happened, and the state it led to."""

    state: State
    events: tuple[Event, ...]
    seconds: float
    resumed: bool


def fuzz(
    system: System,
    model: AbstractModel | None,
    seeds: Iterable[Any],
    *,
    folder: str | os.PathLike[str],
    guide: Guide | Criterion | Sequence[Criterion] | str = BSCov,
    oracle: Oracle | None = None,
    mutations: Mutations | None = None,
    select: str = "rarity",
    pick: str = "thompson",
    minutes: float | None = None,
    runs: int | None = None,
    until_coverage: float | None = None,
    seed: int = 0,
    batch_size: int = 16,
    workers: int | None = None,
    limit_seconds: float | None = 60.0,
    watch: Callable[[Status], None] = lambda _: None,
) -> Campaign:
    """Look for inputs that the system gets wrong: transform the seeds, keep what increases coverage, save what fails.

    Stops after `minutes`, `runs` (in whole batches), at `until_coverage` of the first criterion, when every test is
    spent, or at Ctrl-C; the same call on the same folder goes on from there, as if it had never stopped. `workers`
    processes make the mutants (one for every two cores, unless told; the network has the others); their number changes
    nothing but the time.
    `limit_seconds` is how long the system may take for a batch before that counts as a time-out. `model` is None for a
    system that shows no states; the guide is then "none" or "random".
    """
    guide, oracle, mutations = Guide.of(guide), oracle or WordErrorRate(above=0.3), mutations or Mutations()
    workers = max(1, (os.cpu_count() or 1) // 2) if workers is None else workers
    for name, number, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("seed", seed, 0)):
        if number < least:
            raise InputError(f"{name} must be at least {least}, not {number}")
    if model is not None:
        model.origin.check(system)
    sown, rng = Seeds(seeds), np.random.default_rng(seed)
    state = State(model, guide, mutations, select=select, pick=pick)
    if model is None and until_coverage is not None:
        raise InputError(f"until_coverage={until_coverage:g} needs a model, whose coverage it is: give runs or minutes")

    def run(inputs: list[Any]) -> list[Any]:
        return run_all(system, inputs, limit_seconds=limit_seconds)

    with Store.open(folder, write=True) as store, _interruptions() as interrupted:
        store.configure(
            {
                "guide": state.guide.name,
                "oracle": oracle.name,
                **mutations.described(),
                "select": select,
                "pick": pick,
                "seed": int(seed),
                "batch_size": int(batch_size),
                "model": "" if model is None else model.fingerprint,
                "system": str(getattr(system, "fingerprint", "")),
                "seeds": list(sown),
                "texts of the seeds": digest_of([sown.text(name) for name in sown]),
            }
        )
        resumed, positions = store.meta("random") is not None, {name: i for i, name in enumerate(sown)}
        before = store.history()[-1]["seconds"] if resumed else 0.0
        began = time.monotonic()

        def tell(step: Step) -> None:
            seconds = before + time.monotonic() - began
            failures = _failures(step, state, mutations)
            for found in failures.values():
                store.keep_seed(positions[found["seed"]], partial(sown.__getitem__, found["seed"]))
            store.save(step, mutations, _history(state, seconds), failures, state.territory.take())
            watch(Status(state, step.events, seconds, resumed))

        def why_stop() -> str:
            if interrupted.is_set():
                return "interrupted"
            if minutes is not None and time.monotonic() - began >= minutes * 60:
                return f"{minutes:g} minutes are over"
            if runs is not None and state.runs >= runs:
                return f"{state.runs:,} runs are done"
            if until_coverage is not None and state.coverages[0].value >= until_coverage:
                return f"{guide.criteria[0]} reached {state.coverages[0].value:.1%}"
            return ""

        with Workshop(sown, state.queue, mutations.invalid, workers=workers, kinds=mutations.kinds) as workshop:
            if resumed:
                plan = store.plan(mutations)
                state.apply_again(_unchanged(store.events(mutations), sown), plan)
                state.territory.restore((who, ground) for _, who, ground in store.territory())
                rng.bit_generator.state = store.meta("random")
                watch(Status(state, (), before, resumed))
            else:
                store.put("versions", versions())
                step = _begin(state, sown, run, oracle, rng, batch_size=batch_size, interrupted=interrupted)
                if model is not None:
                    model.save(store.folder / MODEL)
                tell(step)
                plan = step.plan
            store.put("stopped", "")
            steps = loop(state, workshop, run, oracle, rng, batch_size=batch_size, plan=plan)
            while not (stopped := why_stop()):
                upcoming = next(steps, None)
                if upcoming is None:
                    stopped = "every test is spent"
                    break
                tell(upcoming)
        store.put("stopped", stopped)
    return Campaign.open(folder, seeds=seeds, model=model, oracle=oracle, mutations=mutations, stopped=stopped)


def _begin(
    state: State,
    seeds: Seeds,
    run: Callable[[list[Any]], list[Any]],
    oracle: Oracle,
    rng: np.random.Generator,
    *,
    batch_size: int,
    interrupted: threading.Event,
) -> Step:
    """Run the seeds and draw the first plan."""
    events, model, note = [], state.model, partial(state.territory.add, who="seeds")
    for event in sow(seeds, state.coverages, run, oracle, batch_size=batch_size, note=note):
        state.apply(event)
        events.append(event)
        if interrupted.is_set():
            raise KeyboardInterrupt  # there is nothing to save before all seeds are judged
    if not len(state.queue):
        first = events[0]
        raise InputError(
            f"none of the {len(events):,} seeds can be used ({_counted(state.set_aside)}); the first, "
            f"{first.seed!r}: {first.reason} ({as_json(first.output)})"
        )
    beyond = np.empty(0, int) if model is None else np.setdiff1d(np.arange(len(model.states)), model.initial)
    if len(beyond) and not state.queue.visits[beyond].any():
        raise InputError(
            "the seeds reach no state of the model but the initial one: is it a model of another system, or audio at "
            "another rate?"
        )
    state.mutations.check(seeds[next(iter(state.queue.tests.values())).seed])
    plan = state.plan(rng, batch_size)
    return Step(tuple(events), plan, dict(rng.bit_generator.state), (None,) * len(events))


def _unchanged(events: Iterable[Event], seeds: Seeds) -> Iterator[Event]:
    """The events, after a look at each seed: whether it still is what it was when the campaign began."""
    for event in events:
        if isinstance(event, Seeded) and event.outcome == "kept" and digest_of(seeds[event.seed]) != event.digest:
            raise MismatchError(f"the seed {event.seed!r} has changed since the campaign began: give another folder")
        yield event


def _history(state: State, seconds: float) -> dict[str, Any]:
    return {
        "runs": state.runs,
        "seconds": round(seconds, 3),
        "queue": [coverage.value for coverage in state.coverages],
        "executed": [coverage.value for coverage in state.executed],
    }


def _failures(step: Step, state: State, mutations: Mutations) -> dict[int, dict[str, Any]]:
    """What the files beside failing inputs tell, by number."""
    found = {}
    for event in step.events:
        if isinstance(event, Ran) and event.outcome == "failed":
            parent = state.queue.tests[event.parent]
            found[event.number] = {
                "number": event.number,
                "seed": parent.seed,
                "recipe": [mutations.to_dict(change) for change in (*parent.recipe, event.transformation)],
                "kind": event.reason,
                "reference": as_json(parent.reference),
                "output": as_json(event.output),
                "score": event.score,
                "sha256": event.digest,
            }
    return found


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


@contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, so that the batch under way is finished and saved; a second one ends it at once."""
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
