"""A campaign as one finds it in its folder, and its failing tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.executors.local import run_all
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.serialise import as_json, digest_of
from deepcruiser.campaign.store import Store
from deepcruiser.campaign.verdict import Verdict, expected, verdict
from deepcruiser.campaign.versions import changed_since
from deepcruiser.errors import InputError
from deepcruiser.oracles import Oracle
from deepcruiser.trace import System


@dataclass(frozen=True)
class Replay:
    """What a failing test gives when it is made and run again, and how that differs from what was stored."""

    number: int
    value: Any
    output: Any
    score: float
    fails: bool
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if not self.differences:
            return f"{self.number}: the same input, the same answer, the same states"
        return f"{self.number}: " + "; ".join(self.differences)


@dataclass(frozen=True, eq=False)
class FailedTest:
    """A mutant that the system gets wrong, as a recipe: its seed, and what was done to it, in order."""

    number: int
    seed: str
    recipe: tuple[Any, ...]
    kind: str
    reference: Any
    output: Any
    score: float
    digest: str
    visited: tuple[int, ...]
    campaign: Campaign

    def __str__(self) -> str:
        steps = " -> ".join(map(str, self.recipe))
        if self.kind != "wrong":
            return f"{self.kind}: {self.output}\n  {self.seed}: {steps}"
        score = f" ({self.campaign.configuration['oracle']}: {self.score:.0%})" if isinstance(self.output, str) else ""
        return f"{self.reference!r} became {self.output!r}{score}\n  {self.seed}: {steps}"

    def make(self, seeds: Iterable[Any] | None = None) -> Any:
        """The failing input, made again from its seed."""
        value = (Seeds(seeds) if seeds is not None else self.campaign.seeds)[self.seed]
        for transformation in self.recipe:
            value = transformation(value)
        return value

    def replay(
        self, system: System, *, model: AbstractModel | None = None, limit_seconds: float | None = None
    ) -> Replay:
        """Make the input again, run the system on it, and compare input, answer and states with what was stored."""
        value, oracle = self.make(), self.campaign.oracle
        (result,) = run_all(system, [value], limit_seconds=limit_seconds)
        found = verdict(result, model or self.campaign.model, oracle, reference=lambda _: self._expected(value))
        same = as_json(found.output) == as_json(self.output)
        kind = found.kind or ("wrong" if oracle is None and same else "")
        differences = [self._other_system(system), self._other_input(value), self._other_answer(found, kind)]
        if found.visits is not None and self.kind == "wrong":
            now, then = set(found.visits.states.tolist()), set(self.visited)
            differences.append(
                f"{len(now ^ then)} of {len(now | then)} states of the model are other ones" * (now != then)
            )
        score = self.score if oracle is None and same else found.score
        return Replay(self.number, value, found.output, score, bool(kind), tuple(filter(None, differences)))

    def _expected(self, value: Any) -> Any:
        campaign, recipe = self.campaign, self.recipe
        seed = partial(campaign.seeds.__getitem__, self.seed)
        return expected(campaign.oracle, self.reference, seed=seed, recipe=recipe, mutant=value)

    def _other_system(self, system: System) -> str:
        now, then = str(getattr(system, "fingerprint", "")), self.campaign.configuration.get("system", "")
        return f"the system is another one ({now[:12]} where it was {then[:12]})" if now != then else ""

    def _other_input(self, value: Any) -> str:
        if digest_of(value) == self.digest:
            return ""
        if digest_of(self.campaign.seeds[self.seed]) != self.campaign.seed_digests[self.seed]:
            return f"the input is not the same: the seed {self.seed!r} has changed"
        changed = changed_since(self.campaign.versions)
        return f"the input is not the same: {changed or 'the seed and the versions are, so it may be the machine'}"

    def _other_answer(self, found: Verdict, kind: str) -> str:
        if kind != self.kind and {kind, self.kind} & {"crash", "time-out"}:
            return f"{kind or 'an answer'} ({found.output}) where it was {self.kind} ({self.output})"
        if kind == self.kind == "crash":  # of what is said, numbers and addresses may differ
            now, then = (str(said).partition(":")[0] for said in (found.output, self.output))
            return f"the crash is {now} where it was {then}" if now != then else ""
        if kind != "time-out" and as_json(found.output) != as_json(self.output):
            return f"the answer is {found.output!r} where it was {self.output!r}"
        return f"it is {kind or 'right'} where it was {self.kind}" if kind != self.kind else ""


@dataclass(frozen=True, eq=False)
class Campaign:
    """What a campaign has found so far, read from its folder.

    `seeds`, `model` and `oracle` are there if it was run or opened with them; replaying takes the seeds.
    """

    folder: Path
    configuration: Mapping[str, Any]
    events: tuple[Event, ...]
    history: tuple[Mapping[str, Any], ...]
    #: Why it stopped, as far as this process knows.
    stopped: str
    seeds_given: Seeds | None
    model: AbstractModel | None
    oracle: Oracle | None
    #: Those of Python and of the libraries when the campaign began.
    versions: Mapping[str, str]

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        seeds: Iterable[Any] | None = None,
        model: AbstractModel | None = None,
        oracle: Oracle | None = None,
        mutations: Mutations | None = None,
        stopped: str = "",
    ) -> Campaign:
        """Read the campaign in a folder, also while it goes on."""
        with Store.open(folder, write=False) as store:
            return cls(
                Path(folder),
                store.meta("configuration") or {},
                tuple(store.events(mutations or Mutations.everything())),
                tuple(store.history()),
                stopped,
                Seeds(seeds) if seeds is not None else None,
                model,
                oracle,
                store.meta("versions") or {},
            )

    @property
    def seeds(self) -> Seeds:
        if self.seeds_given is None:
            raise InputError("the seeds are needed to make an input again: Campaign.open(folder, seeds=...)")
        return self.seeds_given

    @property
    def runs(self) -> int:
        """How many mutants were made, the invalid ones included."""
        return sum(isinstance(event, Ran) for event in self.events)

    @property
    def coverage(self) -> tuple[list[float], list[float]]:
        """The coverage of the queue at the start and now, for each criterion of the guide."""
        ends = (self.history[0], self.history[-1]) if self.history else ({"queue": ()},) * 2
        return list(ends[0]["queue"]), list(ends[1]["queue"])

    @property
    def failed(self) -> list[FailedTest]:
        """The failing tests, the worst first: by score, then by number."""
        return sorted(self._found.values(), key=lambda test: (-test.score, test.number))

    def __getitem__(self, number: int) -> FailedTest:
        if number not in self._found:
            raise InputError(f"no failing test {number} in {os.fspath(self.folder)!r}; there are {len(self._found):,}")
        return self._found[number]

    def __repr__(self) -> str:
        return f"Campaign in {os.fspath(self.folder)}: {self.runs:,} runs, {len(self._found):,} failing tests"

    @cached_property
    def seed_digests(self) -> dict[str, str]:
        """The digest of each seed as it was when the campaign began; empty if it was set aside."""
        return {event.seed: event.digest for event in self.events if isinstance(event, Seeded)}

    @cached_property
    def _found(self) -> dict[int, FailedTest]:
        ran = (event for event in self.events if isinstance(event, Ran) and event.outcome == "failed")
        return {event.number: self._failed(event) for event in ran}

    def _failed(self, event: Ran) -> FailedTest:
        by_number = self._by_number
        recipe, parent = [event.transformation], by_number[event.parent]
        while isinstance(parent, Ran):
            recipe.append(parent.transformation)
            parent = by_number[parent.parent]
        return FailedTest(
            event.number,
            parent.seed,
            tuple(reversed(recipe)),
            event.reason,
            parent.reference,
            event.output,
            event.score,
            event.digest,
            tuple(event.visited.tolist()),
            self,
        )

    @cached_property
    def _by_number(self) -> dict[int, Event]:
        return {-1 - event.position if isinstance(event, Seeded) else event.number: event for event in self.events}
