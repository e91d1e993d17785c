"""Checkpoints of an interrupted profile: a file with the moments or the projected rows so far."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import projection_arrays, projection_from
from deepcruiser.abstraction.profile import Recorder
from deepcruiser.abstraction.projection import Moments
from deepcruiser.abstraction.projections import Fit, Projections
from deepcruiser.files import archive
from deepcruiser.serialise import digest_of
from deepcruiser.stream import Progress

#: Seconds between two writes: at least the first number, and at least this many times the time of the last write.
_SECONDS, _TIMES = 30.0, 20.0


class Checkpoint:
    """The state of a pass over data, written from time to time. `call` is everything that the result depends on.

    Without a path, nothing is written. A file of another call is ignored, and replaced.
    """

    def __init__(self, path: str | os.PathLike[str] | None, call: Any) -> None:
        self._path, self._call = path, digest_of(call)
        self._about: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}
        self._next = time.monotonic() + _SECONDS
        if path is not None and os.path.exists(path):
            about, arrays = archive.load(path, "checkpoint", rows=("states", "inputs"))
            if about.get("call") == self._call:
                self._about, self._arrays = about, arrays

    def fit(self, progress: Progress) -> Fit:
        """The moments so far of the pass that `progress.stage` names; the pass continues after them."""
        fit = Fit()
        if self._resumes(progress):
            fit.sequences = self._about["sequences"]
            fit.states, fit.inputs = (
                Moments.of(count, self._arrays[f"{name}_mean"], self._arrays[f"{name}_scatter"])
                for name, count in self._about["counts"].items()
            )
        return fit

    def save_fit(self, progress: Progress, fit: Fit) -> None:
        if self._is_due() and fit.states is not None and fit.inputs is not None:
            moments = {"states": fit.states, "inputs": fit.inputs}
            arrays = {
                f"{name}_{part}": getattr(of, part).cpu().numpy()
                for name, of in moments.items()
                for part in ("mean", "scatter")
            }
            counts = {name: of.count for name, of in moments.items()}
            self._save(progress, {"sequences": fit.sequences, "counts": counts}, arrays)

    def recorder(self, progress: Progress) -> tuple[Recorder, int] | None:
        """The rows so far, and the number of sequences that their projections were fitted on."""
        if not self._resumes(progress):
            return None
        arrays = self._arrays
        recorder = Recorder(Projections(projection_from("states", arrays), projection_from("inputs", arrays)))
        recorder.states, recorder.inputs = arrays["states"], arrays["inputs"]
        recorder.sequences = list(zip(self._about["names"], arrays["lengths"].tolist(), strict=True))
        return recorder, self._about["fitted_on"]

    def save_recorder(self, progress: Progress, recorder: Recorder, *, fitted_on: int) -> None:
        if self._is_due():
            arrays = {
                **projection_arrays("states", recorder.projections.states),
                **projection_arrays("inputs", recorder.projections.inputs),
                "lengths": np.array([steps for _, steps in recorder.sequences], np.int64),
                "states": recorder.states,
                "inputs": recorder.inputs,
            }
            about = {"names": [name for name, _ in recorder.sequences], "fitted_on": fitted_on}
            self._save(progress, about, arrays)

    def _resumes(self, progress: Progress) -> bool:
        if self._about.get("stage") != [progress.stage, progress.total]:
            return False
        progress.done = progress.complete = self._about["complete"]
        progress.skipped.update(self._about["skipped"])
        return True

    def _is_due(self) -> bool:
        return self._path is not None and time.monotonic() >= self._next

    def _save(self, progress: Progress, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        assert self._path is not None
        began = time.monotonic()
        about = {
            "call": self._call,
            "stage": [progress.stage, progress.total],
            "complete": progress.complete,
            "skipped": progress.skipped,
            **about,
        }
        archive.save(self._path, "checkpoint", about, arrays)
        now = time.monotonic()
        self._next = now + max(_SECONDS, _TIMES * (now - began))
