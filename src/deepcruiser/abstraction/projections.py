"""The two projections of a profile, of states and of inputs, and what they are fitted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.projection import Moments, Projection, beside, fetch
from deepcruiser.errors import InputError
from deepcruiser.trace import Array, Trace, is_tensor, together

if TYPE_CHECKING:
    import torch

Projected = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Projections:
    """The projections of the states and of the inputs, each with principal components of its own."""

    states: Projection
    inputs: Projection

    def project(self, traces: Sequence[Trace], names: Sequence[str]) -> tuple[list[Projected], list[Projected]]:
        """The projected states and inputs of each trace; the names are for the errors."""
        return self.start(traces, names)()

    def start(
        self, traces: Sequence[Trace], names: Sequence[str]
    ) -> Callable[[], tuple[list[Projected], list[Projected]]]:
        """Start projecting traces on their own device, and return a function that waits for the result."""
        split = self.splitter(traces, names)
        with beside_traces(traces):
            fetched = [fetch(projected) for projected in self.on_device(traces)]
        return lambda: split(*(array() for array in fetched))

    def on_device(self, traces: Sequence[Trace]) -> tuple[torch.Tensor, torch.Tensor]:
        """All states and all inputs, projected on their own device, without waiting for the result."""
        states, inputs = together([trace.states for trace in traces]), together([trace.inputs for trace in traces])
        return self.states.on_device(states), self.inputs.on_device(inputs)

    def splitter(
        self, traces: Sequence[Trace], names: Sequence[str]
    ) -> Callable[[Projected, Projected], tuple[list[Projected], list[Projected]]]:
        """A function that splits all projected states and inputs by traces, and refuses those that are not finite."""
        shapes = [(trace.states.shape, trace.inputs.shape) for trace in traces]
        for (states, inputs), name in zip(shapes, names, strict=True):
            _check_size(self.states, int(states[1]), name, "state")
            _check_size(self.inputs, int(inputs[1]), name, "input")

        def split(states: Projected, inputs: Projected) -> tuple[list[Projected], list[Projected]]:
            return (
                _split(states, [shape[0] for shape, _ in shapes], names, "state"),
                _split(inputs, [shape[0] for _, shape in shapes], names, "input"),
            )

        return split


def beside_traces(traces: Sequence[Trace]) -> AbstractContextManager[None]:
    """`beside` for the states and inputs of traces."""
    return beside([array for trace in traces for array in (trace.states, trace.inputs)])


class Fit:
    """Statistics of states and inputs, from which the projections are computed.

    To profile parts of the data separately, call `dc.fit(system, part)` on each, `merge` the results, call
    `projections`, and pass these to `dc.profile(..., projections=...)`.
    """

    def __init__(self) -> None:
        self.states: Moments | None = None
        self.inputs: Moments | None = None
        self.sequences = 0

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> Fit:
        fit = cls()
        for position, trace in enumerate(traces):
            fit.add([trace], [str(position)])
        return fit

    @classmethod
    def start(cls, traces: Sequence[Trace], names: Sequence[str]) -> Callable[[], Fit]:
        """Start measuring traces on their own device, and return a function that waits for the result."""
        fit = cls()
        if not traces:
            return lambda: fit
        with beside_traces(traces):
            checks = fit._add(traces, names)
            assert fit.states is not None
            assert fit.inputs is not None
            states, inputs = fit.states.fetch(), fit.inputs.fetch()

        def wait() -> Fit:
            for check in checks:
                check()
            fit.states, fit.inputs = states(), inputs()
            return fit

        return wait

    def add(self, traces: Sequence[Trace], names: Sequence[str]) -> None:
        for check in self._add(traces, names) if traces else ():
            check()

    def _add(self, traces: Sequence[Trace], names: Sequence[str]) -> tuple[Callable[[], None], ...]:
        """Add traces, and return a function that checks whether they were finite."""
        self.states, check_states = _measure(self.states, [trace.states for trace in traces], names, "state")
        self.inputs, check_inputs = _measure(self.inputs, [trace.inputs for trace in traces], names, "input")
        self.sequences += len(traces)
        return check_states, check_inputs

    def merge(self, other: Fit) -> Fit:
        merged = Fit()
        merged.states = _merge(self.states, other.states)
        merged.inputs = _merge(self.inputs, other.inputs)
        merged.sequences = self.sequences + other.sequences
        return merged

    @property
    def enough(self) -> bool:
        """Whether there are at least as many states as a state has numbers; with fewer, the axes are unreliable."""
        return self.states is not None and self.states.count > self.states.size

    def projections(self, components: int = 3, *, input_components: int | None = None) -> Projections:
        """Fix the projections; `input_components` is as many as `components`, or the input's size if that is less."""
        if self.states is None or self.inputs is None:
            raise InputError("there is nothing to fit a projection to: no traces were given")
        if self.inputs.count == 0:
            raise InputError(f"the {self.sequences:,} traces have no steps: at least one input is needed")
        if components > self.states.size:
            raise InputError(
                f"components={components} is more than the {self.states.size} numbers of a state: give at most those"
            )
        if input_components is None:
            input_components = min(components, self.inputs.size)
        elif input_components > self.inputs.size:
            raise InputError(
                f"input_components={input_components} is more than the {self.inputs.size} numbers of an input: "
                "give at most those"
            )
        scale = float(self.states.mean.square().sum())
        if float(self.states.scatter.trace()) <= self.states.count * scale * 1e-28:
            raise InputError(
                f"all {self.states.count:,} profiled states are the same vector: is this the layer that carries "
                "the state, and are its weights trained?"
            )
        with ThreadPoolExecutor(1) as other:  # slow for large vectors, and numpy releases the interpreter lock
            inputs = other.submit(self.inputs.projection, input_components)
            return Projections(self.states.projection(components), inputs.result())


