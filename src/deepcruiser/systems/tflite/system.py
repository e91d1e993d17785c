"""Streaming networks in TensorFlow Lite files."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.tensors.carried_state import CarriedState
from deepcruiser.systems.tensors.signature import Array, Port, Signature
from deepcruiser.systems.tensors.streaming import CallRecord, StreamDriver, Streaming
from deepcruiser.systems.tensors.system import TensorSystem
from deepcruiser.systems.tensors.whole_sequence import SequenceDriver
from deepcruiser.systems.tflite.interpreter import load_interpreter
from deepcruiser.trace import Trace


class TfliteSystem(TensorSystem):
    """A TensorFlow Lite network under test, whose state goes in and comes out of every call.

        system = TfliteSystem("keywords.tflite", features=log_mel, transcribe=best)

    It is called chunk by chunk, and each call starts from the state that the previous call returned. `state`,
    `streaming`, `signal`, `constants`, `features`, `rate`, `transcribe` and `doubt` are those of a streaming
    `OnnxSystem`. Inputs and outputs have the names of the file's signature (`signature` chooses one if there are
    several), or else those of its tensors. The inputs of the trace are the chunks. Numbers that the file stores in 8
    bits are converted to and from float32. Custom operators are not loaded.

    A file whose recurrent operators keep their state to themselves, such as TensorFlow Lite's fused LSTM, reads whole
    sequences and runs without states, with a warning. So does any other file with `Streaming(carry={})`, such as an
    unrolled network.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: str | Sequence[str] | None = None,
        *,
        signature: str | None = None,
        streaming: Streaming | None = None,
        signal: str | None = None,
        constants: Mapping[str, Any] | None = None,
        features: Callable[[Any], Any] | None = None,
        rate: int | None = None,
        transcribe: Callable[[Any], Any] | None = None,
        doubt: Callable[[Any], float | None] | None = None,
    ) -> None:
        content = _read_file(path)
        self._interpreter = _Interpreter(content, str(path), signature)
        streaming = streaming or Streaming()
        inputs, outputs = self._interpreter.inputs, self._interpreter.outputs
        roles = Signature.of(
            inputs, outputs, signal=signal, carry=streaming.carry, constants=constants or {}, rate=rate
        )
        hidden = self._interpreter.recurrent if not roles.carried else []
        if not roles.carried and not hidden and streaming.carry is None:
            raise InputError(
                f"{str(path)!r} has no state that goes in and comes out: it takes {', '.join(map(str, inputs))} and "
                f"gives {', '.join(map(str, outputs))}; if some of these are its state, give "
                "streaming=Streaming(carry={input: output}), or carry={} to run it without states"
            )
        self._carried = CarriedState.of(roles, state) if roles.carried else None
        if self._carried is None:
            reason = f", as {' and '.join(hidden)} keeps them to itself" if hidden else ""
            warnings.warn(
                f"{str(path)!r} runs without states{reason}: to see them, convert one step of the network, with its "
                "state as an input and an output",
                UserWarning,
                stacklevel=2,
            )
        driver = SequenceDriver(roles) if self._carried is None else StreamDriver(roles, streaming)
        digest = hashlib.sha256(content).hexdigest()
        options: dict[str, Any] = {"rate": rate, "features": features, "transcribe": transcribe, "doubt": doubt}
        super().__init__(path, digest, driver, "no states" if self._carried is None else self._carried.words, **options)

    def _call(self, feeds: dict[str, Array]) -> Mapping[str, Array]:
        if self._carried is None:
            self._interpreter.reset()
        return self._interpreter.call(feeds)

    def _output(self, record: CallRecord, name: str, steps: int) -> Array:
        return record.outputs[name][0].copy() if self._carried is None else record.joined(name)

    def _trace(self, record: CallRecord) -> Trace | None:
        return None if self._carried is None else Trace(self._carried.states(record), np.stack(record.chunks))


