"""Networks that read a whole sequence in one call, several sequences side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import group_alike, run_groups
from deepcruiser.systems.tensors.layout import InputLayout, batch_axis, extra_inputs, fill_input, rows_first
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import Call, CallRecord

Batch = Literal["equal", "lengths"]


@dataclass(frozen=True)
class SequenceDriver:
    """Calls the network once for a group of inputs: of equal length, or padded if the network takes lengths."""

    signature: Signature
    batch: Batch = "equal"
    batch_first: bool | None = None
    initial: Mapping[str, Any] = field(default_factory=dict)

    def run(self, call: Call, values: Sequence[Array], axes: Mapping[str, int | None]) -> list[CallRecord]:
        """Run the inputs, each in one call; `axes` are the batch axes of outputs where they are known."""
        return run_groups(self._groups(values), lambda group: self._run_group(call, [values[i] for i in group], axes))

    def _groups(self, values: Sequence[Array]) -> Iterator[list[int]]:
        padded = self.batch == "lengths"
        for positions in group_alike(value.shape[1:] if padded else value.shape for value in values):
            # The longest first, for networks that pack their inputs.
            positions.sort(key=lambda position: -len(values[position]))
            width = self._layout(values[positions[0]]).width or len(positions)
            yield from (positions[start : start + width] for start in range(0, len(positions), width))

    def _layout(self, value: Array) -> InputLayout:
        return InputLayout.of(self.signature.signal, value, stepwise=False, batch_first=self.batch_first)

    def _run_group(self, call: Call, values: list[Array], axes: Mapping[str, int | None]) -> list[CallRecord]:
        signature, layout = self.signature, self._layout(values[0])
        rows, longest = layout.width or len(values), len(values[0])
        lengths = [len(value) for value in values]
        padded = [np.pad(v, [(0, longest - len(v))] + [(0, 0)] * (v.ndim - 1)) for v in values]
        feeds = {name: fill_input(signature.inputs[name], self.initial.get(name), rows) for name in signature.carried}
        feeds[signature.signal.name] = layout.arrange(padded)
        returned = call(feeds | extra_inputs(signature, lengths + lengths[:1] * (rows - len(values))))
        parts: dict[str, Array] = {}
        for name, array in returned.items():
            if name not in axes:
                parts[name] = rows_first(array, batch_axis(signature.outputs[name], layout, array, rows), rows)
                continue
            axis = axes[name]
            if axis is not None and array.shape[axis] != rows:
                raise InputError(
                    f"{rows} inputs of {signature.signal} went in as {list(feeds[signature.signal.name].shape)}, but "
                    f"the recurrent layer received {array.shape[axis]} sequences: if the network takes "
                    "[time, batch, ...], give batch_first=False (or True, if it was False)"
                )
            parts[name] = rows_first(array, axis, rows)
        return [
            CallRecord({}, {name: [part[row]] for name, part in parts.items()}, [value], len(value) / longest)
            for row, value in enumerate(values)
        ]
