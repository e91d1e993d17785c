"""Changes of text: properties of all of them, the effect of each, and the gate."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.transformations import NAMES, apply, from_dict, to_dict
from deepcruiser.transformations.text import (
    FAMILIES,
    FILLERS,
    KEYBOARD,
    KINDS,
    NEIGHBOURS,
    SPELLING,
    UNAFFECTED,
    ChangeCase,
    DoubleSpaces,
    DropLetters,
    DropPunctuation,
    FillerWords,
    SwapLetters,
    TextChange,
    TextValidity,
    Typos,
    lost,
)

TEXT = "Please, turn the kitchen lights on; don't wake the children at 10:30pm!"
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
#: Sentences, and anything else that somebody may type.
texts = st.one_of(
    st.lists(st.sampled_from(TEXT.split()), max_size=12).map(" ".join),
    st.text(max_size=60),
    st.text("abcABC äß ,.!?7\n\t'", max_size=60),
)
seeds = st.integers(0, 2**32 - 1)


def drawn(kind: type[TextChange], seed: int = 0, **ranges: Any) -> TextChange:
    return kind.draw(np.random.default_rng(seed), **ranges)


def words_of(text: str) -> list[str]:
    return re.split(r"\s+", text)


@kinds
@settings(max_examples=100)
@given(text=texts, seed=seeds)
def test_the_same_value_the_same_text(kind: type[TextChange], text: str, seed: int) -> None:
    change = drawn(kind, seed)
    result = change(text)
    assert isinstance(result, str)
    assert change(text) == result
    back = from_dict(json.loads(json.dumps(to_dict(change))))
    assert back == change == pickle.loads(pickle.dumps(change))
    assert back(text) == result


@kinds
def test_values_are_values(kind: type[TextChange]) -> None:
    for seed in range(10):
        change = drawn(kind, seed)
        assert change == drawn(kind, seed) == eval(repr(change), {kind.__name__: kind})
        assert hash(change) == hash(replace(change))
        with pytest.raises(FrozenInstanceError):
            change.share = 3  # type: ignore[attr-defined]
    assert NAMES[kind.__name__] is kind
    with pytest.raises(dc.InputError, match="draws no 'amount'"):
        drawn(kind, amount=(0, 1))


@kinds
def test_draws_stay_within_the_ranges(kind: type[TextChange]) -> None:
    rng = np.random.default_rng(0)
    for change in (kind.draw(rng) for _ in range(200)):
        for name, (low, high) in kind.RANGES.items():
            assert low <= getattr(change, name) <= high
    if "share" in kind.RANGES:
        assert drawn(kind, share=(0.5, 0.5)).share == 0.5  # type: ignore[attr-defined]
        with pytest.raises(dc.InputError, match=f"{kind.__name__}: share must be a number from 0 to 1, not 1.5"):
            replace(drawn(kind), share=1.5)  # type: ignore[call-arg]


@kinds
def test_no_global_random_state(kind: type[TextChange]) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    for seed in range(5):
        drawn(kind, seed)(TEXT)
    assert np.random.get_state(legacy=False)["state"]["key"].tobytes() == before  # noqa: NPY002


@kinds
def test_each_finds_something_to_do(kind: type[TextChange]) -> None:
    assert any(drawn(kind, seed)(TEXT) != TEXT for seed in range(5))
    assert drawn(kind)("") == ""


@pytest.mark.parametrize("kind", SPELLING, ids=lambda kind: kind.__name__)
@settings(max_examples=200)
@given(text=texts, seed=seeds, share=st.floats(0, 1))
def test_one_letter_of_a_word_at_most(kind: Any, text: str, seed: int, share: float) -> None:
    result = kind(share, seed)(text)
    assert re.findall(r"\s+", result) == re.findall(r"\s+", text), "spaces stay"
    changed, can = 0, 0
    for before, after in zip(words_of(text), words_of(result), strict=True):
        letters = [letter for letter in before if letter.isalpha()]
        can += kind(1, 0)(before) != before
        if before == after:
            continue
        changed += 1
        assert len(letters) >= 4, "short words stay"
        assert not any(character.isdigit() for character in before)
        now = [letter for letter in after if letter.isalpha()]
        assert (now[0], now[-1]) == (letters[0], letters[-1]), "ends of words stay"
        if kind is DropLetters:
            assert after in {before[:at] + before[at + 1 :] for at in range(len(before))}
        elif kind is SwapLetters:
            swaps = [before[:a] + before[a + 1] + before[a] + before[a + 2 :] for a in range(len(before) - 1)]
            assert after in swaps
        else:
            ((old, new),) = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
            assert new.lower() in NEIGHBOURS[old.lower()]
            assert new.isupper() == old.isupper()
    assert changed == min(can, max(round(share * can), 1 if share else 0))


def test_the_keys_beside_a_key() -> None:
    assert set(NEIGHBOURS) == set("".join(KEYBOARD)) == set("abcdefghijklmnopqrstuvwxyz")
    assert set(NEIGHBOURS["g"]) == set("tyfhvb")
    assert set(NEIGHBOURS["q"]) == set("wa")
    assert set(NEIGHBOURS["m"]) == set("njk")
    for key, others in NEIGHBOURS.items():
        assert key not in others
        assert all(key in NEIGHBOURS[other] for other in others)


@settings(max_examples=300)
@given(text=texts, style=st.sampled_from(["lower", "upper", "title"]))
def test_case_keeps_the_letters(text: str, style: str) -> None:
    result = ChangeCase(style)(text)
    assert result.lower() == text.lower()
    assert len(result) == len(text) or result.lower() == text.lower()


def test_case() -> None:
    assert ChangeCase("upper")("Don't panic, it's 5") == "DON'T PANIC, IT'S 5"
    assert ChangeCase("lower")("Don't PANIC") == "don't panic"
    assert ChangeCase("title")("don't PANIC (now)") == "Don't Panic (now)"
    assert ChangeCase("upper")("straße") == "straße", "STRASSE would not come back"
    assert {drawn(ChangeCase, seed) for seed in range(30)} == {ChangeCase(s) for s in ("lower", "upper", "title")}
    assert drawn(ChangeCase, styles=["upper"]) == ChangeCase("upper")
    with pytest.raises(dc.InputError, match="ChangeCase: style must be one of lower, upper, title, not 'loud'"):
        ChangeCase("loud")


@settings(max_examples=200)
@given(text=texts, seed=seeds, share=st.floats(0, 1), word=st.sampled_from(FILLERS))
def test_fillers_are_put_in_and_nothing_else(text: str, seed: int, share: float, word: str) -> None:
    result = FillerWords(share, seed, word)(text)
    count = len(text.split())
    fillers = min(count, max(round(share * count), 1 if share else 0))
    assert Counter(result.split()) == Counter(text.split()) + Counter(word.split() * fillers)
    assert len(result) == len(text) + fillers * (len(word) + 1)
    assert all(letter in iter_ for iter_ in [iter(result)] for letter in text), "the text is there, in its order"


def test_fillers_of_ones_own() -> None:
    change = dc.Mutations.text(ranges={"FillerWords": {"words": ["äh"]}}).draw(FillerWords, np.random.default_rng(0))
    assert change.word == "äh"
    assert FillerWords(1, 0, "äh")("ganz gut") == "äh ganz äh gut"
    with pytest.raises(dc.InputError, match="FillerWords: word must be a text that is not blank, not ' '"):
        FillerWords(0.1, 0, " ")


@settings(max_examples=100)
@given(text=texts, seed=seeds, share=st.floats(0, 1))
def test_spaces(text: str, seed: int, share: float) -> None:
    result, spaces = DoubleSpaces(share, seed)(text), text.count(" ")
    assert result.count(" ") == spaces + min(spaces, max(round(share * spaces), 1 if share else 0))
    assert result.replace(" ", "") == text.replace(" ", "")
    assert re.sub(" +", " ", result) == re.sub(" +", " ", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Well, I see. Go on!", "Well I see Go on"),
        ("Is it?", "Is it?"),
        ("at 10:30, 3.5 metres; that's all...", "at 10:30 3.5 metres that's all..."),
        ("no marks", "no marks"),
        (", alone", ", alone"),
    ],
)
def test_punctuation(text: str, expected: str) -> None:
    assert DropPunctuation()(text) == expected


def test_families() -> None:
    assert {kind for S in FAMILIES for kind in S} | set(UNAFFECTED) == set(KINDS)
    mutations = dc.Mutations.text()
    assert mutations.allowed([]) == KINDS
    assert set(mutations.allowed([Typos(0.1, 1), DropPunctuation()])) == {ChangeCase, FillerWords, DoubleSpaces}
    assert mutations.allowed([Typos(0.1, 1), ChangeCase("upper"), FillerWords(0.1, 1, "um")]) == ()


def test_hardly_anything_that_the_ranges_make_is_rejected() -> None:
    mutations, rng = dc.Mutations.text(), np.random.default_rng(0)
    reasons: Counter[str | None] = Counter()
    for _ in range(500):
        recipe: list[Any] = []
        while (allowed := mutations.allowed(recipe)) and len(recipe) < 3:
            recipe.append(mutations.draw(allowed[rng.integers(len(allowed))], rng))
        reasons[mutations.invalid(TEXT, apply(recipe, TEXT))] += 1
    assert reasons[None] >= 490, reasons


@pytest.mark.parametrize(
    ("seed", "mutant", "reason"),
    [
        ("turn it on", "TURN IT ON", None),
        ("turn it on", "turn um it on", None),
        ("turn it on", "um turn um it um on", None),
        ("turn it on", "you know turn you know it you know on", "too long: 37 characters for 10"),
        ("turn it on", "turn at or", "too far from the seed: 20% of its characters"),
        ("turn it on", "turn it off", None),  # it counts letters, and knows no meaning
        ("turn it on", "turn it", "too far from the seed: 30% of its characters"),
        ("turn it on", "turn it on", "the same as the seed"),
        ("turn it on", "  ", "empty"),
        ("", "", "empty"),
        ("", "um", None),
    ],
)
def test_the_gate(seed: str, mutant: str, reason: str | None) -> None:
    assert TextValidity().reason(seed, mutant) == reason


def edits(one: str, other: str) -> int:
    """The edit distance, by its definition."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[:], i
        for j, b in enumerate(other, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
    return row[-1]


@settings(max_examples=200)
@given(st.text("ab", min_size=1, max_size=12), st.text("ab", max_size=12))
def test_what_is_lost_is_part_of_the_edit_distance(seed: str, mutant: str) -> None:
    assert edits(seed, mutant) / len(seed) >= lost(seed, mutant) >= max(0, len(seed) - len(mutant)) / len(seed)
    assert lost(seed, seed) == 0
    assert lost(seed, mutant + seed) == 0, "what is put in does not count"


@pytest.mark.parametrize("wrong", [None, 3, b"text", ["text"]], ids=repr)
@kinds
def test_what_is_no_text_is_refused(kind: type[TextChange], wrong: Any) -> None:
    with pytest.raises(dc.InputError, match="expected a text, not a"):
        drawn(kind)(wrong)
    with pytest.raises(dc.InputError, match="TextValidity: max_stretch must be a number from 1"):
        TextValidity(max_stretch=0)
