"""Several inputs through a network at once, and its output apart again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, pad_sequence

from deepcruiser.errors import InputError

Feed = Callable[[nn.Module, list[Tensor]], Any]
Batch = Literal["equal", "padded", "lengths", "packed"] | Feed


def to_tensor(value: Any, position: int, dtype: torch.dtype) -> Tensor:
    """One input as a tensor [time, ...]: floats in the network's precision, whole numbers as int64."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        tensor = torch.from_numpy(np.array(value, order="C"))  # a copy: torch takes no read-only or reversed array
    elif isinstance(value, Tensor):
        tensor = value.detach()
    else:
        raise InputError(
            f"input {position} of the batch is a {type(value).__name__}; a tensor, a numpy array or Audio was needed: "
            "give features=, a function that makes one of it"
        )
    if tensor.dim() == 0 or len(tensor) == 0:
        raise InputError(
            f"input {position} of the batch has the shape {tuple(tensor.shape)}: [time, ...] with one step or more was "
            "needed; drop it"
        )
    if tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor if tensor.is_complex() or tensor.dtype == torch.bool else tensor.long()


def groups(tensors: Sequence[Tensor], batch: Batch) -> list[list[int]]:
    """Which inputs go through the network together, by their positions."""
    if batch == "equal":
        alike: dict[Any, list[int]] = {}
        for position, tensor in enumerate(tensors):
            alike.setdefault((tensor.shape, tensor.dtype), []).append(position)
        return list(alike.values())
    for position, tensor in enumerate(tensors):
        if tensor.shape[1:] != tensors[0].shape[1:] or tensor.dtype != tensors[0].dtype:
            raise InputError(
                f"input {position} of the batch has steps of {_kind(tensor)}, input 0 of {_kind(tensors[0])}: they "
                "do not go together; make them alike in features=, or use batch='equal'"
            )
    positions = list(range(len(tensors)))
    # Longest first, as networks need that pack with enforce_sorted=True; a function gets what it was given.
    return [positions if callable(batch) else sorted(positions, key=lambda position: -len(tensors[position]))]


def feed(net: nn.Module, tensors: list[Tensor], batch: Batch, *, batch_first: bool, device: torch.device) -> Any:
    """Call the network on one group. Inputs are put together where they are and travel in one piece.

    The network gets copies in any case: one that works in place cannot spoil the caller's data.
    """
    if callable(batch):
        return batch(net, [tensor.to(device, copy=True) for tensor in tensors])
    if len({tensor.device for tensor in tensors}) > 1:
        tensors = [tensor.to(device) for tensor in tensors]
    if batch == "packed":
        packed: Any = pack_sequence(tensors, enforce_sorted=False)  # Any: its .to is typed too narrowly
        return net(packed.to(device))
    if len({len(tensor) for tensor in tensors}) == 1:
        padded = torch.stack(tensors, 0 if batch_first else 1).to(device)
    else:
        padded = pad_sequence(tensors, batch_first=batch_first).to(device)
    if batch == "lengths":
        return net(padded, torch.tensor([len(tensor) for tensor in tensors]))
    return net(padded)


@dataclass(frozen=True)
class Splitter:
    """Takes a network's output apart, one part per input.

    A tensor is split along its batch axis: the first (the second where the network is not batch-first) if that is as
    long as the batch, else the other of these two if that is; a tensor with neither goes whole to every input. States
    that the recorded module itself returned, [layers, batch, size] or a cell's [batch, size], are known and split along
    the batch. The first
    axis that remains is taken for time, and cut to the input's own length, where inputs of different lengths were
    padded and it is as long as they were, or as the recorded module's steps were. Tuples, lists and mappings are split
    leaf by leaf, except a list of one item per input in which nothing can be split (texts, say): each input gets its
    own. Anything else goes whole to every input.
    """

    rows: int
    batch_first: bool
    #: From the length of a padded time axis to each input's own length.
    cuts: Mapping[int, Sequence[int]]
    states: Sequence[Tensor]
    to_numpy: bool

    def __call__(self, output: Any) -> list[Any]:
        if isinstance(output, PackedSequence):
            padded, lengths = pad_packed_sequence(output, batch_first=True)
            parts = zip(self._carry(padded), lengths.tolist(), strict=True)
            return self._done([part[:length] for part, length in parts])
        if isinstance(output, Tensor):
            return self._split(output)
        if isinstance(output, Mapping):
            values = [self(value) for value in output.values()]
            return [dict(zip(output, row, strict=True)) for row in self._turn(values)]
        if isinstance(output, tuple):
            rows = self._turn([self(value) for value in output])
            return [type(output)(*row) if hasattr(output, "_fields") else row for row in rows]
        if isinstance(output, list):
            if len(output) == self.rows and not any(self._splits(item) for item in output):
                return [self._whole(item) for item in output]
            return [list(row) for row in self._turn([self(value) for value in output])]
        return [output] * self.rows

    def _split(self, tensor: Tensor) -> list[Any]:
        axis = self._axis(tensor)
        if axis is None:
            return [self._whole(tensor)] * self.rows
        parts = list(self._carry(tensor).unbind(axis))
        is_state = any(tensor is state for state in self.states)
        lengths = None if is_state or parts[0].dim() == 0 else self.cuts.get(len(parts[0]))
        if lengths is not None:
            parts = [part[:length] for part, length in zip(parts, lengths, strict=True)]
        return self._done(parts)

    def _axis(self, tensor: Tensor) -> int | None:
        if any(tensor is state for state in self.states):
            axis = tensor.dim() - 2  # [layers, batch, size], or [batch, size] of a cell
            return axis if tensor.shape[axis] == self.rows else None
        first, second = (0, 1) if self.batch_first else (1, 0)
        sizes = dict(enumerate(tensor.shape[:2]))
        return next((axis for axis in (first, second) if sizes.get(axis) == self.rows), None)

    def _splits(self, item: Any) -> bool:
        return isinstance(item, tuple | list | Mapping) or (isinstance(item, Tensor) and self._axis(item) is not None)

    def _turn(self, columns: list[list[Any]]) -> list[tuple[Any, ...]]:
        return list(zip(*columns, strict=True)) if columns else [()] * self.rows

    def _whole(self, item: Any) -> Any:
        return self._done([self._carry(item)])[0] if isinstance(item, Tensor) else item

    def _carry(self, tensor: Tensor) -> Tensor:
        """Off the device in one piece, and a copy: the network may keep and change what it returned."""
        if not self.to_numpy:
            return tensor
        tensor = tensor.detach().to("cpu", copy=True)
        return tensor.float() if tensor.dtype == torch.bfloat16 else tensor  # numpy has no bfloat16

    def _done(self, parts: list[Tensor]) -> list[Any]:
        return [part.numpy() for part in parts] if self.to_numpy else parts


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape[1:])} {str(tensor.dtype).removeprefix('torch.')}"
