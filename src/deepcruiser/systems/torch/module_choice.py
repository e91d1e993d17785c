"""Which vector of a PyTorch network is the state: a module, by its name, and the part of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torch import nn

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


@dataclass(frozen=True)
class ModuleChoice:
    """A module and the part of its state that a trace shows; `choose_module` makes one that fits the module."""

    name: str
    module: nn.Module
    batch_first: bool
    kind: Literal["stack", "cell", "output"]
    part: Part = "h"
    layers: tuple[int, ...] = (0,)
    direction: Direction = "forward"

    @property
    def label(self) -> str:
        return self.name or type(self.module).__name__

    @property
    def words(self) -> str:
        """A description: "encoder.lstm: h of the last of 3 layers, both directions"."""
        if self.kind == "output":
            return f"{self.label}: output"
        return state_words(self.label, self.part, self.layers, *_layers(self.module), self.direction)


def choose_module(
    net: nn.Module, state: str | None, *, part: Part, layer: Layer, direction: Direction | None, batch_first: bool
) -> ModuleChoice:
    """Find the module called `state`, or the last recurrent one, and check that it has the part asked for."""
    name = _last_recurrent(net) if state is None else state
    module = _module(net, name)
    kind = type(module).__name__
    label = f"'{name}'" if name else type(net).__name__
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        count, ways = _layers(module)
        return ModuleChoice(
            name,
            module,
            module.batch_first if isinstance(module, nn.RNNBase) else True,
            "stack" if isinstance(module, nn.RNNBase) else "cell",
            check_part(part, isinstance(module, nn.LSTM | nn.LSTMCell), label, kind),
            check_layers(layer, count, label),
            check_direction(direction, ways == 2, label),
        )
    if (part, layer, direction) != ("h", -1, None):
        raise InputError(
            f"{label} is a {kind}, so its output is the state: part, layer and direction are only for nn.RNN, nn.LSTM, "
            "nn.GRU and their cells; leave them out"
        )
    own = getattr(module, "batch_first", batch_first)
    return ModuleChoice(name, module, own if isinstance(own, bool) else batch_first, "output")


def _layers(module: nn.Module) -> tuple[int, int]:
    """The number of layers and of directions of a recurrent module."""
    if isinstance(module, nn.RNNBase):
        return module.num_layers, 2 if module.bidirectional else 1
    return 1, 1


def recurrent_names(net: nn.Module) -> list[str]:
    """The names of the recurrent modules, in the order in which the network has them."""
    return [name for name, module in net.named_modules() if isinstance(module, nn.RNNBase | nn.RNNCellBase)]


def _last_recurrent(net: nn.Module) -> str:
    names = recurrent_names(net)
    if not names:
        raise InputError(
            f"no recurrent module (nn.RNN, nn.LSTM, nn.GRU or a cell) in {type(net).__name__}; "
            f"use state= to name the module whose output is the state; {_modules(net)}"
        )
    return names[-1]


def _module(net: nn.Module, name: str) -> nn.Module:
    if not isinstance(name, str):
        raise InputError(f"state must be the name of a module, like 'encoder.lstm', not a {type(name).__name__}")
    try:
        return net.get_submodule(name)
    except AttributeError:
        names = recurrent_names(net)
        known = f"its recurrent modules are: {_listed(names)}" if names else f"none is recurrent; {_modules(net)}"
        raise InputError(f"no module '{name}' in {type(net).__name__}; {known}") from None


def _modules(net: nn.Module) -> str:
    return f"its modules are: {_listed(name for name, _ in net.named_modules())}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or '"" (itself)' for name in names)
