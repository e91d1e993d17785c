"""The reader of campaign folders, even while the campaign is running."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.probes import Change, Probe, changed
from deepcruiser.campaign.events import Event, Ran, Seeded
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Queue, Test
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.campaign.store import MODEL, Store
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import Criterion
from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.notebook import axes, card, extra
from deepcruiser.oracles import Oracle
from deepcruiser.trace import System
from deepcruiser.transformations import from_dict


class CampaignRecord:
    """A stored campaign. `CampaignRecord.open(folder)` reads it, and `update()` reads later runs.

    `seeds`, `oracle` and `mutations` are needed only to make inputs again and to replay them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seeds: Iterable[Any] | None = None,
        model: AbstractModel | None = None,
        oracle: Oracle | None = None,
        mutations: Mutations | None = None,
    ) -> None:
        self.folder = folder
        self.oracle = oracle
        self.spec = CampaignSpec()
        #: The fingerprints of the system and the model, and the names of the seeds.
        self.identity: Mapping[str, Any] = {}
        #: The working directory that the paths of the spec are relative to: "relative" to the folder, and "absolute".
        self.directory: Mapping[str, str] = {}
        #: The versions of Python and of the libraries when the campaign began.
        self.versions: Mapping[str, str] = {}
        #: What the system made of a few seeds when the campaign began.
        self.probes: tuple[Probe, ...] = ()
        #: Why the campaign stopped; empty if it has not, or was killed.
        self.stopped = ""
        self.state: Literal["running", "unfinished", "finished"] = "unfinished"
        #: Why some of the runs cannot be read; empty if all can.
        self.problem = ""
        self.seeds: list[Seeded] = []
        self.runs: list[Ran] = []
        #: Pairs of a number of runs and the seconds that had passed by then.
        self.moments: list[tuple[int, float]] = []
        self.model, self.model_problem = self._model(model)
        #: The user's own transformations.
        self.kinds: tuple[type, ...] = () if mutations is None else tuple(mutations.kinds)
        self._inputs = None if seeds is None else Inputs(Seeds(seeds))
        self._queue = Queue()
        self._failed: dict[int, FailedTest] = {}
        self.update()

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        seeds: Iterable[Any] | None = None,
        model: AbstractModel | None = None,
        oracle: Oracle | None = None,
        mutations: Mutations | None = None,
    ) -> CampaignRecord:
        """Read the campaign in a folder, even while it is running."""
        return cls(Path(folder), seeds=seeds, model=model, oracle=oracle, mutations=mutations)

    def update(self) -> None:
        """Read the runs that were added since."""
        with Store.open(self.folder, write=False) as store, store.usable():
            moments = store.moments()
            if store.meta("spec") is None or not moments:
                raise FileError(
                    f"the campaign in {os.fspath(self.folder)!r} has not started: its seeds have not been run yet"
                )
            stopped, at_work = store.meta("stopped"), store.is_at_work()
            self.stopped = stopped or ""
            self.state = "running" if at_work else "finished" if stopped else "unfinished"
            self.spec = CampaignSpec.from_dict(store.meta("spec"))  # a new session may have another budget
            if not self.seeds:
                self.identity, self.directory = store.meta("identity"), store.meta("directory")
                self.versions = store.meta("versions") or {}
                self.probes = tuple(Probe.from_dict(data) for data in store.meta("probes") or ())
                self._check_model()
                self.seeds = list(store.seeds(self.model))
                if [seed.seed for seed in self.seeds] != self.identity.get("seeds"):
                    raise FileError(
                        f"the campaign in {os.fspath(self.folder)!r} is damaged: some of its seeds are missing"
                    )
                for seed in self.seeds:
                    self._queue.take(seed)
            try:
                for event in store.runs(self.model, self._change, after=len(self.runs)):
                    self._take(event)
                if len(self.runs) != moments[-1][0]:
                    raise FileError(f"{moments[-1][0]:,} runs were made")
            except DeepCruiserError as error:
                self.problem = f"runs after {len(self.runs):,} cannot be read: {error}"
            self.moments = moments

    def _take(self, event: Ran) -> None:
        parent = self._queue.parent(event)
        self.runs.append(event)
        self._queue.take(event)
        if event.outcome == "failed":
            self._failed[event.number] = FailedTest.of(event, parent, self)

    @property
    def seconds(self) -> float:
        """How long the campaign has run, all sessions together."""
        return self.moments[-1][1]

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        return [*self.seeds, *self.runs]

    @property
    def tests(self) -> Mapping[int, Test]:
        """The tests of the queue by number: seed i is -1 - i, the mutant of run n is n."""
        return self._queue.tests

    @property
    def failed(self) -> list[FailedTest]:
        """The failing tests, the worst first: by score, then by number."""
        return sorted(self._failed.values(), key=lambda test: (-test.score, test.number))

    def __getitem__(self, number: int) -> FailedTest:
        if number not in self._failed:
            raise InputError(
                f"there is no failing test {number} in {os.fspath(self.folder)!r}"
                + (f"; the worst is {self.failed[0].number}" if self._failed else ", which has none")
            )
        return self._failed[number]

    def __repr__(self) -> str:
        return f"Campaign in {os.fspath(self.folder)}: {len(self.runs):,} runs, {len(self._failed):,} failed"

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [("stopped", self.stopped or self.state), ("seeds", f"{len(self.seeds):,}")]
        if self.model is not None:
            for criterion in self.spec.build_guide().criteria:
                rows.append((f"{criterion.name} of all runs", f"{self.coverage(criterion).value:.2%}"))
        return card(repr(self), rows, below="".join(test._repr_html_() for test in self.failed[:3]))

    def to_dataframe(self) -> Any:
        """A row for each run, as a DataFrame of pandas."""
        pandas = extra("pandas", "to_dataframe()")
        rows = []
        for event in self.runs:
            parent = self._queue.parent(event)
            recipe = " -> ".join(map(str, (*parent.recipe, *event.changes)))
            kinds = "+".join(type(change).__name__ for change in event.changes)
            known = {"run": event.number, "seed": parent.seed, "transformation": kinds, "recipe": recipe}
            judged = {"outcome": event.outcome, "reason": event.reason, "expected": parent.reference}
            rows.append({**known, **judged, "output": event.output, "score": event.score, "doubt": event.doubt})
        return pandas.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """Coverage and failing tests over the runs, with matplotlib; returns the axes of the coverage."""
        ax = axes(ax)
        guide, runs = self.spec.build_guide(), range(len(self.runs) + 1)
        for criterion in guide.criteria if self.model is not None else ():
            coverage = Coverage(self.model, criterion)  # type: ignore[arg-type]  # mypy forgets the condition
            values = []
            for event in self.events:
                if event.visits is not None and event.outcome in ("kept", "dropped"):
                    coverage.add(event.visits)
                values.append(100 * coverage.value)
            ax.plot(runs, values[len(self.seeds) - 1 :], label=criterion.name)
        failing = ax.twinx()
        failed = [0, *accumulate(event.outcome == "failed" for event in self.runs)]
        failing.step(runs, failed, color="#d55e00", where="post")
        failing.set_ylabel("failing tests", color="#d55e00")
        ax.set(xlabel="runs", ylabel="covered by all runs, %", title=f"guide: {guide.name}")
        if ax.lines:
            ax.legend(loc="upper left")
        return ax

    @property
    def inputs(self) -> Inputs:
        """The inputs of the campaign, made again from its seeds."""
        if self._inputs is None:
            raise InputError("the seeds are needed to make an input again: CampaignRecord.open(folder, seeds=...)")
        return self._inputs

    @cached_property
    def seed_digests(self) -> dict[str, str]:
        """The digest of each seed as it was when the campaign began; empty if it was set aside."""
        return {event.seed: event.digest for event in self.seeds}

    def change(self, system: System) -> Change | None:
        """How the features, the network or the decoder of a system differ from the campaign's; None if they do not."""
        return changed(system, self.probes, lambda probe: self.inputs.seeds[probe.name])

    def coverage(self, criterion: Criterion, *, queue: bool = False) -> Coverage:
        """What the campaign covers: everything that ran without failing, or only the tests of its queue."""
        if self.model is None:
            raise InputError(f"there is no model to measure {criterion} on: {self.model_problem or 'none was used'}")
        coverage = Coverage(self.model, criterion)
        for event in self.events:
            if event.visits is not None and (event.outcome == "kept" or (event.outcome == "dropped" and not queue)):
                coverage.add(event.visits)
        return coverage

    def _model(self, model: AbstractModel | None) -> tuple[AbstractModel | None, str]:
        path = self.folder / MODEL
        if model is not None or not path.exists():
            return model, ""
        try:
            return AbstractModel.load(path), ""
        except DeepCruiserError as error:
            return None, str(error)

    def _check_model(self) -> None:
        expected = self.identity.get("model")
        if self.model is not None and self.model.fingerprint != expected:
            self.model, self.model_problem = None, "the model is not the campaign's own"
        elif self.model is None and expected and not self.model_problem:
            self.model_problem = f"there is no {MODEL} in {os.fspath(self.folder)!r}"

    def _change(self, data: Mapping[str, Any]) -> Any:
        return from_dict(data, kinds=self.kinds, strict=False)
