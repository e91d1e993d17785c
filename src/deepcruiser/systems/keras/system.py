"""Recurrent networks in Keras."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from deepcruiser.errors import InputError
from deepcruiser.systems.batching import to_tensor
from deepcruiser.systems.keras.files import load
from deepcruiser.systems.keras.layers import the_keras
from deepcruiser.systems.keras.network import Network, cut
from deepcruiser.systems.keras.recording import as_torch, choose
from deepcruiser.systems.keras.traces import traces
from deepcruiser.systems.tensors.layout import check_functions, made
from deepcruiser.systems.torch.state_choice import Direction, Layer, Part
from deepcruiser.trace import Run


class KerasSystem:
    """A Keras network under test: its answer to every input, and the way of a recurrent layer's state.

        system = KerasSystem("recogniser.h5", rate=16_000, features=log_mel, transcribe=greedy)
        runs = system.run([audio, other])

    `model` is a `.keras` file, an HDF5 file of Keras 2 or 3, or a model that you built. Code in a file is never run: a
    Lambda layer is refused unless `output`, the name of a layer to end in, cuts the network before it,
    `custom_objects` has a function for it, or the file is `trusted`. A file of Keras 2 computes what it did there
    (its hard_sigmoid is another one than that of Keras 3). A model of yours is borrowed and left as it was found.

    **Which state.** `state` names a recurrent layer, "encoder.lstm" one in a network within the network; without it,
    `layer` counts all of them: -1 is the last, "all" are all side by side. In a layer that is a stack of cells it
    counts these. `part` is "h" or "c", and `direction`, of a Bidirectional layer, "both" (its default), "forward" or
    "backward", all as of `TorchSystem`. A layer with go_backwards is shown in the order in which it reads. s_0 is what
    the layer starts from. Steps that the network masks are not part of a trace.

    **How inputs go in.** `features` makes an array or tensor [time, ...] of an input, and for networks with several
    inputs a tuple of them, or a dictionary by name; without it `Audio` becomes its samples. Audio is first resampled to
    `rate`. `batch` is "equal" (only inputs of equal length go together, so nothing is padded) or "padded": behind
    shorter ones come zeros, or what the network's Masking layer looks for, up to the longest or to the length that the
    network has fixed. `steps` tells the steps of the recurrent layer from an input's length where it makes fewer.
    A stateful network starts afresh with every input, and reads it piece by piece if it has fixed the length of a
    piece.

    **What comes out.** `Run.output` is the input's part of the network's output in numpy arrays, or what `transcribe`
    makes of it; of a network that reads piece by piece, the outputs of the pieces one after the other.
    """

    def __init__(
        self,
        model: Any,
        state: str | None = None,
        *,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        output: str | None = None,
        features: Callable[[Any], Any] | None = None,
        rate: int | None = None,
        batch: Literal["equal", "padded"] = "equal",
        steps: Callable[[int], int] | None = None,
        batch_first: bool = True,
        transcribe: Callable[[Any], Any] | None = None,
        custom_objects: Mapping[str, Any] | None = None,
        trusted: bool = False,
    ) -> None:
        if batch not in ("equal", "padded"):
            raise InputError(f"batch must be 'equal' or 'padded', not {batch!r}")
        check_functions(features=features, steps=steps, transcribe=transcribe)
        keras = the_keras()
        if isinstance(model, str | os.PathLike):
            net, done = load(model, output=output, custom_objects=custom_objects or {}, trusted=trusted)
            self._label = os.path.basename(os.fspath(model))
        elif isinstance(model, keras.Model):
            net, done, self._label = model, False, model.name
        else:
            raise InputError(f"model must be a keras.Model or the path of a file, not a {type(model).__name__}")
        self.model = net if output is None or done else cut(net, output)
        self._choice = choose(self.model, state, part=part, layer=layer, direction=direction)
        self._network = Network(self.model, self._choice, padded=batch == "padded", batch_first=batch_first)
        self._features = features
        self._rate = rate
        self._batch = batch
        self._steps = steps
        self._transcribe = transcribe

    def __repr__(self) -> str:
        return f"KerasSystem({self._label}, {self.state_name})"

    @property
    def state_name(self) -> str:
        """Which vector is the state, in words."""
        return self._choice.words

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the network's layers, its weights when first asked, and the choice of state."""
        sha = hashlib.sha256(repr((self._choice.words, self._choice.direction)).encode())
        sha.update(json.dumps(_nameless(self.model.get_config()), sort_keys=True, default=str).encode())
        for weight in self.model.weights:
            array = np.ascontiguousarray(as_torch(weight.value).float().cpu().numpy())
            sha.update(f"\n{array.dtype} {array.shape}\n".encode())
            sha.update(array.tobytes())
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        inputs = [self._tensors(value, position) for position, value in enumerate(batch)]
        runs: dict[int, Run] = {}
        with _no_gradients():
            for positions in self._groups(inputs):
                runs.update(zip(positions, self._run([inputs[i] for i in positions], positions), strict=True))
        return [runs[position] for position in range(len(batch))]

    def _run(self, inputs: list[list[Tensor]], positions: list[int]) -> list[Run]:
        """One group of inputs, all at once."""
        lengths = [len(tensors[0]) for tensors in inputs]
        output, heard = self._network.run(inputs)
        padded_to = self._network.length(lengths)
        found, steps, longest = traces(heard, lengths, positions, padded_to=padded_to, steps=self._steps)
        # The recurrent layer's steps come last: they win where both are equally long.
        cuts = {padded_to: lengths, longest: steps}
        outputs = self._network.split(output, len(inputs), cuts)
        if self._transcribe is not None:
            outputs = [self._transcribe(part) for part in outputs]
        return [Run(part, trace) for part, trace in zip(outputs, found, strict=True)]

    def _tensors(self, value: Any, position: int) -> list[Tensor]:
        """What the network reads of one input, one tensor for each of the network's inputs."""
        value = made(value, rate=self._rate, features=self._features)
        names = self._network.inputs
        if isinstance(value, Mapping):
            if value.keys() != set(names):
                raise InputError(
                    f"input {position} of the batch has {', '.join(value)}, the network: {', '.join(names)}"
                )
            value = [value[name] for name in names]
        parts = list(value) if isinstance(value, tuple | list) else [value]
        if len(parts) != len(names):
            raise InputError(
                f"input {position} of the batch makes {len(parts)} arrays, and the network takes {len(names)}: "
                f"{', '.join(names)}; give features= that makes a tuple of them"
            )
        return [to_tensor(part, position, torch.float32) for part in parts]

    def _groups(self, inputs: Sequence[list[Tensor]]) -> Iterator[list[int]]:
        """Which inputs go through the network together, by their positions."""
        alike: dict[Any, list[int]] = {}
        for position, tensors in enumerate(inputs):
            shapes = [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]
            if self._batch == "padded" and len(tensors) == 1:
                shapes = [(tuple(tensors[0].shape[1:]), tensors[0].dtype)]
            alike.setdefault(repr(shapes), []).append(position)
        for positions in alike.values():
            width = self._network.width or len(positions)
            yield from (positions[start : start + width] for start in range(0, len(positions), width))


def _nameless(value: Any) -> Any:
    """A description without the names that Keras numbers as it goes, and where they are referred to."""
    if isinstance(value, dict):
        dropped = ("name", "keras_history", "input_layers", "output_layers")
        return {key: _nameless(item) for key, item in value.items() if key not in dropped}
    return [_nameless(item) for item in value] if isinstance(value, list | tuple) else value


def _no_gradients() -> contextlib.AbstractContextManager[Any]:
    return torch.no_grad() if the_keras().config.backend() == "torch" else contextlib.nullcontext()
