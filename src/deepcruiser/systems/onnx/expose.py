"""Values from the inside of an ONNX graph as outputs of it: of an in-memory copy, never of the user's file."""

from __future__ import annotations

from typing import Any

from deepcruiser.systems.onnx.graph import Node, nodes


class Exposer:
    """Adds outputs to a model, which it changes."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._names = {name for found in nodes(model.graph) for name in (*found.node.input, *found.node.output)}
        self._names |= {port.name for port in (*model.graph.input, *model.graph.output)}
        self._known: dict[tuple[int, str], str] = {}

    def expose(self, found: Node, value: str, *, whole_numbers: bool = False) -> str:
        """The name of a new output that has a value seen by a node, as float32 or int64.

        Out of the body of a loop, the values of all rounds come with a new first axis; out of a branch that is not
        taken comes an empty tensor.
        """
        from onnx import TensorProto, ValueInfoProto, helper

        key = (id(found.graph), value)
        if key in self._known:
            return self._known[key]
        kind = TensorProto.INT64 if whole_numbers else TensorProto.FLOAT
        name = self._new()
        # A cast, and not the value itself: so its type is known, which the other branch has to have as well.
        found.graph.node.append(helper.make_node("Cast", [value], [name], to=kind))
        graph = found.graph
        for outer, attribute, around in reversed(found.inside):
            graph.output.append(_typed(helper, name, kind))
            for other in outer.attribute:
                if outer.op_type == "If" and other.name != attribute and other.HasField("g"):
                    _add_empty(helper, other.g, self._new(), kind)
                if other.name in ("scan_output_axes", "scan_output_directions"):
                    other.ints.append(0)
            counted = len(graph.output) - (outer.op_type == "Loop")  # a loop's condition is no output of it
            while len(outer.output) < counted - 1:
                outer.output.append(self._new())
            name = self._new()
            outer.output.append(name)
            graph = around
        self.model.graph.output.append(ValueInfoProto(name=name))
        self._known[key] = name
        return name

    def steps_of(self, found: Node) -> str:
        """The output with what a recurrent node gives at every step, also if nothing in the graph reads it."""
        if not found.node.output[0]:
            found.node.output[0] = self._new()
        return self.expose(found, str(found.node.output[0]))

    def _new(self) -> str:
        name = f"deepcruiser_{len(self._names)}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _typed(helper: Any, name: str, kind: int) -> Any:
    return helper.make_tensor_value_info(name, kind, None)


def _add_empty(helper: Any, graph: Any, name: str, kind: int) -> None:
    """What a branch gives for a value that is not in it."""
    empty = helper.make_tensor(f"{name}_value", kind, [0], [])
    graph.node.append(helper.make_node("Constant", [], [name], value=empty))
    graph.output.append(_typed(helper, name, kind))
