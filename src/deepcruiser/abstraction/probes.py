"""Probes: inputs with a system's answers, to notice later that the front end, the network or the decoder changed.

A fingerprint covers the weights and the choice of the state, but not what comes before and after the network.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal, Self

import numpy as np

from deepcruiser.abstraction.origin import Origin
from deepcruiser.errors import DeepCruiserError, MismatchError
from deepcruiser.serialise import decode, digest_of, encode, summarise
from deepcruiser.stream import input_of
from deepcruiser.trace import Array, Run, System, is_tensor

#: Number of inputs that are kept, and of those that are run again at every start.
PROBES, CHECKED = 4, 2
#: An input is stored if its JSON has at most this many characters: 3 seconds of sound at 16 kHz.
_LONGEST = 2**18
#: Rows of a sketch, and numbers in a row.
_ROWS, _SUMS = 8, 4
#: Batches, processors and machines round differently; sketches that differ by less than this share are equal.
_TOLERANCE = 0.01

Part = Literal["features", "network", "decoder", "system"]
Sketch = list[list[float]]


@dataclass(frozen=True)
class Probe:
    """An input, the answer to it, and a few numbers from the inputs and states of its trace.

    `answer`, `inputs` and `states` are None if the system shows none, or gives another one when it is asked again.
    `value` is the input as JSON, None if it is too long to be stored.
    """

    name: str
    digest: str
    answer: Any
    steps: int
    inputs: Sketch | None
    states: Sketch | None
    value: Any = None

    @classmethod
    def of(cls, name: str, value: Any, run: Run) -> Self:
        trace = run.trace
        sketches = (0, None, None) if trace is None else (len(trace), _sketch(trace.inputs), _sketch(trace.states))
        return cls(name, digest_of(value), _summary(run.output), *sketches)

    @property
    def input(self) -> Any:
        return None if self.value is None else decode(self.value)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        probe = cls(**data)
        if not isinstance(probe.name, str) or type(probe.steps) is not int:
            raise ValueError("a probe of the network is damaged")
        probe.input  # noqa: B018 (it must be readable)
        return probe

    def change(self, now: Probe) -> Change | None:
        """How the system differs from then, if it does; `now` is the same input, run again."""
        if self.inputs is not None and now.inputs is not None:
            if self.steps != now.steps:
                return Change("features", self.name, f"there are {now.steps:,} steps instead of {self.steps:,}")
            if _far(self.inputs, now.inputs):
                return Change("features", self.name, "the recurrent layer receives different inputs")
        if self.states is not None and now.states is not None and _far(self.states, now.states):
            return Change(
                "network", self.name, "the recurrent layer receives the same inputs but returns different states"
            )
        if self.answer is not None and not _same(self.answer, now.answer):
            part: Part = "system" if self.states is None else "decoder"
            exact = (self.inputs, self.states) == (now.inputs, now.states)
            how = f"the answer is {str(now.answer)[:60]!r} instead of {str(self.answer)[:60]!r}"
            return Change(part, self.name, how, exact)
        return None


@dataclass(frozen=True)
class Change:
    """The part that has changed, and how; `exact` if rounding cannot be the reason."""

    part: Part
    probe: str
    how: str
    exact: bool = True

    def __str__(self) -> str:
        part = "features (or the layers before the recurrent one)" if self.part == "features" else self.part
        return f"the {part} changed: for the input {self.probe!r}, {self.how}"


def make_probes(system: System, items: Iterable[tuple[str, Any]], *, store: bool = True) -> tuple[Probe, ...]:
    """Probes of the first few items that can be read. With `store`, short inputs are kept themselves."""
    inputs = dict(islice(_readable(items), PROBES))
    try:
        # Each is run twice, in a batch and alone: outputs that differ between the two cannot be compared with.
        together = system.run(list(inputs.values()))
        probes = [_probe(system, name, value, run) for (name, value), run in zip(inputs.items(), together, strict=True)]
        unsteady = next((probe.name for probe in probes if probe.steps and probe.states is None), None)
        repeats = unsteady is None or _repeats(system, inputs[unsteady])
    except (Exception, SystemExit):
        return ()
    if not repeats:
        warnings.warn(
            f"the system gives other states when the input {unsteady!r} is run again, so coverage does not repeat: "
            "if the network keeps a state between calls, reset it at the start of each run",
            RuntimeWarning,
            stacklevel=4,
        )
    return tuple(replace(probe, value=_stored(inputs[probe.name])) for probe in probes) if store else tuple(probes)


def changed(system: System, probes: Sequence[Probe], input_for: Callable[[Probe], Any] | None = None) -> Change | None:
    """How the system has changed since the probes were made, if it has; two of them are run again, rarely all.

    A single answer that differs where the states are not equal to the last bit counts as a near tie.
    """
    inputs = [(probe, probe.input if input_for is None else input_for(probe)) for probe in probes]
    pairs = [(probe, value) for probe, value in inputs if value is not None]
    changes: list[Change] = []
    for number, (probe, value) in enumerate(pairs):
        if number >= CHECKED and not changes:
            break
        try:
            (run,) = system.run([value])
            change = probe.change(Probe.of(probe.name, value, run))
        except (Exception, SystemExit):  # a user's network may raise anything; it will be noticed later
            continue
        changes += [change] if change is not None else []
        if change is not None and (change.exact or len(changes) > 1 or len(pairs) == 1):
            return change
    return None


def check_system(system: System, origin: Origin, probes: Sequence[Probe]) -> None:
    """Refuse a system with another network or other features than the one that was profiled.

    Another decoder is not refused: it gives the same states.
    """
    origin.check(system)
    change = changed(system, probes)
    if change is not None and change.part in ("features", "network"):
        raise MismatchError(f"since profiling, {change}; use the system that was profiled, or profile this one")


def _readable(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name, item in items:
        try:
            yield name, input_of(item)
        except DeepCruiserError:
            continue


def _probe(system: System, name: str, value: Any, together: Run) -> Probe:
    (run,) = system.run([value])
    probe = Probe.of(name, value, run)
    change = probe.change(Probe.of(name, value, together))
    if change is None:
        return probe
    if change.part == "features":
        probe = replace(probe, inputs=None)
    return replace(probe, answer=None, states=probe.states if change.part == "decoder" else None)


def _repeats(system: System, value: Any) -> bool:
    """Whether an input that is run alone twice gives the same states."""
    (first,), (again,) = system.run([value]), system.run([value])
    change = Probe.of("", value, first).change(Probe.of("", value, again))
    return change is None or change.part not in ("features", "network")


def _stored(value: Any) -> Any:
    """The input as JSON, if it is short and of a kind that can be read back."""
    try:
        data = encode(value)
    except DeepCruiserError:
        return None
    return data if len(json.dumps(data)) <= _LONGEST else None


def _sketch(rows: Array) -> Sketch:
    """A few weighted sums of each of some evenly spread rows."""
    chosen = rows[np.unique(np.linspace(0, max(0, len(rows) - 1), _ROWS).astype(int))] if len(rows) else rows
    values = np.asarray(chosen.detach().cpu().float().numpy() if is_tensor(chosen) else chosen, np.float64)
    places = (np.arange(values.shape[1]) + 0.5) / max(1, values.shape[1])
    weights = np.cos(np.pi * np.outer(places, np.arange(_SUMS)))
    sketch: Sketch = (values @ weights / np.sqrt(max(1, len(places)))).tolist()
    return sketch


def _summary(value: Any) -> Any:
    """An answer as JSON, with long arrays as a sketch."""
    if is_tensor(value):
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > _ROWS * _SUMS:
        return {"shape": list(value.shape), "sketch": _sketch(value.reshape(len(value), -1))}
    if isinstance(value, list | tuple):
        return [_summary(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _summary(item) for key, item in value.items()}
    return summarise(value)


def _same(one: Any, other: Any) -> bool:
    """Whether two answers are the same: floating-point numbers nearly, everything else exactly."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other), _TOLERANCE)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        if "sketch" in one and "sketch" in other:
            return one["shape"] == other["shape"] and not _far(one["sketch"], other["sketch"])
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _far(one: Sketch, other: Sketch) -> bool:
    first, second = np.array(one, np.float64), np.array(other, np.float64)
    if first.shape != second.shape:
        return True
    if not np.isfinite(second).all():  # such values have an error of their own
        return False
    return not float(np.linalg.norm(first - second)) <= _TOLERANCE * float(np.linalg.norm(first))
