"""Inner values of an ONNX graph as additional outputs of a copy in memory; the user's file is never changed."""

from __future__ import annotations

from typing import Any

from deepcruiser.systems.onnx.graph import Node, nodes


class Exposer:
    """Adds outputs to a model in place."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._names = {name for node in nodes(model.graph) for name in (*node.proto.input, *node.proto.output)}
        self._names |= {port.name for port in (*model.graph.input, *model.graph.output)}
        self._exposed: dict[tuple[int, str], str] = {}

    def expose(self, node: Node, value: str, *, whole_numbers: bool = False) -> str:
        """Make a value that a node reads or returns an output, as float32 or int64; returns the output's name.

        From a loop body, the values of all iterations come with a new first axis. From a branch that is not taken, an
        empty tensor comes.
        """
        from onnx import TensorProto, ValueInfoProto, helper

        key = (id(node.graph), value)
        if key in self._exposed:
            return self._exposed[key]
        kind = TensorProto.INT64 if whole_numbers else TensorProto.FLOAT
        name = self._new()
        # A cast instead of the value, so that the type is known; the other branch must have the same type.
        node.graph.node.append(helper.make_node("Cast", [value], [name], to=kind))
        graph = node.graph
        for outer, attribute, around in reversed(node.inside):
            graph.output.append(_typed(helper, name, kind))
            for other in outer.attribute:
                if outer.op_type == "If" and other.name != attribute and other.HasField("g"):
                    _add_empty(helper, other.g, self._new(), kind)
                if other.name in ("scan_output_axes", "scan_output_directions"):
                    other.ints.append(0)
            counted = len(graph.output) - (outer.op_type == "Loop")  # a loop's condition is not one of its outputs
            while len(outer.output) < counted - 1:
                outer.output.append(self._new())
            name = self._new()
            outer.output.append(name)
            graph = around
        self.model.graph.output.append(ValueInfoProto(name=name))
        self._exposed[key] = name
        return name

    def steps_of(self, node: Node) -> str:
        """Make the outputs of a recurrent node at every step an output, even if nothing in the graph reads them."""
        if not node.proto.output[0]:
            node.proto.output[0] = self._new()
        return self.expose(node, str(node.proto.output[0]))

    def _new(self) -> str:
        name = f"deepcruiser_{len(self._names)}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _typed(helper: Any, name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def _add_empty(helper: Any, graph: Any, name: str, kind: int) -> None:
    """Add the output that a branch returns for a value of the other branch."""
    empty = helper.make_tensor(f"{name}_value", kind, [0], [])
    graph.node.append(helper.make_node("Constant", [], [name], value=empty))
    graph.output.append(_typed(helper, name, kind))
