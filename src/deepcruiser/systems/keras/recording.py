"""Recurrent layers of Keras: which of their vectors is the state, and what they go through in a run.

Keras shows a layer's outputs, and its last states at most. While a network runs, the loop of every recurrent layer is
therefore ours: it calls the layer's own cell at every step, as Keras does, and keeps the states on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.keras.layers import the_keras
from deepcruiser.systems.torch.state_choice import (
    Direction,
    Layer,
    Part,
    checked_direction,
    checked_layers,
    checked_part,
)


@dataclass(frozen=True)
class Core:
    """One recurrent layer of a network, or one cell of a stack of them: a forward way, and perhaps a backward way."""

    name: str
    ways: tuple[Any, ...]
    cell: int = 0
    cells: int = 1

    @property
    def has_c(self) -> bool:
        """Whether its cell has two vectors for a state, as an LSTM."""
        size = _cells(self.ways[0])[self.cell].state_size
        return isinstance(size, list | tuple) and len(size) > 1

    @property
    def words(self) -> str:
        return f"{self.name}[{self.cell}]" if self.cells > 1 else self.name


@dataclass(frozen=True)
class Choice:
    """The layers whose states a trace shows side by side."""

    cores: tuple[Core, ...]
    part: Part
    direction: Direction

    @property
    def words(self) -> str:
        """For people: "bidirectional_1: h, both directions"."""
        words = f"{', '.join(core.words for core in self.cores)}: {self.part}"
        words += " side by side" if len(self.cores) > 1 else ""
        if all(len(core.ways) == 1 for core in self.cores):
            return words
        return words + (", both directions" if self.direction == "both" else f", {self.direction}")


def choose(network: Any, state: str | None, *, part: Part, layer: Layer, direction: Direction | None) -> Choice:
    """The layers that are asked for: of those of the network, or of the cells of the one that is named."""
    keras = the_keras()
    known = dict(recurrent(network))
    if state is not None and state not in known:
        has = ", ".join(known) or _has(network)
        raise InputError(f"no recurrent layer {state!r} in {network.name!r}; it has: {has}")
    if not known:
        raise InputError(
            f"no recurrent layer (SimpleRNN, GRU, LSTM, ConvLSTM or RNN) in {network.name!r}; its layers are: "
            f"{_has(network)}"
        )
    cores = []
    for name, found in known.items() if state is None else [(state, known[state])]:
        both = isinstance(found, keras.layers.Bidirectional)
        ways = (found.forward_layer, found.backward_layer) if both else (found,)
        count = len(_cells(ways[0]))
        cores += [Core(name, ways, cell, count) for cell in range(count)]
    label = f"'{state}'" if state is not None else f"'{network.name}'"
    chosen = tuple(cores[number] for number in checked_layers(layer, len(cores), label))
    for core in chosen:
        kind = type(_cells(core.ways[0])[core.cell]).__name__.removesuffix("Cell")
        checked_part(part, core.has_c, f"'{core.name}'", kind)
    two_ways = any(len(core.ways) == 2 for core in chosen)
    return Choice(chosen, part, checked_direction(direction, two_ways, f"'{chosen[-1].name}'"))


def recurrent(network: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The recurrent layers of a network by name, those of networks within it as "encoder.lstm"."""
    keras = the_keras()
    for layer in network.layers:
        if isinstance(layer, keras.layers.RNN):
            yield prefix + layer.name, layer
        elif isinstance(layer, keras.layers.Bidirectional):
            if isinstance(layer.forward_layer, keras.layers.RNN):
                yield prefix + layer.name, layer
        elif isinstance(layer, keras.Model):
            yield from recurrent(layer, f"{prefix}{layer.name}.")


def loops(network: Any) -> list[Any]:
    """Every layer with a loop over time: those above, one for each direction."""
    keras = the_keras()
    found = [layer for _, layer in recurrent(network)]
    ways = [
        (one.forward_layer, one.backward_layer) if isinstance(one, keras.layers.Bidirectional) else (one,)
        for one in found
    ]
    return [layer for pair in ways for layer in pair]


