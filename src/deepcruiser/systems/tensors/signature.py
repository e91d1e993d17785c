"""The roles of a network's inputs and outputs: which input is the signal, and which come back as outputs.

A network that is called step by step has its state among its inputs and outputs. A file does not say which these are:
they are found by names and shapes, or given by the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError

Array = npt.NDArray[Any]

#: Words in the names of state inputs and outputs that do not identify the state.
_ENDS = {"in", "input", "out", "output", "new", "next", "prev", "previous", "cur", "current", "initial", "init", "old"}
_ENDS |= {"last", "final", "updated", "n", "t", "x", "serving", "default", "call", "statefulpartitionedcall", "ret"}
#: Other names of h and c.
_ALONE = {
    "hx": "h",
    "hy": "h",
    "hn": "h",
    "ht": "h",
    "hidden": "h",
    "cx": "c",
    "cy": "c",
    "cn": "c",
    "ct": "c",
    "cell": "c",
}
_RATES = ("sr", "rate", "sample_rate", "sampling_rate", "samplerate")


@dataclass(frozen=True)
class Port:
    """An input or output of a network. Each axis is its length, the name of a free axis, or None for a nameless one."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        axes = ", ".join("?" if axis is None else str(axis) for axis in self.shape)
        return f"{self.name!r} ({self.dtype} [{axes}])"

    @property
    def free(self) -> list[int]:
        """The axes whose lengths are not fixed."""
        return [axis for axis, length in enumerate(self.shape) if not isinstance(length, int)]

    def fits(self, other: Port) -> bool:
        """Whether the values of this output could be the values of the input `other`."""
        pairs = zip(self.shape, other.shape, strict=False)
        alike = all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))
        return self.dtype == other.dtype and len(self.shape) == len(other.shape) and alike


@dataclass(frozen=True)
class Signature:
    """The roles of a network's inputs and outputs."""

    signal: Port
    #: The inputs that are the state, and for each the output that is the state after the call.
    carried: Mapping[str, str]
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    constants: Mapping[str, Any]
    lengths: str | None

    @classmethod
    def of(
        cls,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        *,
        signal: str | None,
        carry: Mapping[str, str] | None,
        constants: Mapping[str, Any],
        rate: int | None,
    ) -> Signature:
        """Find the roles that are not given. `carry` None finds the state, {} says that there is none."""
        takes, gives = ({port.name: port for port in ports} for ports in (inputs, outputs))
        for name in [*constants, *([signal] if signal is not None else [])]:
            _named(name, takes, "input")
        if not takes or not gives:
            raise InputError("the network has no inputs or no outputs, so it cannot be run")
        values: dict[str, Any] = dict(constants)
        if rate is not None:
            scalars = [port for port in inputs if port.dtype.kind in "iu" and port.shape in ((), (1,))]
            values |= {port.name: rate for port in scalars if port.name.lower() in _RATES and port.name not in values}
        open_inputs = [port for port in inputs if port.name not in values and port.name != signal]
        carried = _given_carry(carry, takes, gives) if carry is not None else None
        if carried is None:
            carried = _pairs(open_inputs, outputs, has_signal=signal is not None)
        left = [port for port in open_inputs if port.name not in carried]
        chosen = takes[signal] if signal is not None else _signal(left)
        left = [port for port in left if port is not chosen]
        lengths = next((port.name for port in left if port.dtype.kind == "i" and len(port.shape) == 1), None)
        missing = [port for port in left if port.name != lengths]
        if missing:
            raise InputError(
                f"the input {missing[0]} has no value (the signal is {chosen.name!r}): "
                f"give constants={{{missing[0].name!r}: ...}}"
            )
        return cls(chosen, carried, takes, gives, values, lengths)

    @property
    def answers(self) -> list[str]:
        """The outputs that are not a state."""
        return [name for name in self.outputs if name not in self.carried.values()] or list(self.outputs)


