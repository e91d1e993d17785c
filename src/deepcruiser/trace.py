"""The result of running a recurrent network on one input: its output, the states it passed through, and its doubt."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from deepcruiser.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch
    from typing_extensions import TypeIs

Array: TypeAlias = "npt.NDArray[Any] | torch.Tensor"


@dataclass(frozen=True, eq=False)
class Trace:
    """The states s_0..s_N of N steps and the inputs x_0..x_{N-1} that led from each to the next.

    Both are numpy arrays or torch tensors, on any device: `states` (N+1, size), `inputs` (N, input_size).
    Transition i goes from `states[i]` to `states[i + 1]` on `inputs[i]`. `outputs` are the y_0..y_{N-1} where the
    network gives an output at each step: N labels or rows of numbers.

    A network that reads an input in pieces, each from an initial state of its own, gives a trace of several `segments`,
    which are their numbers of steps. The rows of the segments follow one another, each with its own s_0: there is one
    more state than inputs for each segment, and no transition from the last state of one to the first of the next.
    """

    states: Array
    inputs: Array
    outputs: Array | None = None
    segments: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        segments = tuple(map(int, self.segments)) or (len(self.inputs),)
        object.__setattr__(self, "segments", segments)
        for name in ("states", "inputs"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) and not is_tensor(array):
                raise InputError(f"{name} must be a numpy array or a torch tensor, not {type(array).__name__}")
            if isinstance(array, np.ndarray) and array.dtype.kind not in "biuf":
                raise InputError(f"{name} must be numbers, not {array.dtype}")
            if array.ndim != 2:
                raise InputError(f"{name} must have the shape (steps, size), not {tuple(array.shape)}")
        if min(segments) < 0 or sum(segments) != len(self.inputs):
            raise InputError(
                f"segments of {', '.join(map(str, segments))} steps do not add up to {len(self.inputs)} inputs"
            )
        if len(self.states) != len(self.inputs) + len(segments):
            if len(segments) > 1:
                raise InputError(
                    f"{len(self.states)} states do not fit {len(self.inputs)} inputs in {len(segments)} segments: each "
                    "segment of N inputs leads through N+1 states, its initial state first"
                )
            raise InputError(
                f"{len(self.states)} states do not fit {len(self.inputs)} inputs: N inputs lead through N+1 states, "
                "the initial state first"
            )
        if self.outputs is not None and (self.outputs.ndim not in (1, 2) or len(self.outputs) != len(self.inputs)):
            raise InputError(
                f"outputs of the shape {tuple(self.outputs.shape)} do not fit {len(self.inputs)} steps: "
                "give a label or a row of numbers for each step"
            )

    @classmethod
    def joined(cls, traces: Sequence[Trace]) -> Trace:
        """One trace of several, as its segments."""
        if len(traces) == 1:
            return traces[0]
        outputs = [trace.outputs for trace in traces if trace.outputs is not None]
        return cls(
            together([trace.states for trace in traces]),
            together([trace.inputs for trace in traces]),
            together(outputs) if len(outputs) == len(traces) else None,
            tuple(steps for trace in traces for steps in trace.segments),
        )

    @property
    def parts(self) -> tuple[Trace, ...]:
        """The segments, each as a trace of its own."""
        if len(self.segments) == 1:
            return (self,)
        parts, start = [], 0
        for number, steps in enumerate(self.segments):
            rows = slice(start, start + steps)
            outputs = None if self.outputs is None else self.outputs[rows]
            states = self.states[start + number : start + number + steps + 1]
            parts.append(Trace(states, self.inputs[rows], outputs))
            start += steps
        return tuple(parts)

    def with_outputs(self, outputs: Any) -> Trace:
        """The trace with `outputs` if they are a row of numbers for each step; otherwise the trace as it is."""
        if (
            not (isinstance(outputs, np.ndarray) or is_tensor(outputs))
            or outputs.ndim != 2
            or len(outputs) != len(self)
        ):
            return self
        return replace(self, outputs=outputs)

    def __len__(self) -> int:
        """The number of steps: inputs, not states."""
        return len(self.inputs)

    @property
    def size(self) -> int:
        return int(self.states.shape[1])

    @property
    def input_size(self) -> int:
        return int(self.inputs.shape[1])

    def __repr__(self) -> str:
        pieces = f" in {len(self.segments)} segments" if len(self.segments) > 1 else ""
        return f"Trace of {len(self)} steps{pieces} (states of {self.size}, inputs of {self.input_size})"


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of every class: log-probabilities [steps, classes], or [classes] for one answer.

    `classes` has the symbol or label of each class. With a `blank`, a class that says nothing, the symbols of the steps
    make up a text (connectionist temporal classification). Half precision, so that a recording takes a few kilobytes.
    """

    values: npt.NDArray[np.float16]
    classes: tuple[str, ...]
    blank: int | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """The result for one input: the system's output (a text, a label, an array), its trace, and its doubt.

    A system that does not show its states returns no trace; it can be fuzzed, but not profiled. `doubt` is higher when
    the system is less sure of its output (see `deepcruiser.decoding.scores`). It is None if it is unknown, and a NaN or
    infinite value becomes None. With `scores`, a campaign knows how far an answer is from failing.
    """

    output: Any
    trace: Trace | None = None
    doubt: float | None = None
    scores: Scores | None = None

    def __post_init__(self) -> None:
        if self.doubt is None:
            return
        try:
            doubt = float(self.doubt)
        except OverflowError:
            doubt = math.inf
        except (TypeError, ValueError):
            raise InputError(f"doubt must be a number or None, not {self.doubt!r}") from None
        object.__setattr__(self, "doubt", doubt if math.isfinite(doubt) else None)

    @property
    def traced(self) -> Trace:
        """The trace; raises an error if there is none."""
        if self.trace is None:
            raise InputError(
                "the system returned an output without states, so nothing can be profiled, covered or guided: return "
                "states, or fuzz it without a model and with guide='none' or 'random'"
            )
        return self.trace


