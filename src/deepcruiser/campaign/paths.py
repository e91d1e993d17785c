"""The paths of failing tests and of their seeds through the cells of the model, step by step.

Runs are stored as the sets that they visit. For the tests that somebody looks at, `keep_paths` runs test and seed once
more and keeps the order: paths/NUMBER.json in the campaign's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.executors.local import run_all
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import InputError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import parse_json, read_bytes
from deepcruiser.trace import Run, System, Trace

FOLDER = "paths"
#: Tests whose paths are kept when a campaign ends, the worst ones.
WORST = 10
#: Number of moments at which the text so far is decoded.
_MOMENTS = 100


@dataclass(frozen=True)
class CellPath:
    """The cell of every state, s_0 first, and the text written by some of the steps: (step, text) where it changes."""

    cells: list[list[int]]
    texts: list[tuple[int, str]]

    @classmethod
    def of(cls, model: AbstractModel, trace: Trace, transcribe: Callable[[Any], Any] | None) -> CellPath:
        texts = [] if transcribe is None or trace.outputs is None else _texts(trace.outputs, transcribe)
        return cls(model.cells(trace)[0].tolist(), texts)

    @property
    def array(self) -> IntArray:
        return np.array(self.cells, np.int64)


@dataclass(frozen=True)
class Paths:
    """The paths of a failing test and of its seed."""

    seed: CellPath
    test: CellPath


def keep_paths(record: CampaignRecord, system: System, tests: Iterable[FailedTest]) -> None:
    """Run the tests and their seeds, and keep their paths; of crashes and without a model there is nothing to keep."""
    model, limit = record.model, record.spec.limit_seconds
    if model is None:
        return
    for test in tests:
        if test.kind != "wrong" or read_paths(record.folder, test, model) is not None:
            continue
        values = [record.inputs.make(test.seed, recipe) for recipe in ((), test.recipe)]
        runs = [run for value in values for run in run_all(system, [value], limit_seconds=limit)]
        try:
            seed, mutant = (_path(model, run, getattr(system, "transcribe", None)) for run in runs)
        except InputError:  # the system now answers differently
            continue
        path = record.folder / FOLDER / f"{test.number:06}.json"
        path.parent.mkdir(exist_ok=True)
        data = {"sha256": test.digest, "model": model.fingerprint, **asdict(Paths(seed, mutant))}
        with atomic_write(path) as file:
            file.write(json.dumps(data, separators=(",", ":")).encode(errors="backslashreplace"))


def read_paths(folder: Path, test: FailedTest, model: AbstractModel) -> Paths | None:
    """The paths of a failing test, if they were kept, of this test and on this model."""
    try:
        data = parse_json(read_bytes(folder / FOLDER / f"{test.number:06}.json"))
        if (data["sha256"], data["model"]) != (test.digest, model.fingerprint):
            return None
        return Paths(*(_read(data[which], model) for which in ("seed", "test")))
    except Exception:  # a damaged file may hold anything
        return None


def _read(data: Any, model: AbstractModel) -> CellPath:
    cells = np.array(data["cells"], np.int64)
    if cells.ndim != 2 or cells.shape[1] != len(model.grid.lower) or not len(cells):
        raise ValueError(f"cells of the shape {cells.shape}")
    return CellPath(cells.tolist(), [(int(step), str(text)) for step, text in data["texts"]])


def _path(model: AbstractModel, run: Any, transcribe: Callable[[Any], Any] | None) -> CellPath:
    if not isinstance(run, Run):
        raise InputError("the system returned no answer")
    return CellPath.of(model, run.traced, transcribe)


def _texts(outputs: Any, transcribe: Callable[[Any], Any]) -> list[tuple[int, str]]:
    """The answers to the outputs up to some steps, if they are texts."""
    texts: list[tuple[int, str]] = []
    for step in np.unique(np.linspace(1, len(outputs), min(_MOMENTS, len(outputs))).astype(np.int64)).tolist():
        try:
            text = transcribe(outputs[:step])
        except Exception:  # a user's function may need all of them
            return []
        if not isinstance(text, str):
            return []
        if not texts or texts[-1][1] != text:
            texts.append((step, text))
    return texts
