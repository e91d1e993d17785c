"""What a network of named tensors takes and gives: which input is the signal, and which come back as outputs.

A network that is called step by step has its state among its inputs and outputs. Nothing in a file says so; names and
shapes do, and where they do not suffice the user does.
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

#: Words that tell the two ends of a state apart, and not one state from another.
_ENDS = {"in", "input", "out", "output", "new", "next", "prev", "previous", "cur", "current", "initial", "init", "old"}
_ENDS |= {"last", "final", "updated", "n", "t", "x", "serving", "default", "call", "statefulpartitionedcall", "ret"}
#: Short names of which one letter is such a word; and the long names of h and c.
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
    """An input or output of a network: an axis is a number, the name of a free one, or None for a nameless free one."""

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
        """Whether what comes out here could go in there."""
        pairs = zip(self.shape, other.shape, strict=False)
        alike = all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))
        return self.dtype == other.dtype and len(self.shape) == len(other.shape) and alike


@dataclass(frozen=True)
class Signature:
    """The parts that a network's inputs and outputs have in its being run."""

    signal: Port
    #: From the inputs that are the state to the outputs that are the state after it.
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
        """Find them, as far as they are not given; `carry` None finds the state, {} says that there is none."""
        takes, gives = ({port.name: port for port in ports} for ports in (inputs, outputs))
        for name in [*constants, *([signal] if signal is not None else [])]:
            _known(name, takes, "input")
        if not takes or not gives:
            raise InputError("a network without inputs or without outputs cannot be run on anything")
        given: dict[str, Any] = dict(constants)
        if rate is not None:
            scalars = [port for port in inputs if port.dtype.kind in "iu" and port.shape in ((), (1,))]
            given |= {port.name: rate for port in scalars if port.name.lower() in _RATES and port.name not in given}
        open_inputs = [port for port in inputs if port.name not in given and port.name != signal]
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
                f"the input {missing[0]} gets no value (the signal is {chosen.name!r}): "
                f"give constants={{{missing[0].name!r}: ...}}"
            )
        return cls(chosen, carried, takes, gives, given, lengths)

    @property
    def answers(self) -> list[str]:
        """The outputs that are no state."""
        return [name for name in self.outputs if name not in self.carried.values()] or list(self.outputs)


def _signal(left: list[Port]) -> Port:
    floats = [port for port in left if port.dtype.kind == "f" and port.shape]
    several = [port for port in floats if len(port.shape) > 1] or floats or [port for port in left if port.shape]
    if len(several) == 1:
        return several[0]
    if not several:
        raise InputError("no input is left to be the signal: name one with signal=, and the state with carry=")
    names = ", ".join(map(str, several))
    raise InputError(f"which input is the signal? there are {names}: name it with signal=, the others in constants=")


def _pairs(inputs: Sequence[Port], outputs: Sequence[Port], *, has_signal: bool) -> dict[str, str]:
    """The inputs that come back as outputs: by their names, or, where no name tells anything, by their shapes."""
    floats = [port for port in inputs if port.dtype.kind == "f" and port.shape]
    states = [port for port in floats if len(port.free) <= 1]
    if len(floats) == 1 and not has_signal and len(inputs) == 1:
        return {}  # it is the signal, even if an answer has its shape
    for key, key_after in ((_key, _key), (_key_at_zero, _key), (_bare_key, _bare_key)):
        fitting = {p.name: [o.name for o in outputs if key_after(o.name) == key(p.name) and o.fits(p)] for p in states}
        found = {name: after[0] for name, after in fitting.items() if key(name) and len(after) == 1}
        if found and len(set(found.values())) == len(found):
            return found
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
        f"which inputs are the state, and which outputs the state after it, is ambiguous: by their shapes, {listed}; "
        f"say it with carry={{{first!r}: {others[0]!r}}}, naming every pair, or carry={{}} if nothing is carried"
    )


def _alike(port: Port, other: Port) -> bool:
    """Whether the shapes are the same, free axes included: no name vouches for this pair."""
    return other.fits(port) and port.free == other.free and len(port.free) < len(port.shape)


def _key(name: str) -> tuple[str, ...]:
    """What a name says of a state, whichever end it names: `h` of "hn", "h_out" and "prev_h:0"."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", re.sub(r":\d+$", "", name))
    return tuple(_ALONE.get(word, word) for word in (word.lower() for word in words) if word not in _ENDS)


def _key_at_zero(name: str) -> tuple[str, ...]:
    """The same of a name that counts time: "h0" and "c_0" are the h and the c of time 0."""
    key = _key(name)
    return key[:-1] if key[-1:] == ("0",) else key


def _bare_key(name: str) -> tuple[str, ...]:
    """The same without words that every state has: the h of "state_h" and "new_h"."""
    return tuple(word for word in _key_at_zero(name) if word not in ("state", "states", "lstm", "gru", "rnn"))


def _given_carry(carry: Mapping[str, str], takes: Mapping[str, Port], gives: Mapping[str, Port]) -> dict[str, str]:
    for name, after in carry.items():
        port, other = _known(name, takes, "input"), _known(after, gives, "output")
        if not other.fits(port):
            raise InputError(f"the output {other} cannot go into the input {port}: correct carry=")
    if len(set(carry.values())) < len(carry):
        raise InputError(f"an output is the state after two inputs in carry={dict(carry)!r}: give one each")
    return dict(carry)


def _known(name: str, ports: Mapping[str, Port], what: str) -> Port:
    if name not in ports:
        raise InputError(f"the network has no {what} {name!r}; its {what}s are: {', '.join(map(str, ports.values()))}")
    return ports[name]
