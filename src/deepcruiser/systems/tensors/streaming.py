"""Networks that are called chunk by chunk, each call starting from the state that the previous call returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import group_alike, run_groups
from deepcruiser.systems.tensors.layout import InputLayout, batch_axis, extra_inputs, fill_input, rows_first
from deepcruiser.systems.tensors.signature import Array, Port, Signature

#: Runs the network once, on arrays by the names of its inputs.
Call = Callable[[dict[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How to call a network whose state goes in and comes out of every call.

    * `carry`: the inputs that are the state, and for each the output that is the state after the call, as in
      {"h": "hn"}. By default they are found by their names and shapes; {} means that there are none.
    * `initial`: the state before the first call, by the names of the inputs; zeros by default.
    * `chunk`: the number of steps that a call reads. The default is the number that the file fixes, or one frame of
      [time, size]. The last chunk is filled with zeros.
    * `context`: the number of steps of the previous call that are put before each chunk; 0 by default. The first chunk
      gets zeros.
    """

    carry: Mapping[str, str] | None = None
    initial: Mapping[str, Any] | None = None
    chunk: int | None = None
    context: int | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise InputError(f"chunk must be at least 1, not {self.chunk}")
        if self.context is not None and self.context < 0:
            raise InputError(f"context must be 0 or more, not {self.context}")


@dataclass(frozen=True, eq=False)
class CallRecord:
    """All calls made for one input."""

    #: The state before every call and after the last, by the name of the input.
    carried: Mapping[str, list[Array]]
    #: What each call returned, by the name of the output.
    outputs: Mapping[str, list[Array]]
    #: What each call read, without the context.
    chunks: list[Array]
    #: The share of the chunks that is not padding.
    own_share: float

    def joined(self, name: str) -> Array:
        """An output of all calls: [time, ...] arrays are joined, anything smaller becomes a row for each call."""
        parts = self.outputs[name]
        if parts[0].ndim < 2:
            return np.stack(parts)
        whole = np.concatenate(parts)
        return whole[: ceil(len(whole) * self.own_share - 1e-9)]


