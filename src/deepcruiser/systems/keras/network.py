"""Running a Keras network: padding, batches, and pieces for networks that keep their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from deepcruiser.errors import InputError
from deepcruiser.systems.keras.layers import import_keras
from deepcruiser.systems.keras.recording import LayerChoice, LayerRecorder, as_torch, loops, recording


def cut(model: Any, output: str) -> Any:
    """The network up to the layer `output`; it shares its layers and weights with the model."""
    keras = import_keras()
    names = [layer.name for layer in model.layers]
    if output not in names:
        raise InputError(f"no layer {output!r} in {model.name!r}; its layers are: {', '.join(names)}")
    end, needed = model.get_layer(output).output, set[int]()
    todo = list(keras.tree.flatten(end))
    while todo:
        tensor = todo.pop()
        if id(tensor) not in needed:
            needed.add(id(tensor))
            operation, node, _ = tensor._keras_history
            todo += operation._inbound_nodes[node].input_tensors if operation is not None else []
    inputs = [tensor for tensor in model.inputs if id(tensor) in needed]
    return keras.Model(inputs[0] if len(inputs) == 1 else inputs, end, name=model.name)


class KerasNetwork:
    """A model, the form of its inputs, and the layers that are recorded."""

    def __init__(self, model: Any, choice: LayerChoice, *, padded: bool, batch_first: bool) -> None:
        keras = import_keras()
        if not model.inputs:
            raise InputError(
                f"the model {model.name!r} has not been built: call it once on an input, or give it an Input layer"
            )
        self._model = model
        self._choice = choice
        self._padded = padded
        self.batch_first = batch_first
        self.inputs = [tensor.name.split(":")[0] for tensor in model.inputs]
        shape = tuple(model.inputs[0].shape)
        first, second = (0, 1) if batch_first else (1, 0)
        #: The number of inputs that go in at once, if the network fixes it; `_steps` is the same for steps.
        self.width: int | None = shape[first]
        self._steps: int | None = shape[second] if len(shape) > 1 else None
        self._stateful = [layer for layer in loops(model) if layer.stateful]
        masks = [layer.mask_value for layer in model.layers if isinstance(layer, keras.layers.Masking)]
        self._filler = float(masks[0]) if masks else 0.0

    def length(self, lengths: list[int]) -> int:
        """The length to which inputs of these lengths are padded."""
        longest = max(lengths)
        if self._steps is None:
            return longest
        return -(-longest // self._steps) * self._steps if self._stateful else self._steps

    def run(self, inputs: list[list[Tensor]], steps: Callable[[int], int] | None) -> tuple[Any, LayerRecorder]:
        """The network's output for a group of inputs, as tensors, and the recorded layers.

        `steps` is a function from the length of an input to the steps of the recurrent layer, if these are fewer.
        """
        ready = [self._arranged([tensors[number] for tensors in inputs], number) for number in range(len(self.inputs))]
        axis = 1 if self.batch_first else 0
        pieces = [ready]
        if self._stateful and self._steps is not None:
            split = [torch.split(tensor, self._steps, axis) for tensor in ready]
            pieces = [list(piece) for piece in zip(*split, strict=True)]
        with self._reset(), recording(self._model, self._choice, self._own_steps(inputs, steps)) as recorder:
            outputs = [self._call(piece) for piece in pieces]
        return outputs[0] if len(pieces) == 1 else self._joined(outputs, axis), recorder

    def split(self, output: Any, rows: int, cuts: Mapping[int, Sequence[int]]) -> list[Any]:
        """One output for each of `rows` inputs; `cuts` has their own lengths by the length of a padded time axis."""
        tree = import_keras().tree
        tensors, shapes = tree.flatten(output), [tuple(tensor.shape) for tensor in self._model.outputs]
        axis = 0 if self.batch_first else 1
        parts = [_parts(tensor, shape, axis, cuts, rows) for tensor, shape in zip(tensors, shapes, strict=True)]
        return [tree.pack_sequence_as(output, [part[row] for part in parts]) for row in range(rows)]

    def _own_steps(self, inputs: list[list[Tensor]], steps: Callable[[int], int] | None) -> dict[int, list[int]]:
        """The steps of each input that are not padding, by the length of a padded time axis.

        There are none if the network fixes the length: it then reads the padding, and was trained on it.
        """
        lengths = [len(tensors[0]) for tensors in inputs]
        if self._steps is not None or len(set(lengths)) == 1:
            return {}
        lengths += lengths[:1] * ((self.width or 0) - len(lengths))
        own = {max(lengths): lengths}
        return own if steps is None else {steps(max(lengths)): [steps(length) for length in lengths]} | own

    def _call(self, piece: list[Tensor]) -> Any:
        keras = import_keras()
        values = [tensor if keras.config.backend() == "torch" else tensor.numpy() for tensor in piece]
        output = self._model(keras.tree.pack_sequence_as(_form(self._model), values), training=False)
        return keras.tree.map_structure(as_torch, output)

    def _joined(self, outputs: list[Any], axis: int) -> Any:
        """The outputs of all pieces, joined in time; a new time axis is made if each piece has a single answer."""

        def join(*tensors: Tensor) -> Tensor:
            in_time = tensors[0].dim() > 2 and tensors[0].shape[axis] == self._steps
            return torch.cat(tensors, axis) if in_time else torch.stack(tensors, axis)

        return import_keras().tree.map_structure(join, *outputs)

    def _arranged(self, tensors: list[Tensor], number: int) -> Tensor:
        shape = tuple(self._model.inputs[number].shape)
        if len(shape) != tensors[0].dim() + 1:
            raise InputError(
                f"an input makes an array of the shape {tuple(tensors[0].shape)}, but {self.inputs[number]!r} of the "
                f"network takes {_shape_text(shape)}: correct features="
            )
        if number == 0:
            self._check_lengths([len(tensor) for tensor in tensors])
        tensors = tensors + tensors[:1] * ((self.width or 0) - len(tensors))
        padded = pad_sequence(tensors, batch_first=True, padding_value=self._filler)
        if number == 0 and (missing := self.length([padded.shape[1]]) - padded.shape[1]):
            filling = padded.new_full((len(padded), missing, *padded.shape[2:]), self._filler)
            padded = torch.cat((padded, filling), 1)
        if any(takes not in (None, has) for has, takes in zip(padded.shape[2:], shape[2:], strict=True)):
            raise InputError(
                f"an input makes steps of {list(padded.shape[2:])}, but {self.inputs[number]!r} of the network takes "
                f"{_shape_text(shape)}: correct features="
            )
        return padded if self.batch_first else padded.transpose(0, 1)

    def _check_lengths(self, lengths: list[int]) -> None:
        if self._steps is None or self._stateful:
            return
        wrong = next((n for n in lengths if n > self._steps or (n < self._steps and not self._padded)), None)
        if wrong is not None:
            pad = "" if wrong > self._steps else ", or use batch='padded'"
            raise InputError(
                f"an input has {wrong:,} steps, but the network takes exactly {self._steps:,}: cut or pad it in "
                f"features={pad}"
            )

    @contextmanager
    def _reset(self) -> Iterator[None]:
        """Within this block, layers that keep their state between calls start from zeros; it is restored afterwards."""
        keras = import_keras()
        variables = [variable for layer in self._stateful for variable in keras.tree.flatten(layer.states)]
        before = [as_torch(variable.value).cpu().numpy().copy() for variable in variables]
        try:
            for variable in variables:
                variable.assign(keras.ops.zeros_like(variable.value))
            yield
        finally:
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)


def _form(model: Any) -> Any:
    """What the model takes: one tensor, or a list or dictionary of them."""
    try:
        return model.input
    except (AttributeError, ValueError):  # a Sequential model, or one of a class of its own
        return model.inputs[0] if len(model.inputs) == 1 else model.inputs


def _parts(
    tensor: Tensor, shape: tuple[Any, ...], axis: int, cuts: Mapping[int, Sequence[int]], rows: int
) -> list[Any]:
    """The rows of a tensor, each cut to its own length if it has a time axis."""
    parts = list(tensor.unbind(axis) if tensor.dim() > axis else tensor.unbind())
    in_time = len(shape) > 2 or (len(shape) == 2 and shape[1] is None)
    lengths = cuts.get(len(parts[0])) if in_time and parts[0].dim() else None
    if lengths is not None:
        parts = [part[:length] for part, length in zip(parts, lengths, strict=False)]
    return [part.cpu().numpy().copy() for part in parts[:rows]]


def _shape_text(shape: tuple[Any, ...]) -> str:
    return f"[{', '.join('any' if length is None else str(length) for length in shape)}]"
