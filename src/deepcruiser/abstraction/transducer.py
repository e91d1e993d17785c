"""The finite state transducer of some traces: their states, inputs, outputs and transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray, distinct, ends
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.errors import InputError
from deepcruiser.trace import Array, Trace

Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Transducer:
    """The paper's (S, X, O, I, F, delta) of some traces.

    `states`, `inputs` and `outputs` have a row for each distinct value: vectors, or the cells of a model for states and
    inputs. `initial` and `final` are the numbers of the states that traces begin in and end in. Each row of
    `transitions` has the numbers of a state, an input, an output and the next state.
    """

    states: Values
    inputs: Values
    outputs: Values
    initial: IntArray
    final: IntArray
    transitions: IntArray

    @classmethod
    def of(cls, traces: Sequence[Trace], model: AbstractModel | None = None) -> Transducer:
        """The transducer of traces with outputs: of their vectors or, given a model, of their cells."""
        traces = list(traces)
        if not traces:
            raise InputError("there are no traces to make a transducer of: at least one is needed")
        for number, trace in enumerate(traces):
            if trace.outputs is None:
                raise InputError(
                    f"trace {number} has no outputs, which a transducer needs: give dc.Trace(states, inputs, outputs), "
                    "or use a system whose network has an output at each step"
                )
        if model is None:
            parts = [(_array(trace.states), _array(trace.inputs)) for trace in traces]
        else:
            parts = [model.cells(trace) for trace in traces]
        lengths = np.array([steps for trace in traces for steps in trace.segments], np.int64)
        states, state = _number([part[0] for part in parts], "states")
        inputs, action = _number([part[1] for part in parts], "inputs")
        outputs, output = _number([_array(trace.outputs) for trace in traces if trace.outputs is not None], "outputs")
        first, last = ends(lengths)
        steps = np.stack([np.delete(state, last), action, output, np.delete(state, first)], axis=1)
        return cls(
            states=states,
            inputs=inputs,
            outputs=outputs,
            initial=distinct(state[first]),
            final=distinct(state[last]),
            transitions=np.unique(steps, axis=0),
        )

    def __repr__(self) -> str:
        return (
            f"Transducer: {len(self.states):,} states ({len(self.initial):,} initial, {len(self.final):,} final), "
            f"{len(self.inputs):,} inputs, {len(self.outputs):,} outputs, {len(self.transitions):,} transitions"
        )


def _array(values: Array) -> Values:
    return values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()


def _number(arrays: Sequence[Values], what: str) -> tuple[Values, IntArray]:
    """The distinct rows of all arrays, and the number of each row among them."""
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise InputError(f"the {what} of the traces have the shapes {sorted(shapes)}: all must have the same size")
    values, number = np.unique(np.concatenate(arrays), axis=0, return_inverse=True)
    return values, number.reshape(-1).astype(np.int64)
