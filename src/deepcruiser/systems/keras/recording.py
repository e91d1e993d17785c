"""Recurrent layers of Keras: which of their vectors is the state, and recording them.

Keras returns a layer's outputs, and at most its last states. While a network runs, we therefore replace the loop over
time of every recurrent layer: ours calls the layer's own cell at every step, as Keras does, and keeps the states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.keras.layers import import_keras
from deepcruiser.systems.state_choice import Direction, Layer, Part, check_direction, check_layers, check_part


@dataclass(frozen=True)
class RecordedLayer:
    """One recurrent layer of a network, or one cell of a stack of cells, in one or two directions."""

    name: str
    ways: tuple[Any, ...]
    cell: int = 0
    cells: int = 1

    @property
    def has_c(self) -> bool:
        """Whether the state of its cell is two vectors, like that of an LSTM."""
        size = _cells(self.ways[0])[self.cell].state_size
        return isinstance(size, list | tuple) and len(size) > 1

    @property
    def words(self) -> str:
        return f"{self.name}[{self.cell}]" if self.cells > 1 else self.name


@dataclass(frozen=True)
class LayerChoice:
    """The layers whose states a trace shows side by side."""

    layers: tuple[RecordedLayer, ...]
    part: Part
    direction: Direction

    @property
    def words(self) -> str:
        """A description: "bidirectional_1: h, both directions"."""
        words = f"{', '.join(layer.words for layer in self.layers)}: {self.part}"
        words += " side by side" if len(self.layers) > 1 else ""
        if all(len(layer.ways) == 1 for layer in self.layers):
            return words
        return words + (", both directions" if self.direction == "both" else f", {self.direction}")


def choose_layers(
    network: Any, state: str | None, *, part: Part, layer: Layer, direction: Direction | None
) -> LayerChoice:
    """The chosen layers of the network, or the chosen cells of the layer called `state`."""
    keras = import_keras()
    known = dict(recurrent(network))
    if state is not None and state not in known:
        has = ", ".join(known) or _has(network)
        raise InputError(f"no recurrent layer {state!r} in {network.name!r}; it has: {has}")
    if not known:
        raise InputError(
            f"no recurrent layer (SimpleRNN, GRU, LSTM, ConvLSTM or RNN) in {network.name!r}; its layers are: "
            f"{_has(network)}"
        )
    layers = []
    for name, outer in known.items() if state is None else [(state, known[state])]:
        both = isinstance(outer, keras.layers.Bidirectional)
        ways = (outer.forward_layer, outer.backward_layer) if both else (outer,)
        count = len(_cells(ways[0]))
        layers += [RecordedLayer(name, ways, cell, count) for cell in range(count)]
    label = f"'{state}'" if state is not None else f"'{network.name}'"
    chosen = tuple(layers[number] for number in check_layers(layer, len(layers), label))
    for one in chosen:
        kind = type(_cells(one.ways[0])[one.cell]).__name__.removesuffix("Cell")
        check_part(part, one.has_c, f"'{one.name}'", kind)
    two_ways = any(len(one.ways) == 2 for one in chosen)
    return LayerChoice(chosen, part, check_direction(direction, two_ways, f"'{chosen[-1].name}'"))


def recurrent(network: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The recurrent layers of a network by name; those of inner networks are like "encoder.lstm"."""
    keras = import_keras()
    for layer in network.layers:
        if isinstance(layer, keras.layers.RNN):
            yield prefix + layer.name, layer
        elif isinstance(layer, keras.layers.Bidirectional):
            if isinstance(layer.forward_layer, keras.layers.RNN):
                yield prefix + layer.name, layer
        elif isinstance(layer, keras.Model):
            yield from recurrent(layer, f"{prefix}{layer.name}.")


def loops(network: Any) -> list[Any]:
    """Every layer with a loop over time: the recurrent layers, one for each direction."""
    keras = import_keras()
    layers = [layer for _, layer in recurrent(network)]
    ways = [
        (one.forward_layer, one.backward_layer) if isinstance(one, keras.layers.Bidirectional) else (one,)
        for one in layers
    ]
    return [way for pair in ways for way in pair]


@dataclass
class LayerCall:
    """The inputs and states of one layer in one call."""

    inputs: Any  # [rows, steps, ...] in the order of time
    mask: Any  # of the network itself
    padding_skipped: bool  # without a mask of the network
    #: s_0..s_N of each recorded cell, in the order in which the layer reads.
    states: dict[int, list[Any]]
    backwards: bool


