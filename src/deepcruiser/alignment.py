"""What differs between two texts, word by word or character by character, aligned by jiwer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jiwer import AlignmentChunk

#: Longer texts are not aligned, because the time is proportional to the product of the lengths.
_LONGEST_WORDS = 1000
_LONGEST_CHARACTERS = 4000

#: Pairs of a piece of text before and after; the two are equal where nothing changed.
Pieces = list[tuple[str, str]]


def word_pieces(reference: str, output: str) -> Pieces:
    """Align two transcripts as the word error rate does: in lower case and with single spaces."""
    before, after = reference.lower().split(), output.lower().split()
    if len(before) * len(after) > _LONGEST_WORDS**2:
        return [(" ".join(before), " ".join(after))]
    pieces: Pieces = []
    for a, b in aligned_words(before, after):
        if len(a) == len(b):
            pieces += zip(a, b, strict=True)  # one word became one word
        else:
            pieces.append((" ".join(a), " ".join(b)))
    return _joined(pieces, " ")


def character_pieces(before: str, after: str) -> Pieces:
    """Align two texts by characters; the pieces make up both texts exactly."""
    import jiwer

    if max(len(before), len(after)) > _LONGEST_CHARACTERS:
        return [(before, after)]
    characters = jiwer.Compose([jiwer.ReduceToListOfListOfChars()])  # the default strips the texts
    result = jiwer.process_characters(
        before, after, reference_transform=characters, hypothesis_transform=characters
    ).alignments[0]
    chunks = [(before[c.ref_start_idx : c.ref_end_idx], after[c.hyp_start_idx : c.hyp_end_idx]) for c in result]
    return _joined(chunks, "")


def transcript_pieces(reference: Any, output: Any, *, by_character: bool = False) -> Pieces | None:
    """Align two transcripts by words or characters; None if they are not texts."""
    if not isinstance(reference, str) or not isinstance(output, str):
        return None
    if by_character:
        return character_pieces(*(" ".join(text.lower().split()) for text in (reference, output)))
    return word_pieces(reference, output)


def word_errors(reference: Any, output: Any) -> list[str]:
    """The words that changed, as "open > in", in order; failures of a seed with the same list are the same failure."""
    if not isinstance(reference, str) or not isinstance(output, str):
        return [repr(output)[:200]]
    before, after = reference.lower().split(), output.lower().split()
    if not before:
        return after
    return [f"{' '.join(a)} > {' '.join(b)}" for a, b in aligned_words(before, after) if a != b]


def aligned_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Runs of words of two texts that belong together, in order; one of a pair is empty if words are missing."""
    chunks = _word_chunks(" ".join(before), " ".join(after))
    return [(before[c.ref_start_idx : c.ref_end_idx], after[c.hyp_start_idx : c.hyp_end_idx]) for c in chunks]


@lru_cache(maxsize=4096)  # the same answers occur often
def _word_chunks(before: str, after: str) -> list[AlignmentChunk]:
    import jiwer

    (chunks,) = jiwer.process_words(before, after).alignments
    return chunks


def _joined(pieces: Pieces, separator: str) -> Pieces:
    """Join neighbouring pieces in which nothing changed."""
    joined: Pieces = []
    for a, b in pieces:
        if a == b and joined and joined[-1][0] == joined[-1][1]:
            whole = joined[-1][0] + separator + a
            joined[-1] = (whole, whole)
        else:
            joined.append((a, b))
    return joined
