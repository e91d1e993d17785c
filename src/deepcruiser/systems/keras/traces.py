"""From what recurrent layers of Keras went through to the trace of each input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.keras.layers import the_keras
from deepcruiser.systems.keras.recording import Core, Recorder, Way, as_torch
from deepcruiser.trace import Trace


def traces(
    heard: Recorder, lengths: list[int], positions: list[int], *, padded_to: int, steps: Callable[[int], int] | None
) -> tuple[list[Trace], list[int], int]:
    """The trace of each input, how many steps of the recurrent layer are its own, and how many the layer made."""
    choice = heard.choice
    found = [_of_core(heard, core) for core in choice.cores]
    made = found[0][0].made
    if any(way.made != made for core in found for way in core):
        counts = {core.words: ways[0].made for core, ways in zip(choice.cores, found, strict=True)}
        raise InputError(f"the layers do not make the same steps, so their states do not fit together: {counts}")
    backwards = any(way.backwards for core in found for way in core)
    own = _own_steps(found[0][0], made, lengths, positions, steps, padded_to=padded_to, backwards=backwards)
    result = []
    for row in range(len(lengths)):
        parts, inputs = [], None
        for core in found:
            ways = core if choice.direction == "both" else core[:1] if choice.direction == "forward" else core[-1:]
            alone = len(ways) == 1
            parts += [way.states(row, own[row], in_time=not alone) for way in ways]
            inputs = ways[0].inputs(row, own[row], in_time=not alone) if inputs is None else inputs
        assert inputs is not None
        states = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        result.append(Trace(_given(states), _given(inputs)))
    return result, [len(trace) for trace in result], made


class _Heard:
    """One direction of one layer: its calls put together."""

    def __init__(self, calls: list[Way], core: Core) -> None:
        self.backwards = calls[0].backwards
        self._inputs = torch.cat([as_torch(call.inputs) for call in calls], 1)
        masks = [call.mask for call in calls]
        self.mask = (
            None if any(mask is None for mask in masks) else torch.cat([as_torch(mask).bool() for mask in masks], 1)
        )
        first, *rest = ([as_torch(state).flatten(1) for state in call.states[core.cell]] for call in calls)
        self._states = torch.stack([*first, *(state for states in rest for state in states[1:])], 1)
        self.made = self._inputs.shape[1]

    def _steps(self, row: int, own: int) -> Tensor:
        """The input's own steps in the order of time."""
        return torch.arange(own) if self.mask is None else self.mask[row].nonzero()[:, 0]

    def inputs(self, row: int, own: int, *, in_time: bool) -> Tensor:
        inputs = self._inputs[row, self._steps(row, own)].flatten(1)
        return inputs.flip(0) if self.backwards and not in_time else inputs

    def states(self, row: int, own: int, *, in_time: bool) -> Tensor:
        steps = self._steps(row, own)
        read = self.made - 1 - steps.flip(0) if self.backwards else steps
        states = self._states[row, 1 + read]
        states = states.flip(0) if self.backwards and in_time else states
        return torch.cat((self._states[row, :1], states))


def _of_core(heard: Recorder, core: Core) -> list[_Heard]:
    calls = heard.calls(core)
    if not all(calls):
        raise InputError(f"the network never called '{core.name}' in this run, so there is nothing to record")
    if len(calls[0]) > 1 and not core.ways[0].stateful:
        raise InputError(
            f"'{core.name}' was called {len(calls[0])} times for one batch, so its calls are not one sequence; name "
            "another layer"
        )
    if len(calls[0]) > 1 and calls[0][0].backwards:
        raise InputError(f"'{core.name}' reads each piece backwards, so the pieces are not one sequence")
    return [_Heard(one, core) for one in calls]


def _own_steps(
    way: _Heard,
    made: int,
    lengths: list[int],
    positions: list[int],
    steps: Callable[[int], int] | None,
    *,
    padded_to: int,
    backwards: bool,
) -> list[int]:
    """How many steps of each row are the input's own and not padding."""
    if way.mask is not None:
        return [int(row.sum()) for row in way.mask[: len(lengths)]]
    if steps is not None:
        own = [int(steps(length)) for length in lengths]
        for count, length, position in zip(own, lengths, positions, strict=True):
            if not 0 < count <= made:
                raise InputError(
                    f"steps({length}) is {count} for input {position} of the batch, but the layer made {made} steps; "
                    "correct steps= or use batch='equal' without it"
                )
    elif made == padded_to:
        own = lengths
    elif all(length == padded_to for length in lengths):
        own = [made] * len(lengths)
    else:
        raise InputError(
            f"the layer made {made} steps of inputs of {min(lengths)} to {max(lengths)}, so where each one's padding "
            "begins is not known; give steps=, a function from an input's length to its steps there, or use "
            "batch='equal'"
        )
    if backwards and any(count != made for count in own):
        raise InputError(
            "a layer that reads backwards received padded inputs without a mask, so padding would flow into its "
            "states; use batch='equal', a Masking layer, or pad in features=, and the padding is part of the input"
        )
    return own


def _given(value: Tensor) -> Any:
    return value if the_keras().config.backend() == "torch" else value.numpy()
