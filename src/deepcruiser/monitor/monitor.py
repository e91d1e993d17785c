"""Watching the inputs of a system: `Monitor(model)` and its alarms."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.files import archive
from deepcruiser.monitor.calibration import Calibration
from deepcruiser.monitor.scores import DOUBT, SCORES, Reference
from deepcruiser.monitor.step_monitor import Reading, StepMonitor
from deepcruiser.stream import Progress, nothing_read, require_sized, stream
from deepcruiser.trace import Array, Run, System

_TEXTS = {DOUBT: "the system's doubt is {:.3g}", **{score.name: score.text for score in SCORES}}


@dataclass(frozen=True)
class Alarm:
    """An input that is more unusual than nearly all clean ones: by how much, in which score, and when.

    `score` is the combined score, which exceeds `threshold`. `unusual` names the score that adds most to it; `value` is
    its value and `usual` its usual value. `steps` are the first and last step of the stretch where it is most unusual
    (empty for a doubt), and `seconds` the same in time, if a step has a fixed length. States that are not finite raise
    an alarm with an infinite score, and `problem` says so.
    """

    score: float
    threshold: float
    unusual: str
    value: float
    usual: float
    steps: tuple[int, int] | None
    seconds: tuple[float, float] | None
    scores: Mapping[str, float]
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The alarm as JSON, without NaN and infinite values."""
        return {
            "score": None if self.problem else self.score,
            "threshold": self.threshold,
            "unusual": self.unusual,
            "value": None if self.problem else self.value,
            "usual": None if self.problem else self.usual,
            "steps": self.steps,
            "seconds": self.seconds,
            "scores": dict(self.scores),
            "problem": self.problem,
        }

    @property
    def when(self) -> str:
        """When the input is most unusual: "from 1.20 s to 1.92 s"; empty if unknown."""
        if self.seconds is not None:
            return f"from {self.seconds[0]:.2f} s to {self.seconds[1]:.2f} s"
        return "" if self.steps is None else f"in steps {self.steps[0]:,} to {self.steps[1]:,}"

    def __str__(self) -> str:
        when = f", most {self.when}" if self.when else ""
        if self.problem:
            return f"{self.problem}{when.removeprefix(', most')}"
        usual = f"{self.usual:.1%}" if "%" in _TEXTS[self.unusual] else f"{self.usual:.3g}"
        return f"{_TEXTS[self.unusual].format(self.value)} (usually {usual}){when}"


