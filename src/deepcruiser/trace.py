"""What one run of a recurrent network leaves behind: its output and the way of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from deepcruiser.errors import InputError

Array = npt.NDArray[Any] | torch.Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """The states s_0..s_N of N steps and the inputs x_0..x_{N-1} that led from each to the next.

    Both are numpy arrays or torch tensors, on any device: `states` (N+1, size), `inputs` (N, input_size).
    Transition i goes from `states[i]` to `states[i + 1]` on `inputs[i]`.
    """

    states: Array
    inputs: Array

    def __post_init__(self) -> None:
        for name in ("states", "inputs"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray | torch.Tensor):
                raise InputError(f"{name} must be a numpy array or a torch tensor, not {type(array).__name__}")
            if array.ndim != 2:
                raise InputError(f"{name} must have the shape (steps, size), not {tuple(array.shape)}")
        if len(self.states) != len(self.inputs) + 1:
            raise InputError(
                f"{len(self.states)} states do not fit {len(self.inputs)} inputs: N inputs lead through N+1 states, "
                "the initial state first"
            )

    def __len__(self) -> int:
        """The number of steps, which is one less than the number of states."""
        return len(self.inputs)

    @property
    def size(self) -> int:
        return int(self.states.shape[1])

    @property
    def input_size(self) -> int:
        return int(self.inputs.shape[1])

    def __repr__(self) -> str:
        return f"Trace of {len(self)} steps (states of {self.size}, inputs of {self.input_size})"


@dataclass(frozen=True, eq=False)
class Run:
    """What one call of a system gave for one input: its answer (a text, a label, an array) and its trace.

    A system that does not show its states gives no trace; it can be fuzzed, but not profiled.
    """

    output: Any
    trace: Trace | None = None

    @property
    def traced(self) -> Trace:
        """The trace, where one is needed."""
        if self.trace is None:
            raise InputError(
                "the system gave an answer without states, so there is nothing to profile, to cover or to be guided "
                "by: let it give states, or fuzz it without a model and with guide='none' or 'random'"
            )
        return self.trace


@runtime_checkable
class System(Protocol):
    """A recurrent network under test: anything that turns a batch of inputs into one `Run` per input.

    `run` is all that is needed. Two attributes are used where a system has them: `state_name`, which says in words
    which vector is the state, and `fingerprint`, a text that changes when the network or that choice does, so that a
    profile is never used with a network it was not made from.
    """

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        ...
