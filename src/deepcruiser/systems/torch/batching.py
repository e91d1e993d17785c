"""Putting several inputs into one batch for a PyTorch network, and splitting its output again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, pad_sequence

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import check_array, group_alike

Feed = Callable[[nn.Module, list[Tensor]], Any]
Batch = Literal["equal", "padded", "lengths", "packed"] | Feed


def to_tensor(value: Any, position: int, dtype: torch.dtype) -> Tensor:
    """One input as a tensor [time, ...]: floats in the network's precision, whole numbers as int64."""
    check_array(value, position, kinds="biufc")
    # A copy, because torch does not accept read-only or reversed arrays.
    tensor = value.detach() if isinstance(value, Tensor) else torch.from_numpy(np.array(value, order="C"))
    if tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor if tensor.is_complex() or tensor.dtype == torch.bool else tensor.long()


def groups(tensors: Sequence[Tensor], batch: Batch) -> list[list[int]]:
    """Which inputs run together, by their positions."""
    if batch == "equal":
        return group_alike((tensor.shape, tensor.dtype) for tensor in tensors)
    for position, tensor in enumerate(tensors):
        if tensor.shape[1:] != tensors[0].shape[1:] or tensor.dtype != tensors[0].dtype:
            raise InputError(
                f"input {position} of the batch has steps of {_kind(tensor)}, but input 0 has steps of "
                f"{_kind(tensors[0])}; make them alike in features=, or use batch='equal'"
            )
    positions = list(range(len(tensors)))
    # Longest first, for networks that pack with enforce_sorted=True; a function gets the original order.
    return [positions if callable(batch) else sorted(positions, key=lambda position: -len(tensors[position]))]


def feed(net: nn.Module, tensors: list[Tensor], batch: Batch, *, batch_first: bool, device: torch.device) -> Any:
    """Call the network on one group of inputs, which are joined before they move to the device.

    The network always gets copies, so that one that works in place cannot change the caller's data.
    """
    if callable(batch):
        return batch(net, [tensor.to(device, copy=True) for tensor in tensors])
    if len({tensor.device for tensor in tensors}) > 1:
        tensors = [tensor.to(device) for tensor in tensors]
    if batch == "packed":
        packed: Any = pack_sequence(tensors, enforce_sorted=False)  # Any: its .to is typed too narrowly
        return net(packed.to(device))
    if len({len(tensor) for tensor in tensors}) == 1:
        padded = torch.stack(tensors, 0 if batch_first else 1)
    else:
        padded = pad_sequence(tensors, batch_first=batch_first)
    if device.type == "cuda" and padded.device.type == "cpu":
        padded = padded.pin_memory().to(device, non_blocking=True)  # otherwise it would wait for the previous batch
    padded = padded.to(device)
    if batch == "lengths":
        return net(padded, torch.tensor([len(tensor) for tensor in tensors]))
    return net(padded)


def own_steps(
    lengths: Sequence[int],
    positions: Sequence[int],
    *,
    made: int,
    padded_to: int,
    steps: Callable[[int], int] | None,
    label: str,
) -> list[int]:
    """The number of steps of each input without its padding, if a layer made `made` from inputs of `padded_to`."""
    if steps is not None:
        counts = [int(steps(length)) for length in lengths]
        for count, length, position in zip(counts, lengths, positions, strict=True):
            if not 0 < count <= made or (length == padded_to and count != made):
                raise InputError(
                    f"steps({length}) is {count} for input {position} of the batch, but {label} made {made} steps "
                    f"from a batch of length {padded_to}; correct steps= or use batch='equal' without it"
                )
        return counts
    if made == padded_to:
        return list(lengths)
    if any(length != padded_to for length in lengths):
        raise InputError(
            f"{label} made {made} steps from inputs padded to {padded_to}, so it is not known where the padding "
            "begins; give steps=, a function from an input's length to its number of steps, or use batch='equal'"
        )
    return [made] * len(lengths)


