"""Which of the tensors that a streaming network carries from call to call are the state of a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import CallRecord


@dataclass(frozen=True)
class CarriedState:
    """Carried inputs by name, each whole, with the index (), or a part of it: (0,) or (0, 1) along its first axes."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, signature: Signature, state: str | Sequence[str] | None) -> CarriedState:
        """The tensors, or their parts, that `state` names, such as "state[0, 1]"; all that are carried by default."""
        names = list(signature.carried) if state is None else [state] if isinstance(state, str) else list(state)
        parts = [_part(signature, name) for name in names]
        if not parts:
            raise InputError("state is empty: leave it out to use everything that is carried")
        return cls(tuple(parts))

    @property
    def words(self) -> str:
        """A description: "h, c: carried from call to call"."""
        names = (f"{name}[{', '.join(map(str, index))}]" if index else name for name, index in self.parts)
        return f"{', '.join(names)}: carried from call to call"

    def states(self, record: CallRecord) -> Array:
        """[calls + 1, size]: the state before every call, and after the last."""
        columns = []
        for name, index in self.parts:
            arrays = [one[index] for one in record.carried[name]]
            columns.append(np.stack(arrays).reshape(len(arrays), -1))
        return np.concatenate(columns, axis=1)


def is_carried(signature: Signature, state: str | Sequence[str] | None) -> bool:
    """Whether `state` names carried tensors, and not something inside the network."""
    names = [state] if isinstance(state, str) else state or []
    return all(re.sub(r"\[[\d, ]+\]$", "", name) in signature.carried or name in signature.carried for name in names)


def _part(signature: Signature, name: str) -> tuple[str, tuple[int, ...]]:
    if name in signature.carried:
        return name, ()
    match = re.fullmatch(r"(.*)\[(\d+(?: *, *\d+)*)\]", name)
    port = signature.inputs.get(match[1]) if match and match[1] in signature.carried else None
    if match is None or port is None:
        carried = ", ".join(str(signature.inputs[each]) for each in signature.carried)
        raise InputError(
            f"{name!r} is not carried from call to call; carried: {carried}; a tensor that holds several states has "
            "parts, such as 'name[0]', or 'name[0, 1]' along its first two axes"
        )
    index = tuple(map(int, match[2].split(",")))
    inside = all(n < length for n, length in zip(index, port.shape, strict=False) if isinstance(length, int))
    if len(index) > len(port.shape) - 2 or not inside:
        raise InputError(
            f"{port} has no part {list(index)} along its first axes: use {port.name!r}, or a part that exists"
        )
    return port.name, index
