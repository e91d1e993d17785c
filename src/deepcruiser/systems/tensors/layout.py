"""How an input of [time, ...] lies in the tensor that a network takes: with which batch, time and channel axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.signature import Array, Port, Signature


@dataclass(frozen=True)
class Layout:
    """The axes of a network's input: its batch (None: it takes no batch), its time (None: it takes one step alone).

    `channel` is an axis of length 1 that the inputs do not have.
    """

    port: Port
    batch: int | None
    time: int | None
    channel: int | None = None

    @classmethod
    def of(cls, port: Port, value: Array, *, stepwise: bool, batch_first: bool | None) -> Layout:
        """The layout in which `value`, [time, ...], fits the input; `stepwise` networks may lack a time axis."""
        axes, missing = len(port.shape), len(port.shape) - value.ndim
        if missing == 1 and axes == 3 and _turned(port, value):
            return cls(port, 0, 2)
        if missing == 1 and not (_batch_first(port) if batch_first is None else batch_first):
            return cls(port, 1, 0)
        if missing == 1:
            return cls(port, 0, 1)
        if missing == 2 and 1 in (port.shape[1], port.shape[-1]):
            return cls(port, 0, *((2, 1) if port.shape[1] == 1 else (1, axes - 1)))
        if missing == 0 and stepwise and axes > 1:
            return cls(port, 0, None)
        if missing == 0:
            return cls(port, None, 0)
        raise InputError(
            f"an input of the shape {value.shape} does not fit the network's {port}: give the adapter features=, a "
            "function that makes an array [time, ...] of an input; for the command line do so in a file of yours, "
            "system = deepcruiser.OnnxSystem('model.onnx', features=...), and name it with --system file.py:system"
        )

    @property
    def width(self) -> int | None:
        """How many inputs go in at once, where the network has fixed that."""
        length = 1 if self.batch is None else self.port.shape[self.batch]
        return length if isinstance(length, int) else None

    @property
    def batch_name(self) -> str | None:
        length = None if self.batch is None else self.port.shape[self.batch]
        return length if isinstance(length, str) else None

    @property
    def steps(self) -> int | None:
        """How many steps go in at once, where the network has fixed that."""
        length = 1 if self.time is None else self.port.shape[self.time]
        return length if isinstance(length, int) else None

    def arrange(self, values: Sequence[Array]) -> Array:
        """Inputs of equal length as one tensor for the network; those missing in a fixed batch are the first again."""
        missing = (self.width or 0) - len(values)
        stacked = np.stack([*values, *[values[0]] * missing]).astype(self.port.dtype, copy=False)  # [batch, time, ...]
        if self.batch is None:
            arranged = stacked[0]
        elif self.time is None:
            arranged = stacked[:, 0]
        elif self.channel is not None:
            arranged = np.expand_dims(stacked, self.channel)
        else:
            arranged = np.moveaxis(stacked, (0, 1), (self.batch, self.time))
        pairs = zip(arranged.shape, self.port.shape, strict=True)
        if any(isinstance(takes, int) and has != takes for has, takes in pairs):
            raise InputError(
                f"an input makes a tensor of the shape {list(arranged.shape)}, but the network takes {self.port}: "
                "correct features="
            )
        return np.ascontiguousarray(arranged)


def batch_axis(port: Port, layout: Layout, array: Array, rows: int) -> int | None:
    """Which axis of what a network takes or gives counts the inputs of a batch; None if none does."""
    if layout.batch is None:
        return None
    named = [axis for axis, length in enumerate(port.shape) if length == layout.batch_name is not None]
    if len(named) == 1:
        return named[0]
    if layout.width is None and len(port.free) == 1 and array.shape[port.free[0]] == rows:
        return port.free[0]
    first = (0, 1) if layout.batch == 0 else (1, 0)
    return next((axis for axis in first if axis < array.ndim and array.shape[axis] == rows), None)


def filled(port: Port, value: Any, rows: int) -> Array:
    """What an input that is not the signal gets in a batch: a value that is the same for every row, or zeros."""
    if value is None:
        if len(port.free) > 1:
            raise InputError(
                f"the initial state {port} has more than one free axis: give initial={{{port.name!r}: ...}}"
            )
        return np.zeros([length if isinstance(length, int) else rows for length in port.shape], port.dtype)
    array = np.asarray(value, port.dtype)
    array = array.reshape([1] * len(port.shape)) if array.ndim == 0 else array
    if array.ndim != len(port.shape):
        raise InputError(f"a value of the shape {array.shape} was given for {port}: correct it")
    wide = [
        length if isinstance(length, int) else rows if has == 1 else has
        for length, has in zip(port.shape, array.shape, strict=True)
    ]
    try:
        return np.ascontiguousarray(np.broadcast_to(array, wide))
    except ValueError:
        raise InputError(f"a value of the shape {array.shape} was given for {port}: correct it") from None


def others(signature: Signature, lengths: Sequence[int]) -> dict[str, Array]:
    """The constants, and the lengths of the inputs where the network takes them."""
    feeds = {name: filled(signature.inputs[name], value, len(lengths)) for name, value in signature.constants.items()}
    if signature.lengths is not None:
        feeds[signature.lengths] = np.asarray(lengths, signature.inputs[signature.lengths].dtype)
    return feeds


def rows_first(array: Array, axis: int | None, rows: int) -> Array:
    """With the batch as the first axis; what has none goes whole to every row."""
    return np.broadcast_to(array, (rows, *array.shape)) if axis is None else np.moveaxis(array, axis, 0)


def to_array(value: Any, position: int) -> Array:
    """One input as an array [time, ...]."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise InputError(
            f"input {position} of the batch is a {type(value).__name__}; Audio, a numpy array or a tensor was needed: "
            "give features=, a function that makes one of it"
        )
    if value.ndim == 0 or len(value) == 0:
        raise InputError(
            f"input {position} of the batch has the shape {value.shape}: [time, ...] with one step or more was "
            "needed; drop it"
        )
    return value


def check_functions(**given: Any) -> None:
    """Refuse what should be a function and is none."""
    for name, function in given.items():
        if function is not None and not callable(function):
            raise InputError(f"{name} must be a function, not {function!r}")


def made(value: Any, *, rate: int | None, features: Callable[[Any], Any] | None) -> Any:
    """What a network reads of an input: Audio at its rate, then what `features` makes of it, or the samples."""
    if rate is not None and hasattr(value, "rate") and value.rate != rate:
        value = value.resample(rate)
    if features is not None:
        return features(value)
    return value.samples if hasattr(value, "samples") and hasattr(value, "rate") else value


def _turned(port: Port, value: Array) -> bool:
    """Whether time is the last axis, as convolutions have it: [batch, size, time]."""
    return value.ndim == 2 and port.shape[1] == value.shape[1] and port.shape[2] != value.shape[1]


def _batch_first(port: Port) -> bool:
    """Whether no name says that the second axis is the batch."""
    first, second = (str(length).lower() for length in port.shape[:2])
    is_batch = ("batch", "batch_size", "n", "b")
    return second not in is_batch or first in is_batch