@runtime_checkable
class System(Protocol):
    """A recurrent network under test: anything that turns a batch of inputs into one `Run` per input.

    Only `run` is required. Two attributes are used where a system has them: `state_name` describes which vector is the
    state, and `fingerprint` is a text that changes with the network or with that choice, so that a profile is never
    used with another network.
    """

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        ...


def checked_runs(system: object, runs: Any, inputs: int) -> list[Run]:
    """What a system returned for a batch, after checking that it is one `Run` for each input."""
    if not isinstance(runs, Sequence):
        raise InputError(f"{system!r} returned a {type(runs).__name__} for a batch, not a list of one Run per input")
    for run in runs:
        if not isinstance(run, Run):
            raise InputError(f"{system!r} returned a {type(run).__name__} for an input, not a deepcruiser.Run")
    if len(runs) != inputs:
        raise InputError(f"{system!r} returned {len(runs)} runs for a batch of {inputs} inputs, not one per input")
    return list(runs)


def together(arrays: Sequence[Array]) -> Array:
    """The rows of all arrays in one, on their device; a view if they are adjacent in memory."""
    first = arrays[0]
    if len(arrays) == 1:
        return first
    tensors = [array for array in arrays if is_tensor(array)]
    if len(tensors) == len(arrays) and is_tensor(first):
        import torch

        if _side_by_side(tensors):
            return first.as_strided((sum(map(len, tensors)), *first.shape[1:]), first.stride())
        return torch.cat(tensors)
    return np.concatenate([a.detach().cpu().numpy() if is_tensor(a) else a for a in arrays])


def _side_by_side(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether each tensor begins in memory where the previous one ends, as the rows of a batch do."""
    first = tensors[0]
    storage, end = first.untyped_storage().data_ptr(), first.data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != end or not tensor.is_contiguous() or tensor.dtype != first.dtype:
            return False
        end += tensor.numel() * tensor.element_size()
    return all(tensor.untyped_storage().data_ptr() == storage for tensor in tensors)


def is_tensor(value: object) -> TypeIs[torch.Tensor]:
    """Whether a value is a torch tensor; torch is not imported to find out."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)  # None as long as torch is being imported
    return tensor is not None and isinstance(value, tensor)