def _signal(left: list[Port]) -> Port:
    floats = [port for port in left if port.dtype.kind == "f" and port.shape]
    several = [port for port in floats if len(port.shape) > 1] or floats or [port for port in left if port.shape]
    if len(several) == 1:
        return several[0]
    if not several:
        raise InputError(
            "no input is left for the signal: name it with signal=, and the state with Streaming(carry=...)"
        )
    names = ", ".join(map(str, several))
    raise InputError(
        f"several inputs could be the signal: {names}; name it with signal=, and give the others in constants="
    )


def _pairs(inputs: Sequence[Port], outputs: Sequence[Port], *, has_signal: bool) -> dict[str, str]:
    """The inputs that come back as outputs, found by their names, or by their shapes where names say nothing."""
    floats = [port for port in inputs if port.dtype.kind == "f" and port.shape]
    states = [port for port in floats if len(port.free) <= 1]
    if len(floats) == 1 and not has_signal and len(inputs) == 1:
        return {}  # the signal, even if an answer has its shape
    for key, key_after in ((_key, _key), (_key_at_zero, _key), (_bare_key, _bare_key)):
        fitting = {p.name: [o.name for o in outputs if key_after(o.name) == key(p.name) and o.fits(p)] for p in states}
        pairs = {name: after[0] for name, after in fitting.items() if key(name) and len(after) == 1}
        if pairs and len(set(pairs.values())) == len(pairs):
            return pairs
    alike = {port.name: [other.name for other in outputs if _alike(port, other)] for port in states}
    alike = {name: others for name, others in alike.items() if others}
    if not alike or (len(floats) == 1 and not has_signal):
        return {}
    after = [others[0] for others in alike.values() if len(others) == 1]
    if len(set(after)) == len(alike) and (has_signal or len(alike) < len(floats)):
        return dict(zip(alike, after, strict=True))
    listed = "; ".join(f"{name!r} -> {' or '.join(map(repr, others))}" for name, others in alike.items())
    first, others = next(iter(alike.items()))
    raise InputError(
        f"it is ambiguous which output is the next state of which input; by their shapes: {listed}; give "
        f"streaming=Streaming(carry={{{first!r}: {others[0]!r}}}) with every pair, or carry={{}} if nothing is carried"
    )


def _alike(port: Port, other: Port) -> bool:
    """Whether the shapes are the same, free axes included, for pairs that have no names in common."""
    return other.fits(port) and port.free == other.free and len(port.free) < len(port.shape)


def _key(name: str) -> tuple[str, ...]:
    """What input and output of a state have in common in their names: `h` in "hn", "h_out" and "prev_h:0"."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", re.sub(r":\d+$", "", name))
    return tuple(_ALONE.get(word, word) for word in (word.lower() for word in words) if word not in _ENDS)


def _key_at_zero(name: str) -> tuple[str, ...]:
    """The same for names that count time: "h0" and "c_0" are the h and the c of time 0."""
    key = _key(name)
    return key[:-1] if key[-1:] == ("0",) else key


def _bare_key(name: str) -> tuple[str, ...]:
    """The same without words that any state may have: `h` in "state_h" and "new_h"."""
    return tuple(word for word in _key_at_zero(name) if word not in ("state", "states", "lstm", "gru", "rnn"))


def _given_carry(carry: Mapping[str, str], takes: Mapping[str, Port], gives: Mapping[str, Port]) -> dict[str, str]:
    for name, after in carry.items():
        port, other = _named(name, takes, "input"), _named(after, gives, "output")
        if not other.fits(port):
            raise InputError(f"the output {other} does not fit the input {port}: correct carry=")
    if len(set(carry.values())) < len(carry):
        raise InputError(f"carry={dict(carry)!r} has one output for two inputs: give each input its own")
    return dict(carry)


def _named(name: str, ports: Mapping[str, Port], what: str) -> Port:
    if name not in ports:
        raise InputError(f"the network has no {what} {name!r}; its {what}s are: {', '.join(map(str, ports.values()))}")
    return ports[name]
