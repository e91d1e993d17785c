"""Recipes: transformations in the order of their use, as plain data and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from deepcruiser.errors import InputError
from deepcruiser.transformations import series, text
from deepcruiser.transformations.base import Change
from deepcruiser.transformations.families import EXTRA, PAPER

#: All kinds by name, those of series and text too.
NAMES: dict[str, type[Change]] = {kind.__name__: kind for kind in (*PAPER, *EXTRA, *series.KINDS, *text.KINDS)}

T = TypeVar("T")


def apply(recipe: Iterable[Callable[[T], T]], value: T) -> T:
    """The audio, series or text after all transformations of a recipe, the first one first."""
    for transformation in recipe:
        value = transformation(value)
    return value


def to_dict(transformation: Change) -> dict[str, Any]:
    """A transformation as what JSON can hold: `{"name": "ChangeSpeed", "factor": 1.07}`."""
    name = type(transformation).__name__
    if NAMES.get(name) is not type(transformation):
        raise InputError(f"{name} is no transformation that could be read back; those known are: {', '.join(NAMES)}")
    return {"name": name, **dataclasses.asdict(transformation)}


def from_dict(data: Mapping[str, Any]) -> Change:
    """The transformation that `to_dict` made this of, its parameters checked as always."""
    if not isinstance(data, Mapping):
        raise InputError(f"a transformation must be a mapping with a name and its parameters, not {data!r}")
    name = data.get("name")
    kind = NAMES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"no transformation {name!r}; those known are: {', '.join(NAMES)}")
    given = {key: value for key, value in data.items() if key != "name"}
    needed = [field.name for field in dataclasses.fields(kind)]
    if set(given) != set(needed):
        raise InputError(f"{name} needs the parameters {', '.join(needed)}, not {', '.join(map(str, given)) or 'none'}")
    return kind(**given)
