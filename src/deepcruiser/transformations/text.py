"""Changes of text that keep what is meant: how people type and talk.

Words are what stands between spaces. Words with digits are left alone, since a digit is easily another meaning.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jiwer
import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.transformations.base import Change, Range, number

#: The keys of a keyboard, each row half a key to the right of the one above.
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

#: Shorter words become others too easily: "on" and "in".
SHORTEST = 4


def _title(text: str) -> str:
    return re.sub(r"\S+", lambda word: word[0].capitalize(), text)  # str.title makes "Don'T" of "don't"


STYLES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": _title}
#: Not "like" or "well": those are words of praise as well.
FILLERS = ("uh", "um", "er", "so", "you know", "I mean")
MARKS = ",.;:!"


def _neighbours() -> dict[str, str]:
    """The keys beside each key: left, right, and the two above and below."""
    at = {key: (row, place + row / 2) for row, keys in enumerate(KEYBOARD) for place, key in enumerate(keys)}
    return {
        key: "".join(k for k, (r, p) in at.items() if k != key and abs(r - row) <= 1 and abs(p - place) <= 1)
        for key, (row, place) in at.items()
    }


NEIGHBOURS = _neighbours()


@dataclass(frozen=True)
class TextChange(Change):
    """A change of a text that keeps what is meant: the same value, the same text."""

    @abstractmethod
    def __call__(self, text: str) -> str:
        """The changed text; the same when there is nothing to change."""


@dataclass(frozen=True)
class _Share(TextChange):
    """A change in a `share` of the places where there is something to change, at least in one unless the share is 0."""

    share: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"share": (0, 1)}
    RANGES: ClassVar[dict[str, Range]] = {"share": (0.05, 0.3)}

    def _chosen(self, places: Sequence[int], rng: np.random.Generator) -> list[int]:
        count = min(len(places), max(round(self.share * len(places)), self.share > 0))
        return sorted(rng.permutation(places)[:count].tolist(), reverse=True)


@dataclass(frozen=True)
class _Words(_Share):
    """A change of one letter, or two beside each other, in some words."""

    def __call__(self, text: str) -> str:
        parts = re.split(r"(\s+)", _checked(text))
        places = {at: found for at, part in enumerate(parts) if (found := self._places(part))}
        rng = np.random.default_rng(self.seed)
        for at in self._chosen(list(places), rng):
            parts[at] = self._changed(parts[at], places[at][rng.integers(len(places[at]))], rng)
        return "".join(parts)

    def _places(self, word: str) -> list[int]:
        """Where the word can be changed: at some of its letters, but for the first and the last."""
        letters = [at for at, letter in enumerate(word) if letter.isalpha()]
        if len(letters) < SHORTEST or any(letter.isdigit() for letter in word):
            return []
        return [at for at in letters[1:-1] if self._can(word, at)]

    def _can(self, word: str, at: int) -> bool:
        return True

    @abstractmethod
    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str: ...


@dataclass(frozen=True)
class Typos(_Words):
    """In a `share` of the longer words, hit the key beside the right one, once; first and last letters are right."""

    def _can(self, word: str, at: int) -> bool:
        return word[at].lower() in NEIGHBOURS

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        beside = NEIGHBOURS[word[at].lower()]
        key = beside[rng.integers(len(beside))]
        return word[:at] + (key.upper() if word[at].isupper() else key) + word[at + 1 :]


@dataclass(frozen=True)
class SwapLetters(_Words):
    """In a `share` of the longer words, type two letters in the wrong order, once; the first and the last are right."""

    def _can(self, word: str, at: int) -> bool:
        inner = [place for place, letter in enumerate(word) if letter.isalpha()][1:-1]
        return at + 1 in inner and word[at] != word[at + 1]

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@dataclass(frozen=True)
class DropLetters(_Words):
    """In a `share` of the longer words, leave out a letter, once; the first and the last are there."""

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        return word[:at] + word[at + 1 :]


@dataclass(frozen=True)
class ChangeCase(TextChange):
    """Write everything in a `style`: "lower", "upper" or "title"."""

    style: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.style not in STYLES:
            raise InputError(f"ChangeCase: style must be one of {', '.join(STYLES)}, not {self.style!r}")

    def __call__(self, text: str) -> str:
        changed = STYLES[self.style](_checked(text))
        # ß has no capital that comes back as itself: where letters would be others, the text stays.
        return changed if changed.lower() == text.lower() else text

    @classmethod
    def draw(cls, rng: np.random.Generator, *, styles: Sequence[str] = tuple(STYLES), **ranges: Any) -> Self:
        """Choose one of the styles."""
        cls._drawn(rng, ranges)
        return cls(styles[int(rng.integers(len(styles)))])


@dataclass(frozen=True)
class FillerWords(_Share):
    """Say `word`, which means nothing ("um", "you know"), before a `share` of the words."""

    word: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.word, str) or not self.word.strip():
            raise InputError(f"FillerWords: word must be a text that is not blank, not {self.word!r}")

    def __call__(self, text: str) -> str:
        starts = [found.start() for found in re.finditer(r"\S+", _checked(text))]
        for start in self._chosen(starts, np.random.default_rng(self.seed)):  # the last one first
            text = f"{text[:start]}{self.word} {text[start:]}"
        return text

    @classmethod
    def draw(cls, rng: np.random.Generator, *, words: Sequence[str] = FILLERS, **ranges: Any) -> Self:
        """Choose how often it comes, and one of the words, of which other languages have others."""
        return cls(**cls._drawn(rng, ranges), word=words[int(rng.integers(len(words)))])


@dataclass(frozen=True)
class DoubleSpaces(_Share):
    """Type a `share` of the spaces twice."""

    def __call__(self, text: str) -> str:
        spaces = [at for at, character in enumerate(_checked(text)) if character == " "]
        for at in self._chosen(spaces, np.random.default_rng(self.seed)):
            text = f"{text[:at]} {text[at:]}"
        return text


@dataclass(frozen=True)
class DropPunctuation(TextChange):
    """Leave out commas, full stops and the like where a word ends; question marks stay, for they mean something."""

    def __call__(self, text: str) -> str:
        return re.sub(rf"(?<=\w)[{MARKS}](?=\s|$)", "", _checked(text))


Kinds = tuple[type[TextChange], ...]

#: At most one of each may come: how words are spelt, capitals, and words without meaning.
SPELLING: Kinds = (Typos, SwapLetters, DropLetters)
CASE: Kinds = (ChangeCase,)
TALK: Kinds = (FillerWords,)
UNAFFECTED: Kinds = (DoubleSpaces, DropPunctuation)
FAMILIES: tuple[Kinds, ...] = (SPELLING, CASE, TALK)
KINDS: Kinds = SPELLING + CASE + TALK + UNAFFECTED


@dataclass(frozen=True)
class TextValidity:
    """What a mutant of a text may be; `reason` says why one is not."""

    #: The mutant may be so many times as long as the seed, or have this many characters more, as in a short text.
    max_stretch: float = 1.5
    max_more: int = 10
    #: This share of the seed's characters may be missing or others; capitals and characters put in do not count.
    max_changed: float = 0.15

    def __post_init__(self) -> None:
        for name, least in (("max_stretch", 1), ("max_more", 0), ("max_changed", 0)):
            number(f"TextValidity: {name}", getattr(self, name), (least, np.inf))

    def reason(self, seed: str, mutant: str) -> str | None:
        """Why the mutant is not worth a run, in a few words; None when it is."""
        if not mutant.strip():
            return "empty"
        if mutant == seed:
            return "the same as the seed"
        if len(mutant) > max(len(seed) * self.max_stretch, len(seed) + self.max_more):
            return f"too long: {len(mutant)} characters for {len(seed)}"
        changed = lost(seed.lower(), mutant.lower())
        return f"too far from the seed: {changed:.0%} of its characters" if changed > self.max_changed else None


def lost(seed: str, mutant: str) -> float:
    """The share of the seed's characters, but for spaces at its ends, that are missing or others in the mutant."""
    if not seed.strip():
        return 0.0
    found = jiwer.process_characters(seed, mutant)
    return (found.substitutions + found.deletions) / len(seed.strip())


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise InputError(f"a text was needed, not a {type(text).__name__}: give texts as inputs, or other mutations")
    return text
