"""Networks that are called chunk by chunk, with the state that the call before gave: one driver for every runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.layout import Layout, batch_axis, filled, others, rows_first
from deepcruiser.systems.tensors.signature import Array, Port, Signature

#: Runs the network once, on arrays by the names of its inputs.
Call = Callable[[dict[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, eq=False)
class Passage:
    """What one input went through: `carried` has the state before every call and after the last, by input name."""

    carried: Mapping[str, list[Array]]
    #: What each call gave, by output name, and what it read, without the context.
    given: Mapping[str, list[Array]]
    read: list[Array]
    #: The share of all that was read which is the input's own: the last chunk may end in zeros.
    own: float

    def joined(self, name: str) -> Array:
        """An output of all calls: [time, ...] one behind the other, anything smaller a row for each call."""
        parts = self.given[name]
        if parts[0].ndim < 2:
            return np.stack(parts)
        whole = np.concatenate(parts)
        return whole[: ceil(len(whole) * self.own - 1e-9)]


@dataclass(frozen=True)
class Stream:
    """How inputs are cut into chunks and passed on from call to call.

    A call reads `chunk` steps behind the last `context` of the call before (zeros in the first). The last chunk is
    filled up with zeros.
    """

    signature: Signature
    chunk: int | None = None
    context: int = 0
    batch_first: bool | None = None
    initial: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise InputError(f"chunk must be at least 1, not {self.chunk}")
        if self.context < 0:
            raise InputError(f"context must be 0 or more, not {self.context}")
        for name, value in (self.initial or {}).items():
            if name not in self.signature.carried:
                carried = ", ".join(map(repr, self.signature.carried)) or "none"
                raise InputError(f"initial has {name!r}, which is no state that is carried; those are: {carried}")
            filled(self.signature.inputs[name], value, 1)

    def run(self, call: Call, values: Sequence[Array], axes: Mapping[str, int | None]) -> list[Passage]:
        """Pass the inputs through, each from its own beginning; `axes` are batch axes of outputs where known."""
        passages: dict[int, Passage] = {}
        alike: dict[Any, list[int]] = {}
        for position, value in enumerate(values):
            alike.setdefault(value.shape[1:], []).append(position)
        for positions in alike.values():
            layout = Layout.of(self.signature.signal, values[positions[0]], stepwise=True, batch_first=self.batch_first)
            chunk = self._chunk(layout)
            # The longest first, so that those which have ended are the last rows, and leave.
            positions.sort(key=lambda position: -ceil(len(values[position]) / chunk))
            width = layout.width or (len(positions) if self._batches(layout) else 1)
            for start in range(0, len(positions), width):
                group = positions[start : start + width]
                passed = self._pass(call, [values[i] for i in group], layout, chunk, axes)
                passages.update(zip(group, passed, strict=True))
        return [passages[position] for position in range(len(values))]

    def _pass(
        self, call: Call, values: list[Array], layout: Layout, chunk: int, axes: Mapping[str, int | None]
    ) -> list[Passage]:
        """A group of inputs side by side, the longest first."""
        signature, initial = self.signature, self.initial or {}
        calls = [ceil(len(value) / chunk) for value in values]
        padded = [_padded(value, self.context, n * chunk - len(value)) for value, n in zip(values, calls, strict=True)]
        ports = {name: signature.inputs[name] for name in signature.carried}
        rows = layout.width or len(values)
        state = {name: filled(port, initial.get(name), rows) for name, port in ports.items()}
        states = [{name: rows_first(array, _axis(ports[name], layout), rows) for name, array in state.items()}]
        given: list[dict[str, Array]] = []
        known = {after: _axis(ports[name], layout) for name, after in signature.carried.items()} | dict(axes)
        for number in range(calls[0]):
            going = sum(n > number for n in calls)
            rows = layout.width or going
            chunks = [own[number * chunk : (number + 1) * chunk + self.context] for own in padded[:going]]
            feeds = {name: _first(array, _axis(ports[name], layout), rows) for name, array in state.items()}
            feeds[signature.signal.name] = layout.arrange(chunks)
            outputs = call(feeds | others(signature, [chunk + self.context] * rows))
            state = {name: outputs[after] for name, after in signature.carried.items()}
            states.append({name: rows_first(array, _axis(ports[name], layout), rows) for name, array in state.items()})
            given.append(
                {
                    name: rows_first(
                        array,
                        known[name] if name in known else batch_axis(signature.outputs[name], layout, array, rows),
                        rows,
                    )
                    for name, array in outputs.items()
                }
            )
        return [
            Passage(
                {name: [one[name][row] for one in states[: n + 1]] for name in ports},
                {name: [one[name][row] for one in given[:n] if name in one] for name in given[0]},
                [padded[row][self.context :][i * chunk : (i + 1) * chunk].ravel() for i in range(n)],
                len(values[row]) / (n * chunk),
            )
            for row, n in enumerate(calls)
        ]

    def _chunk(self, layout: Layout) -> int:
        """How many new steps a call reads."""
        fixed, port = layout.steps, self.signature.signal
        if self.chunk is None and fixed is not None and fixed > self.context:
            return fixed - self.context
        if self.chunk is None and fixed is None and len(port.shape) - (layout.channel is not None) > 2:
            return 1  # frames, one by one
        if self.chunk is None:
            what = "has no fixed length" if fixed is None else f"is no longer than context={self.context}"
            raise InputError(
                f"how much a call reads is not known, as {port} {what}: give chunk=, and context= if it has one"
            )
        if fixed is not None and fixed != self.chunk + self.context:
            raise InputError(
                f"a call would read chunk={self.chunk} steps behind context={self.context}, "
                f"but {port} takes {fixed} steps"
            )
        return self.chunk

    def _batches(self, layout: Layout) -> bool:
        """Whether several inputs can go side by side: every state must have an axis for them."""
        return layout.batch is not None and all(
            _axis(self.signature.inputs[name], layout) is not None for name in self.signature.carried
        )


def _axis(port: Port, layout: Layout) -> int | None:
    """The batch axis of a state."""
    if layout.batch is None:
        return None
    if layout.width is not None:
        return port.shape.index(layout.width) if layout.width > 1 and layout.width in port.shape else None
    named = [axis for axis in port.free if port.shape[axis] == layout.batch_name]
    found = named or port.free
    return found[0] if len(found) == 1 else None


def _first(array: Array, axis: int | None, rows: int) -> Array:
    return array if axis is None else np.ascontiguousarray(array.take(range(rows), axis))


def _padded(value: Array, before: int, behind: int) -> Array:
    return np.pad(value, [(before, behind)] + [(0, 0)] * (value.ndim - 1))