class _Interpreter:
    """A file in TensorFlow Lite's interpreter, its tensors by the names of a signature, or by their own."""

    def __init__(self, content: bytes, path: str, signature: str | None) -> None:
        self._path = path
        self._interpreter = load_interpreter(content, path, extra="tflite")
        names = list(self._interpreter.get_signature_list())
        if signature is not None and signature not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise InputError(f"no signature {signature!r} in {path!r}; its signatures are: {listed}")
        if len(names) > 1 and signature is None and "serving_default" not in names:
            raise InputError(
                f"{path!r} has several signatures, {', '.join(map(repr, names))}: choose one with signature="
            )
        chosen = signature or ("serving_default" if "serving_default" in names else next(iter(names), None))
        self._signature = None if chosen is None else self._interpreter.get_signature_runner(chosen)
        if self._signature is not None:
            self._takes = self._signature.get_input_details()
            self._gives = self._signature.get_output_details()
        else:
            self._takes = {one["name"]: one for one in self._interpreter.get_input_details()}
            self._gives = {one["name"]: one for one in self._interpreter.get_output_details()}
        self.inputs = [_port(name, one) for name, one in self._takes.items()]
        self.outputs = [_port(name, one) for name, one in self._gives.items()]

    @property
    def recurrent(self) -> list[str]:
        """The operators that keep a state from step to step and do not show it."""
        names = {str(one["op_name"]) for one in self._interpreter._get_ops_details()}
        return sorted(name for name in names if re.search(r"LSTM|RNN|SVDF|WHILE|VARIABLE", name))

    def reset(self) -> None:
        """Let the operators start from their initial states again."""
        self._interpreter.reset_all_variables()

    def call(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """The network's outputs by name; 8-bit numbers come as float32."""
        feeds = {name: _quantise(array, self._takes[name]) for name, array in feeds.items()}
        try:
            outputs = self._signature(**feeds) if self._signature is not None else self._call(feeds)
        except (ValueError, RuntimeError) as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
            raise InputError(f"{self._path!r} cannot be run on {shapes}: {str(error).splitlines()[0]}") from None
        return {name: _dequantise(array, self._gives[name]) for name, array in outputs.items()}

    def _call(self, feeds: dict[str, Array]) -> dict[str, Array]:
        shapes = {one["name"]: tuple(one["shape"]) for one in self._interpreter.get_input_details()}
        if any(shapes[name] != array.shape for name, array in feeds.items()):
            for name, array in feeds.items():
                self._interpreter.resize_tensor_input(self._takes[name]["index"], array.shape)
            self._interpreter.allocate_tensors()
        for name, array in feeds.items():
            self._interpreter.set_tensor(self._takes[name]["index"], array)
        self._interpreter.invoke()
        return {name: self._interpreter.get_tensor(one["index"]) for name, one in self._gives.items()}


def _read_file(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    content = read_bytes(file)
    if content[4:8] != b"TFL3":  # the interpreter would crash on it
        raise FileError(f"{str(path)!r} is not a TensorFlow Lite file, or its version is too old")
    return content


def _port(name: str, details: Mapping[str, Any]) -> Port:
    """The port of a tensor. Inputs run one at a time, so a free first axis has the length 1."""
    axes = [None if axis < 0 else int(axis) for axis in details.get("shape_signature", details["shape"])]
    if axes and axes[0] is None:
        axes[0] = 1
    dtype = np.dtype(np.float32) if _scale(details) is not None else np.dtype(details["dtype"])
    return Port(name, dtype, tuple(axes))


def _scale(details: Mapping[str, Any]) -> tuple[float, int] | None:
    """The scale and the zero point of a quantised tensor; None if it is not quantised."""
    scale, zero = details.get("quantization", (0.0, 0))
    return (float(scale), int(zero)) if scale and np.dtype(details["dtype"]).kind in "iu" else None


def _quantise(array: Array, details: Mapping[str, Any]) -> Array:
    scale = _scale(details)
    if scale is None:
        return array
    limits = np.iinfo(details["dtype"])
    return np.clip(np.rint(array / scale[0] + scale[1]), limits.min, limits.max).astype(details["dtype"])


def _dequantise(array: Array, details: Mapping[str, Any]) -> Array:
    scale = _scale(details)
    return array if scale is None else ((array.astype(np.float32) - scale[1]) * scale[0]).astype(np.float32)
