"""What is kept of a run: the answer, and its states and inputs projected to a few components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.projections import Projected
from deepcruiser.campaign.executors.base import Problem
from deepcruiser.files import archive
from deepcruiser.serialise import decode, encode
from deepcruiser.trace import Run, Scores, Trace
from deepcruiser.transformations import to_dict

#: An input as a recipe: the seed's name and the transformations, in order.
Recipe = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class Record:
    """A mutant, or a seed, that was made and run.

    `invalid` says why it was not run; `problem` is what came instead of a run. Then there are no states.
    """

    seed: str
    recipe: tuple[Any, ...]
    invalid: str
    digest: str
    problem: Problem | None
    output: Any
    doubt: float | None
    states: Projected
    inputs: Projected
    scores: Scores | None = None
    segments: tuple[int, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether there is an answer and a trace."""
        return not self.invalid and self.problem is None

    def result(self, components: int) -> Run | Problem:
        """The result, with a trace of the first components only."""
        if self.problem is not None:
            return self.problem
        trace = Trace(self.states[:, :components], self.inputs[:, :components], segments=self.segments)
        return Run(self.output, trace, self.doubt, self.scores)


@dataclass(frozen=True, eq=False)
class Batch:
    """Records that were run together, and how long that took."""

    records: tuple[Record, ...]
    seconds: float

    @property
    def steps(self) -> int:
        return sum(len(record.inputs) for record in self.records)

    def save(self, path: Path) -> None:
        about = [
            {
                "seed": record.seed,
                "recipe": [to_dict(change) for change in record.recipe],
                "invalid": record.invalid,
                "digest": record.digest,
                "problem": [record.problem.kind, record.problem.message] if record.problem else None,
                "output": encode(record.output),
                "doubt": record.doubt,
                "segments": record.segments,
                "classes": None if record.scores is None else [record.scores.classes, record.scores.blank],
            }
            for record in self.records
        ]
        arrays = {
            "states": np.concatenate([record.states for record in self.records]),
            "inputs": np.concatenate([record.inputs for record in self.records]),
            **{f"scores{i}": r.scores.values for i, r in enumerate(self.records) if r.scores is not None},
            "lengths": np.array([[len(r.states), len(r.inputs)] for r in self.records], np.int64).reshape(-1, 2),
        }
        archive.save(path, "batch", {"seconds": round(self.seconds, 3), "records": about}, arrays)

    @classmethod
    def load(cls, path: Path, recipes: Sequence[Recipe]) -> Batch:
        """Read a batch of these recipes that `save` wrote."""
        about, arrays = archive.load(path, "batch")
        with archive.contents_of(path, "batch"):
            of_states, of_inputs = np.cumsum(arrays["lengths"], axis=0).T
            states, inputs = np.split(arrays["states"], of_states[:-1]), np.split(arrays["inputs"], of_inputs[:-1])
            records = [
                Record(
                    seed,
                    recipe,
                    noted["invalid"],
                    noted["digest"],
                    Problem(*noted["problem"]) if noted["problem"] else None,
                    decode(noted["output"]),
                    noted["doubt"],
                    states[i],
                    inputs[i],
                    _scores(noted["classes"], arrays.get(f"scores{i}")),
                    tuple(noted.get("segments", ())),
                )
                for i, ((seed, recipe), noted) in enumerate(zip(recipes, about["records"], strict=True))
            ]
            return cls(tuple(records), float(about["seconds"]))


def _scores(about: Any, values: Any) -> Scores | None:
    return None if about is None else Scores(values, tuple(about[0]), about[1])
