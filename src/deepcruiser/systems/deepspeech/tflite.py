"""DeepSpeech in TensorFlow Lite files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.errors import FileError, InputError
from deepcruiser.systems.deepspeech.system import Array, Steps


class LiteNetwork:
    """A .tflite file, in which the steps of the LSTM are unrolled.

    Only the state behind the last step is an output, but the others are there inside, if the interpreter is told to
    keep them: h of every step is what is put together for the next dense layer, and c is what its tanh is taken of.
    """

    def __init__(self, path: Path) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        except ImportError:
            raise InputError(
                f"DeepSpeechSystem needs the package ai-edge-litert for {path.name}: "
                "pip install 'deepcruiser[deepspeech]'"
            ) from None
        try:
            # Without delegates: what they run as one operation has no insides to look at.
            self._interpreter = Interpreter(
                model_content=path.read_bytes(),
                experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            said = (str(error).strip() or "it does not say why").splitlines()[0]
            raise FileError(f"{str(path)!r} cannot be loaded by TensorFlow Lite: {said}") from None
        self._inputs = {one["name"]: one for one in self._interpreter.get_input_details()}
        self._outputs = {one["name"]: one for one in self._interpreter.get_output_details()}
        needed = [name for name in ("input_node", "previous_state_c", "previous_state_h") if name not in self._inputs]
        needed += [name for name in ("logits", "new_state_c", "new_state_h") if name not in self._outputs]
        if needed:
            there = ", ".join([*self._inputs, *self._outputs])
            raise InputError(f"{path.name} is no file of DeepSpeech: it lacks {', '.join(needed)} and has {there}")
        shape = [int(size) for size in self._inputs["input_node"]["shape"]]
        if len(shape) != 4:
            raise InputError(f"input_node of {path.name} must be [1, steps, window, features], not {shape}")
        _, self.steps, self.window, self.features = shape
        self.size = int(self._inputs["previous_state_c"]["shape"][-1])
        self.own_features = True
        self._c, self._h, self._x = self._insides(path)
        self.inputs_name = (
            "what the LSTM reads, the output of the third dense layer" if self._x else "windows of features"
        )
        self._interpreter.invoke()  # outputs that are constants are not there before
        self.metadata = {
            name.removeprefix("metadata_"): self._interpreter.get_tensor(one["index"]).ravel()[0]
            for name, one in self._outputs.items()
            if name.startswith("metadata_")
        }

    def start(self) -> None:
        """Begin another utterance."""

    def run(self, windows: Array, c: Array, h: Array) -> Steps:
        """Go on by as many steps as there are windows; where there are fewer than the file wants, zeros follow."""
        count = len(windows)
        given = np.zeros((1, self.steps, self.window, self.features), dtype=np.float32)
        given[0, :count] = windows
        for name, value in (("input_node", given), ("previous_state_c", c[None]), ("previous_state_h", h[None])):
            self._interpreter.set_tensor(self._inputs[name]["index"], value)
        self._interpreter.invoke()
        scores = self._interpreter.get_tensor(self._outputs["logits"]["index"]).reshape(self.steps, -1)
        inputs = self._rows(self._x[:count]) if self._x else windows.reshape(count, -1)
        return Steps(scores[:count].copy(), self._rows(self._c[:count]), self._rows(self._h[:count]), inputs)

    def _rows(self, tensors: list[int]) -> Array:
        return np.stack([self._interpreter.get_tensor(tensor).ravel() for tensor in tensors])

    def _insides(self, path: Path) -> tuple[list[int], list[int], list[int]]:
        """The tensors of c, h and the LSTM's input at every step; the last may not be found."""
        operations = self._interpreter._get_ops_details()
        maker: dict[int, Any] = {int(made): one for one in operations for made in one["outputs"]}
        last = int(self._outputs["new_state_h"]["index"])
        h: list[int] = [last] if self.steps == 1 else []
        for one in operations:
            inputs = [int(tensor) for tensor in one["inputs"]]
            if one["op_name"] in ("CONCATENATION", "PACK") and len(inputs) == self.steps > 1 and inputs[-1] == last:
                h = inputs
        c = [self._cell(tensor, maker) for tensor in h]
        if not h or None in c:
            kinds = ", ".join(sorted({one["op_name"] for one in operations}))
            raise InputError(
                f"the state of each of the {self.steps} steps inside {path.name} was not found: it is made of {kinds}, "
                "but not as DeepSpeech's export unrolls an LSTM; use its .pb or .pbmm file"
            )
        return [tensor for tensor in c if tensor is not None], h, self._read(operations, h)

    @staticmethod
    def _cell(h: int, maker: dict[int, Any]) -> int | None:
        """c, given h = tanh(c) * gate."""
        product = maker.get(h)
        if product is None or product["op_name"] != "MUL":
            return None
        for factor in product["inputs"]:
            tanh = maker.get(int(factor))
            if tanh is not None and tanh["op_name"] == "TANH":
                return int(tanh["inputs"][0])
        return None

    def _read(self, operations: list[Any], h: list[int]) -> list[int]:
        """What each step reads: it is joined with the h before it."""
        before = [int(self._inputs["previous_state_h"]["index"]), *h[:-1]]
        found = {}
        for one in operations:
            inputs = [int(tensor) for tensor in one["inputs"]]
            if one["op_name"] == "CONCATENATION" and len(inputs) == 2 and inputs[1] in before:
                found[inputs[1]] = inputs[0]
        return [found[tensor] for tensor in before] if set(before) <= set(found) else []
