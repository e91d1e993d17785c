"""Recurrent networks in ONNX files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import Options
from deepcruiser.systems.onnx.expose import Exposer
from deepcruiser.systems.onnx.graph import NodeChoice, NodeStack, named_stack, node_stacks, operators
from deepcruiser.systems.onnx.recording import LENGTHS, NodeRecorder
from deepcruiser.systems.onnx.session import Session, ports, read_model
from deepcruiser.systems.state_choice import Direction, Layer, Part
from deepcruiser.systems.tensors.carried_state import CarriedState, is_carried
from deepcruiser.systems.tensors.presets import find_preset
from deepcruiser.systems.tensors.signature import Array, Signature
from deepcruiser.systems.tensors.streaming import CallRecord, StreamDriver, Streaming
from deepcruiser.systems.tensors.system import TensorSystem
from deepcruiser.systems.tensors.whole_sequence import Batch, SequenceDriver
from deepcruiser.trace import Trace


class OnnxSystem(TensorSystem):
    """An ONNX network under test, run by ONNX Runtime: its answer to every input, and its states.

        system = OnnxSystem("detector.onnx", transcribe=spans)

    **Streaming.** If inputs of the network come back as outputs, it is called chunk by chunk, and each call starts from
    the state that the previous call returned. `streaming` has the pairs, the initial state and the size of a chunk
    where the file does not say them (see `Streaming`). The state of a trace is everything that is carried, side by
    side; `state` chooses a part: "h", ["h", "c"], or "state[0]" and "state[0, 1]" for a part along the first axes. The
    inputs of the trace are what the recurrent node receives if each call is one step of it, and the chunks otherwise.

    **Whole sequences.** For any other network, the state is that of an LSTM, GRU or RNN node, anywhere in the graph.
    `state` is the name of the node, or of the module it was exported from; the default is the last one. Nodes that
    read each other's output are the layers of one stack. `part`, `layer`, `direction` and the trace are those of
    `TorchSystem`. `batch` is "lengths" (padded inputs with their lengths) or "equal" (inputs of equal length only). The
    default is "lengths" if the network takes lengths and all its recurrent nodes use them. A streaming network is
    recorded in this way too if `state` names a node.

    **Input and output.** `features` makes an array [time, ...] from an input; without it, `Audio` becomes its samples.
    Audio is first resampled to `rate`. `signal` names the input for it, if there are several; `constants` are the
    values of others, such as a sample rate. `Run.output` is the input's part of the network's output, or a dictionary
    if there are several outputs; with `transcribe` it is transcribe(part). `doubt` is a function from the part to a
    number; without it, texts made from scores get the doubt of the scores (see `deepcruiser.systems.adapter`).

    The file is never changed, weights in files beside it are found, and custom operators are not loaded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: str | Sequence[str] | None = None,
        *,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        streaming: Streaming | None = None,
        signal: str | None = None,
        constants: Mapping[str, Any] | None = None,
        batch: Batch | None = None,
        batch_first: bool | None = None,
        device: str = "cpu",
        **options: Unpack[Options],
    ) -> None:
        if batch not in (None, "equal", "lengths"):
            raise InputError(f"batch must be 'equal' or 'lengths', not {batch!r}")
        model, digest = read_model(path)
        inputs, outputs = ports(model)
        streaming = streaming or Streaming()
        if options.get("features") is None and streaming.chunk is None and streaming.context is None:
            preset = find_preset(inputs, outputs, options.get("rate"))
            if preset is not None:
                options["rate"], options["transcribe"] = preset.rate, options.get("transcribe") or preset.transcribe
                streaming = replace(streaming, chunk=preset.chunk, context=preset.context)
                constants = {**preset.constants, **(constants or {})}
        carry, rate = streaming.carry, options.get("rate")
        signature = Signature.of(inputs, outputs, signal=signal, carry=carry, constants=constants or {}, rate=rate)
        stacks = node_stacks(model.graph)
        forward_only = all(stack.ways == "forward" for stack in stacks)
        streams = bool(signature.carried) and (streaming.carry is not None or forward_only)
        if not stacks and not streams:
            raise InputError(
                f"{str(path)!r} has no recurrent node (LSTM, GRU or RNN), and no state that goes in and comes out; it "
                f"consists of {operators(model.graph)}; takes {', '.join(map(str, inputs))}; "
                f"gives {', '.join(map(str, outputs))}"
            )
        if batch == "lengths" and (signature.lengths is None or streams):
            raise InputError(
                "batch='lengths' is only for networks that take whole sequences and their lengths; leave it out"
            )
        driver: StreamDriver | SequenceDriver
        if streams:
            driver = StreamDriver(signature, streaming, batch_first)
        else:
            batch = batch or _default_batch(signature, stacks)
            driver = SequenceDriver(signature, batch, batch_first, streaming.initial or {})
        self._carried: CarriedState | None = None
        if streams and (is_carried(signature, state) or not stacks):
            self._carried, chosen = CarriedState.of(signature, state), stacks
            if (part, layer, direction) != ("h", -1, None):
                raise InputError(
                    "part, layer and direction are for recurrent nodes; for a part of a carried state give "
                    "state='name[0]'"
                )
        elif state is not None:
            carried = [signature.inputs[name] for name in signature.carried] if streams else []
            chosen = [named_stack(stacks, state if isinstance(state, str) else ", ".join(state), carried)]
        elif any(outer.op_type == "If" for outer, *_ in stacks[-1].layers[0].inside):
            chosen = stacks  # the branch decides which one runs
        else:
            chosen = stacks[-1:]
        choices = [NodeChoice.of(stack, part=part, layer=layer, direction=direction) for stack in chosen]
        exposer = Exposer(model)
        inputs_only = self._carried is not None
        self._recorders = [NodeRecorder.of(choice, exposer, inputs_only=inputs_only) for choice in choices]
        self._axes = {name: axis for recorder in self._recorders for name, axis in recorder.axes.items()}
        #: "cpu", "cuda" or, for the second GPU, "cuda:1".
        self.device = device
        self._session = Session(model, path, device=device)
        words = choices[-1].words if self._carried is None else self._carried.words
        super().__init__(path, digest, driver, words, **options)

    def _call(self, feeds: dict[str, Array]) -> Mapping[str, Array]:
        names = [*self._signature.answers, *self._signature.carried.values(), *self._axes]
        returned = self._session.call(feeds, list(dict.fromkeys(names)))
        return {name: array for name, array in returned.items() if array.size or name not in self._axes}

    def _trace(self, record: CallRecord) -> Trace:
        executed = [recorder for recorder in self._recorders if recorder.executed(record.outputs)]
        if self._carried is not None:
            inputs = np.stack(record.chunks)
            if executed and not executed[-1].loops:
                x = np.concatenate(record.outputs[executed[-1].x])
                inputs = x if len(x) == len(inputs) else inputs
            return Trace(self._carried.states(record), inputs)
        if not executed:
            raise InputError(
                f"{self._recorders[-1].choice.stack.name!r} is in a branch of {self.label} that was not taken, so it "
                "has no states; give state= with the name of another recurrent node"
            )
        own_share = record.own_share if isinstance(self._driver, StreamDriver) else 1.0
        return Trace(*executed[-1].read(record.outputs, own_share))

    def _output(self, record: CallRecord, name: str, steps: int) -> Array:
        if isinstance(self._driver, StreamDriver):
            return record.joined(name)
        (part,), length = record.outputs[name], len(record.chunks[0])
        if record.own_share == 1.0 or part.ndim == 0:
            return part.copy()
        padded_length = round(length / record.own_share)
        padded_steps = len(record.outputs[self._recorders[-1].x][0])
        if len(part) == padded_length:
            return part[:length].copy()
        return part[:steps].copy() if len(part) == padded_steps else part.copy()


def _default_batch(signature: Signature, stacks: Sequence[NodeStack]) -> Batch:
    """Whether padding is safe: the network takes lengths, and every recurrent node stops at them."""
    uses = all(layer.input(LENGTHS) for stack in stacks for layer in stack.layers)
    return "lengths" if signature.lengths is not None and uses else "equal"
