"""Which part of a recurrent layer is the state: the options that all frameworks share, their checks and their words."""

from __future__ import annotations

from typing import Literal

from deepcruiser.errors import InputError

Part = Literal["h", "c"]
Direction = Literal["forward", "backward", "both"]
Layer = int | Literal["all"]


def state_words(label: str, part: Part, layers: tuple[int, ...], count: int, ways: int, direction: Direction) -> str:
    """A description of the state of a stack of `count` layers: "encoder.lstm: h of the last of 3 layers, forward"."""
    words = f"{label}: {part}"
    if count > 1 and len(layers) == count:
        words += f" of all {count} layers side by side"
    elif count > 1:
        last = layers == (count - 1,)
        words += f" of the last of {count} layers" if last else f" of layer {layers[0]} of {count}"
    if ways == 2:
        words += ", both directions" if direction == "both" else f", {direction}"
    return words


def check_part(part: Part, has_c: bool, label: str, kind: str) -> Part:
    if part not in ("h", "c"):
        raise InputError(f"part must be 'h' or 'c', not {part!r}")
    if part == "c" and not has_c:
        raise InputError(f"{label} is a {kind}, and only an LSTM has c: use part='h'")
    return part


def check_layers(layer: Layer, count: int, label: str) -> tuple[int, ...]:
    if layer == "all":
        return tuple(range(count))
    if not isinstance(layer, int) or isinstance(layer, bool):
        raise InputError(f"layer must be a number or 'all', not {layer!r}")
    if not -count <= layer < count:
        raise InputError(f"no layer {layer} in {label}, which has {count}: use 0 to {count - 1}, -1 or 'all'")
    return (layer % count,)


def check_direction(direction: Direction | None, bidirectional: bool, label: str) -> Direction:
    if direction not in (None, "forward", "backward", "both"):
        raise InputError(f"direction must be 'forward', 'backward' or 'both', not {direction!r}")
    if bidirectional:
        return direction or "both"
    if direction not in (None, "forward"):
        raise InputError(f"{label} reads forward only, so direction={direction!r} does not exist; leave it out")
    return "forward"
