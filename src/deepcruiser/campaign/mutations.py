"""What a campaign may do to an input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Protocol, Self

import numpy as np

from deepcruiser.campaign.serialise import as_json
from deepcruiser.errors import InputError
from deepcruiser.transformations import EXTRA, FAMILIES, NAMES, PAPER, UNAFFECTED, Validity, allowed, series, text


class Mutation(Protocol):
    """A transformation of some kind of input with its parameters chosen: a frozen dataclass of plain values."""

    def __call__(self, value: Any, /) -> Any: ...

    @classmethod
    def draw(cls, rng: np.random.Generator, **ranges: Any) -> Self: ...


@dataclass(frozen=True)
class Mutations:
    """The kinds of transformation that a campaign draws from, how they combine, and when a mutant is still valid.

    `invalid(seed, mutant)` says why a mutant is none, or None. `ranges` overrides those of single kinds:
    `{"AddWhiteNoise": {"snr_db": (25, 40)}}`.
    """

    kinds: tuple[Any, ...] = PAPER
    families: tuple[tuple[Any, ...], ...] = FAMILIES
    unaffected: tuple[Any, ...] = UNAFFECTED
    invalid: Callable[[Any, Any], str | None] = Validity().reason
    ranges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [kind.__name__ for kind in self.kinds]
        if unknown := set(self.ranges) - set(names):
            raise InputError(f"ranges for {', '.join(sorted(unknown))}, but the kinds are: {', '.join(names)}")

    @classmethod
    def everything(cls) -> Self:
        """All transformations of sound, those beyond the paper as well."""
        return cls(kinds=PAPER + EXTRA)

    @classmethod
    def series(cls, ranges: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Those of numeric series, arrays [time] or [time, channels]: noise, other swings, warped time, losses."""
        return cls(series.KINDS, series.FAMILIES, (), series.SeriesValidity().reason, ranges or {})

    @classmethod
    def text(cls, ranges: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Those of text: typing errors, capitals, filler words, spaces and punctuation."""
        return cls(text.KINDS, text.FAMILIES, text.UNAFFECTED, text.TextValidity().reason, ranges or {})

    def allowed(self, applied: Iterable[Any]) -> tuple[Any, ...]:
        """The kinds that may follow those applied; none when the test is spent."""
        return allowed(applied, self.kinds, families=self.families, unaffected=self.unaffected)

    def described(self) -> dict[str, Any]:
        """All that decides which mutants there are, as JSON holds it."""
        families = [[kind.__name__ for kind in self.kinds if kind in S] for S in (*self.families, self.unaffected)]
        gate = getattr(self.invalid, "__self__", None)
        return {
            "kinds": [kind.__name__ for kind in self.kinds],
            "families": ["+".join(names) for names in families],
            "ranges": as_json(dict(self.ranges)),
            "valid": repr(gate) if is_dataclass(gate) else getattr(self.invalid, "__qualname__", ""),
        }

    def draw(self, kind: Any, rng: np.random.Generator) -> Any:
        """A transformation of that kind with random parameters."""
        return kind.draw(rng, **self.ranges.get(kind.__name__, {}))

    def check(self, value: Any) -> None:
        """Refuse inputs that no kind can be applied to, such as texts where the kinds are those of sound."""
        said = ""
        for kind in self.kinds:
            try:
                self.draw(kind, np.random.default_rng(0))(value)
            except Exception as error:  # whatever a user's transformation raises
                said = said or f"{kind.__name__}: {type(error).__name__}: {error}"
            else:
                return
        if said:
            raise InputError(
                f"no transformation can be applied to an input of the type {type(value).__name__} ({said}); for text "
                "and for numeric series there are mutations=Mutations.text() and Mutations.series(), or --mutations "
                "text and --mutations series"
            )

    def to_dict(self, transformation: Any) -> dict[str, Any]:
        """A transformation as JSON holds it: `{"name": "ChangeSpeed", "factor": 1.07}`."""
        return {"name": type(transformation).__name__, **asdict(transformation)}

    def from_dict(self, data: Mapping[str, Any]) -> Any:
        """The transformation that `to_dict` made this of; all that come with the package are known in any case."""
        for kind in (*self.kinds, *NAMES.values()):
            if kind.__name__ == data["name"]:
                return kind(**{item.name: data[item.name] for item in fields(kind)})
        raise InputError(
            f"no transformation {data['name']!r} in this campaign; its kinds are: "
            f"{', '.join(kind.__name__ for kind in self.kinds)}"
        )
