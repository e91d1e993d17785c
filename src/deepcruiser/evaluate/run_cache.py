"""Where mutants are made and run: each batch once, and then it is known."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.projections import Projections
from deepcruiser.campaign.executors.local import Problem, run_all
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.serialise import digest_of, from_json, to_json
from deepcruiser.errors import DeepCruiserError, InputError
from deepcruiser.evaluate.records import Batch, Recipe, Record
from deepcruiser.trace import Run, System

#: So many inputs that were made are held ready, since mutants are made of them in turn.
_READY = 128


class Laboratory:
    """Makes and runs batches of mutants, and keeps what comes of them in a folder.

    A network may answer an input a little differently in another batch. So what is known is a batch as a whole, and
    the same batch is never run twice, by whichever question or campaign it is asked for: the same command gives the
    same numbers, however often it was interrupted and however many processes are at work.
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
        #: Told the inputs and the steps of each batch.
        self.watch: Callable[[int, int], None] = lambda inputs, steps: None
        self._ready: OrderedDict[Recipe, Any] = OrderedDict()

    def batch(self, recipes: Sequence[Recipe]) -> Batch:
        """What came of these inputs, in their order: as it is known, or else they are made and run now."""
        path = self._path(recipes)
        if path.is_file():
            batch = self.known(recipes)
        else:
            batch = self._run(recipes)
            batch.save(path, self.mutations)
        self.watch(len(recipes), batch.steps)
        return batch

    def known(self, recipes: Sequence[Recipe]) -> Batch:
        """What came of these inputs, which were run before."""
        return Batch.load(self._path(recipes), recipes)

    def gather(self, records: Sequence[Record]) -> None:
        """Put records from several batches side by side, for other processes to find them by their recipes."""
        path = self._path([(record.seed, record.recipe) for record in records], "gathered")
        if not path.is_file():
            Batch(tuple(records), 0.0).save(path, self.mutations)

    def gathered(self, recipes: Sequence[Recipe]) -> tuple[Record, ...]:
        """Records that were put side by side."""
        return Batch.load(self._path(recipes, "gathered"), recipes).records

    def _path(self, recipes: Sequence[Recipe], kind: str = "batch") -> Path:
        return self.folder / f"{self.name_of(recipes)}.{kind}"

    def name_of(self, recipes: Sequence[Recipe]) -> str:
        """What a batch of these recipes is called."""
        plain = [[seed, [self.mutations.to_dict(change) for change in changes]] for seed, changes in recipes]
        return hashlib.sha256(f"{self.fingerprint} {json.dumps(plain)}".encode()).hexdigest()[:32]

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes when the network, the projections or the gate do."""
        projections = [(p.mean, p.axes) for p in (self.projections.states, self.projections.inputs)]
        network = str(getattr(self.system, "fingerprint", ""))
        return digest_of([network, self.mutations.described()["valid"], projections])

    def _run(self, recipes: Sequence[Recipe]) -> Batch:
        began = time.perf_counter()
        made = [self._make(recipe) for recipe in recipes]
        valid = [value for value, invalid in made if not invalid]
        results = iter(run_all(self.system, valid, limit_seconds=self.limit_seconds))
        records = [
            self._record(recipe, value, invalid, None if invalid else next(results))
            for recipe, (value, invalid) in zip(recipes, made, strict=True)
        ]
        return Batch(tuple(records), time.perf_counter() - began)

    def _make(self, recipe: Recipe) -> tuple[Any, str]:
        """An input and why it is not valid, if it is not."""
        seed, changes = recipe
        try:
            value = self._value(recipe)
            return value, (self.mutations.invalid(self.seeds[seed], value) or "") if changes else ""
        except DeepCruiserError as error:
            return None, f"unreadable: {error}"
        except Exception as error:  # whatever a transformation of the user's raises
            return None, f"not made: {type(error).__name__}: {error}"

    def _value(self, recipe: Recipe) -> Any:
        seed, changes = recipe
        if not changes:
            return self.seeds[seed]
        if recipe in self._ready:
            self._ready.move_to_end(recipe)
            return self._ready[recipe]
        value = changes[-1](self._value((seed, changes[:-1])))
        self._ready[recipe] = value
        if len(self._ready) > _READY:
            self._ready.popitem(last=False)
        return value

    def _record(self, recipe: Recipe, value: Any, invalid: str, result: Run | Problem | None) -> Record:
        of_states, of_inputs = self.projections.states.components, self.projections.inputs.components
        states, inputs = np.empty((0, of_states), np.float32), np.empty((0, of_inputs), np.float32)
        output: Any = None
        if isinstance(result, Run):
            trace = result.traced
            try:
                output = from_json(to_json(result.output))  # as it will be read again
                (states,), (inputs,) = self.projections.project([trace], [recipe[0]])
            except InputError as error:
                output, result = None, Problem("not finite", str(error))
        digest = "" if invalid else digest_of(value)
        problem = result if isinstance(result, Problem) else None
        return Record(*recipe, invalid, digest, problem, output, states, inputs)
