"""How texts are normalised before they are compared."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcruiser.normaliser import normalise, respace


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"),
        ("7", "seven"),
        ("13", "thirteen"),
        ("40", "forty"),
        ("21", "twenty one"),
        ("105", "one hundred five"),
        ("1000", "one thousand"),
        ("1,234", "one thousand two hundred thirty four"),
        ("999999999999", "nine hundred ninety nine billion nine hundred ninety nine million "
                         "nine hundred ninety nine thousand nine hundred ninety nine"),
        ("1000000000000", "one zero zero zero zero zero zero zero zero zero zero zero zero"),
        ("007", "zero zero seven"),
        ("3.14", "three point one four"),
        ("take 2, or 3.", "take two, or three."),
        ("mp3 at 7th", "mp3 at 7th"),
        ("1.2.3", "1.2.3"),
        ("twenty-one", "twenty one"),
        ("one hundred and five", "one hundred five"),
        ("one hundred and ten men", "one hundred ten men"),
        ("one hundred and more", "one hundred and more"),
    ],
)  # fmt: skip
def test_numbers_in_words(digits: str, words: str) -> None:
    assert normalise(digits, ["numbers"]) == words
    assert normalise(words, ["numbers"]) == words


@given(st.integers(0, 10**12 - 1))
def test_every_number_has_words_of_its_own(number: int) -> None:
    """Read back by the rules of English: a word adds, hundred multiplies, thousand and above end a part."""
    under = dict(zip("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                     "sixteen seventeen eighteen nineteen".split(), range(20), strict=True))  # fmt: skip
    under |= dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
    total, part = 0, 0
    for word in normalise(str(number), ["numbers"]).split():
        if word == "hundred":
            part *= 100
        elif word in ("thousand", "million", "billion"):
            total, part = total + part * {"thousand": 10**3, "million": 10**6, "billion": 10**9}[word], 0
        else:
            part += under[word]
    assert total + part == number


@pytest.mark.parametrize(
    ("reference", "output", "respaced"),
    [
        ("the sunset was red", "the sun set was red", "the sunset was red"),
        ("the sun set was red", "the sunset was red", "the sun set was red"),
        ("the sunset was red", "the sun set was read", "the sunset was read"),
        ("red sunset", "bed sun set", "bed sunset"),
        ("i can not", "i cannot", "i can not"),
        ("ab cd e", "a bcd e", "ab cd e"),
        ("a b", "a c", "a c"),
        ("", "a b", "a b"),
        ("a b", "", ""),
        # "in a" is there twice, and only one of them was joined
        ("in a box in a box", "ina box in a box", "in a box in a box"),
    ],
)
def test_respace(reference: str, output: str, respaced: str) -> None:
    assert respace(reference, output) == respaced


texts = st.lists(st.text("ab", min_size=1, max_size=3), max_size=6).map(" ".join)


@given(texts, texts)
def test_respacing_costs_what_the_cheapest_pairing_does(reference: str, output: str) -> None:
    expected, words = reference.split(), output.split()

    @cache
    def cheapest(i: int, j: int) -> int:
        """Every last step: a word deleted, inserted or substituted, or any two groups with the same letters."""
        if i == j == 0:
            return 0
        ways = [cheapest(i - 1, j) + 1] if i else []
        ways += [cheapest(i, j - 1) + 1] if j else []
        ways += [cheapest(i - 1, j - 1) + (expected[i - 1] != words[j - 1])] if i and j else []
        for a in range(i):
            for b in range(j):
                if "".join(expected[a:i]) == "".join(words[b:j]):
                    ways.append(cheapest(a, b))
        return min(ways)

    respaced = respace(reference, output)
    assert respaced.replace(" ", "") == output.replace(" ", ""), "only spaces move"
    assert _distance(expected, respaced.split()) <= cheapest(len(expected), len(words))
    assert respace(reference, respaced) == respaced
    if reference.replace(" ", "") == output.replace(" ", ""):
        assert respaced == reference


def _distance(one: list[str], other: list[str]) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
