"""Recurrent networks in ONNX files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.onnx.expose import Exposer
from deepcruiser.systems.onnx.graph import Core, CoreChoice, cores, named_core, operators
from deepcruiser.systems.onnx.recording import LENGTHS, Recorder
from deepcruiser.systems.onnx.session import Device, Session, ports, read_model
from deepcruiser.systems.tensors.carried_state import CarriedChoice, is_carried
from deepcruiser.systems.tensors.layout import check_functions, made, to_array
from deepcruiser.systems.tensors.presets import known
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import Passage, Stream
from deepcruiser.systems.tensors.whole_sequence import Batch, Whole, fingerprint
from deepcruiser.systems.torch.state_choice import Direction, Layer, Part
from deepcruiser.trace import Run, Trace


class OnnxSystem:
    """An ONNX network under test, run by ONNX Runtime: its answer to every input, and the way of its state.

        system = OnnxSystem("detector.onnx", transcribe=spans)

    **Streaming.** Where inputs of the network come back as outputs, it is called chunk by chunk with the state that the
    call before gave, from zeros or `initial` on. The pairs are found by name and shape, or given: `carry={"h": "hn"}`;
    `carry={}` says that there are none. A call reads `chunk` steps (as many as the file fixes, or one frame of
    [time, size]) behind the last `context` of the call before; the last chunk is filled up with zeros. The state of a
    trace is all that is carried, side by side; `state` chooses: "h", ["h", "c"], or "state[0]" for a part along the
    first axis. The trace's inputs are what the recurrent node inside receives where a call is one step of it, else the
    chunks.

    **Whole sequences.** Of any other network the state is that of an LSTM, GRU or RNN node inside, wherever in the
    graph it is. `state` is its name, or that of the module it was exported from; without it the last is taken. Nodes
    that read each other are a stack of layers. `part`, `layer` and `direction` are those of `TorchSystem`, and so is
    the trace. `batch` is "lengths" (padded inputs with their lengths) or "equal" (inputs of equal length only); unless
    told it is the first if the network takes lengths and all its recurrent nodes use them. A streaming network is
    recorded in this way too if `state` names a node.

    **In and out.** `features` makes an array [time, ...] of an input; without it `Audio` becomes its samples. Audio is
    first resampled to `rate`. `signal` is the input for it, if there are several; `constants` are values for others,
    such as a sample rate. `Run.output` is the input's part of the network's output, or a dictionary of several by name;
    with `transcribe` it is transcribe(part).

    The file is never changed, weights in files beside it are found, and no custom operators are loaded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: str | Sequence[str] | None = None,
        *,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        signal: str | None = None,
        carry: Mapping[str, str] | None = None,
        initial: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
        chunk: int | None = None,
        context: int | None = None,
        features: Callable[[Any], Any] | None = None,
        rate: int | None = None,
        batch: Batch | None = None,
        batch_first: bool | None = None,
        transcribe: Callable[[Any], Any] | None = None,
        device: Device = "cpu",
        threads: int | None = None,
    ) -> None:
        check_functions(features=features, transcribe=transcribe)
        if batch not in (None, "equal", "lengths"):
            raise InputError(f"batch must be 'equal' or 'lengths', not {batch!r}")
        model, digest = read_model(path)
        inputs, outputs = ports(model)
        sure = known(inputs, outputs, rate) if features is None and chunk is None and context is None else None
        if sure is not None:
            rate, chunk, context, transcribe = sure.rate, sure.chunk, sure.context, transcribe or sure.transcribe
            constants = {**sure.constants, **(constants or {})}
        signature = Signature.of(inputs, outputs, signal=signal, carry=carry, constants=constants or {}, rate=rate)
        found = cores(model.graph)
        stream = bool(signature.carried) and (carry is not None or all(core.ways == "forward" for core in found))
        if not found and not stream:
            raise InputError(
                f"no recurrent node (LSTM, GRU or RNN) in {str(path)!r}, and no state that goes in and comes out; it "
                f"has {operators(model.graph)}; takes {', '.join(map(str, inputs))}; "
                f"gives {', '.join(map(str, outputs))}"
            )
        if batch == "lengths" and (signature.lengths is None or stream):
            raise InputError("batch='lengths' needs an input for the lengths, and whole sequences: leave it out here")
        self._driver = (
            Stream(signature, chunk, context or 0, batch_first, initial)
            if stream
            else Whole(signature, batch or _batch(signature, found), batch_first, initial)
        )
        chosen = found if state is None else []
        self._carried: CarriedChoice | None = None
        if stream and (is_carried(signature, state) or not found):
            self._carried, chosen = CarriedChoice.of(signature, state), found
            if (part, layer, direction) != ("h", -1, None):
                raise InputError("part, layer and direction are for nodes; of what is carried take state='name[0]'")
            part, layer, direction = "h", -1, None
        elif state is None:
            # In a branch, it may be another one that runs.
            chosen = found if any(outer.op_type == "If" for outer, *_ in found[-1].layers[0].inside) else found[-1:]
        else:
            chosen = [named_core(found, state if isinstance(state, str) else ", ".join(state))]
        choices = [CoreChoice.of(core, part=part, layer=layer, direction=direction) for core in chosen]
        exposer = Exposer(model)
        self._recorders = [Recorder.of(choice, exposer, x_only=self._carried is not None) for choice in choices]
        self._axes = {name: axis for recorder in self._recorders for name, axis in recorder.axes.items()}
        self._session = Session(model, path, device=device, threads=threads)
        self._path, self._signature, self._digest = str(path), signature, digest
        self._features, self._rate, self._transcribe = features, rate, transcribe

    def __repr__(self) -> str:
        return f"OnnxSystem({self._path!r}, {self.state_name})"

    @property
    def state_name(self) -> str:
        """Which vector is the state, in words."""
        return self._carried.words if self._carried is not None else self._recorders[-1].choice.words

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the file, on the choice of state, and on how the network is fed."""
        return fingerprint(self._digest, self.state_name, self._rate, self._driver)

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        if len(batch) == 0:
            return []
        values = [
            to_array(made(value, rate=self._rate, features=self._features), position)
            for position, value in enumerate(batch)
        ]
        return [self._made(passage) for passage in self._driver.run(self._call, values, self._axes)]

    def _call(self, feeds: dict[str, Array]) -> dict[str, Array]:
        names = [*self._signature.answers, *self._signature.carried.values(), *self._axes]
        given = self._session.call(feeds, list(dict.fromkeys(names)))
        return {name: array for name, array in given.items() if array.size or name not in self._axes}

    def _made(self, passage: Passage) -> Run:
        ran = [recorder for recorder in self._recorders if recorder.ran(passage.given)]
        if self._carried is not None:
            read = np.stack(passage.read)
            x = np.concatenate(passage.given[ran[-1].x]) if ran and not ran[-1].loops else read
            trace = Trace(self._carried.states(passage), x if len(x) == len(read) else read)
        elif ran:
            trace = Trace(*ran[-1].read(passage.given, passage.own if isinstance(self._driver, Stream) else 1.0))
        else:
            raise InputError(
                f"{self._recorders[-1].choice.core.name!r} is in a branch of {self._path!r} that was not taken, so it "
                "has no states; name another core with state="
            )
        outputs = {name: self._output(passage, name, len(trace)) for name in self._signature.answers}
        output = next(iter(outputs.values())) if len(outputs) == 1 else outputs
        return Run(output if self._transcribe is None else self._transcribe(output), trace)

    def _output(self, passage: Passage, name: str, steps: int) -> Array:
        """One output for one input, without its padding."""
        if isinstance(self._driver, Stream):
            return passage.joined(name)
        (part,), own = passage.given[name], len(passage.read[0])
        if passage.own == 1.0 or part.ndim == 0:
            return part.copy()
        longest = round(own / passage.own)
        return part[
            : own if len(part) == longest else steps if len(part) == self._padded_steps(passage) else None
        ].copy()

    def _padded_steps(self, passage: Passage) -> int:
        return len(passage.given[self._recorders[-1].x][0])


def _batch(signature: Signature, found: Sequence[Core]) -> Batch:
    """Whether padding is safe: the network takes lengths, and every recurrent node stops at them."""
    uses = all(layer.input(LENGTHS) for core in found for layer in core.layers)
    return "lengths" if signature.lengths is not None and uses else "equal"
