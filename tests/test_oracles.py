"""When an answer is a failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import deepcruiser as dc
from deepcruiser.oracles import is_finite


@pytest.mark.parametrize(
    ("reference", "output", "words", "characters"),
    [
        ("open the door", "open the door", 0, 0),
        ("open the door", "open a door", 1 / 3, 3 / 13),
        ("open the door", "hope in the door", 2 / 3, 3 / 13),
        ("open the door", "the door", 1 / 3, 5 / 13),
        ("open the door", "open the the door", 1 / 3, 4 / 13),
        ("open the door", "", 1, 1),
        ("yes", "no no no no", 4, 11 / 3),
        # case and spaces are not heard
        ("Open  the\tDOOR ", " open the Door\n", 0, 0),
        ("ÄPFEL", "äpfel", 0, 0),
        # but all else is
        ("it's", "its", 1, 1 / 4),
        # a reference without words counts as one word, or one character, long
        ("", "", 0, 0),
        (" \n", "", 0, 0),
        ("", "uh", 1, 2),
        ("", "uh oh", 2, 5),
    ],
)
def test_error_rates(reference: str, output: str, words: float, characters: float) -> None:
    for oracle, score in ((dc.WordErrorRate(), words), (dc.CharacterErrorRate(), characters)):
        assert oracle.score(reference, output) == pytest.approx(score)
        assert oracle.score(oracle.reference(reference, "other"), output) == pytest.approx(score)
        assert oracle.fails(oracle.score(reference, output)) == (score > 0)


@pytest.mark.parametrize("rate", [dc.WordErrorRate, dc.CharacterErrorRate])
def test_above_is_above(rate: Any) -> None:
    oracle = rate(above=0.5)
    assert [oracle.fails(score) for score in (0.0, 0.5, 0.51, 4.0)] == [False, False, True, True]


@pytest.mark.parametrize("oracle", [dc.WordErrorRate, dc.CharacterErrorRate, dc.Disagreement])
@pytest.mark.parametrize(
    ("against", "text", "expected"),
    [
        (None, "said", "said"),
        (None, None, "heard"),
        (None, "", ""),
        ("text", "said", "said"),
        ("output", "said", "heard"),
        ("output", None, "heard"),
    ],
)
def test_what_is_compared_with(oracle: Any, against: Any, text: str | None, expected: str) -> None:
    assert oracle(against=against).reference(text, "heard") == expected


@pytest.mark.parametrize("oracle", [dc.WordErrorRate, dc.CharacterErrorRate, dc.Disagreement])
def test_wrong_use(oracle: Any) -> None:
    with pytest.raises(dc.InputError, match="against must be 'text', 'output' or None, not 'seed'"):
        oracle(against="seed")
    with pytest.raises(dc.InputError, match=r"a seed has no text to compare with: give texts, or .*against='output'"):
        oracle(against="text").reference(None, "heard")


@pytest.mark.parametrize("above", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("rate", [dc.WordErrorRate, dc.CharacterErrorRate])
def test_limits_that_are_none(rate: Any, above: float) -> None:
    with pytest.raises(dc.InputError, match=f"above must be 0 or more, not {above}"):
        rate(above=above)


@pytest.mark.parametrize("answer", [3, None, np.zeros(2), ["open"]])
def test_answers_that_are_no_texts(answer: Any) -> None:
    message = (
        f"an error rate compares texts, but the system returned a value of the type {type(answer).__name__}: let it"
    )
    with pytest.raises(dc.InputError, match=message):
        dc.WordErrorRate().score("open", answer)
    with pytest.raises(dc.InputError, match=message):
        dc.CharacterErrorRate().reference(None, answer)


@pytest.mark.parametrize(
    ("reference", "output", "agree"),
    [
        ("yes", "yes", True),
        ("yes", "Yes", False),
        (3, np.int64(3), True),
        (np.int64(3), 3, True),
        (np.str_("yes"), "yes", True),
        ("3", 3, True),  # a label of a corpus is a text
        ("3", np.int64(3), True),
        ("4", np.int64(3), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        ([1, 2], np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([1, 2]), np.array([1, 2, 3]), False),
        (np.array([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        ((1, "a"), (1, "a"), True),
        ((1, "a"), [1, "a"], True),
        ((1, "a"), (1, "a", 2), False),
        ([np.array([1]), {"x": np.array([2])}], [np.array([1]), {"x": np.array([2])}], True),
        ([np.array([1]), {"x": np.array([2])}], [np.array([1]), {"x": np.array([3])}], False),
        ({"x": 1}, {"x": 1, "y": 2}, False),
        (None, None, True),
        ("yes", None, False),
    ],
)
def test_disagreement(reference: Any, output: Any, agree: bool) -> None:
    oracle = dc.Disagreement()
    assert oracle.score(reference, output) == (0.0 if agree else 1.0)
    assert oracle.fails(oracle.score(reference, output)) is not agree


@pytest.mark.parametrize(
    ("output", "finite"),
    [
        ("nan", True),
        (None, True),
        (7, True),
        (0.5, True),
        (float("nan"), False),
        (np.float32("inf"), False),
        (np.array([1.0, np.nan]), False),
        (np.array([1, 2]), True),
        (np.array(["a", None], object), True),
        (np.array([1 + 1j * np.inf]), False),
        (torch.tensor([1.0, -torch.inf]), False),
        (torch.tensor([1, 2]), True),
        (torch.zeros(0), True),
        ([1.0, (2.0, {"x": np.array([3.0])})], True),
        ([1.0, (2.0, {"x": np.array([np.nan])})], False),
        ({"a": {"b": [torch.tensor([torch.nan])]}}, False),
        ([], True),
    ],
)
def test_is_finite(output: Any, finite: bool) -> None:
    assert is_finite(output) is finite


def test_names_tell_all_that_decides() -> None:
    """A resumed campaign is compared by them."""
    oracles = [kind(above=above, against=against)
               for kind in (dc.WordErrorRate, dc.CharacterErrorRate) for above in (0, 0.3)
               for against in (None, "text", "output")]  # fmt: skip
    oracles += [dc.Disagreement(against) for against in (None, "text", "output")]  # type: ignore[misc]
    oracles += [dc.WordErrorRate(normalise=names) for names in ((), ("spacing",), ("case", "spacing"))]
    assert len({oracle.name for oracle in oracles}) == len(oracles)
    assert dc.WordErrorRate(normalise=("spacing", "case")).name == "word error rate above 0, ignoring case and spacing"
    assert dc.WordErrorRate(normalise=()).name == "word error rate above 0, ignoring nothing"
    assert dc.WordErrorRate(above=0.3).name == "word error rate above 0.3"
    assert dc.Disagreement("output").name == "another answer (against the output)"


@pytest.mark.parametrize(
    ("normalise", "reference", "output", "words"),
    [
        ((), "Open", "open", 1),
        (("case",), "Open  the", "open the", 0),
        (("case",), "the sunset", "the sun set", 1),
        (("case", "spacing"), "the Sunset was", "the sun set was", 0),
        (("spacing",), "the sun set was red", "the sunset was read", 1 / 5),
        (("case", "punctuation"), "It's twenty-one, OK?", "its twenty one ok", 0),
        (("case",), "it's", "its", 1),
        (("numbers",), "take 21 of them", "take twenty one of them", 0),
        (("numbers", "case"), "Twenty-one", "21", 0),
    ],
)
def test_what_a_normaliser_ignores(normalise: tuple[str, ...], reference: str, output: str, words: float) -> None:
    oracle = dc.WordErrorRate(normalise=normalise)
    assert oracle.score(reference, output) == pytest.approx(words)
    assert oracle.score(oracle.reference(reference, None), output) == pytest.approx(words), "a stored reference"


def test_a_normaliser_is_data() -> None:
    """A specification holds its names, in whatever order and kind of list they come."""
    oracles = [dc.CharacterErrorRate(normalise=names) for names in (("spacing", "case"), ["case", "spacing"])]  # type: ignore[arg-type]
    assert oracles[0] == oracles[1]
    assert oracles[0].normalise == ("case", "spacing")
    with pytest.raises(dc.InputError, match="cannot normalise 'accents': choose from case, punctuation, spacing, num"):
        dc.WordErrorRate(normalise=("case", "accents"))