@dataclass
class Way:
    """What one layer went through in one call, in the order in which it read."""

    inputs: Any  # [rows, steps, ...] in the order of time
    mask: Any
    #: For each core of the layer that is recorded, s_0..s_N.
    states: dict[int, list[Any]]
    backwards: bool


@dataclass
class Recorder:
    """Keeps what the chosen layers go through, call by call."""

    choice: Choice
    ways: dict[int, list[Way]] = field(default_factory=dict)

    def calls(self, core: Core) -> list[list[Way]]:
        return [self.ways.get(id(layer), []) for layer in core.ways]


@contextmanager
def recording(network: Any, choice: Choice) -> Iterator[Recorder]:
    """Run the network in this block; its layers are as before when it ends."""
    recorder, layers = Recorder(choice), loops(network)
    before = [{key: vars(layer)[key] for key in ("inner_loop", "use_cudnn") if key in vars(layer)} for layer in layers]
    try:
        for layer in layers:
            # In their dictionaries: Keras would take what is set in the usual way for a part of the layer.
            vars(layer)["inner_loop"] = _loop(layer, recorder)
            vars(layer)["use_cudnn"] = False
        yield recorder
    finally:
        for layer, kept in zip(layers, before, strict=True):
            for key in ("inner_loop", "use_cudnn"):
                vars(layer).pop(key, None)
            vars(layer).update(kept)


def _loop(layer: Any, recorder: Recorder) -> Any:
    """The loop over time of Keras, which also keeps the states of chosen cores."""
    ops, tree = the_keras().ops, the_keras().tree
    wanted = [core for core in recorder.choice.cores if any(layer is way for way in core.ways)]
    number = 0 if recorder.choice.part == "h" else 1
    # Not the cell itself, whose checks take longer than the step; but in mixed precision it has to convert.
    mixed = getattr(layer.cell, "compute_dtype", None) != getattr(layer.cell, "variable_dtype", None)
    step_of = layer.cell if mixed else getattr(layer.cell, "call", layer.cell)

    def loop(sequences: Any, initial_state: Any, mask: Any, training: bool = False) -> tuple[Any, Any, Any]:
        mask = mask[0] if isinstance(mask, list | tuple) else mask
        mask = None if mask is None else ops.cast(mask, "bool")
        states, outputs, last = list(initial_state), [], None
        way = Way(
            sequences, mask, {core.cell: [_of(layer, states, core.cell)[number]] for core in wanted}, layer.go_backwards
        )
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
            for core in wanted:
                way.states[core.cell].append(_of(layer, states, core.cell)[number])
        if wanted:
            recorder.ways.setdefault(id(layer), []).append(way)
        return last, ops.stack(outputs, axis=1), states

    return loop


def _cells(layer: Any) -> Sequence[Any]:
    return layer.cell.cells if hasattr(layer.cell, "cells") else [layer.cell]


def _of(layer: Any, states: list[Any], cell: int) -> list[Any]:
    """The states of one cell: all, or its share in a stack."""
    if len(_cells(layer)) > 1:
        share = states[cell]
        return list(share) if isinstance(share, list | tuple) else [share]
    return list(states[0]) if isinstance(states[0], list | tuple) else states


def _wide(mask: Any, values: Any) -> Any:
    return the_keras().ops.reshape(mask, (-1, *[1] * (len(values.shape) - 1)))


def _has(network: Any) -> str:
    return ", ".join(f"{layer.name} ({type(layer).__name__})" for layer in network.layers)


def as_torch(value: Any) -> Tensor:
    """A tensor of any backend; where that is PyTorch, the same one."""
    if isinstance(value, Tensor):
        return value.detach()
    return torch.from_numpy(np.array(the_keras().ops.convert_to_numpy(value)))