def _check_size(projection: Projection, size: int, name: str, what: str) -> None:
    if size != projection.size:
        raise InputError(
            f"the {what}s of sequence {name!r} have {size} numbers and those profiled "
            f"{projection.size}: is it a trace of another network or layer?"
        )


def _split(projected: Projected, lengths: Sequence[int], names: Sequence[str], what: str) -> list[Projected]:
    parts = np.split(projected, np.cumsum(lengths)[:-1])
    if not np.isfinite(projected).all():
        for part, name in zip(parts, names, strict=True):
            if (bad := ~np.isfinite(part).all(axis=1)).any():
                raise _not_finite(what, int(bad.argmax()), name)
    return parts


def _measure(
    moments: Moments | None, arrays: Sequence[Array], names: Sequence[str], what: str
) -> tuple[Moments, Callable[[], None]]:
    """The moments with more vectors added, and a function that checks whether those were finite."""
    first = arrays[0]
    if moments is None:
        device = first.device if is_tensor(first) else "cpu"
        moments = Moments(first.shape[1], device=device)
    for array, name in zip(arrays, names, strict=True):
        if array.shape[1] != moments.size:
            raise InputError(
                f"the {what}s of sequence {name!r} have {array.shape[1]} numbers and those before {moments.size}: "
                "all must have the same size"
            )
    moments.add(together(arrays))
    finite = fetch(moments.mean.isfinite().all())

    def check() -> None:
        if not finite():
            raise _infinite_sum(arrays, names, what)

    if moments.mean.device.type == "cpu":  # there is nothing to wait for, and the arrays can be freed
        check()
        return moments, lambda: None
    return moments, check


def _merge(one: Moments | None, other: Moments | None) -> Moments | None:
    if one is None or other is None:
        return one or other
    return one.merge(other)


def _infinite_sum(arrays: Sequence[Array], names: Sequence[str], what: str) -> InputError:
    """The error that names the first sequence and step with NaN or an infinite value."""
    for array, name in zip(arrays, names, strict=True):
        values = array.detach().cpu().numpy() if is_tensor(array) else array
        bad = ~(np.abs(values) < 1e38).all(axis=1)
        if bad.any():
            return _not_finite(what, int(bad.argmax()), name)
    return InputError(f"the {what}s are too large to be added up: scale them down")


def _not_finite(what: str, position: int, name: str) -> InputError:
    return InputError(
        f"{what} {position} of sequence {name!r} holds NaN, infinity or a number beyond 1e38: "
        "fix the network or leave the sequence out"
    )
