"""Drawing changes for many candidates at once: kinds by the rule of families, parameters by their places, all in numpy.

A place is where a parameter lies in the range that it is drawn from, 0 to 1. Changes are made only of the candidates
that are chosen; a kind whose ranges cannot be set from outside has no places and draws its parameters when it is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.campaign.mutations import Mutations
from deepcruiser.errors import InputError
from deepcruiser.transformations.severity import severity as severity_of_recipe
from deepcruiser.transformations.severity import severity_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: The most changes that one run adds to a test.
MOST_CHANGES = 3
#: The kinds of a recipe are the bits of an integer of 64 bits.
_MOST_KINDS = 62
#: How often a change that exceeds the budget is drawn again.
_TRIES = 4
#: Drawn numbers have four digits, so a severity may be off by this much.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class _Kind:
    """A kind of change, with the parameters that have a place and the range of each."""

    type: Any
    names: tuple[str, ...]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, kind: Any, mutations: Mutations) -> _Kind:
        ranges = mutations.ranges.get(kind.__name__, {})
        free = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(kind.draw).parameters.values())
        names = tuple(getattr(kind, "RANGES", {})) if free else ()
        ends = np.array([tuple(ranges.get(name, kind.RANGES[name])) for name in names], np.float64).reshape(-1, 2)
        return cls(kind, names, ends[:, 0], ends[:, 1])

    def values(self, places: Floats) -> Floats:
        """The parameters at these places [..., parameters]."""
        return self.low + places[..., : len(self.names)] * (self.high - self.low)

    def places(self, change: Any) -> list[float]:
        """The places of the parameters of a change."""
        ends = zip(self.names, self.low.tolist(), self.high.tolist(), strict=True)
        places = [
            (float(getattr(change, name)) - low) / (high - low if high > low else 1.0) for name, low, high in ends
        ]
        return [min(max(place, 0.0), 1.0) for place in places]

    def severity(self, places: Floats) -> Any:
        values = dict(zip(self.names, self.values(places).T, strict=True))
        return severity_of(self.type, values.__getitem__) if values else 1.0


@dataclass(frozen=True, eq=False)
class Candidates:
    """Changes that might be applied to tests, a row for each candidate.

    `kinds` [candidates, changes] are numbers of kinds in order, -1 where there is no change; `places` [candidates,
    changes, parameters] belong to them. `severity` is that of the whole recipe. A candidate without any change
    found no room in the budget.
    """

    kinds: Ints
    places: Floats
    severity: Floats

    @property
    def count(self) -> Ints:
        """The number of changes of each."""
        return np.asarray((self.kinds >= 0).sum(1))


class Drawing:
    """Draws candidates of a campaign's mutations, none more severe than its budget."""

    def __init__(self, mutations: Mutations, budget: float) -> None:
        if len(mutations.kinds) > _MOST_KINDS:
            raise InputError(f"at most {_MOST_KINDS} kinds of change can be used at once, not {len(mutations.kinds)}")
        self.mutations, self.budget = mutations, budget
        self.kinds = [_Kind.of(kind, mutations) for kind in mutations.kinds]
        self.number = {kind.type: number for number, kind in enumerate(self.kinds)}
        self.parameters = max([1, *(len(kind.names) for kind in self.kinds)])
        #: 1 for every parameter that a kind has, 0 elsewhere.
        self.has = np.array([[at < len(kind.names) for at in range(self.parameters)] for kind in self.kinds], float)
        self._allowed: dict[int, npt.NDArray[np.bool_]] = {}

    def allowed(self, recipe: tuple[Any, ...]) -> Sequence[Any]:
        """The kinds of change that may follow a recipe; none where it is as severe as the budget."""
        return self.mutations.allowed(recipe) if severity_of_recipe(recipe) < self.budget else ()

    def applied(self, recipe: Sequence[Any]) -> int:
        """The kinds of a recipe as bits."""
        bits = 0
        for change in recipe:
            bits |= 1 << self.number[type(change)]
        return bits

    def draw(
        self, applied: Sequence[int] | Ints, severity: Floats, count: Ints, rng: np.random.Generator
    ) -> Candidates:
        """Candidates of up to `count` changes each, for tests with these kinds applied and these severities."""
        bits, severity, size = np.array(applied, np.int64), severity.copy(), len(severity)
        most = int(count.max(initial=0))
        kinds = np.full((size, most), -1)
        places = np.zeros((size, most, self.parameters))
        for step in range(most):
            waiting = np.flatnonzero((count > step) & (kinds[:, step - 1] >= 0 if step else True))
            for _ in range(_TRIES):
                if not len(waiting):
                    break
                different, same = np.unique(bits[waiting], return_inverse=True)
                allowed = np.array([self._row(each) for each in different.tolist()])[same]
                drawn = np.where(allowed, rng.random(allowed.shape), -1.0)
                kind, place = drawn.argmax(1), rng.random((len(waiting), self.parameters))
                added = self.severities(kind, place)
                fits = allowed.any(1) & (severity[waiting] + added <= self.budget + _ROUNDING)
                rows = waiting[fits]
                kinds[rows, step], places[rows, step] = kind[fits], place[fits]
                severity[rows] += added[fits]
                bits[rows] |= np.left_shift(1, kind[fits])
                waiting = waiting[~fits]
        return Candidates(kinds, places, severity)

    def severities(self, kinds: Ints, places: Floats) -> Floats:
        """The severity of each change, of these kinds at these places."""
        result = np.zeros(len(kinds))
        for number in np.unique(kinds):
            if number >= 0:
                rows = kinds == number
                result[rows] = self.kinds[number].severity(places[rows])
        return result

    def make(self, candidates: Candidates, row: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """The changes of a candidate."""
        changes = []
        for number, places in zip(candidates.kinds[row].tolist(), candidates.places[row], strict=True):
            if number >= 0:
                kind = self.kinds[number]
                values = [float(f"{value:.4g}") for value in kind.values(places)]
                inside = np.clip(values, kind.low, kind.high).tolist()
                pinned = {name: (value, value) for name, value in zip(kind.names, inside, strict=True)}
                ranges = {**self.mutations.ranges.get(kind.type.__name__, {}), **pinned}
                changes.append(kind.type.draw(rng, **ranges))
        return tuple(changes)

    def candidate(self, changes: Sequence[Any], severity: float) -> Candidates:
        """Changes that were made, as a candidate for a test of that severity."""
        kinds = [self.number[type(change)] for change in changes]
        known = [self.kinds[kind].places(change) for kind, change in zip(kinds, changes, strict=True)]
        filled = [[*each, *[0.0] * (self.parameters - len(each))] for each in known]
        places = np.array(filled, float).reshape(1, len(changes), self.parameters)
        return Candidates(np.array([kinds], np.int64), places, np.array([severity + severity_of_recipe(changes)]))

    def no_room(self) -> InputError:
        """The error when no change fits into the budget."""
        return InputError(
            f"no change fits into a severity of {self.budget:g}: raise --severity, or draw milder changes (--range)"
        )

    def _row(self, applied: int) -> npt.NDArray[np.bool_]:
        """Which kinds may follow those applied."""
        if applied not in self._allowed:
            kinds = [kind.type for number, kind in enumerate(self.kinds) if applied >> number & 1]
            allowed = self.mutations.allowed(kinds)
            self._allowed[applied] = np.array([kind.type in allowed for kind in self.kinds])
        return self._allowed[applied]
