"""Inputs as the tensors that a network takes: their batch, time and channel axes, initial states and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.files.reading import check_bytes
from deepcruiser.systems.adapter import check_array
from deepcruiser.systems.tensors.signature import Array, Port, Signature
from deepcruiser.trace import is_tensor


@dataclass(frozen=True)
class InputLayout:
    """The axes of a network's input.

    `batch` is None if it takes no batch, and `time` is None if it takes single steps. `channel` is an axis of length 1
    that the user's inputs do not have.
    """

    port: Port
    batch: int | None
    time: int | None
    channel: int | None = None

    @classmethod
    def of(cls, port: Port, value: Array, *, stepwise: bool, batch_first: bool | None) -> InputLayout:
        """The layout in which `value`, [time, ...], fits the input; networks run `stepwise` may have no time axis."""
        axes, missing = len(port.shape), len(port.shape) - value.ndim
        if missing == 1 and axes == 3 and _time_is_last(port, value):
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
            f"an input of the shape {value.shape} does not fit the network's {port}: give features=, a function that "
            "makes an array [time, ...] from an input (for the command line, in a Python file of yours, with "
            "--system file.py:system)"
        )

    @property
    def width(self) -> int | None:
        """The number of inputs that go in at once, if the network fixes it."""
        length = 1 if self.batch is None else self.port.shape[self.batch]
        return length if isinstance(length, int) else None

    @property
    def batch_name(self) -> str | None:
        length = None if self.batch is None else self.port.shape[self.batch]
        return length if isinstance(length, str) else None

    @property
    def steps(self) -> int | None:
        """The number of steps that go in at once, if the network fixes it."""
        length = 1 if self.time is None else self.port.shape[self.time]
        return length if isinstance(length, int) else None

    def arrange(self, values: Sequence[Array]) -> Array:
        """Inputs of equal length as one tensor; a fixed batch is filled up with copies of the first input."""
        missing = (self.width or 0) - len(values)
        check_bytes(max(0, missing) * max(8, values[0].nbytes), f"a batch of {self.width or 0:,} inputs")
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


def batch_axis(port: Port, layout: InputLayout, array: Array, rows: int) -> int | None:
    """The batch axis of an input or output; None if it has none."""
    if layout.batch is None:
        return None
    name = layout.batch_name
    named = [axis for axis, length in enumerate(port.shape) if name is not None and length == name]
    if len(named) == 1:
        return named[0]
    if layout.width is None and len(port.free) == 1 and array.shape[port.free[0]] == rows:
        return port.free[0]
    first = (0, 1) if layout.batch == 0 else (1, 0)
    return next((axis for axis in first if axis < array.ndim and array.shape[axis] == rows), None)


def fill_input(port: Port, value: Any, rows: int) -> Array:
    """The tensor for an input other than the signal: `value` for every row of the batch, or zeros if it is None."""
    if value is None:
        if len(port.free) > 1:
            raise InputError(
                f"the initial state {port} has more than one free axis: give "
                f"streaming=Streaming(initial={{{port.name!r}: ...}})"
            )
        return np.zeros([length if isinstance(length, int) else rows for length in port.shape], port.dtype)
    array = np.asarray(value, port.dtype)
    array = array.reshape([1] * len(port.shape)) if array.ndim == 0 else array
    if array.ndim != len(port.shape):
        raise InputError(f"a value of the shape {array.shape} does not fit {port}: correct it")
    shape = [
        length if isinstance(length, int) else rows if has == 1 else has
        for length, has in zip(port.shape, array.shape, strict=True)
    ]
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape))
    except ValueError:
        raise InputError(f"a value of the shape {array.shape} does not fit {port}: correct it") from None


def extra_inputs(signature: Signature, lengths: Sequence[int]) -> dict[str, Array]:
    """The constants, and the lengths of the inputs if the network takes them."""
    feeds = {
        name: fill_input(signature.inputs[name], value, len(lengths)) for name, value in signature.constants.items()
    }
    if signature.lengths is not None:
        feeds[signature.lengths] = np.asarray(lengths, signature.inputs[signature.lengths].dtype)
    return feeds


def rows_first(array: Array, axis: int | None, rows: int) -> Array:
    """The array with its batch axis first; without a batch axis, every row gets the whole array."""
    return np.broadcast_to(array, (rows, *array.shape)) if axis is None else np.moveaxis(array, axis, 0)


def to_array(value: Any, position: int) -> Array:
    """One input as an array [time, ...]."""
    array: Array = value.detach().cpu().numpy() if is_tensor(value) else value
    check_array(array, position)
    return array


def _time_is_last(port: Port, value: Array) -> bool:
    """Whether the layout is [batch, size, time], as for convolutions."""
    return value.ndim == 2 and port.shape[1] == value.shape[1] and port.shape[2] != value.shape[1]


def _batch_first(port: Port) -> bool:
    """Whether the batch is the first axis, which it is unless the axes' names say otherwise."""
    first, second = (str(length).lower() for length in port.shape[:2])
    is_batch = ("batch", "batch_size", "n", "b")
    return second not in is_batch or first in is_batch
