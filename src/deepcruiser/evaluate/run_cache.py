"""On-disk cache of executed batches; no batch runs twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.projections import Projections
from deepcruiser.campaign.executors.base import Execution, Executor, Problem
from deepcruiser.campaign.executors.local import Made, execution, make, read_seed, run_all
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.errors import InputError
from deepcruiser.evaluate.records import Batch, Recipe, Record
from deepcruiser.serialise import decode, digest_of, encode
from deepcruiser.trace import Run, System
from deepcruiser.transformations import to_dict


class RunCache:
    """Makes and runs batches of mutants, and caches the results in a folder.

    A network may answer an input a little differently in another batch. So a batch is cached as a whole, and the same
    batch never runs twice, whichever question or campaign asks for it: the same command gives the same numbers, however
    often it was interrupted and however many processes are at work.
    """

    def __init__(
        self,
        system: System,
        seeds: Seeds,
        *,
        projections: Projections,
        mutations: Mutations,
        folder: Path,
        limit_seconds: float | None = None,
    ) -> None:
        self.system = system
        self.seeds = seeds
        self.projections = projections
        self.mutations = mutations
        self.folder = folder
        self.limit_seconds = limit_seconds
        #: Called with the inputs and the steps of each batch.
        self.watch: Callable[[int, int], None] = lambda inputs, steps: None
        self._inputs = Inputs(seeds)

    def batch(self, recipes: Sequence[Recipe]) -> Batch:
        """The results of these inputs, in their order: from the cache, or made and run now."""
        path = self._path(recipes)
        if path.is_file():
            batch = self.known(recipes)
        else:
            batch = self._run(recipes)
            batch.save(path)
        self.watch(len(recipes), batch.steps)
        return batch

    def known(self, recipes: Sequence[Recipe]) -> Batch:
        """The results of these inputs, which are in the cache."""
        return Batch.load(self._path(recipes), recipes)

    def gather(self, records: Sequence[Record]) -> None:
        """Put records from several batches into one file, where other processes find them by their recipes."""
        path = self._path([(record.seed, record.recipe) for record in records], "gathered")
        if not path.is_file():
            Batch(tuple(records), 0.0).save(path)

    def gathered(self, recipes: Sequence[Recipe]) -> tuple[Record, ...]:
        """Records that `gather` put into one file."""
        return Batch.load(self._path(recipes, "gathered"), recipes).records

    def _path(self, recipes: Sequence[Recipe], kind: str = "batch") -> Path:
        return self.folder / f"{self.name_of(recipes)}.{kind}"

    def name_of(self, recipes: Sequence[Recipe]) -> str:
        """The name of the file of a batch."""
        plain = [[seed, [to_dict(change) for change in changes]] for seed, changes in recipes]
        return hashlib.sha256(f"{self.fingerprint} {json.dumps(plain)}".encode()).hexdigest()[:32]

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the network, the projections or the validity gate."""
        projections = [(p.mean, p.axes) for p in (self.projections.states, self.projections.inputs)]
        network = str(getattr(self.system, "fingerprint", ""))
        return digest_of([network, self.mutations.gate, projections])

    def _run(self, recipes: Sequence[Recipe]) -> Batch:
        began = time.perf_counter()
        made = [self._make(recipe) for recipe in recipes]
        valid = [each.value for each in made if not each.invalid and each.problem is None]
        results = iter(run_all(self.system, valid, limit_seconds=self.limit_seconds))
        records = [
            self._record(recipe, each, each.problem if each.invalid or each.problem else next(results))
            for recipe, each in zip(recipes, made, strict=True)
        ]
        return Batch(tuple(records), time.perf_counter() - began)

    def _make(self, recipe: Recipe) -> Made:
        seed, changes = recipe
        if not changes:
            return read_seed(self._inputs, seed)
        return make(changes, self.seeds[seed], self.seeds[seed], self.mutations.invalid)

    def _record(self, recipe: Recipe, made: Made, result: Run | Problem | None) -> Record:
        of_states, of_inputs = self.projections.states.components, self.projections.inputs.components
        states, inputs = np.empty((0, of_states), np.float32), np.empty((0, of_inputs), np.float32)
        segments: tuple[int, ...] = ()
        output, doubt, scores, problem = None, None, None, result if isinstance(result, Problem) else None
        if isinstance(result, Run):
            try:
                output, doubt = decode(encode(result.output)), getattr(result, "doubt", None)  # as it is read again
                scores = getattr(result, "scores", None)
                (states,), (inputs,) = self.projections.project([result.traced], [recipe[0]])
                segments = result.traced.segments
            except InputError as error:
                output, problem = None, Problem("not finite", str(error))
        return Record(*recipe, made.invalid, made.digest, problem, output, doubt, states, inputs, scores, segments)


class CachedExecutor(Executor):
    """Executes mutants through a cache; `records` and `seconds` are those of the latest batch."""

    def __init__(self, cache: RunCache, model: AbstractModel, components: int) -> None:
        self._cache, self._model, self._components = cache, model, components
        self.records: dict[int, Record] = {}
        #: The seconds that each batch took, by its name.
        self.seconds: dict[str, float] = {}

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        return lambda: self._run(mutants)

    def _run(self, mutants: Sequence[Mutant]) -> list[Execution]:
        recipes = [(mutant.seed, mutant.recipe) for mutant in mutants]
        batch = self._cache.batch(recipes)
        self.seconds[self._cache.name_of(recipes)] = batch.seconds
        self.records = {mutant.number: record for mutant, record in zip(mutants, batch.records, strict=True)}
        return [self.execution(record) for record in batch.records]

    def execution(self, record: Record) -> Execution:
        """The description of a record's input."""
        if record.invalid:
            return Execution(record.digest, record.invalid)
        return execution(record.digest, record.result(self._components), self._model)
