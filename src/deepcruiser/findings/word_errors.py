"""Which words of a transcript went wrong, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import jiwer

from deepcruiser.alignment import aligned_words

WordKind = Literal["spelling", "substitution", "deletion", "insertion"]


@dataclass(frozen=True)
class WordError:
    """What became of a word: `got` is empty for a deletion, `expected` for an insertion."""

    kind: WordKind
    expected: str
    got: str


def word_errors(reference: str, output: str) -> tuple[WordError, ...]:
    """The words that differ, in their order; a run of inserted words is one error per word."""
    errors: list[WordError] = []
    for before, after in aligned_words(reference.split(), output.split()):
        if before == after:
            continue
        if not after:
            errors += [WordError("deletion", word, "") for word in before]
        elif not before:
            errors += [WordError("insertion", "", word) for word in after]
        else:
            for one, other in zip(before, after, strict=True):
                errors.append(WordError("spelling" if is_near(one, other) else "substitution", one, other))
    return tuple(errors)


@lru_cache(maxsize=65536)
def is_near(one: str, other: str) -> bool:
    """Whether two words differ in at most a third of their letters, as "play" and "lay" do."""
    found = jiwer.process_characters(one, other)
    return 3 * (found.substitutions + found.deletions + found.insertions) <= max(len(one), len(other))