@dataclass(frozen=True)
class Splitter:
    """Splits a network's output into one part for each input.

    A tensor is split along its batch axis. That is the first axis (the second if the network is not batch-first) if it
    is as long as the batch, else the other of the two. A tensor with neither goes whole to every input. States that the
    recorded module itself returned, [layers, batch, size] or a cell's [batch, size], are split along their batch axis.

    The first remaining axis counts as time if it is as long as the padded inputs, or as the recorded module's steps.
    It is cut to the input's own length.

    Tuples, lists and mappings are split leaf by leaf. The exception is a list with one item per input in which nothing
    can be split, such as texts: each input gets its own item. Anything else goes whole to every input.
    """

    rows: int
    batch_first: bool
    #: The length of each input, by the length of a padded time axis.
    cuts: Mapping[int, Sequence[int]]
    states: Sequence[Tensor]
    to_numpy: bool

    def __call__(self, output: Any) -> list[Any]:
        if isinstance(output, PackedSequence):
            padded, lengths = pad_packed_sequence(output, batch_first=True)
            parts = zip(self._copied(padded), lengths.tolist(), strict=True)
            return self._converted([part[:length] for part, length in parts])
        if isinstance(output, Tensor):
            return self._split(output)
        if isinstance(output, Mapping):
            values = [self(value) for value in output.values()]
            return [dict(zip(output, row, strict=True)) for row in self._transpose(values)]
        if isinstance(output, tuple):
            rows = self._transpose([self(value) for value in output])
            return [type(output)(*row) if hasattr(output, "_fields") else row for row in rows]
        if isinstance(output, list):
            if len(output) == self.rows and not any(self._splits(item) for item in output):
                return [self._whole(item) for item in output]
            return [list(row) for row in self._transpose([self(value) for value in output])]
        return [output] * self.rows

    def _split(self, tensor: Tensor) -> list[Any]:
        axis = self._axis(tensor)
        if axis is None:
            return [self._whole(tensor)] * self.rows
        parts = list(self._copied(tensor).unbind(axis))
        is_state = any(tensor is state for state in self.states)
        lengths = None if is_state or parts[0].dim() == 0 else self.cuts.get(len(parts[0]))
        if lengths is not None:
            parts = [part[:length] for part, length in zip(parts, lengths, strict=True)]
        return self._converted(parts)

    def _axis(self, tensor: Tensor) -> int | None:
        if any(tensor is state for state in self.states):
            axis = tensor.dim() - 2  # [layers, batch, size], or [batch, size] of a cell
            return axis if tensor.shape[axis] == self.rows else None
        first, second = (0, 1) if self.batch_first else (1, 0)
        sizes = dict(enumerate(tensor.shape[:2]))
        return next((axis for axis in (first, second) if sizes.get(axis) == self.rows), None)

    def _splits(self, item: Any) -> bool:
        return isinstance(item, tuple | list | Mapping) or (isinstance(item, Tensor) and self._axis(item) is not None)

    def _transpose(self, columns: list[list[Any]]) -> list[tuple[Any, ...]]:
        return list(zip(*columns, strict=True)) if columns else [()] * self.rows

    def _whole(self, item: Any) -> Any:
        return self._converted([self._copied(item)])[0] if isinstance(item, Tensor) else item

    def _copied(self, tensor: Tensor) -> Tensor:
        """A copy on the CPU, moved in one piece, because the network may keep and change its output."""
        if not self.to_numpy:
            return tensor
        tensor = tensor.detach().to("cpu", copy=True)
        return tensor.float() if tensor.dtype == torch.bfloat16 else tensor  # numpy has no bfloat16

    def _converted(self, parts: list[Tensor]) -> list[Any]:
        return [part.numpy() for part in parts] if self.to_numpy else parts


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape[1:])} {str(tensor.dtype).removeprefix('torch.')}"
