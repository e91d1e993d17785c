"""Transformations of text that keep its meaning: typing errors, capitals, filler words and punctuation.

Words are separated by spaces. Words with digits are never changed, because another digit is another meaning.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.transformations.base import Change, Range, number

#: The letters of a keyboard; each row is shifted half a key to the right.
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

#: The minimum length of a word to change: short words easily become others, such as "on" and "in".
SHORTEST = 4


def _title(text: str) -> str:
    return re.sub(r"\S+", lambda word: word[0].capitalize(), text)  # str.title would write "Don'T"


STYLES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": _title}
#: "like" and "well" are left out because they can be praise.
FILLERS = ("uh", "um", "er", "so", "you know", "I mean")
MARKS = ",.;:!"


def _neighbours() -> dict[str, str]:
    """The keys next to each key: left, right, and the two above and below."""
    at = {key: (row, place + row / 2) for row, keys in enumerate(KEYBOARD) for place, key in enumerate(keys)}
    return {
        key: "".join(k for k, (r, p) in at.items() if k != key and abs(r - row) <= 1 and abs(p - place) <= 1)
        for key, (row, place) in at.items()
    }


NEIGHBOURS = _neighbours()


@dataclass(frozen=True)
class TextChange(Change):
    """A change of a text that keeps its meaning. The same value gives the same text."""

    @abstractmethod
    def __call__(self, text: str) -> str:
        """The changed text; the same text if nothing changes."""


@dataclass(frozen=True)
class _Share(TextChange):
    """A change at a `share` of the possible places, at least at one unless the share is 0."""

    share: float
    seed: int

    LIMITS: ClassVar[dict[str, Range]] = {"share": (0, 1)}
    RANGES: ClassVar[dict[str, Range]] = {"share": (0.05, 0.3)}

    def _chosen(self, places: Sequence[int], rng: np.random.Generator) -> list[int]:
        count = min(len(places), max(round(self.share * len(places)), 1 if self.share > 0 else 0))
        return sorted(rng.permutation(places)[:count].tolist(), reverse=True)


@dataclass(frozen=True)
class _Words(_Share):
    """A change of one letter, or of two neighbouring letters, in some words."""

    def __call__(self, text: str) -> str:
        parts = re.split(r"(\s+)", _checked(text))
        places = {at: inside for at, part in enumerate(parts) if (inside := self._places(part))}
        rng = np.random.default_rng(self.seed)
        for at in self._chosen(list(places), rng):
            parts[at] = self._changed(parts[at], places[at][rng.integers(len(places[at]))], rng)
        return "".join(parts)

    def _places(self, word: str) -> list[int]:
        """The positions in the word that can be changed, without the first and the last letter."""
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
    """In a `share` of the longer words, replace one inner letter by a neighbouring key."""

    def _can(self, word: str, at: int) -> bool:
        return word[at].lower() in NEIGHBOURS

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        beside = NEIGHBOURS[word[at].lower()]
        key = beside[rng.integers(len(beside))]
        return word[:at] + (key.upper() if word[at].isupper() else key) + word[at + 1 :]


@dataclass(frozen=True)
class SwapLetters(_Words):
    """In a `share` of the longer words, swap two neighbouring inner letters."""

    def _can(self, word: str, at: int) -> bool:
        inner = [place for place, letter in enumerate(word) if letter.isalpha()][1:-1]
        return at + 1 in inner and word[at] != word[at + 1]

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@dataclass(frozen=True)
class DropLetters(_Words):
    """In a `share` of the longer words, leave out one inner letter."""

    def _changed(self, word: str, at: int, rng: np.random.Generator) -> str:
        return word[:at] + word[at + 1 :]


@dataclass(frozen=True)
class ChangeCase(TextChange):
    """Write the whole text in a `style`: "lower", "upper" or "title"."""

    style: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.style, str) or self.style not in STYLES:
            raise InputError(f"ChangeCase: style must be one of {', '.join(STYLES)}, not {self.style!r}")

    def __call__(self, text: str) -> str:
        changed = STYLES[self.style](_checked(text))
        # Some letters do not survive a change of case, such as ß. Then the text stays as it is.
        return changed if changed.lower() == text.lower() else text

    @classmethod
    def draw(cls, rng: np.random.Generator, *, styles: Sequence[str] = tuple(STYLES), **ranges: Any) -> Self:
        """Draw one of the styles."""
        cls._drawn(rng, ranges)
        return cls(styles[int(rng.integers(len(styles)))])


@dataclass(frozen=True)
class FillerWords(_Share):
    """Insert the filler `word` ("um", "you know") before a `share` of the words."""

    word: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.word, str) or not self.word.strip():
            raise InputError(f"FillerWords: word must be a text that is not blank, not {self.word!r}")

    def __call__(self, text: str) -> str:
        starts = [match.start() for match in re.finditer(r"\S+", _checked(text))]
        for start in self._chosen(
            starts, np.random.default_rng(self.seed)
        ):  # from the end, so that positions stay valid
            text = f"{text[:start]}{self.word} {text[start:]}"
        return text

    @classmethod
    def draw(cls, rng: np.random.Generator, *, words: Sequence[str] = FILLERS, **ranges: Any) -> Self:
        """Draw the share and one of the words; pass `words` for other languages."""
        return cls(**cls._drawn(rng, ranges), word=words[int(rng.integers(len(words)))])


@dataclass(frozen=True)
class DoubleSpaces(_Share):
    """Double a `share` of the spaces."""

    def __call__(self, text: str) -> str:
        spaces = [at for at, character in enumerate(_checked(text)) if character == " "]
        for at in self._chosen(spaces, np.random.default_rng(self.seed)):
            text = f"{text[:at]} {text[at:]}"
        return text


@dataclass(frozen=True)
class DropPunctuation(TextChange):
    """Leave out commas, full stops and similar marks at the end of words; question marks carry meaning and stay."""

    def __call__(self, text: str) -> str:
        return re.sub(rf"(?<=\w)[{MARKS}](?=\s|$)", "", _checked(text))


Kinds = tuple[type[TextChange], ...]

#: At most one of each is applied: spelling, capitals and filler words.
SPELLING: Kinds = (Typos, SwapLetters, DropLetters)
CASE: Kinds = (ChangeCase,)
TALK: Kinds = (FillerWords,)
UNAFFECTED: Kinds = (DoubleSpaces, DropPunctuation)
FAMILIES: tuple[Kinds, ...] = (SPELLING, CASE, TALK)
KINDS: Kinds = SPELLING + CASE + TALK + UNAFFECTED


@dataclass(frozen=True)
class TextValidity:
    """The limits for a mutant of a text; `reason` says why it is rejected."""

    #: The mutant may be this many times as long as the seed, or this many characters longer if the text is short.
    max_stretch: float = 1.5
    max_more: int = 10
    #: This share of the seed's characters may be missing or replaced; capitals and insertions do not count.
    max_changed: float = 0.15

    def __post_init__(self) -> None:
        for name, least in (("max_stretch", 1), ("max_more", 0), ("max_changed", 0)):
            number(f"TextValidity: {name}", getattr(self, name), (least, np.inf))

    def reason(self, seed: str, mutant: str) -> str | None:
        """Why the mutant is rejected, in a few words; None if it is valid."""
        if not mutant.strip():
            return "empty"
        if mutant == seed:
            return "the same as the seed"
        if len(mutant) > max(len(seed) * self.max_stretch, len(seed) + self.max_more):
            return f"too long: {len(mutant)} characters for {len(seed)}"
        changed = lost(seed.lower(), mutant.lower())
        return f"too far from the seed: {changed:.0%} of its characters" if changed > self.max_changed else None


def lost(seed: str, mutant: str) -> float:
    """The share of the seed's characters, without spaces at its ends, that are missing or replaced in the mutant."""
    import jiwer

    if not seed.strip():
        return 0.0
    result = jiwer.process_characters(seed, mutant)
    return (result.substitutions + result.deletions) / len(seed.strip())


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise InputError(f"expected a text, not a {type(text).__name__}: give texts as inputs, or use other mutations")
    return text