KIND = "monitor"
Show = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class Monitor:
    """Distinguishes inputs that stay in the region that training visited from those that leave it.

        monitor = dc.Monitor(model).calibrate(system, clean, alarm_rate=0.01)
        alarm = monitor.check(run)      # None, or what is unusual and when

    `clean` are normal inputs that were held out, not those that the model was profiled on.
    """

    model: AbstractModel
    calibration: Calibration | None = None

    def calibrate(
        self,
        system: System,
        data: Iterable[Any],
        *,
        bad: Iterable[Any] | None = None,
        alarm_rate: float = 0.01,
        batch_size: int = 16,
        watch: Show | None = None,
    ) -> Monitor:
        """The same monitor, calibrated on clean data, so that it can raise alarms.

        A share `alarm_rate` of such clean inputs will raise one. With `bad` examples, which should raise an alarm, a
        logistic model is fitted to distinguish them from clean ones.
        """
        uncalibrated = replace(self, calibration=None)
        readings = list(uncalibrated.scan(system, data, batch_size=batch_size, watch=watch))
        for seen in readings:
            if seen.reading.problem:
                raise InputError(f"input {seen.name!r} is not clean, {seen.reading.problem}: calibrate without it")
        others = [] if bad is None else list(uncalibrated.scan(system, bad, batch_size=batch_size, watch=watch))
        calibration = Calibration.of(
            [seen.reading for seen in readings],
            [seen.reading for seen in others],
            alarm_rate=alarm_rate,
            step_seconds=_step_seconds(readings),
        )
        if calibration.warning:
            warnings.warn(calibration.warning, UserWarning, stacklevel=2)
        return replace(self, calibration=calibration)

    def step_by_step(self, initial: Array | None = None) -> StepMonitor:
        """Follow one input step by step from its initial state, which is zeros unless given."""
        calibration = self.calibration
        usual = {} if calibration is None else dict(zip(calibration.names, calibration.mean.tolist(), strict=True))
        zeros = np.zeros(self.model.projections.states.size, np.float32)
        return StepMonitor(self._reference, usual, zeros if initial is None else initial)

    def read(self, run: Run) -> Reading:
        """The scores of a run."""
        first, *rest = run.traced.parts
        steps = self.step_by_step(first.states[0])
        steps.update(first.states[1:], first.inputs)
        for part in rest:
            steps.restart(part.states[0])
            steps.update(part.states[1:], part.inputs)
        return steps.reading(run.doubt)

    def check(self, run: Run) -> Alarm | None:
        """An alarm if the run is unusual."""
        return self.judge(self.read(run))

    def judge(self, reading: Reading) -> Alarm | None:
        """An alarm if the reading is unusual; a `StepMonitor` can be judged at the end of its input or at any time
        before."""
        calibration = self._calibrated
        row = calibration.row(reading.scores)
        steps: tuple[int, int] | None
        if reading.problem:
            name, score, steps = "problem", float("inf"), (reading.steps, reading.steps)
            value = usual = float("nan")
        else:
            score, place = float(calibration.combine(row)), int(calibration.parts(row).argmax())
            name, value, usual = calibration.names[place], float(row[place]), float(calibration.mean[place])
            steps = reading.spans.get(name)
        if score <= calibration.threshold:
            return None
        seconds, length = None, calibration.step_seconds
        if steps is not None and length is not None:
            seconds = (steps[0] * length, (steps[1] + 1) * length)
        return Alarm(score, calibration.threshold, name, value, usual, steps, seconds, reading.scores, reading.problem)

    def score(self, reading: Reading) -> float:
        """The combined score of a reading; infinite if its states are not finite."""
        calibration = self._calibrated
        return float("inf") if reading.problem else float(calibration.combine(calibration.row(reading.scores)))

    def scan(
        self, system: System, data: Iterable[Any], *, batch_size: int = 16, watch: Show | None = None
    ) -> Iterator[Seen]:
        """Run the system over the data and read every input, in the order of the data."""
        self.model.check(system)
        data, size = require_sized(data)
        progress, timed, count = Progress(size, stage="monitoring", watch=watch), _Timed(system), 0

        def read(names: list[str], runs: list[Run]) -> list[tuple[Reading, Any, float | None]]:
            return [(self.read(run), run.output, length) for run, length in zip(runs, timed.seconds, strict=True)]

        for name, (reading, output, seconds) in stream(timed, data, read, progress=progress, batch_size=batch_size):
            count += 1
            yield Seen(name, reading, output, seconds)
        if not count:
            raise nothing_read(progress)

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self.model)

    @property
    def _calibrated(self) -> Calibration:
        if self.calibration is None:
            raise InputError("the monitor is not calibrated: use monitor = monitor.calibrate(system, clean data)")
        return self.calibration

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibration to one file; the model has a file of its own."""
        calibration = self._calibrated
        about = {
            "model": self.model.fingerprint,
            "names": calibration.names,
            "alarm_rate": calibration.alarm_rate,
            "steps": calibration.steps,
            "step_seconds": calibration.step_seconds,
        }
        archive.save(path, KIND, about, {"clean": calibration.clean, "bad": calibration.bad})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: AbstractModel) -> Monitor:
        """Read a monitor of `model` that `save` wrote."""
        about, arrays = archive.load(path, KIND)
        with archive.contents_of(path, KIND):
            if about["model"] != model.fingerprint:
                raise MismatchError(f"{os.fspath(path)!r} is a monitor of another model than {model}")
            names, clean, bad = tuple(about["names"]), arrays["clean"], arrays["bad"]
            if len(set(names)) < len(names) or not set(names) <= set(_TEXTS):
                raise ValueError(f"the scores are named {names!r:.200}")
            if {clean.shape[1:], bad.shape[1:]} != {(len(names),)} or not {clean.dtype, bad.dtype} == {np.dtype(float)}:
                raise ValueError(f"the scores have the shapes {clean.shape} and {bad.shape} for {len(names)} names")
            if not (np.isfinite(clean).all() and np.isfinite(bad).all()):
                raise ValueError("it holds scores that are not finite")
            length = about["step_seconds"]
            seconds = None if length is None else float(length)
            if seconds is not None and not 0 < seconds < math.inf:
                raise ValueError(f"a step takes {seconds} s")
            return cls(model, Calibration(names, clean, bad, float(about["alarm_rate"]), int(about["steps"]), seconds))

    def __repr__(self) -> str:
        return f"Monitor of {self.model.name}: {self.calibration or 'not calibrated'}"


@dataclass(frozen=True, eq=False)
class Seen:
    """An input that was run: its name, its scores, the system's answer, and how long it was, if it was a sound."""

    name: str
    reading: Reading
    output: Any
    seconds: float | None


class _Timed:
    """A system that notes how long the sounds of its last batch were."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.seconds: list[float | None] = []

    def __repr__(self) -> str:
        return repr(self._system)

    def run(self, batch: Sequence[Any]) -> list[Run]:
        self.seconds = [getattr(value, "seconds", None) for value in batch]
        return self._system.run(batch)


def _step_seconds(readings: Sequence[Seen]) -> float | None:
    """How much longer a sound is for each further step: least squares, so that a fixed tail does not count."""
    known = [(seen.reading.steps, seen.seconds) for seen in readings if isinstance(seen.seconds, int | float)]
    steps, seconds = np.array(known, np.float64).reshape(-1, 2).T
    if len(known) < len(readings) or not np.ptp(steps):
        return None
    centred = steps - steps.mean()
    slope = float(centred @ (seconds - seconds.mean()) / (centred @ centred))
    return slope if slope > 0 else None
