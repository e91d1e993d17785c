"""Recurrent networks in Keras."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import Adapter, Options, check_functions, group_alike
from deepcruiser.systems.keras.files import load, with_weights
from deepcruiser.systems.keras.layers import import_keras
from deepcruiser.systems.keras.network import KerasNetwork, cut
from deepcruiser.systems.keras.recording import as_torch, choose_layers
from deepcruiser.systems.keras.traces import traces
from deepcruiser.systems.state_choice import Direction, Layer, Part
from deepcruiser.systems.torch.batching import to_tensor
from deepcruiser.trace import Trace


class KerasSystem(Adapter):
    """A Keras network under test: its answer to every input, and the states of a recurrent layer.

        system = KerasSystem("recogniser.h5", rate=16_000, features=log_mel, transcribe=greedy)
        runs = system.run([audio, other])

    `model` is a `.keras` file, an HDF5 file of Keras 2 or 3, or a model that you built. Code in a file is never run: a
    Lambda layer is refused unless `output`, the name of the layer to end with, cuts the network before it,
    `custom_objects` has a function for it, or the file is `trusted`. A file of Keras 2 computes the same as in Keras 2
    (its hard_sigmoid differs from that of Keras 3). Your own model is borrowed and left as it was; with `weights`, a
    file of Keras 2 that holds weights only, a copy of it gets them, and computes what it computed in Keras 2.

    **Which state.** `state` names a recurrent layer; "encoder.lstm" is one in a network within the network. Without it,
    `layer` counts all recurrent layers: -1 is the last, and "all" are all of them side by side. With a `state` that is
    a stack of cells, `layer` counts the cells. `part` is "h" or "c", and `direction`, for a Bidirectional layer, is
    "both" (the default), "forward" or "backward", as for `TorchSystem`. The states of a layer with go_backwards are in
    the order in which it reads. s_0 is the state that the layer starts from. Steps that the network masks are left out.

    **Input.** `features` makes an array or tensor [time, ...] from an input; for networks with several inputs, a tuple
    of them or a dictionary by name. Without it, `Audio` becomes its samples. Audio is first resampled to `rate`.
    `batch` is "equal" (only inputs of equal length run together, so nothing is padded) or "padded". Padding is zeros,
    or the value that the network's Masking layer looks for, up to the longest input or to the length that the network
    fixes. `steps` is a function from the length of an input to the steps of the recurrent layer, if these are fewer. A
    stateful network is reset for every input, and reads it piece by piece if it fixes the length of a piece.

    **Output.** `Run.output` is the input's part of the network's output in numpy arrays, or transcribe(part). If the
    network reads piece by piece, the outputs of the pieces are joined. `doubt` is a function from the part to a number;
    without it, texts made from scores get the doubt of the scores (see `deepcruiser.systems.adapter`).
    """

    def __init__(
        self,
        model: Any,
        state: str | None = None,
        *,
        weights: str | os.PathLike[str] | None = None,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        output: str | None = None,
        batch: Literal["equal", "padded"] = "equal",
        steps: Callable[[int], int] | None = None,
        batch_first: bool = True,
        custom_objects: Mapping[str, Any] | None = None,
        trusted: bool = False,
        **options: Unpack[Options],
    ) -> None:
        if batch not in ("equal", "padded"):
            raise InputError(f"batch must be 'equal' or 'padded', not {batch!r}")
        check_functions(steps=steps)
        keras = import_keras()
        if isinstance(model, str | os.PathLike):
            if weights is not None:
                raise InputError("weights= is for a model that you built: a file has its own")
            net, is_cut = load(model, output=output, custom_objects=custom_objects or {}, trusted=trusted)
            label = os.path.basename(os.fspath(model))
        elif isinstance(model, keras.Model):
            net, is_cut, label = model, False, model.name
            if weights is not None:
                net = with_weights(model, weights, custom_objects=custom_objects or {})
        else:
            raise InputError(f"model must be a keras.Model or the path of a file, not a {type(model).__name__}")
        self.model = net if output is None or is_cut else cut(net, output)
        self._choice = choose_layers(self.model, state, part=part, layer=layer, direction=direction)
        self._network = KerasNetwork(self.model, self._choice, padded=batch == "padded", batch_first=batch_first)
        self._batch = batch
        self._steps = steps
        super().__init__(label, self._choice.words, **options)

    def _identity(self) -> Iterator[bytes]:
        """The choice of state, the layers and the weights."""
        yield repr((self._choice.words, self._choice.direction)).encode()
        yield json.dumps(_nameless(self.model.get_config()), sort_keys=True, default=str).encode()
        for weight in self.model.weights:
            array = np.ascontiguousarray(as_torch(weight.value).float().cpu().numpy())
            yield f"\n{array.dtype} {array.shape}\n".encode()
            yield array.tobytes()

    def _running(self) -> AbstractContextManager[Any]:
        return torch.no_grad() if import_keras().config.backend() == "torch" else nullcontext()

    def _read(self, value: Any, position: int) -> list[Tensor]:
        """One tensor for each of the network's inputs."""
        names = self._network.inputs
        if isinstance(value, Mapping):
            if value.keys() != set(names):
                raise InputError(
                    f"input {position} of the batch has {', '.join(value)}, but the network takes {', '.join(names)}"
                )
            value = [value[name] for name in names]
        parts = list(value) if isinstance(value, tuple | list) else [value]
        if len(parts) != len(names):
            raise InputError(
                f"input {position} of the batch makes {len(parts)} arrays, but the network takes {len(names)}: "
                f"{', '.join(names)}; give features= that makes a tuple of them"
            )
        return [to_tensor(part, position, torch.float32) for part in parts]

    def _groups(self, values: Sequence[list[Tensor]]) -> Iterator[list[int]]:
        for positions in group_alike(self._kind(tensors) for tensors in values):
            width = self._network.width or len(positions)
            yield from (positions[start : start + width] for start in range(0, len(positions), width))

    def _kind(self, tensors: list[Tensor]) -> tuple[Any, ...]:
        """Inputs of the same kind can run together."""
        padded = self._batch == "padded" and len(tensors) == 1
        return tuple((tuple(tensor.shape[1:] if padded else tensor.shape), tensor.dtype) for tensor in tensors)

    def _forward(self, values: list[list[Tensor]], positions: list[int]) -> list[tuple[Any, Trace]]:
        lengths = [len(tensors[0]) for tensors in values]
        output, recorder = self._network.run(values, self._steps)
        padded_to = self._network.length(lengths)
        result, steps, longest = traces(recorder, lengths, positions, padded_to=padded_to, steps=self._steps)
        # The recurrent layer's steps come last, so that they win where both are equally long.
        outputs = self._network.split(output, len(values), {padded_to: lengths, longest: steps})
        return list(zip(outputs, result, strict=True))


def _nameless(value: Any) -> Any:
    """A description without names, which Keras numbers one after the other, and without references to them."""
    if isinstance(value, dict):
        dropped = ("name", "keras_history", "input_layers", "output_layers")
        return {key: _nameless(item) for key, item in value.items() if key not in dropped}
    return [_nameless(item) for item in value] if isinstance(value, list | tuple) else value
