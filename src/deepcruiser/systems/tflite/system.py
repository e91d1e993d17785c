"""Streaming networks in TensorFlow Lite files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.errors import FileError, InputError
from deepcruiser.systems.tensors.carried_state import CarriedChoice
from deepcruiser.systems.tensors.layout import check_functions, made, to_array
from deepcruiser.systems.tensors.signature import Array, Port, Signature
from deepcruiser.systems.tensors.streaming import Passage, Stream
from deepcruiser.systems.tensors.whole_sequence import fingerprint
from deepcruiser.trace import Run, Trace


class TfliteSystem:
    """A TensorFlow Lite network under test, whose state goes in and comes out of every call.

        system = TfliteSystem("keywords.tflite", features=log_mel, transcribe=best)

    It is called chunk by chunk with the state that the call before gave. `carry`, `state`, `initial`, `constants`,
    `signal`, `chunk` and `context` are those of a streaming `OnnxSystem`, and so are `features`, `rate` and
    `transcribe`. Inputs and outputs have the names of the file's signature, which `signature` chooses if there are
    several, or else those of its tensors. The trace's inputs are what each call reads. Numbers that the file keeps in
    8 bits are turned to and from float32. No custom operators are loaded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: str | Sequence[str] | None = None,
        *,
        signature: str | None = None,
        signal: str | None = None,
        carry: Mapping[str, str] | None = None,
        initial: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
        chunk: int | None = None,
        context: int = 0,
        features: Callable[[Any], Any] | None = None,
        rate: int | None = None,
        transcribe: Callable[[Any], Any] | None = None,
        threads: int | None = None,
    ) -> None:
        check_functions(features=features, transcribe=transcribe)
        content = _read(path)
        self._runner = _Runner(content, str(path), signature, threads)
        inputs, outputs = self._runner.inputs, self._runner.outputs
        found = Signature.of(inputs, outputs, signal=signal, carry=carry, constants=constants or {}, rate=rate)
        if not found.carried:
            raise InputError(
                f"no state goes in and comes out of {str(path)!r}, which takes {', '.join(map(str, inputs))} and gives "
                f"{', '.join(map(str, outputs))}; if some of these are its state, say it with carry={{input: output}}"
            )
        self._stream = Stream(found, chunk, context, None, initial)
        self._carried = CarriedChoice.of(found, state)
        self._path, self._digest = str(path), hashlib.sha256(content).hexdigest()
        self._features, self._rate, self._transcribe = features, rate, transcribe

    def __repr__(self) -> str:
        return f"TfliteSystem({self._path!r}, {self.state_name})"

    @property
    def state_name(self) -> str:
        """Which vector is the state, in words."""
        return self._carried.words

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the file, on the choice of state, and on how the network is fed."""
        return fingerprint(self._digest, self.state_name, self._rate, self._stream)

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        made_of = (made(value, rate=self._rate, features=self._features) for value in batch)
        values = [to_array(value, position) for position, value in enumerate(made_of)]
        return [self._made(passage) for passage in self._stream.run(self._runner.call, values, {})]

    def _made(self, passage: Passage) -> Run:
        outputs = {name: passage.joined(name) for name in self._stream.signature.answers}
        output = next(iter(outputs.values())) if len(outputs) == 1 else outputs
        trace = Trace(self._carried.states(passage), np.stack(passage.read))
        return Run(output if self._transcribe is None else self._transcribe(output), trace)


class _Runner:
    """A file in the interpreter; its tensors under the names of a signature, or under their own."""

    def __init__(self, content: bytes, path: str, signature: str | None, threads: int | None) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            raise InputError(
                "TfliteSystem needs the package ai-edge-litert: pip install 'deepcruiser[tflite]'"
            ) from None
        self._path = path
        try:
            self._interpreter = Interpreter(model_content=content, num_threads=threads)
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:  # an operator that it lacks, another version, damage
            said = str(error).strip().splitlines()[0] if str(error).strip() else "it does not say why"
            raise FileError(
                f"{path!r} cannot be loaded by TensorFlow Lite: {said} (custom operators are not loaded)"
            ) from None
        names = list(self._interpreter.get_signature_list())
        if signature is not None and signature not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise InputError(f"no signature {signature!r} in {path!r}; it has: {known}")
        if len(names) > 1 and signature is None and "serving_default" not in names:
            raise InputError(f"{path!r} has several signatures, {', '.join(map(repr, names))}: choose with signature=")
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

    def call(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """What the network gives by name; numbers in 8 bits come as float32."""
        feeds = {name: _packed(array, self._takes[name]) for name, array in feeds.items()}
        try:
            given = self._signature(**feeds) if self._signature is not None else self._call(feeds)
        except (ValueError, RuntimeError) as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
            raise InputError(f"{self._path!r} cannot be run on {shapes}: {str(error).splitlines()[0]}") from None
        return {name: _unpacked(array, self._gives[name]) for name, array in given.items()}

    def _call(self, feeds: dict[str, Array]) -> dict[str, Array]:
        now = {one["name"]: tuple(one["shape"]) for one in self._interpreter.get_input_details()}
        if any(now[name] != array.shape for name, array in feeds.items()):
            for name, array in feeds.items():
                self._interpreter.resize_tensor_input(self._takes[name]["index"], array.shape)
            self._interpreter.allocate_tensors()
        for name, array in feeds.items():
            self._interpreter.set_tensor(self._takes[name]["index"], array)
        self._interpreter.invoke()
        return {name: self._interpreter.get_tensor(one["index"]) for name, one in self._gives.items()}


def _read(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    content = file.read_bytes()
    if content[4:8] != b"TFL3":  # the interpreter would read on, and crash
        raise FileError(f"{str(path)!r} is no TensorFlow Lite file, or of a version that nobody writes any more")
    return content


def _port(name: str, details: Mapping[str, Any]) -> Port:
    """One input goes in at a time, so a free first axis is 1."""
    axes = [None if axis < 0 else int(axis) for axis in details.get("shape_signature", details["shape"])]
    if axes and axes[0] is None:
        axes[0] = 1
    dtype = np.dtype(np.float32) if _scale(details) is not None else np.dtype(details["dtype"])
    return Port(name, dtype, tuple(axes))


def _scale(details: Mapping[str, Any]) -> tuple[float, int] | None:
    """How the whole numbers of a tensor stand for others, if they do."""
    scale, zero = details.get("quantization", (0.0, 0))
    return (float(scale), int(zero)) if scale and np.dtype(details["dtype"]).kind in "iu" else None


def _packed(array: Array, details: Mapping[str, Any]) -> Array:
    scale = _scale(details)
    if scale is None:
        return array
    limits = np.iinfo(details["dtype"])
    return np.clip(np.rint(array / scale[0] + scale[1]), limits.min, limits.max).astype(details["dtype"])


def _unpacked(array: Array, details: Mapping[str, Any]) -> Array:
    scale = _scale(details)
    return array if scale is None else ((array.astype(np.float32) - scale[1]) * scale[0]).astype(np.float32)
