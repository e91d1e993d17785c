"""Recipes: transformations in the order of their use, as plain data and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from deepcruiser.errors import InputError
from deepcruiser.transformations import series, text
from deepcruiser.transformations.base import Change, field_names
from deepcruiser.transformations.families import EXTRA, PAPER

#: All kinds by name, those of series and text too.
NAMES: dict[str, type[Change]] = {kind.__name__: kind for kind in (*PAPER, *EXTRA, *series.KINDS, *text.KINDS)}

T = TypeVar("T")


def apply(recipe: Iterable[Callable[[T], T]], value: T) -> T:
    """The audio, series or text after all transformations of a recipe, the first one first."""
    for transformation in recipe:
        value = transformation(value)
    return value


def to_dict(change: Any) -> dict[str, Any]:
    """A change as JSON holds it: `{"name": "ChangeSpeed", "factor": 1.07}`. Any frozen dataclass of plain values."""
    if isinstance(change, UnknownChange):
        return {"name": change.name, **change.parameters}
    return {"name": type(change).__name__, **dataclasses.asdict(change)}


def from_dict(data: Mapping[str, Any], *, kinds: Collection[type] = (), strict: bool = True) -> Any:
    """The change that `to_dict` made this of, its parameters checked as always.

    Those that come with the package are known, and so are `kinds`. Anything else is an error, or, if not `strict`, an
    `UnknownChange`.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"a transformation must be a mapping with a name and its parameters, not {data!r}")
    name, parameters = data.get("name"), {key: value for key, value in data.items() if key != "name"}
    known = NAMES.get(name) if isinstance(name, str) else None
    kind: Any = next((each for each in kinds if each.__name__ == name), known)
    if kind is None:
        if strict:
            names = ", ".join({**NAMES, **{each.__name__: each for each in kinds}})
            raise InputError(f"no transformation {name!r}; those known are: {names}")
        return UnknownChange(str(name), parameters)
    if parameters.keys() != field_names(kind):
        needed, names = (", ".join(map(str, each)) or "none" for each in (field_names(kind), parameters))
        raise InputError(f"{name} needs the parameters {needed}, not {names}")
    return kind(**parameters)


@dataclasses.dataclass(frozen=True)
class UnknownChange:
    """A change whose class is unknown: it can be shown, but not applied."""

    name: str
    parameters: Mapping[str, Any] = dataclasses.field(hash=False)

    def __call__(self, value: Any) -> Any:
        raise InputError(f"{self} cannot be applied: pass the mutations that define {self.name}")

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.parameters.items())})"
