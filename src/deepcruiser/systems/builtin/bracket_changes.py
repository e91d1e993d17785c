"""Transformations of texts of brackets that keep them balanced, or unbalanced, for campaigns on `brackets`.

An inserted pair changes only the depth and the length of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


def _insert(text: str, where: float, new: str) -> str:
    at = int(where * (len(text) + 1))
    return text[:at] + new + text[at:]


def _position(rng: np.random.Generator) -> float:
    return round(float(rng.random()), 4) % 1.0


@dataclass(frozen=True)
class InsertRound:
    """Insert a pair of round brackets; `where` is the position in the text, from 0 (its start) to 1 (its end)."""

    where: float

    def __call__(self, text: str) -> str:
        return _insert(text, self.where, "()")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_position(rng))


@dataclass(frozen=True)
class InsertSquare:
    """Insert a pair of square brackets."""

    where: float

    def __call__(self, text: str) -> str:
        return _insert(text, self.where, "[]")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_position(rng))


@dataclass(frozen=True)
class SwapKinds:
    """Exchange round and square brackets."""

    def __call__(self, text: str) -> str:
        return text.translate(str.maketrans("()[]", "[]()"))

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls()


@dataclass(frozen=True)
class InsertLetter:
    """Insert a letter."""

    where: float
    letter: str

    def __call__(self, text: str) -> str:
        return _insert(text, self.where, self.letter)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(_position(rng), "ab"[rng.integers(2)])


FAMILIES = ((InsertRound,), (InsertSquare,), (SwapKinds,))
UNAFFECTED = (InsertLetter,)
KINDS = (InsertRound, InsertSquare, SwapKinds, InsertLetter)

#: Longer texts differ too much from the training texts.
LONGEST = 32


def too_long(seed: str, text: str) -> str | None:
    """The reason why a text is not a valid mutant, or None."""
    return f"too long: {len(text)} symbols" if len(text) > LONGEST else None
