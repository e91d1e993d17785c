"""From the recorded calls of Keras layers to the trace of each input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.keras.layers import import_keras
from deepcruiser.systems.keras.recording import LayerCall, LayerRecorder, RecordedLayer, as_torch
from deepcruiser.systems.torch.batching import own_steps
from deepcruiser.trace import Trace


def traces(
    recorder: LayerRecorder,
    lengths: list[int],
    positions: list[int],
    *,
    padded_to: int,
    steps: Callable[[int], int] | None,
) -> tuple[list[Trace], list[int], int]:
    """The trace of each input, its number of steps without padding, and the number of steps that the layer made."""
    choice = recorder.choice
    layers = [_joined(recorder, layer) for layer in choice.layers]
    made = layers[0][0].made
    if any(way.made != made for ways in layers for way in ways):
        counts = {layer.words: ways[0].made for layer, ways in zip(choice.layers, layers, strict=True)}
        raise InputError(f"the layers make different numbers of steps, so their states do not fit together: {counts}")
    mask = layers[0][0].mask
    if mask is not None:
        own = [int(row.sum()) for row in mask[: len(lengths)]]
    else:
        label = f"'{choice.layers[0].name}'"
        own = own_steps(lengths, positions, made=made, padded_to=padded_to, steps=steps, label=label)
        backwards = any(way.backwards and not way.padding_skipped for ways in layers for way in ways)
        if backwards and any(count != made for count in own):
            raise InputError(
                "a layer that reads backwards received inputs padded to a fixed length without a mask, so padding "
                "would change its states; pad in features= to make it part of the input, or use a Masking layer"
            )
    result = []
    for row in range(len(lengths)):
        parts, inputs = [], None
        for both in layers:
            ways = {"both": both, "forward": both[:1], "backward": both[-1:]}[choice.direction]
            alone = len(ways) == 1
            parts += [way.states(row, own[row], in_time=not alone) for way in ways]
            inputs = ways[0].inputs(row, own[row], in_time=not alone) if inputs is None else inputs
        assert inputs is not None
        states = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        result.append(Trace(_native(states), _native(inputs)))
    return result, [len(trace) for trace in result], made


class _LayerWay:
    """One direction of one layer, all its calls joined."""

    def __init__(self, calls: list[LayerCall], layer: RecordedLayer) -> None:
        self.backwards = calls[0].backwards
        self.padding_skipped = all(call.padding_skipped for call in calls)
        self._inputs = torch.cat([as_torch(call.inputs) for call in calls], 1)
        masks = [call.mask for call in calls]
        self.mask = (
            None if any(mask is None for mask in masks) else torch.cat([as_torch(mask).bool() for mask in masks], 1)
        )
        first, *rest = ([as_torch(state).flatten(1) for state in call.states[layer.cell]] for call in calls)
        self._states = torch.stack([*first, *(state for states in rest for state in states[1:])], 1)
        self.made = self._inputs.shape[1]

    def _steps(self, row: int, own: int) -> Tensor:
        """The steps that are not padding, in the order of time."""
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


def _joined(recorder: LayerRecorder, layer: RecordedLayer) -> list[_LayerWay]:
    """The directions of a layer."""
    calls = recorder.calls(layer)
    if not all(calls):
        raise InputError(f"the network did not call '{layer.name}' in this run, so there is nothing to record")
    if len(calls[0]) > 1 and not layer.ways[0].stateful:
        raise InputError(
            f"'{layer.name}' was called {len(calls[0])} times for one batch, so its calls are not one sequence; name "
            "another layer"
        )
    if len(calls[0]) > 1 and calls[0][0].backwards:
        raise InputError(f"'{layer.name}' reads each piece backwards, so the pieces are not one sequence")
    return [_LayerWay(one, layer) for one in calls]


def _native(value: Tensor) -> Any:
    """A torch tensor if Keras runs on PyTorch, else a numpy array."""
    return value if import_keras().config.backend() == "torch" else value.numpy()
