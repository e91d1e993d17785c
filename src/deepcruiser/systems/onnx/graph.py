"""The recurrent nodes of an ONNX graph, also those in the branches and bodies of its control flow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.state_choice import (
    Direction,
    Layer,
    Part,
    checked_direction,
    checked_layers,
    checked_part,
    in_words,
)

RECURRENT = ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM")
#: What lies between the layers of one stack: nothing that computes.
_SHAPES = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "Dropout", "Flatten")
#: Where the exporter of torch.export notes the modules that a node comes from.
_SCOPES = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True, eq=False)
class Node:
    """A node, the graph that it is in, and, from the outside in, the nodes that this graph is a part of.

    Each of those comes with its attribute that this is, and with the graph that it is in itself.
    """

    node: Any
    graph: Any
    inside: tuple[tuple[Any, str, Any], ...] = ()

    @property
    def loops(self) -> int:
        return sum(outer.op_type in ("Loop", "Scan") for outer, _, _ in self.inside)

    @property
    def ways(self) -> str:
        """forward, reverse or bidirectional."""
        return next((a.s.decode() for a in self.node.attribute if a.name == "direction"), "forward")

    def input(self, number: int) -> str:
        """The name of an input; empty where an optional one is left out."""
        return str(self.node.input[number]) if number < len(self.node.input) else ""


@dataclass(frozen=True, eq=False)
class Core:
    """One or more recurrent nodes of which each reads what the one before gives: a stack of layers."""

    name: str
    layers: tuple[Node, ...]

    @property
    def kind(self) -> str:
        return str(self.layers[0].node.op_type)

    @property
    def ways(self) -> str:
        return self.layers[0].ways

    def __str__(self) -> str:
        layers = f"{len(self.layers)} layers, " if len(self.layers) > 1 else ""
        return f"{self.name} ({layers}{self.kind}, {self.ways})"


@dataclass(frozen=True, eq=False)
class CoreChoice:
    """A core and the part of its state that a trace shows."""

    core: Core
    part: Part
    layers: tuple[int, ...]
    direction: Direction
    words: str = field(default="")

    @classmethod
    def of(cls, core: Core, *, part: Part, layer: Layer, direction: Direction | None) -> CoreChoice:
        label, both = repr(core.name), core.ways == "bidirectional"
        if part == "c" and core.kind == "DynamicQuantizeLSTM":
            raise InputError(f"c of {label} cannot be computed, as its weights have 8 bits; take part='h'")
        part = checked_part(part, core.kind == "LSTM", label, core.kind)
        layers = checked_layers(layer, len(core.layers), label)
        if core.ways == "reverse":
            if direction not in (None, "backward"):
                raise InputError(f"{label} reads backward only, so direction={direction!r} is not there; leave it out")
            chosen: Direction = "backward"
        else:
            chosen = checked_direction(direction, both, label)
        return cls(core, part, layers, chosen, in_words(core.name, part, layers, len(core.layers), 1 + both, chosen))


def nodes(graph: Any, inside: tuple[tuple[Any, str, Any], ...] = ()) -> Iterator[Node]:
    """Every node in the order of the graph; those of subgraphs before the node that has them."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g, (*inside, (node, attribute.name, graph)))
        yield Node(node, graph, inside)


def cores(graph: Any) -> list[Core]:
    """The recurrent cores of a graph, in its order; names are made different where they are not."""
    stacks: list[list[Node]] = []
    for found in nodes(graph):
        if found.node.op_type not in RECURRENT:
            continue
        stack = next((stack for stack in stacks if _reads(found, stack[-1]) and _same_stack(found, stack[-1])), None)
        if stack is None:
            stacks.append([found])
        else:
            stack.append(found)
    labels = [_label(stack) or f"{stack[0].node.op_type}_{number}" for number, stack in enumerate(stacks)]
    counts = Counter(labels)
    names = [label if counts[label] == 1 else f"{label}#{labels[:n].count(label)}" for n, label in enumerate(labels)]
    return [Core(name, tuple(stack)) for name, stack in zip(names, stacks, strict=True)]


def named_core(found: Sequence[Core], name: str) -> Core:
    """The core that a name means: its own, that of a node, of a node's output, or of the module it comes from."""
    plain = _plain(name)
    for core in found:
        if name == core.name or (plain and plain == _plain(core.name)):
            return core
    for core in found:
        for layer in core.layers:
            if name and name in (layer.node.name, *layer.node.output):
                return Core(name, (layer,))
    raise InputError(f"no recurrent core {name!r} in the network; it has: {'; '.join(map(str, found)) or 'none'}")


def operators(graph: Any) -> str:
    """What a graph consists of, in words: "12 Conv, 11 Relu"."""
    counts = Counter(found.node.op_type for found in nodes(graph) if found.node.op_type != "Constant")
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(12)) or "no nodes at all"


def _reads(found: Node, other: Node) -> bool:
    """Whether a node reads the steps of another, with nothing but changes of shape between."""
    makers = {name: node for node in found.graph.node for name in node.output if name}
    read = found.input(0)
    while read in makers and makers[read].op_type in _SHAPES:
        read = makers[read].input[0]
    return found.graph is other.graph and read != "" and read == other.node.output[0]


def _same_stack(one: Node, other: Node) -> bool:
    """Two modules, one behind the other, are two cores; where no module is known the two are taken for one stack."""
    size, other_size = (next((a.i for a in x.node.attribute if a.name == "hidden_size"), 0) for x in (one, other))
    same = size == other_size and one.node.op_type == other.node.op_type
    return same and one.ways == other.ways and _scope(one) == _scope(other)


def _scope(found: Node) -> str:
    """The module that a node was exported from, as far as it is known."""
    noted = next((entry.value for entry in getattr(found.node, "metadata_props", ()) if entry.key == _SCOPES), "")
    modules: list[str] = re.findall(r"'([^']*)'", noted)
    if modules:
        return str(modules[-2] if len(modules) > 1 else modules[-1])
    scope, slash, _ = str(found.node.name).rpartition("/")
    return scope if slash else ""


def _label(stack: list[Node]) -> str:
    scope = _plain(_scope(stack[0]))
    return scope or str(stack[0].node.name) or next((str(name) for name in stack[0].node.output if name), "")


def _plain(scope: str) -> str:
    """A scope as the name of a module: "/encoder/lstm" is "encoder.lstm"."""
    return scope.strip("/").replace("/", ".")
