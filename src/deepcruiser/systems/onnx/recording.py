"""From the exposed values of recurrent nodes to the states and inputs of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.systems.onnx.expose import Exposer
from deepcruiser.systems.onnx.graph import Node, NodeChoice
from deepcruiser.systems.tensors.signature import Array

#: The positions of the inputs of an LSTM, GRU or RNN node.
X, W, R, B, LENGTHS, H, C, P = range(8)
#: The activation functions of an LSTM in one direction, unless its node names others.
_USUAL = ["sigmoid", "tanh", "tanh"]


@dataclass(frozen=True)
class NodePorts:
    """The names of the outputs that expose the values of one node; empty if the node has no such value."""

    steps: str
    x: str
    h: str
    lengths: str
    c: str = ""
    weights: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, eq=False)
class NodeRecorder:
    """Reads the chosen states from the model's outputs; `of` adds these to the model before it is loaded."""

    choice: NodeChoice
    layers: Mapping[int, NodePorts]
    #: The name of the output with the inputs of the stack.
    x: str
    lengths: str
    loops: int

    @classmethod
    def of(cls, choice: NodeChoice, exposer: Exposer, *, inputs_only: bool = False) -> NodeRecorder:
        layers = choice.stack.layers
        x = exposer.expose(layers[0], layers[0].input(X))
        lengths = _optional(exposer, layers[0], LENGTHS)
        chosen = () if inputs_only else choice.layers
        for number in chosen if choice.part == "c" else ():
            _refuse_unusual(layers[number], choice.stack.name)
        ports = {number: _ports(layers[number], exposer, c=choice.part == "c") for number in chosen}
        return cls(choice, ports, x, lengths, layers[0].loops)

    @property
    def axes(self) -> dict[str, int | None]:
        """The batch axes of all outputs that are read; None for weights."""
        axes: dict[str, int | None] = {self.x: self.loops + 1, self.lengths: self.loops}
        for ports in self.layers.values():
            axes |= dict.fromkeys(ports.weights)
            axes |= {ports.steps: self.loops + 2, ports.lengths: self.loops}
            axes |= dict.fromkeys((ports.x, ports.h, ports.c), self.loops + 1)
        return {name: axis for name, axis in axes.items() if name}

    def executed(self, outputs: Mapping[str, Sequence[Array]]) -> bool:
        """Whether the nodes were run; those in a branch that is not taken are not."""
        return self.x in outputs and outputs[self.x][0].size > 0

    def read(self, outputs: Mapping[str, list[Array]], own_share: float) -> tuple[Array, Array]:
        """The states and inputs of one input, from the outputs of its calls; `own_share` of them is not padding."""
        x = self._joined(outputs, self.x)
        steps = sum(self._lengths(outputs)) if self.lengths else ceil(len(x) * own_share - 1e-9)
        pieces = sum(int(np.prod(part.shape[: self.loops])) for part in outputs[self.x])
        if self.choice.direction != "forward" and pieces > 1:
            raise InputError(f"'{self.choice.stack.name}' reads backward, but receives an input in {pieces} pieces")
        states = [self._states(outputs, number, steps) for number in self.choice.layers]
        inputs = x[:steps]
        backward = self.choice.direction == "backward"
        return np.concatenate(states, axis=1), (inputs[::-1] if backward else inputs).copy()

    def _states(self, outputs: Mapping[str, list[Array]], number: int, steps: int) -> Array:
        """[steps + 1, size] of one layer: s_0 first."""
        ports = self.layers[number]
        h = self._joined(outputs, ports.steps)[:steps]  # [time, ways, size]
        h_0 = self._first(outputs, ports.h, h)
        if self.loops and ports.h:
            self._check_continues(outputs, ports)
        ways = {"both": range(h.shape[1]), "forward": (0,), "backward": (h.shape[1] - 1,)}[self.choice.direction]
        both = self.choice.direction == "both"
        states = []
        for way in ways:
            turned = self.choice.stack.ways == "reverse" or way == 1
            one = np.concatenate([h_0[way, None], h[::-1, way] if turned else h[:, way]])
            if self.choice.part == "c":
                one = self._memory(outputs, ports, one, way, turned=turned)
            states.append(np.concatenate([one[:1], one[:0:-1]]) if turned and both else one)
        return np.concatenate(states, axis=1)

    def _memory(
        self, outputs: Mapping[str, list[Array]], ports: NodePorts, h: Array, way: int, *, turned: bool
    ) -> Array:
        """c of one direction, in the order in which it reads, from x, h and the weights."""
        import torch

        from deepcruiser.systems.torch.stack_states import memory

        def tensor(array: Array) -> torch.Tensor:
            return torch.from_numpy(array.copy())  # a copy, because torch does not accept read-only or reversed arrays

        x = self._joined(outputs, ports.x)[: len(h) - 1]
        c_0 = self._first(outputs, ports.c, h[:, None])[way if ports.c else 0]
        size = h.shape[1]
        w, r, b = (next(self._pieces(outputs, n))[way] if n else np.zeros(8 * size, np.float32) for n in ports.weights)
        # ONNX has the gates in the order i, o, f, c; `memory` needs i, f, c.
        order = np.concatenate([np.arange(size) + size * gate for gate in (0, 2, 3, 1)])
        weights = [tensor(one[order]) for one in (w, r, b[: 4 * size], b[4 * size :])]
        x = x[::-1] if turned else x
        c = memory(tensor(x)[None], tensor(h[:-1])[None], tensor(c_0)[None], weights, bias=True)
        return np.asarray(c[0].numpy())

    def _pieces(self, outputs: Mapping[str, list[Array]], name: str) -> Iterator[Array]:
        """A value in every iteration of every call."""
        for part in outputs[name]:
            yield from part.reshape(-1, *part.shape[self.loops :]) if self.loops else [part]

    def _lengths(self, outputs: Mapping[str, list[Array]]) -> list[int]:
        return [int(length) for length in self._pieces(outputs, self.lengths)]

    def _joined(self, outputs: Mapping[str, list[Array]], name: str) -> Array:
        pieces = self._pieces(outputs, name)
        if self.lengths:
            return np.concatenate([piece[:n] for piece, n in zip(pieces, self._lengths(outputs), strict=True)])
        return np.concatenate(list(pieces))

    def _first(self, outputs: Mapping[str, list[Array]], name: str, steps: Array) -> Array:
        """The initial state [ways, size]; zeros if the node receives none."""
        return next(self._pieces(outputs, name)) if name else np.zeros_like(steps[0])

    def _check_continues(self, outputs: Mapping[str, list[Array]], ports: NodePorts) -> None:
        """Refuse a node in a loop unless every iteration starts from the state that the previous one returned."""
        steps, starts = list(self._pieces(outputs, ports.steps)), list(self._pieces(outputs, ports.h))
        for number, (last, start) in enumerate(zip(steps, starts[1:], strict=False)):
            if not np.allclose(last[-1], start, atol=1e-5):
                raise InputError(
                    f"iteration {number + 2} of the loop around '{self.choice.stack.name}' does not start from the "
                    f"state that iteration {number + 1} returned, so they are not one sequence; choose another node"
                )


