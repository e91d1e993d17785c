"""The recurrent nodes of an ONNX graph, including those in branches and loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.systems.state_choice import (
    Direction,
    Layer,
    Part,
    check_direction,
    check_layers,
    check_part,
    state_words,
)

RECURRENT = ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM")
#: Nodes between the layers of one stack: they change the shape and compute nothing.
_SHAPES = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "Dropout", "Flatten")
#: The metadata in which PyTorch's newer exporter stores the modules that a node comes from.
_SCOPES = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True, eq=False)
class Node:
    """A node, as its `proto` in the file, and the graph that has it.

    If that graph is a branch or a loop body, `inside` has the nodes around it, from the outside in: each with its
    attribute that holds the inner graph, and the graph that has the node itself.
    """

    proto: Any
    graph: Any
    inside: tuple[tuple[Any, str, Any], ...] = ()

    @property
    def loops(self) -> int:
        return sum(outer.op_type in ("Loop", "Scan") for outer, _, _ in self.inside)

    @property
    def ways(self) -> str:
        """The direction: "forward", "reverse" or "bidirectional"."""
        return next((a.s.decode() for a in self.proto.attribute if a.name == "direction"), "forward")

    def input(self, number: int) -> str:
        """The name of an input; empty if an optional input is left out."""
        return str(self.proto.input[number]) if number < len(self.proto.input) else ""


@dataclass(frozen=True, eq=False)
class NodeStack:
    """Recurrent nodes of which each reads the output of the previous one: the layers of a stack."""

    name: str
    layers: tuple[Node, ...]

    @property
    def kind(self) -> str:
        return str(self.layers[0].proto.op_type)

    @property
    def ways(self) -> str:
        return self.layers[0].ways

    def __str__(self) -> str:
        layers = f"{len(self.layers)} layers, " if len(self.layers) > 1 else ""
        return f"{self.name} ({layers}{self.kind}, {self.ways})"


@dataclass(frozen=True, eq=False)
class NodeChoice:
    """A stack of nodes and the part of its state that a trace shows."""

    stack: NodeStack
    part: Part
    layers: tuple[int, ...]
    direction: Direction
    words: str = field(default="")

    @classmethod
    def of(cls, stack: NodeStack, *, part: Part, layer: Layer, direction: Direction | None) -> NodeChoice:
        label, both = repr(stack.name), stack.ways == "bidirectional"
        if part == "c" and stack.kind == "DynamicQuantizeLSTM":
            raise InputError(f"c of {label} cannot be computed, as its weights have 8 bits; use part='h'")
        part = check_part(part, stack.kind == "LSTM", label, stack.kind)
        layers = check_layers(layer, len(stack.layers), label)
        if stack.ways == "reverse":
            if direction not in (None, "backward"):
                raise InputError(
                    f"{label} reads backward only, so direction={direction!r} does not exist; leave it out"
                )
            chosen: Direction = "backward"
        else:
            chosen = check_direction(direction, both, label)
        return cls(
            stack, part, layers, chosen, state_words(stack.name, part, layers, len(stack.layers), 1 + both, chosen)
        )


def nodes(graph: Any, inside: tuple[tuple[Any, str, Any], ...] = ()) -> Iterator[Node]:
    """Every node in the order of the graph; nodes of subgraphs come before the node that has them."""
    for proto in graph.node:
        for attribute in proto.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g, (*inside, (proto, attribute.name, graph)))
        yield Node(proto, graph, inside)


def node_stacks(graph: Any) -> list[NodeStack]:
    """The recurrent stacks of a graph, in its order; equal names get a number."""
    stacks: list[list[Node]] = []
    for node in nodes(graph):
        if node.proto.op_type not in RECURRENT:
            continue
        stack = next((stack for stack in stacks if _reads(node, stack[-1]) and _same_stack(node, stack[-1])), None)
        if stack is None:
            stacks.append([node])
        else:
            stack.append(node)
    labels = [_label(stack) or f"{stack[0].proto.op_type}_{number}" for number, stack in enumerate(stacks)]
    counts = Counter(labels)
    names = [label if counts[label] == 1 else f"{label}#{labels[:n].count(label)}" for n, label in enumerate(labels)]
    return [NodeStack(name, tuple(stack)) for name, stack in zip(names, stacks, strict=True)]


def named_stack(stacks: Sequence[NodeStack], name: str, carried: Sequence[object] = ()) -> NodeStack:
    """The stack with this name; a name of a node, of its output, or of the module it was exported from will do too.

    `carried` are the inputs that are carried from call to call, for the error.
    """
    plain = _plain(name)
    for stack in stacks:
        if name == stack.name or (plain and plain == _plain(stack.name)):
            return stack
    for stack in stacks:
        for layer in stack.layers:
            if name and name in (layer.proto.name, *layer.proto.output):
                return NodeStack(name, (layer,))
    listed = "; ".join(map(str, stacks)) or "none"
    states = f"; carried from call to call: {', '.join(map(str, carried))}" if carried else ""
    raise InputError(f"no recurrent node {name!r} in the network; its recurrent nodes are: {listed}{states}")


def operators(graph: Any) -> str:
    """The most frequent operators of a graph: "12 Conv, 11 Relu"."""
    counts = Counter(node.proto.op_type for node in nodes(graph) if node.proto.op_type != "Constant")
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(12)) or "no nodes"


def _reads(node: Node, other: Node) -> bool:
    """Whether a node reads the steps of another, with only changes of shape between them."""
    makers = {name: proto for proto in node.graph.node for name in proto.output if name}
    read = node.input(0)
    while read in makers and makers[read].op_type in _SHAPES:
        read = makers[read].input[0]
    return node.graph is other.graph and read != "" and read == other.proto.output[0]


def _same_stack(one: Node, other: Node) -> bool:
    """Whether two nodes come from one module, or could, where the modules are unknown."""
    size, other_size = (next((a.i for a in x.proto.attribute if a.name == "hidden_size"), 0) for x in (one, other))
    same = size == other_size and one.proto.op_type == other.proto.op_type
    return same and one.ways == other.ways and _scope(one) == _scope(other)


def _scope(node: Node) -> str:
    """The module that a node was exported from; empty if it is unknown."""
    scopes = next((entry.value for entry in getattr(node.proto, "metadata_props", ()) if entry.key == _SCOPES), "")
    modules: list[str] = re.findall(r"'([^']*)'", scopes)
    if modules:
        return str(modules[-2] if len(modules) > 1 else modules[-1])
    scope, slash, _ = str(node.proto.name).rpartition("/")
    return scope if slash else ""


def _label(stack: list[Node]) -> str:
    scope = _plain(_scope(stack[0]))
    return scope or str(stack[0].proto.name) or next((str(name) for name in stack[0].proto.output if name), "")


def _plain(scope: str) -> str:
    """The name of a scope's module: "encoder.lstm" for "/encoder/lstm"."""
    return scope.strip("/").replace("/", ".")
