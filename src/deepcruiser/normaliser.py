"""Texts as they are compared: without differences in case, punctuation, spacing, or the way numbers are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from deepcruiser.errors import InputError

#: The differences that can be ignored.
DIFFERENCES = ("case", "punctuation", "spacing", "numbers")

_UNDER_TWENTY = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_LARGE = ("thousand", "million", "billion")
_NUMBER_WORD = "|".join([*_UNDER_TWENTY, *_TENS, "hundred", *_LARGE])
_DIGITS = re.compile(r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?(?![\w]|[.,]\d)")
_HYPHEN = re.compile(rf"\b({'|'.join(_TENS)})-(?=({'|'.join(_UNDER_TWENTY[1:10])})\b)", re.IGNORECASE)
_AND = re.compile(rf"\b(hundred|{'|'.join(_LARGE)}) and (?=({_NUMBER_WORD})\b)", re.IGNORECASE)
_DASH = re.compile(r"(?<=\w)[-\u2010-\u2015/](?=\w)")


def check_differences(differences: Iterable[str]) -> tuple[str, ...]:
    """The names of the differences to ignore, in the order of `DIFFERENCES`."""
    names = (differences,) if isinstance(differences, str) else tuple(differences)
    for name in names:
        if name not in DIFFERENCES:
            raise InputError(f"cannot normalise {name!r}: choose from {', '.join(DIFFERENCES)}")
    return tuple(name for name in DIFFERENCES if name in names)


def normalise(text: str, differences: Sequence[str]) -> str:
    """A text with single spaces, and without the differences that a single text can be freed of.

    That is all of them but "spacing", which takes two texts: see `respace`.
    """
    if "numbers" in differences:
        text = _AND.sub(r"\1 ", _HYPHEN.sub(r"\1 ", _DIGITS.sub(_spelled_out, text)))
    if "punctuation" in differences:
        text = "".join(c for c in _DASH.sub(" ", text) if not unicodedata.category(c).startswith("P"))
    if "case" in differences:
        text = text.lower()
    return " ".join(text.split())


def respace(reference: str, output: str) -> str:
    """The output with its spaces where the reference has them, wherever neighbouring words have the same letters.

    "the sun set was read" becomes "the sunset was read" for the reference "the sunset was red". Of all ways to pair
    such words it takes one with the fewest wrong words.
    """
    expected, words = reference.split(), output.split()
    if "".join(expected) == "".join(words):
        return " ".join(expected)
    groups = _groups(expected, words)
    return " ".join(_best_path(expected, words, groups)) if groups else " ".join(words)


Group = tuple[int, int]


def _groups(expected: Sequence[str], words: Sequence[str]) -> dict[Group, Group]:
    """From each pair of places where unlike words begin that are the same letters: the places after them."""
    groups = {}
    for i, one in enumerate(expected):
        for j, other in enumerate(words):
            if one != other and (one.startswith(other) or other.startswith(one)):
                end = _end_of_group(expected, words, i, j)
                if end is not None:
                    groups[i, j] = end
    return groups


def _end_of_group(expected: Sequence[str], words: Sequence[str], i: int, j: int) -> Group | None:
    """Take a word from the side with fewer letters until both have the same; None if they differ."""
    one, other = expected[i], words[j]
    i, j = i + 1, j + 1
    while one != other:
        if len(one) < len(other):
            if not other.startswith(one) or i == len(expected):
                return None
            one, i = one + expected[i], i + 1
        else:
            if not one.startswith(other) or j == len(words):
                return None
            other, j = other + words[j], j + 1
    return i, j


def _best_path(expected: Sequence[str], words: Sequence[str], groups: dict[Group, Group]) -> list[str]:
    """The edit distance by words, in which a group costs nothing; the words along a cheapest path."""
    costs: dict[Group, int] = {(0, 0): 0}
    came_from: dict[Group, Group] = {}

    def reach(place: Group, before: Group, cost: int) -> None:
        if cost < costs.get(place, cost + 1):
            costs[place], came_from[place] = cost, before

    for i in range(len(expected) + 1):
        for j in range(len(words) + 1):
            cost = costs[i, j]
            if (i, j) in groups:
                reach(groups[i, j], (i, j), cost)
            if i < len(expected) and j < len(words):
                reach((i + 1, j + 1), (i, j), cost + (expected[i] != words[j]))
            if i < len(expected):
                reach((i + 1, j), (i, j), cost + 1)
            if j < len(words):
                reach((i, j + 1), (i, j), cost + 1)
    parts: list[Sequence[str]] = []
    place = (len(expected), len(words))
    while place != (0, 0):
        before = came_from[place]
        is_group = groups.get(before) == place
        parts.append(expected[before[0] : place[0]] if is_group else words[before[1] : place[1]])
        place = before
    return [word for part in reversed(parts) for word in part]


def _spelled_out(number: re.Match[str]) -> str:
    whole, decimals = number[1].replace(",", ""), number[2]
    by_digit = len(whole) > 12 or (len(whole) > 1 and whole.startswith("0"))
    words = [_UNDER_TWENTY[int(digit)] for digit in whole] if by_digit else _cardinal(int(whole))
    return " ".join([*words, *(["point", *(_UNDER_TWENTY[int(digit)] for digit in decimals)] if decimals else ())])


def _cardinal(number: int) -> list[str]:
    """The English words of a number below 10^12."""
    if number < 20:
        return [_UNDER_TWENTY[number]]
    if number < 100:
        return [_TENS[number // 10 - 2], *(_cardinal(number % 10) if number % 10 else ())]
    if number < 1000:
        return [_UNDER_TWENTY[number // 100], "hundred", *(_cardinal(number % 100) if number % 100 else ())]
    power = (len(str(number)) - 1) // 3
    rest = number % 1000**power
    return [*_cardinal(number // 1000**power), _LARGE[power - 1], *(_cardinal(rest) if rest else ())]
