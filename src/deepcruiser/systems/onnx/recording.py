"""From the exposed values of recurrent nodes to the states and inputs of one trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch

from deepcruiser.errors import InputError
from deepcruiser.systems.onnx.expose import Exposer
from deepcruiser.systems.onnx.graph import CoreChoice, Node
from deepcruiser.systems.tensors.signature import Array
from deepcruiser.systems.torch.stack_states import memory

#: The inputs of an LSTM, a GRU or an RNN, by their places.
X, W, R, B, LENGTHS, H, C, P = range(8)


@dataclass(frozen=True)
class NodePorts:
    """The outputs under which the values of one node come; empty where it has none."""

    steps: str
    x: str
    h: str
    lengths: str
    c: str = ""
    weights: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, eq=False)
class Recorder:
    """Reads the chosen states off what the model gave; made before the model is loaded, as it adds outputs to it."""

    choice: CoreChoice
    layers: Mapping[int, NodePorts]
    #: What the stack of layers receives.
    x: str
    lengths: str
    loops: int

    @classmethod
    def of(cls, choice: CoreChoice, exposer: Exposer, *, x_only: bool = False) -> Recorder:
        layers = choice.core.layers
        x = exposer.expose(layers[0], layers[0].input(X))
        lengths = _optional(exposer, layers[0], LENGTHS)
        chosen = () if x_only else choice.layers
        ports = {number: _ports(layers[number], exposer, c=choice.part == "c") for number in chosen}
        return cls(choice, ports, x, lengths, layers[0].loops)

    @property
    def axes(self) -> dict[str, int | None]:
        """The batch axes of all outputs that are read; weights have none."""
        found: dict[str, int | None] = {self.x: self.loops + 1, self.lengths: self.loops}
        for ports in self.layers.values():
            found |= dict.fromkeys(ports.weights)
            found |= {ports.steps: self.loops + 2, ports.lengths: self.loops}
            found |= dict.fromkeys((ports.x, ports.h, ports.c), self.loops + 1)
        return {name: axis for name, axis in found.items() if name}

    def ran(self, given: Mapping[str, Sequence[Array]]) -> bool:
        """Whether the core is in a branch that was taken."""
        return self.x in given and given[self.x][0].size > 0

    def read(self, given: Mapping[str, list[Array]], own: float) -> tuple[Array, Array]:
        """States and inputs of one input, from what its calls gave; `own` is the share that is not padding."""
        x = self._joined(given, self.x)
        steps = sum(self._lengths(given)) if self.lengths else ceil(len(x) * own - 1e-9)
        pieces = sum(int(np.prod(part.shape[: self.loops])) for part in given[self.x])
        if self.choice.direction != "forward" and pieces > 1:
            raise InputError(f"'{self.choice.core.name}' reads backward, but gets an input in {pieces} pieces")
        states = [self._states(given, number, steps) for number in self.choice.layers]
        inputs = x[:steps]
        backward = self.choice.direction == "backward"
        return np.concatenate(states, axis=1), (inputs[::-1] if backward else inputs).copy()

    def _states(self, given: Mapping[str, list[Array]], number: int, steps: int) -> Array:
        """[steps + 1, size] of one layer: s_0 first."""
        ports = self.layers[number]
        h = self._joined(given, ports.steps)[:steps]  # [time, ways, size]
        h_0 = self._first(given, ports.h, h)
        if self.loops and ports.h:
            self._check_handed_on(given, ports)
        ways = {"both": range(h.shape[1]), "forward": (0,), "backward": (h.shape[1] - 1,)}[self.choice.direction]
        both = self.choice.direction == "both"
        found = []
        for way in ways:
            turned = self.choice.core.ways == "reverse" or way == 1
            one = np.concatenate([h_0[way, None], h[::-1, way] if turned else h[:, way]])
            if self.choice.part == "c":
                one = self._memory(given, ports, one, way, turned=turned)
            found.append(np.concatenate([one[:1], one[:0:-1]]) if turned and both else one)
        return np.concatenate(found, axis=1)

    def _memory(self, given: Mapping[str, list[Array]], ports: NodePorts, h: Array, way: int, *, turned: bool) -> Array:
        """c of one direction, in the order in which it reads, from x, h and the weights."""
        x = self._joined(given, ports.x)[: len(h) - 1]
        c_0 = self._first(given, ports.c, h[:, None])[way if ports.c else 0]
        size = h.shape[1]
        w, r, b = (next(self._pieces(given, n))[way] if n else np.zeros(8 * size, np.float32) for n in ports.weights)
        # ONNX has the gates in the order i, o, f, c; `memory` needs i, f, c.
        order = np.concatenate([np.arange(size) + size * gate for gate in (0, 2, 3, 1)])
        weights = [_tensor(one[order]) for one in (w, r, b[: 4 * size], b[4 * size :])]
        x = x[::-1] if turned else x
        c = memory(_tensor(x)[None], _tensor(h[:-1])[None], _tensor(c_0)[None], weights, bias=True)
        return np.asarray(c[0].numpy())

    def _pieces(self, given: Mapping[str, list[Array]], name: str) -> Iterator[Array]:
        """A value in every round of every call."""
        for part in given[name]:
            yield from part.reshape(-1, *part.shape[self.loops :]) if self.loops else [part]

    def _lengths(self, given: Mapping[str, list[Array]]) -> list[int]:
        return [int(length) for length in self._pieces(given, self.lengths)]

    def _joined(self, given: Mapping[str, list[Array]], name: str) -> Array:
        pieces = self._pieces(given, name)
        if self.lengths:
            return np.concatenate([piece[:n] for piece, n in zip(pieces, self._lengths(given), strict=True)])
        return np.concatenate(list(pieces))

    def _first(self, given: Mapping[str, list[Array]], name: str, steps: Array) -> Array:
        """The initial state [ways, size], zeros where the node gets none."""
        return next(self._pieces(given, name)) if name else np.zeros_like(steps[0])

    def _check_handed_on(self, given: Mapping[str, list[Array]], ports: NodePorts) -> None:
        """A node in a loop is one sequence only if every round starts from the state that the one before left."""
        steps, starts = list(self._pieces(given, ports.steps)), list(self._pieces(given, ports.h))
        for number, (left, start) in enumerate(zip(steps, starts[1:], strict=False)):
            if not np.allclose(left[-1], start, atol=1e-5):
                raise InputError(
                    f"round {number + 2} of the loop around '{self.choice.core.name}' does not start from the state "
                    f"that round {number + 1} left, so the rounds are not one sequence; choose another core"
                )


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.copy())  # a copy: torch takes no read-only or reversed array


def _ports(found: Node, exposer: Exposer, *, c: bool) -> NodePorts:
    steps, x, h = exposer.steps_of(found), exposer.expose(found, found.input(X)), _optional(exposer, found, H)
    lengths = _optional(exposer, found, LENGTHS)
    if not c:
        return NodePorts(steps, x, h, lengths)
    _refuse_unusual(found)
    weights = (_optional(exposer, found, W), _optional(exposer, found, R), _optional(exposer, found, B))
    return NodePorts(steps, x, h, lengths, _optional(exposer, found, C), weights)


def _optional(exposer: Exposer, found: Node, number: int) -> str:
    name = found.input(number)
    return exposer.expose(found, name, whole_numbers=number == LENGTHS) if name else ""


def _refuse_unusual(found: Node) -> None:
    """c is computed again, for the LSTM that everyone uses."""
    usual = {"activations": {b"Sigmoid", b"Tanh"}, "clip": 0.0, "input_forget": 0}
    given = {a.name: set(a.strings) if a.name == "activations" else a.i or a.f for a in found.node.attribute}
    odd = [name for name, value in usual.items() if given.get(name, value) != value]
    odd += ["peepholes"] if found.input(P) else []
    if odd:
        raise InputError(f"c of {found.node.name!r} cannot be computed, as it has {', '.join(odd)}; take part='h'")
