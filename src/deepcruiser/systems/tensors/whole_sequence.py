"""Networks that read a whole sequence in one call, several of them at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.layout import Layout, batch_axis, filled, others, rows_first
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import Call, Passage, Stream

Batch = Literal["equal", "lengths"]


@dataclass(frozen=True)
class Whole:
    """How inputs go through side by side: those of equal length only, or padded, where the network takes lengths."""

    signature: Signature
    batch: Batch = "equal"
    batch_first: bool | None = None
    initial: Mapping[str, Any] | None = None

    def run(self, call: Call, values: Sequence[Array], axes: Mapping[str, int | None]) -> list[Passage]:
        """Run the inputs, each in one call; `axes` are batch axes of outputs where known."""
        passages: dict[int, Passage] = {}
        alike: dict[Any, list[int]] = {}
        for position, value in enumerate(values):
            alike.setdefault(value.shape[self.batch == "lengths" :], []).append(position)
        for positions in alike.values():
            layout = Layout.of(
                self.signature.signal, values[positions[0]], stepwise=False, batch_first=self.batch_first
            )
            # The longest first, as networks need that pack their inputs.
            positions.sort(key=lambda position: -len(values[position]))
            width = layout.width or len(positions)
            for start in range(0, len(positions), width):
                group = positions[start : start + width]
                passages.update(zip(group, self._call(call, [values[i] for i in group], layout, axes), strict=True))
        return [passages[position] for position in range(len(values))]

    def _call(self, call: Call, values: list[Array], layout: Layout, axes: Mapping[str, int | None]) -> list[Passage]:
        signature, initial = self.signature, self.initial or {}
        rows, longest = layout.width or len(values), len(values[0])
        lengths = [len(value) for value in values]
        padded = [np.pad(v, [(0, longest - len(v))] + [(0, 0)] * (v.ndim - 1)) for v in values]
        feeds = {name: filled(signature.inputs[name], initial.get(name), rows) for name in signature.carried}
        feeds[signature.signal.name] = layout.arrange(padded)
        given = call(feeds | others(signature, lengths + lengths[:1] * (rows - len(values))))
        parts: dict[str, Array] = {}
        for name, array in given.items():
            if name not in axes:
                parts[name] = rows_first(array, batch_axis(signature.outputs[name], layout, array, rows), rows)
                continue
            axis = axes[name]
            if axis is not None and array.shape[axis] != rows:
                raise InputError(
                    f"{rows} inputs went in as {list(feeds[signature.signal.name].shape)}, and the recurrent layer got "
                    f"{array.shape[axis]} of them: is the network's {signature.signal} [time, batch, ...]? then give "
                    "batch_first=False (or True, if that is how it was)"
                )
            parts[name] = rows_first(array, axis, rows)
        return [
            Passage({}, {name: [part[row]] for name, part in parts.items()}, [value], len(value) / longest)
            for row, value in enumerate(values)
        ]


def fingerprint(digest: str, words: str, rate: int | None, driver: Stream | Whole) -> str:
    """A text that depends on a file, on the choice of state, and on how the network is fed."""
    signature = driver.signature
    fed = (driver.chunk, driver.context) if isinstance(driver, Stream) else ()
    given = [
        {name: np.asarray(value).tolist() for name, value in sorted(values.items())}
        for values in (signature.constants, driver.initial or {})
    ]
    parts = (digest, words, rate, signature.signal.name, sorted(signature.carried.items()), fed, given)
    return hashlib.sha256(repr(parts).encode()).hexdigest()
