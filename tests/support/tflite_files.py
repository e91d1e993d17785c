"""TensorFlow Lite files, written operator by operator: a converter would need all of TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

FUSED = "UNIDIRECTIONAL_SEQUENCE_LSTM"


class Writer:
    """Collects the tensors and operators of one subgraph."""

    def __init__(self) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.schema = schema
        self.model, self.graph = schema.ModelT(), schema.SubGraphT()
        self.model.version, self.model.buffers, self.model.operatorCodes = 3, [schema.BufferT()], []
        self.model.signatureDefs = []
        self.graph.tensors, self.graph.operators = [], []

    def tensor(self, name: str, shape: tuple[int, ...], value: Any = None) -> int:
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape, tensor.type = name, list(shape), self.schema.TensorType.FLOAT32
        if -1 in shape:
            tensor.shape, tensor.shapeSignature = [abs(axis) for axis in shape], list(shape)
        tensor.buffer = 0
        if value is not None:
            buffer = self.schema.BufferT()
            array = np.ascontiguousarray(value)
            tensor.type = self.schema.TensorType.INT32 if array.dtype == np.int32 else tensor.type
            buffer.data = np.frombuffer(array.tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, value: Any) -> int:
        array = np.asarray(value)
        return self.tensor(f"constant_{len(self.graph.tensors)}", array.shape, array)

    def apply(
        self, kind: str, inputs: list[int], shapes: list[tuple[int, ...]], names: list[str] | None = None
    ) -> list[int]:
        """Add an operator; the tensors that it gives."""
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        if kind == "CUSTOM":
            code.customCode = "Strange"
        self.model.operatorCodes.append(code)
        operator = self.schema.OperatorT()
        operator.opcodeIndex, operator.inputs = len(self.model.operatorCodes) - 1, inputs
        named = {"FULLY_CONNECTED": "FullyConnected", "ADD": "Add", "MUL": "Mul", "SPLIT": "Split"}
        options = {**named, FUSED: "UnidirectionalSequenceLSTM"}.get(kind)
        if options:
            operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, f"{options}Options")
            operator.builtinOptions = getattr(self.schema, f"{options}OptionsT")()
            if kind == FUSED:
                operator.builtinOptions.fusedActivationFunction = self.schema.ActivationFunctionType.TANH
            if kind == "SPLIT":
                operator.builtinOptions.numSplits = len(shapes)
        made = names or [f"{kind}_{len(self.graph.tensors)}_{number}" for number in range(len(shapes))]
        operator.outputs = [self.tensor(name, shape) for name, shape in zip(made, shapes, strict=True)]
        self.graph.operators.append(operator)
        return list(operator.outputs)

    def write(self, path: Path, inputs: list[int], outputs: list[int], signature: dict[str, int] | None = None) -> Path:
        import flatbuffers

        self.graph.inputs, self.graph.outputs, self.graph.name = inputs, outputs, "main"
        self.model.subgraphs = [self.graph]
        if signature is not None:
            definition = self.schema.SignatureDefT()
            definition.signatureKey, definition.subgraphIndex = "step", 0
            for name, tensors in (("inputs", inputs), ("outputs", outputs)):
                maps = []
                for key, tensor in signature.items():
                    if tensor in tensors:
                        one = self.schema.TensorMapT()
                        one.name, one.tensorIndex = key, tensor
                        maps.append(one)
                setattr(definition, name, maps)
            self.model.signatureDefs = [definition]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        path.write_bytes(bytes(builder.Output()))
        return path


def lstm_step(
    path: Path, lstm: nn.LSTM, out: nn.Linear, *, names: str = "x h c y h_out c_out", signature: bool = False
) -> Path:
    """One step of a one-layer LSTM and a linear layer: x, h, c in; y, h, c out."""
    writer, size = Writer(), lstm.hidden_size
    ports = names.split()
    takes = [writer.tensor(name, (1, n)) for name, n in zip(ports, (lstm.input_size, size, size), strict=False)]
    x, h, c = takes
    weights = {name: weight.detach().numpy() for name, weight in lstm.named_parameters()}
    parts = [
        writer.apply("FULLY_CONNECTED", [vector, *map(writer.constant, both)], [(1, 4 * size)])[0]
        for vector, both in (
            (x, (weights["weight_ih_l0"], weights["bias_ih_l0"])),
            (h, (weights["weight_hh_l0"], weights["bias_hh_l0"])),
        )
    ]
    row = (1, size)
    (total,) = writer.apply("ADD", parts, [(1, 4 * size)])
    i, f, g, o = writer.apply("SPLIT", [writer.constant(np.array(1, np.int32)), total], [row] * 4)
    i, f, o = (writer.apply("LOGISTIC", [gate], [row])[0] for gate in (i, f, o))
    (g,) = writer.apply("TANH", [g], [row])
    kept, (new,) = writer.apply("MUL", [f, c], [row]), writer.apply("MUL", [i, g], [row])
    (after_c,) = writer.apply("ADD", [*kept, new], [row], [ports[5]])
    (bent,) = writer.apply("TANH", [after_c], [row])
    (after_h,) = writer.apply("MUL", [o, bent], [row], [ports[4]])
    linear = [writer.constant(weight.detach().numpy()) for weight in (out.weight, out.bias)]
    (y,) = writer.apply("FULLY_CONNECTED", [after_h, *linear], [(1, out.out_features)], [ports[3]])
    named = dict(zip(("x", "state_h", "state_c", "y", "new_h", "new_c"), (*takes, y, after_h, after_c), strict=True))
    return writer.write(path, takes, [y, after_h, after_c], named if signature else None)


def custom(path: Path) -> Path:
    """A file with an unknown operator."""
    writer = Writer()
    x, h = writer.tensor("x", (1, 4)), writer.tensor("h", (1, 6))
    after = writer.apply("CUSTOM", [x, h], [(1, 6)], ["h_out"])
    return writer.write(path, [x, h], after)


def stateless(path: Path) -> Path:
    writer = Writer()
    x = writer.tensor("x", (1, 4))
    return writer.write(path, [x], writer.apply("TANH", [x], [(1, 4)], ["y"]))


def fused_lstm(path: Path, lstm: nn.LSTM, steps: int) -> Path:
    """A whole LSTM as one operator, which keeps its states to itself: [1, steps, size] in and out."""
    writer, size = Writer(), lstm.hidden_size
    x = writer.tensor("x", (1, steps, lstm.input_size))
    weights = {name: weight.detach().numpy() for name, weight in lstm.named_parameters()}
    gates = [np.split(weights[name], 4) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]
    # Both have the gates in the order i, f, g, o; an absent tensor is -1.
    of_x, of_h = ([writer.constant(gate.copy()) for gate in parts] for parts in gates[:2])
    biases = [writer.constant(one + other) for one, other in zip(*gates[2:], strict=True)]
    states = [writer.tensor(name, (1, size)) for name in ("activation_state", "cell_state")]
    for state in states:
        writer.graph.tensors[state].isVariable = True
    takes = [x, *of_x, *of_h, -1, -1, -1, *biases, -1, -1, *states]
    return writer.write(path, [x], writer.apply(FUSED, takes, [(1, steps, size)], ["y"]))
