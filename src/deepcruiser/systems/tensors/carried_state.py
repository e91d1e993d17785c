"""Which of the tensors that a streaming network carries from call to call are the state of a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import Passage


@dataclass(frozen=True)
class CarriedChoice:
    """Carried inputs by name, each whole or a part of it along its first axis."""

    parts: tuple[tuple[str, int | None], ...]

    @classmethod
    def of(cls, signature: Signature, state: str | Sequence[str] | None) -> CarriedChoice:
        """What `state` names: "h", "state[0]", several of them; everything, unless told."""
        names = list(signature.carried) if state is None else [state] if isinstance(state, str) else list(state)
        parts = [_part(signature, name) for name in names]
        if not parts:
            raise InputError("state names nothing: leave it out for everything that is carried")
        return cls(tuple(parts))

    @property
    def words(self) -> str:
        """For people."""
        names = (name if number is None else f"{name}[{number}]" for name, number in self.parts)
        return f"{', '.join(names)}: carried from call to call"

    def states(self, passage: Passage) -> Array:
        """[calls + 1, size]: the state before every call, and after the last."""
        columns = []
        for name, number in self.parts:
            arrays = passage.carried[name] if number is None else [one[number] for one in passage.carried[name]]
            columns.append(np.stack(arrays).reshape(len(arrays), -1))
        return np.concatenate(columns, axis=1)


def is_carried(signature: Signature, state: str | Sequence[str] | None) -> bool:
    """Whether `state` speaks of what is carried, and not of something inside the network."""
    names = [state] if isinstance(state, str) else state or []
    return all(re.sub(r"\[\d+\]$", "", name) in signature.carried or name in signature.carried for name in names)


def _part(signature: Signature, name: str) -> tuple[str, int | None]:
    if name in signature.carried:
        return name, None
    found = re.fullmatch(r"(.*)\[(\d+)\]", name)
    port = signature.inputs.get(found[1]) if found and found[1] in signature.carried else None
    if found is None or port is None:
        carried = ", ".join(map(repr, signature.carried))
        raise InputError(f"{name!r} is not carried from call to call; what is carried: {carried}")
    number, length = int(found[2]), port.shape[0]
    if len(port.shape) < 3 or (isinstance(length, int) and number >= length):
        raise InputError(f"{name!r} is not there: {port} has no part {number} along its first axis; take {port.name!r}")
    return port.name, number
