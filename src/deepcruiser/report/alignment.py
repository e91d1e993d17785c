"""What differs between two texts: words of a transcript, characters of an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

#: Longer texts are shown without marks: comparing takes the product of the lengths.
_LONGEST = 4000

#: What was there, and what is there now; equal where nothing changed.
Pieces = list[tuple[str, str]]


def word_errors(reference: Any, output: Any, *, by_character: bool = False) -> Pieces | None:
    """Transcripts piece by piece, compared as the error rates do: in lower case and with single spaces.

    None where there are no two texts.
    """
    if not isinstance(reference, str) or not isinstance(output, str):
        return None
    before, now = (text.lower().split() for text in (reference, output))
    if by_character:
        return differences(" ".join(before), " ".join(now))
    if len(before) * len(now) > _LONGEST**2 // 16:
        return [(" ".join(before), " ".join(now))]
    pieces: Pieces = []
    for a, b in _aligned(before, now):
        if len(a) == len(b):
            pieces += zip(a, b, strict=True)  # word for word
        else:
            pieces.append((" ".join(a), " ".join(b)))
    return _joined(pieces, " ")


def differences(before: str, now: str) -> Pieces:
    """Two texts piece by piece, by characters."""
    if max(len(before), len(now)) > _LONGEST:
        return [(before, now)]
    return _joined([("".join(a), "".join(b)) for a, b in _aligned(before, now)], "")


def _aligned(before: Sequence[str], now: Sequence[str]) -> list[tuple[Sequence[str], Sequence[str]]]:
    steps = Levenshtein.opcodes(before, now)
    return [(before[step.src_start : step.src_end], now[step.dest_start : step.dest_end]) for step in steps]


def _joined(pieces: Pieces, between: str) -> Pieces:
    """Pieces that are equal become one, as long as they follow one another."""
    joined: Pieces = []
    for a, b in pieces:
        if a == b and joined and joined[-1][0] == joined[-1][1]:
            whole = joined[-1][0] + between + a
            joined[-1] = (whole, whole)
        else:
            joined.append((a, b))
    return joined
