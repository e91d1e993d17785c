"""Changes of a text of brackets that keep it balanced, or unbalanced: what a campaign does to `brackets`.

A pair put in anywhere cancels out, and so changes nothing but how deep and how long a text is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


def _put(text: str, where: float, new: str) -> str:
    at = int(where * (len(text) + 1))
    return text[:at] + new + text[at:]


def _place(rng: np.random.Generator) -> float:
    return round(float(rng.random()), 4) % 1.0


@dataclass(frozen=True)
class InsertRound:
    """Put in a pair of round brackets; `where` is the place as a share of the text, 0 before it and 1 behind it."""

    where: float

    def __call__(self, text: str) -> str:
        return _put(text, self.where, "()")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_place(rng))


@dataclass(frozen=True)
class InsertSquare:
    """Put in a pair of square brackets."""

    where: float

    def __call__(self, text: str) -> str:
        return _put(text, self.where, "[]")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_place(rng))


@dataclass(frozen=True)
class SwapKinds:
    """Make round brackets square and square ones round."""

    def __call__(self, text: str) -> str:
        return text.translate(str.maketrans("()[]", "[]()"))

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls()


@dataclass(frozen=True)
class InsertLetter:
    """Put in a letter."""

    where: float
    letter: str

    def __call__(self, text: str) -> str:
        return _put(text, self.where, self.letter)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_place(rng), "ab"[rng.integers(2)])


FAMILIES = ((InsertRound,), (InsertSquare,), (SwapKinds,))
UNAFFECTED = (InsertLetter,)
KINDS = (InsertRound, InsertSquare, SwapKinds, InsertLetter)

#: Longer texts would be too far from what the network was trained on.
LONGEST = 32


def too_long(seed: str, text: str) -> str | None:
    """Why a text is no valid mutant, or None."""
    return f"too long: {len(text)} symbols" if len(text) > LONGEST else None
