"""DeepSpeech files for TensorFlow Lite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.deepspeech.system import Array, Steps
from deepcruiser.systems.tflite.interpreter import load_interpreter


class TfliteNetwork:
    """A .tflite file, in which the steps of the LSTM are unrolled.

    Only the state after the last step is an output, but the interpreter can keep the inner tensors. The h of every
    step is an input of the concatenation before the next dense layer, and c is the input of the tanh that h is made of.
    """

    def __init__(self, path: Path) -> None:
        self._interpreter = load_interpreter(read_bytes(path), path, extra="deepspeech", keep_tensors=True)
        self._inputs = {one["name"]: one for one in self._interpreter.get_input_details()}
        self._outputs = {one["name"]: one for one in self._interpreter.get_output_details()}
        needed = [name for name in ("input_node", "previous_state_c", "previous_state_h") if name not in self._inputs]
        needed += [name for name in ("logits", "new_state_c", "new_state_h") if name not in self._outputs]
        if needed:
            there = ", ".join([*self._inputs, *self._outputs])
            raise InputError(f"{path.name} is not a DeepSpeech file: it lacks {', '.join(needed)} and has {there}")
        shape = [int(size) for size in self._inputs["input_node"]["shape"]]
        if len(shape) != 4:
            raise InputError(f"input_node of {path.name} must be [1, steps, window, features], not {shape}")
        _, self.steps, self.window, self.features = shape
        self.size = int(self._inputs["previous_state_c"]["shape"][-1])
        self.own_features = True
        self._c, self._h, self._x = self._find_states(path)
        self.inputs_name = (
            "what the LSTM reads, the output of the third dense layer" if self._x else "windows of features"
        )
        self._interpreter.invoke()  # constant outputs exist only afterwards
        self.metadata = {
            name.removeprefix("metadata_"): self._interpreter.get_tensor(one["index"]).ravel()[0]
            for name, one in self._outputs.items()
            if name.startswith("metadata_")
        }

    def start(self) -> None:
        """Start a new utterance."""

    def run(self, windows: Array, c: Array, h: Array) -> Steps:
        """Run one step for each window; fewer windows than the file takes are filled up with zeros."""
        count = len(windows)
        padded = np.zeros((1, self.steps, self.window, self.features), dtype=np.float32)
        padded[0, :count] = windows
        for name, value in (("input_node", padded), ("previous_state_c", c[None]), ("previous_state_h", h[None])):
            self._interpreter.set_tensor(self._inputs[name]["index"], value)
        self._interpreter.invoke()
        scores = self._interpreter.get_tensor(self._outputs["logits"]["index"]).reshape(self.steps, -1)
        inputs = self._rows(self._x[:count]) if self._x else windows.reshape(count, -1)
        return Steps(scores[:count].copy(), self._rows(self._c[:count]), self._rows(self._h[:count]), inputs)

    def _rows(self, tensors: list[int]) -> Array:
        return np.stack([self._interpreter.get_tensor(tensor).ravel() for tensor in tensors])

    def _find_states(self, path: Path) -> tuple[list[int], list[int], list[int]]:
        """The tensors of c, of h and of the LSTM's input at every step; the inputs may not be found."""
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
                f"the states of the {self.steps} steps inside {path.name} were not found: it consists of {kinds}, but "
                "not in the form in which DeepSpeech's export unrolls an LSTM; use its .pb or .pbmm file"
            )
        return [tensor for tensor in c if tensor is not None], h, self._inputs_of_steps(operations, h)

    @staticmethod
    def _cell(h: int, maker: dict[int, Any]) -> int | None:
        """The tensor of c, found from h = tanh(c) * gate."""
        product = maker.get(h)
        if product is None or product["op_name"] != "MUL":
            return None
        for factor in product["inputs"]:
            tanh = maker.get(int(factor))
            if tanh is not None and tanh["op_name"] == "TANH":
                return int(tanh["inputs"][0])
        return None

    def _inputs_of_steps(self, operations: list[Any], h: list[int]) -> list[int]:
        """The tensor that each step reads: it is concatenated with the h of the previous step."""
        before = [int(self._inputs["previous_state_h"]["index"]), *h[:-1]]
        inputs_by_h = {}
        for one in operations:
            inputs = [int(tensor) for tensor in one["inputs"]]
            if one["op_name"] == "CONCATENATION" and len(inputs) == 2 and inputs[1] in before:
                inputs_by_h[inputs[1]] = inputs[0]
        return [inputs_by_h[tensor] for tensor in before] if set(before) <= set(inputs_by_h) else []
