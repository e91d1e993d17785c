"""What kind of failure an answer is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.findings.kinds import KINDS, WordError, classify, is_spacing_only, word_errors

WORDS = dc.WordErrorRate(above=0.0)


@pytest.mark.parametrize(
    ("reference", "output", "kind", "text"),
    [
        ("the sunset", "the sun set", "spacing", "spacing"),
        ("please play it", "please lay it", "spelling", "'play' heard as 'lay'"),
        ("open the door", "open a door", "substitution", "'the' heard as 'a'"),
        ("open the door", "open door", "deletion", "'the' not heard"),
        ("open the door", "open the the door", "insertion", "'the' heard where nobody said it"),
        ("open the door", "", "empty answer", "empty answer"),
        ("", "thank you for watching", "hallucinated text", "hallucinated text"),
        ("open", "open it it it it", "hallucinated text", "hallucinated text"),
        ("open the door", "close a window", "several words", "several words wrong"),
        ("", "uh", "insertion", "'uh' heard where nobody said it"),
    ],
)
def test_texts(reference: str, output: str, kind: str, text: str) -> None:
    failure = classify(WORDS, "wrong", reference, output)
    assert failure.kind == kind
    assert str(failure) == text
    assert kind in KINDS
    assert classify(dc.CharacterErrorRate(), "wrong", reference, output) == failure


@pytest.mark.parametrize(
    ("oracle", "reason", "reference", "output", "key"),
    [
        (dc.Disagreement(), "wrong", "yes", "no", ("label flip", "yes", "no")),
        (dc.Disagreement(), "wrong", "3", np.int64(4), ("label flip", "3", "4")),
        (dc.Disagreement(), "wrong", np.zeros(3), np.ones(3), ("other answer", "", "")),
        (dc.Disagreement(), "wrong", "a" * 50, "b", ("other answer", "", "")),
        (dc.SpanDisagreement(), "wrong", [[0, 1]], [[2, 3]], ("spans moved", "", "")),
        (WORDS, "crash", "open", "ValueError: at 0x7f", ("crash", "", "ValueError")),
        (WORDS, "time-out", "open", "no answer within 1 s", ("time-out", "", "")),
        (WORDS, "not finite", "open", None, ("not finite", "", "")),
        (None, "wrong", "open", "open it", ("label flip", "open", "open it")),
    ],
)
def test_other_answers(oracle: Any, reason: str, reference: Any, output: Any, key: tuple[str, str, str]) -> None:
    failure = classify(oracle, reason, reference, output)
    assert failure.key == key
    assert failure.kind in KINDS


def test_the_normaliser_of_the_oracle_decides() -> None:
    spacing = dc.WordErrorRate(normalise=("case", "spacing"))
    assert classify(WORDS, "wrong", "the sunset was red", "the sun set was read").kind == "several words"
    assert classify(spacing, "wrong", "the sunset was red", "the sun set was read").key == ("spelling", "red", "read")


@pytest.mark.parametrize(
    ("reference", "output", "alone"),
    [("the sunset", "the sun set", True), ("the sunset", "The sunset", False), ("the sunset", "the sun sat", False)],
)
def test_spacing_only(reference: str, output: str, alone: bool) -> None:
    for oracle in (WORDS, dc.WordErrorRate(normalise=("case", "spacing")), dc.CharacterErrorRate()):
        assert is_spacing_only(oracle, reference, output) is alone
    assert not is_spacing_only(dc.Disagreement(), reference, output)


def test_word_errors_add_up_to_the_error_rate() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        one, other = (" ".join(rng.choice(list("abcd"), rng.integers(1, 8))) for _ in range(2))
        errors = word_errors(one, other)
        assert len(errors) == round(dc.WordErrorRate().score(one, other) * len(one.split()))
        assert all(bool(error.expected) is (error.kind != "insertion") for error in errors)
    assert word_errors("play the song", "lay song song") == (
        WordError("spelling", "play", "lay"), WordError("substitution", "the", "song"),
    )  # fmt: skip