@dataclass(frozen=True)
class StreamDriver:
    """Cuts inputs into chunks and calls the network on one after the other, several inputs side by side."""

    signature: Signature
    streaming: Streaming
    batch_first: bool | None = None

    def __post_init__(self) -> None:
        for name, value in self.initial.items():
            if name not in self.signature.carried:
                carried = ", ".join(map(repr, self.signature.carried)) or "none"
                raise InputError(f"initial has {name!r}, which is not carried from call to call; carried: {carried}")
            fill_input(self.signature.inputs[name], value, 1)

    @property
    def initial(self) -> Mapping[str, Any]:
        return self.streaming.initial or {}

    def run(self, call: Call, values: Sequence[Array], axes: Mapping[str, int | None]) -> list[CallRecord]:
        """Run the inputs, each from the initial state; `axes` are the batch axes of outputs where they are known."""
        return run_groups(self._groups(values), lambda group: self._run_group(call, [values[i] for i in group], axes))

    def _groups(self, values: Sequence[Array]) -> Iterator[list[int]]:
        for positions in group_alike(value.shape[1:] for value in values):
            layout = self._layout(values[positions[0]])
            chunk = self._chunk(layout)
            # The longest first, so that inputs that have ended are the last rows and can be dropped.
            positions.sort(key=lambda position: -ceil(len(values[position]) / chunk))
            width = layout.width or (len(positions) if self._batches(layout) else 1)
            yield from (positions[start : start + width] for start in range(0, len(positions), width))

    def _run_group(self, call: Call, values: list[Array], axes: Mapping[str, int | None]) -> list[CallRecord]:
        """Run a group of inputs side by side, the longest first."""
        layout = self._layout(values[0])
        chunk = self._chunk(layout)
        signature, context = self.signature, self.streaming.context or 0
        calls = [ceil(len(value) / chunk) for value in values]
        padded = [_padded(value, context, n * chunk - len(value)) for value, n in zip(values, calls, strict=True)]
        ports = {name: signature.inputs[name] for name in signature.carried}
        rows = layout.width or len(values)
        state = {name: fill_input(port, self.initial.get(name), rows) for name, port in ports.items()}
        states = [{name: rows_first(array, _axis(ports[name], layout), rows) for name, array in state.items()}]
        outputs: list[dict[str, Array]] = []
        known = {after: _axis(ports[name], layout) for name, after in signature.carried.items()} | dict(axes)
        for number in range(calls[0]):
            going = sum(n > number for n in calls)
            rows = layout.width or going
            chunks = [own[number * chunk : (number + 1) * chunk + context] for own in padded[:going]]
            feeds = {name: _first(array, _axis(ports[name], layout), rows) for name, array in state.items()}
            feeds[signature.signal.name] = layout.arrange(chunks)
            returned = call(feeds | extra_inputs(signature, [chunk + context] * rows))
            state = {name: returned[after] for name, after in signature.carried.items()}
            states.append({name: rows_first(array, _axis(ports[name], layout), rows) for name, array in state.items()})
            outputs.append(
                {
                    name: rows_first(
                        array,
                        known[name] if name in known else batch_axis(signature.outputs[name], layout, array, rows),
                        rows,
                    )
                    for name, array in returned.items()
                }
            )
        return [
            CallRecord(
                {name: [one[name][row] for one in states[: n + 1]] for name in ports},
                {name: [one[name][row] for one in outputs[:n] if name in one] for name in outputs[0]},
                [padded[row][context:][i * chunk : (i + 1) * chunk].ravel() for i in range(n)],
                len(values[row]) / (n * chunk),
            )
            for row, n in enumerate(calls)
        ]

    def _layout(self, value: Array) -> InputLayout:
        return InputLayout.of(self.signature.signal, value, stepwise=True, batch_first=self.batch_first)

    def _chunk(self, layout: InputLayout) -> int:
        """The number of new steps that a call reads."""
        chunk, context = self.streaming.chunk, self.streaming.context or 0
        fixed, port = layout.steps, self.signature.signal
        if chunk is None and fixed is not None and fixed > context:
            return fixed - context
        if chunk is None and fixed is None and len(port.shape) - (layout.channel is not None) > 2:
            return 1  # frames, one by one
        if chunk is None:
            reason = "has no fixed length" if fixed is None else f"is not longer than context={context}"
            raise InputError(
                f"it is not known how many steps a call reads, as {port} {reason}: give "
                "streaming=Streaming(chunk=...), and its context= if the calls overlap"
            )
        if fixed is not None and fixed != chunk + context:
            raise InputError(
                f"a call would read chunk={chunk} steps after context={context}, but {port} takes {fixed} steps: "
                "correct streaming="
            )
        return chunk

    def _batches(self, layout: InputLayout) -> bool:
        """Whether several inputs can run side by side: every state must have a batch axis."""
        return layout.batch is not None and all(
            _axis(self.signature.inputs[name], layout) is not None for name in self.signature.carried
        )


def _axis(port: Port, layout: InputLayout) -> int | None:
    """The batch axis of a state."""
    if layout.batch is None:
        return None
    if layout.width is not None:
        return port.shape.index(layout.width) if layout.width > 1 and layout.width in port.shape else None
    named = [axis for axis in port.free if port.shape[axis] == layout.batch_name]
    axes = named or port.free
    return axes[0] if len(axes) == 1 else None


def _first(array: Array, axis: int | None, rows: int) -> Array:
    return array if axis is None else np.ascontiguousarray(array.take(range(rows), axis))


def _padded(value: Array, before: int, after: int) -> Array:
    return np.pad(value, [(before, after)] + [(0, 0)] * (value.ndim - 1))
