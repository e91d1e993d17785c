"""Which vector of a PyTorch network is the state: the module by its name, and the part of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from deepcruiser.errors import InputError

Part = Literal["h", "c"]
Direction = Literal["forward", "backward", "both"]
Layer = int | Literal["all"]


@dataclass(frozen=True)
class Choice:
    """A module and the part of its state that a trace shows; made by `choose`, so it always fits the module."""

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
        """For people: "encoder.lstm: h of the last of 3 layers, both directions"."""
        if self.kind == "output":
            return f"{self.label}: output"
        if isinstance(self.module, nn.RNNBase):
            count, ways = self.module.num_layers, 2 if self.module.bidirectional else 1
            return in_words(self.label, self.part, self.layers, count, ways, self.direction)
        return in_words(self.label, self.part, self.layers, 1, 1, self.direction)


def in_words(label: str, part: Part, layers: tuple[int, ...], count: int, ways: int, direction: Direction) -> str:
    """Which vector of a stack of `count` layers is the state, the same for every framework."""
    words = f"{label}: {part}"
    if count > 1 and len(layers) == count:
        words += f" of all {count} layers side by side"
    elif count > 1:
        last = layers == (count - 1,)
        words += f" of the last of {count} layers" if last else f" of layer {layers[0]} of {count}"
    if ways == 2:
        words += ", both directions" if direction == "both" else f", {direction}"
    return words


def choose(
    net: nn.Module,
    state: str | None,
    *,
    part: Part,
    layer: Layer,
    direction: Direction | None,
    batch_first: bool,
) -> Choice:
    """Find the module and check that it has what is asked of it."""
    name = _last_recurrent(net) if state is None else state
    module = _module(net, name)
    label = f"'{name}'" if name else type(net).__name__
    if isinstance(module, nn.RNNBase):
        return Choice(
            name,
            module,
            module.batch_first,
            "stack",
            checked_part(part, isinstance(module, nn.LSTM), label, type(module).__name__),
            checked_layers(layer, module.num_layers, label),
            checked_direction(direction, module.bidirectional, label),
        )
    if isinstance(module, nn.RNNCellBase):
        checked = checked_part(part, isinstance(module, nn.LSTMCell), label, type(module).__name__)
        return Choice(
            name,
            module,
            True,
            "cell",
            checked,
            checked_layers(layer, 1, label),
            checked_direction(direction, False, label),
        )
    if (part, layer, direction) != ("h", -1, None):
        raise InputError(
            f"{label} is a {type(module).__name__}, whose output is taken as the state: part, layer and direction "
            "are for nn.RNN, nn.LSTM, nn.GRU and their cells; leave them out"
        )
    own = getattr(module, "batch_first", batch_first)
    return Choice(name, module, own if isinstance(own, bool) else batch_first, "output")


def recurrent_names(net: nn.Module) -> list[str]:
    return [name for name, module in net.named_modules() if isinstance(module, nn.RNNBase | nn.RNNCellBase)]


def _last_recurrent(net: nn.Module) -> str:
    names = recurrent_names(net)
    if not names:
        raise InputError(
            f"no recurrent module (nn.RNN, nn.LSTM, nn.GRU or a cell) in {type(net).__name__}; "
            f"name the one whose output is the state with state=; {_has(net)}"
        )
    return names[-1]


def _module(net: nn.Module, name: str) -> nn.Module:
    if not isinstance(name, str):
        raise InputError(f"state must be the name of a module, like 'encoder.lstm', not a {type(name).__name__}")
    try:
        return net.get_submodule(name)
    except AttributeError:
        names = recurrent_names(net)
        found = f"its recurrent modules are: {_list(names)}" if names else f"it has no recurrent ones; {_has(net)}"
        raise InputError(f"no module '{name}' in {type(net).__name__}; {found}") from None


def _has(net: nn.Module) -> str:
    return f"its modules are: {_list(name for name, _ in net.named_modules())}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(name or '"" (itself)' for name in names)


def checked_part(part: Part, has_c: bool, label: str, kind: str) -> Part:
    if part not in ("h", "c"):
        raise InputError(f"part must be 'h' or 'c', not {part!r}")
    if part == "c" and not has_c:
        raise InputError(f"{label} is a {kind}, which has no c: only an LSTM has; take part='h'")
    return part


def checked_layers(layer: Layer, count: int, label: str) -> tuple[int, ...]:
    if layer == "all":
        return tuple(range(count))
    if not isinstance(layer, int) or isinstance(layer, bool):
        raise InputError(f"layer must be a number or 'all', not {layer!r}")
    if not -count <= layer < count:
        raise InputError(f"no layer {layer} in {label}, which has {count}: take 0 to {count - 1}, -1 or 'all'")
    return (layer % count,)


def checked_direction(direction: Direction | None, bidirectional: bool, label: str) -> Direction:
    if direction not in (None, "forward", "backward", "both"):
        raise InputError(f"direction must be 'forward', 'backward' or 'both', not {direction!r}")
    if bidirectional:
        return direction or "both"
    if direction not in (None, "forward"):
        raise InputError(f"{label} reads in one direction only, so direction='{direction}' is not there; leave it out")
    return "forward"
