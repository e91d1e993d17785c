"""A campaign as one finds it in its folder, and its failing tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.running import Problem, run_all
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.store import Store, as_json
from deepcruiser.campaign.workshop import digest_of
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
        value = self.make()
        (result,) = run_all(system, [value], limit_seconds=limit_seconds)
        differences = []
        if digest_of(value) != self.digest:
            differences.append("the input is not the same: another version of a library, or a changed seed")
        if isinstance(result, Problem):
            output, score, fails = result.said, 0.0, True
            if result.kind != self.kind:
                differences.append(f"{result.kind} ({result.said}) where it was {self.kind}")
        else:
            output = result.output
            oracle = self.campaign.oracle
            score = 0.0 if oracle is None else oracle.score(self.reference, output)
            fails = self.kind == "not finite" if oracle is None else oracle.fails(score)
            if as_json(output) != as_json(self.output):
                differences.append(f"the answer is {output!r} where it was {self.output!r}")
            model = model or self.campaign.model
            if model is not None and self.kind == "wrong":
                now = set(model.visits(result.trace).states.tolist())
                if now != set(self.visited):
                    differences.append(f"{len(now ^ set(self.visited))} states of the model are other ones")
        return Replay(self.number, value, output, score, fails, tuple(differences))


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
        return list(self.history[0]["queue"]), list(self.history[-1]["queue"])

    @property
    def failed(self) -> list[FailedTest]:
        """The failing tests, the worst first: by score, then by number."""
        found = [self._failed(event) for event in self.events if isinstance(event, Ran) and event.outcome == "failed"]
        return sorted(found, key=lambda test: (-test.score, test.number))

    def __getitem__(self, number: int) -> FailedTest:
        for test in self.failed:
            if test.number == number:
                return test
        raise InputError(f"no failing test {number} in {os.fspath(self.folder)!r}; there are {len(self.failed):,}")

    def __repr__(self) -> str:
        return f"Campaign in {os.fspath(self.folder)}: {self.runs:,} runs, {len(self.failed):,} failing tests"

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

    @property
    def _by_number(self) -> dict[int, Event]:
        return {-1 - event.position if isinstance(event, Seeded) else event.number: event for event in self.events}
