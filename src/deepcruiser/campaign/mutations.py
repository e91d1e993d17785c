"""The changes that a campaign may make to an input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Self

import numpy as np

from deepcruiser.errors import DeepCruiserError, InputError, described
from deepcruiser.transformations import EXTRA, FAMILIES, PAPER, UNAFFECTED, Validity, allowed, series, text


def never_invalid(seed: Any, mutant: Any) -> str | None:
    """The gate that lets every mutant through."""
    return None


@dataclass(frozen=True)
class Mutations:
    """The kinds of transformation that a campaign draws from, the rule that combines them, and the check of mutants.

    `invalid(seed, mutant)` says why a mutant is not valid, or returns None. `ranges` overrides those of single kinds:
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
    def of(
        cls, name: str, *, kinds: Iterable[str] | None = None, ranges: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Self:
        """Transformations of "sound", "text" or "series" by name, by default all that a campaign uses."""
        ready = READY_MADE[name]
        default = PAPER if name == "sound" else ready.kinds
        chosen = default if kinds is None else _named(kinds, ready.kinds)
        return cls(chosen, ready.families, ready.unaffected, ready.invalid, ranges or {})

    @classmethod
    def sound(cls, kinds: Iterable[str] | None = None, ranges: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Transformations of sound by name, by default the paper's nine; `AddBackgroundNoise` needs a folder in its
        ranges."""
        return cls.of("sound", kinds=kinds, ranges=ranges)

    @classmethod
    def series(cls, kinds: Iterable[str] | None = None, ranges: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Transformations of numeric series, arrays [time] or [time, channels]: noise, scale, offset, warped time,
        losses."""
        return cls.of("series", kinds=kinds, ranges=ranges)

    @classmethod
    def text(cls, kinds: Iterable[str] | None = None, ranges: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Transformations of text: typing errors, capitals, filler words, spaces and punctuation."""
        return cls.of("text", kinds=kinds, ranges=ranges)

    def allowed(self, applied: Iterable[Any]) -> tuple[Any, ...]:
        """The kinds that may follow the applied ones; empty if the test is spent."""
        return allowed(applied, self.kinds, families=self.families, unaffected=self.unaffected)

    @property
    def type(self) -> str:
        """The type of input: "sound", "text", "series", or "own" for your own mutations."""
        for name, ready in READY_MADE.items():
            rules = (self.families, self.unaffected, self.gate)
            if rules == (ready.families, ready.unaffected, ready.gate) and set(self.kinds) <= set(ready.kinds):
                return name
        return "own"

    @property
    def description(self) -> dict[str, Any]:
        """Everything that determines the mutants."""
        description: dict[str, Any] = {"kinds": [kind.__name__ for kind in self.kinds], "ranges": dict(self.ranges)}
        if self.type == "own":
            families = [[kind.__name__ for kind in self.kinds if kind in S] for S in (*self.families, self.unaffected)]
            description["families"] = ["+".join(names) for names in families]
            description["valid"] = self.gate
        return description

    @property
    def gate(self) -> str:
        """A description of the check of mutants."""
        gate = getattr(self.invalid, "__self__", None)
        return repr(gate) if is_dataclass(gate) else getattr(self.invalid, "__qualname__", "")

    def draw(self, kind: Any, rng: np.random.Generator) -> Any:
        """A transformation of that kind with random parameters."""
        try:
            return kind.draw(rng, **self.ranges.get(kind.__name__, {}))
        except DeepCruiserError:
            raise
        except (Exception, SystemExit) as error:  # a user's transformation may raise anything
            raise InputError(f"{kind.__name__} cannot be drawn: {described(error)}") from error

    def check(self, value: Any) -> None:
        """Refuse inputs that no kind can be applied to, such as texts if the kinds are for sound."""
        message = ""
        for kind in self.kinds:
            try:
                self.draw(kind, np.random.default_rng(0))(value)
            except (Exception, SystemExit) as error:  # a user's transformation may raise anything
                message = message or f"{kind.__name__}: {described(error)}"
            else:
                return
        if message:
            raise InputError(
                f"no transformation can be applied to an input of the type {type(value).__name__} ({message}); for "
                "text and numeric series, use mutations=Mutations.text() or Mutations.series(), or --mutations text "
                "or --mutations series"
            )


#: All mutations of the package, by the type of input. Those for sound include the kinds beyond the paper.
READY_MADE = {
    "sound": Mutations(PAPER + EXTRA),
    "text": Mutations(text.KINDS, text.FAMILIES, text.UNAFFECTED, text.TextValidity().reason),
    "series": Mutations(series.KINDS, series.FAMILIES, (), series.SeriesValidity().reason),
}


def _named(names: Iterable[str], known: tuple[Any, ...]) -> tuple[Any, ...]:
    """The kinds with these names, in their own order; capitals do not matter."""
    by_name = {kind.__name__.lower(): kind for kind in known}
    for name in (names := list(names)):
        if name.lower() not in by_name:
            raise InputError(f"unknown transformation {name!r}; choose from: {', '.join(k.__name__ for k in known)}")
    wanted = {name.lower() for name in names}
    return tuple(kind for name, kind in by_name.items() if name in wanted)