@dataclass
class LayerRecorder:
    """Records the calls of the chosen layers."""

    choice: LayerChoice
    layer_calls: dict[int, list[LayerCall]] = field(default_factory=dict)

    def calls(self, layer: RecordedLayer) -> list[list[LayerCall]]:
        """The calls of a layer, for each of its directions."""
        return [self.layer_calls.get(id(way), []) for way in layer.ways]


@contextmanager
def recording(network: Any, choice: LayerChoice, own_steps: Mapping[int, Sequence[int]]) -> Iterator[LayerRecorder]:
    """Record the network within this block; its layers are restored afterwards.

    Recurrent layers skip padding: `own_steps` has the steps of each input, by the length of a padded time axis.
    """
    recorder, layers = LayerRecorder(choice), loops(network)
    before = [{key: vars(layer)[key] for key in ("inner_loop", "use_cudnn") if key in vars(layer)} for layer in layers]
    try:
        for layer in layers:
            # Directly in their dictionaries, because Keras treats other attributes as parts of the layer.
            vars(layer)["inner_loop"] = _loop(layer, recorder, own_steps)
            vars(layer)["use_cudnn"] = False
        yield recorder
    finally:
        for layer, kept in zip(layers, before, strict=True):
            for key in ("inner_loop", "use_cudnn"):
                vars(layer).pop(key, None)
            vars(layer).update(kept)


def _loop(layer: Any, recorder: LayerRecorder, own_steps: Mapping[int, Sequence[int]]) -> Any:
    """Keras's loop over time, which also keeps the states of the chosen cells and skips padding."""
    ops, tree = import_keras().ops, import_keras().tree
    cells = [one.cell for one in recorder.choice.layers if any(layer is way for way in one.ways)]
    number = 0 if recorder.choice.part == "h" else 1
    # Not the cell itself, whose checks take longer than the step, unless it must convert for mixed precision.
    mixed = getattr(layer.cell, "compute_dtype", None) != getattr(layer.cell, "variable_dtype", None)
    step_of = layer.cell if mixed else getattr(layer.cell, "call", layer.cell)

    def loop(sequences: Any, initial_state: Any, mask: Any, training: bool = False) -> tuple[Any, Any, Any]:
        mask = mask[0] if isinstance(mask, list | tuple) else mask
        mask = known = None if mask is None else ops.cast(mask, "bool")
        own = own_steps.get(sequences.shape[1]) if mask is None else None
        if own is not None:
            mask = ops.arange(sequences.shape[1])[None] < ops.convert_to_tensor(list(own), "int32")[:, None]
        states, outputs, last = list(initial_state), [], None
        recorded = {cell: [_of(layer, states, cell)[number]] for cell in cells}
        steps = range(sequences.shape[1])
        for step in reversed(steps) if layer.go_backwards else steps:
            output, new = step_of(sequences[:, step], states)
            new = tree.pack_sequence_as(states, tree.flatten(new))
            if mask is not None:
                here = mask[:, step]
                new = tree.map_structure(
                    lambda now, then, here=here: ops.where(_wide(here, now), now, then), new, states
                )
                kept = ops.zeros_like(output) if last is None or layer.zero_output_for_mask else last
                output = ops.where(_wide(here, output), output, kept)
            states, last = new, output
            outputs.append(output)
            for cell in cells:
                recorded[cell].append(_of(layer, states, cell)[number])
        if cells:
            call = LayerCall(sequences, known, own is not None, recorded, layer.go_backwards)
            recorder.layer_calls.setdefault(id(layer), []).append(call)
        return last, ops.stack(outputs, axis=1), states

    return loop


def _cells(layer: Any) -> Sequence[Any]:
    return layer.cell.cells if hasattr(layer.cell, "cells") else [layer.cell]


def _of(layer: Any, states: list[Any], cell: int) -> list[Any]:
    """The states of one cell: all states, or its share if the layer is a stack of cells."""
    if len(_cells(layer)) > 1:
        share = states[cell]
        return list(share) if isinstance(share, list | tuple) else [share]
    return list(states[0]) if isinstance(states[0], list | tuple) else states


def _wide(mask: Any, values: Any) -> Any:
    return import_keras().ops.reshape(mask, (-1, *[1] * (len(values.shape) - 1)))


def _has(network: Any) -> str:
    return ", ".join(f"{layer.name} ({type(layer).__name__})" for layer in network.layers)


def as_torch(value: Any) -> Tensor:
    """A tensor of any backend as a torch tensor; the same tensor if the backend is PyTorch."""
    if isinstance(value, Tensor):
        return value.detach()
    return torch.from_numpy(np.array(import_keras().ops.convert_to_numpy(value)))
