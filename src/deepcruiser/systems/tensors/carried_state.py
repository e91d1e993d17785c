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
    """Carried inputs by name, each whole (None) or one part of it along its first axis."""

    parts: tuple[tuple[str, int | None], ...]

    @classmethod
    def of(cls, signature: Signature, state: str | Sequence[str] | None) -> CarriedState:
        """The tensors that `state` names, as in "h", "state[0]" or ["h", "c"]; all that are carried by default."""
        names = list(signature.carried) if state is None else [state] if isinstance(state, str) else list(state)
        parts = [_part(signature, name) for name in names]
        if not parts:
            raise InputError("state is empty: leave it out to use everything that is carried")
        return cls(tuple(parts))

    @property
    def words(self) -> str:
        """A description: "h, c: carried from call to call"."""
        names = (name if number is None else f"{name}[{number}]" for name, number in self.parts)
        return f"{', '.join(names)}: carried from call to call"

    def states(self, record: CallRecord) -> Array:
        """[calls + 1, size]: the state before every call, and after the last."""
        columns = []
        for name, number in self.parts:
            arrays = record.carried[name] if number is None else [one[number] for one in record.carried[name]]
            columns.append(np.stack(arrays).reshape(len(arrays), -1))
        return np.concatenate(columns, axis=1)


def is_carried(signature: Signature, state: str | Sequence[str] | None) -> bool:
    """Whether `state` names carried tensors, and not something inside the network."""
    names = [state] if isinstance(state, str) else state or []
    return all(re.sub(r"\[\d+\]$", "", name) in signature.carried or name in signature.carried for name in names)


def _part(signature: Signature, name: str) -> tuple[str, int | None]:
    if name in signature.carried:
        return name, None
    match = re.fullmatch(r"(.*)\[(\d+)\]", name)
    port = signature.inputs.get(match[1]) if match and match[1] in signature.carried else None
    if match is None or port is None:
        carried = ", ".join(map(repr, signature.carried))
        raise InputError(f"{name!r} is not carried from call to call; carried: {carried}")
    number, length = int(match[2]), port.shape[0]
    if len(port.shape) < 3 or (isinstance(length, int) and number >= length):
        raise InputError(
            f"{port} has no part {number} along its first axis, so there is no {name!r}: use {port.name!r}"
        )
    return port.name, number