def _ports(node: Node, exposer: Exposer, *, c: bool) -> NodePorts:
    steps, x, h = exposer.steps_of(node), exposer.expose(node, node.input(X)), _optional(exposer, node, H)
    lengths = _optional(exposer, node, LENGTHS)
    if not c:
        return NodePorts(steps, x, h, lengths)
    weights = (_optional(exposer, node, W), _optional(exposer, node, R), _optional(exposer, node, B))
    return NodePorts(steps, x, h, lengths, _optional(exposer, node, C), weights)


def _optional(exposer: Exposer, node: Node, number: int) -> str:
    name = node.input(number)
    return exposer.expose(node, name, whole_numbers=number == LENGTHS) if name else ""


def _refuse_unusual(node: Node, label: str) -> None:
    """Refuse LSTM nodes with options for which `memory` does not compute c."""
    functions = [name.decode().lower() for a in node.proto.attribute if a.name == "activations" for name in a.strings]
    odd = ["other activations"] if functions not in ([], _USUAL, _USUAL * 2) else []
    odd += [a.name for a in node.proto.attribute if a.name in ("clip", "input_forget") and (a.i or a.f)]
    odd += ["peepholes"] if node.input(P) else []
    if odd:
        raise InputError(f"c of {label!r} cannot be computed, as it has {', '.join(odd)}; use part='h'")
