"""Alignments of texts: they make up both texts, and their errors are the ones that jiwer counts."""

from __future__ import annotations

from itertools import pairwise

import jiwer
from hypothesis import given
from hypothesis import strategies as st

from deepcruiser import alignment
from deepcruiser.alignment import character_pieces, transcript_pieces, word_errors, word_pieces

WORDS = st.lists(st.sampled_from("ab c d".split()), max_size=7)


@given(WORDS, WORDS)
def test_changed_words_are_the_errors_that_jiwer_counts(reference: list[str], output: list[str]) -> None:
    pieces = word_pieces(" ".join(reference), " ".join(output))
    assert " ".join(a for a, _ in pieces if a).split() == reference
    assert " ".join(b for _, b in pieces if b).split() == output
    wrong = sum(max(len(a.split()), len(b.split())) for a, b in pieces if a != b)
    if reference:
        assert wrong == round(jiwer.wer(" ".join(reference), " ".join(output)) * len(reference))


@given(st.text(max_size=20), st.text(max_size=20))
def test_pieces_by_characters_make_up_both_texts(before: str, after: str) -> None:
    pieces = character_pieces(before, after)
    assert "".join(a for a, _ in pieces) == before
    assert "".join(b for _, b in pieces) == after
    assert all(one[0] != one[1] or other[0] != other[1] for one, other in pairwise(pieces))


def test_pieces_by_hand() -> None:
    assert word_pieces("Open the door", "hope in the  door") == [("", "hope"), ("open", "in"), ("the door", "the door")]
    assert character_pieces("open", "opn ") == [("op", "op"), ("en", "n ")]
    assert transcript_pieces("A  b", "a c", by_character=True) == [("a ", "a "), ("b", "c")]
    assert transcript_pieces("a", 3) is None
    assert transcript_pieces([0.5], [0.7]) is None


def test_long_texts_are_one_piece() -> None:
    words = "word " * (alignment._LONGEST_WORDS + 1)
    assert word_pieces(words, words) == [(words.strip(), words.strip())]
    letters = "x" * (alignment._LONGEST_CHARACTERS + 1)
    assert character_pieces(letters, "y") == [(letters, "y")]


def test_word_errors_name_the_words_that_changed() -> None:
    assert word_errors("Open the door", "hope in the  door") == [" > hope", "open > in"]
    assert word_errors("turn the light off now", "turn light of now") == ["the > ", "off > of"]
    assert word_errors("a b", "a b") == []
    assert word_errors("", "noise") == ["noise"]
    assert word_errors(3, 4) == ["4"]
