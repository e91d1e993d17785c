"""What kind of failure an answer is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jiwer

from deepcruiser.alignment import aligned_words
from deepcruiser.normaliser import respace
from deepcruiser.oracles import CharacterErrorRate, Oracle, SpanDisagreement, WordErrorRate
from deepcruiser.serialise import summarise

#: Every kind, with the words for a sentence about it.
KINDS = {
    "spacing": "only the spaces differ",
    "spelling": "a word became a similar one",
    "substitution": "a word became another",
    "deletion": "a word is missing",
    "insertion": "a word was added",
    "several words": "several words are wrong",
    "wrong words": "words are wrong",
    "empty answer": "the answer is empty",
    "hallucinated text": "the answer has words that nobody said",
    "label flip": "the label changed",
    "other answer": "the answer changed",
    "spans moved": "the spans moved",
    "crash": "the system crashed",
    "crash once": "the system crashed, but not again on the same input",
    "time-out": "the system took too long",
    "not finite": "the answer has NaN or infinite values",
}

_WORD_KINDS = ("spacing", "spelling", "substitution", "deletion", "insertion", "several words")
#: An answer is hallucinated if it has at least this many words too many, and half as many as were expected.
_HALLUCINATED = 3
#: Labels are short; longer answers are not named in a group.
_LONGEST_LABEL = 40


WordKind = Literal["spelling", "substitution", "deletion", "insertion"]


@dataclass(frozen=True)
class WordError:
    """A wrong word: `got` is empty for a deletion, `expected` for an insertion."""

    kind: WordKind
    expected: str
    got: str


@dataclass(frozen=True)
class Failure:
    """How an answer fails: one of `KINDS`, the expected and the actual answer, and the words that differ.

    `expected` and `got` are filled where they say what the failure is: the word of a single error, or two labels.
    """

    kind: str
    expected: str = ""
    got: str = ""
    words: tuple[WordError, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What two failures of the same way have in common."""
        return self.kind, self.expected, self.got

    def __str__(self) -> str:
        if self.kind in ("spelling", "substitution"):
            return f"{self.expected!r} heard as {self.got!r}"
        if self.kind == "deletion":
            return f"{self.expected!r} not heard"
        if self.kind == "insertion":
            return f"{self.got!r} heard where nobody said it"
        if self.kind == "wrong words" and self.expected:
            return f"{self.expected!r} wrong"
        if self.kind == "label flip":
            return f"{self.expected!r} became {self.got!r}" if self.expected else "wrong label"
        if self.kind == "crash":
            return f"crash ({self.got})" if self.got else "crash"
        return "several words wrong" if self.kind == "several words" else self.kind

    @property
    def general(self) -> Failure:
        """The same without the words or labels; a crash keeps its exception."""
        kind = "wrong words" if self.kind in _WORD_KINDS else self.kind
        return Failure(kind, got=self.got if kind == "crash" else "")


def classify(oracle: Oracle | None, reason: str, reference: Any, output: Any) -> Failure:
    """The kind of a failure; `reason` is how it failed: "wrong", "crash", "time-out" or "not finite"."""
    if reason == "crash":
        return Failure("crash", got=str(output).partition(":")[0])
    if reason != "wrong":
        return Failure(reason)
    if isinstance(oracle, SpanDisagreement):
        return Failure("spans moved")
    if isinstance(oracle, WordErrorRate | CharacterErrorRate) and isinstance(reference, str):
        return _of_texts(*oracle.texts(reference, output))
    labels = label_of(reference), label_of(output)
    return Failure("label flip", *labels) if all(labels) else Failure("other answer")


def is_spacing_only(oracle: Oracle, reference: Any, output: Any) -> bool:
    """Whether an answer has the expected letters in the expected order, with other spaces."""
    if not isinstance(oracle, WordErrorRate | CharacterErrorRate):
        return False
    if not isinstance(reference, str) or not isinstance(output, str):
        return False
    strict = type(oracle)(normalise=tuple(name for name in oracle.normalise if name != "spacing"))
    expected, got = strict.texts(reference, output)
    return expected != got and respace(expected, got) == expected


def _of_texts(expected: str, got: str) -> Failure:
    if expected and not got:
        return Failure("empty answer", words=word_errors(expected, got))
    if expected != got and respace(expected, got) == expected:
        return Failure("spacing", expected, got)
    words = word_errors(expected, got)
    added = sum(error.kind == "insertion" for error in words)
    if added >= _HALLUCINATED and 2 * added >= len(expected.split()):
        return Failure("hallucinated text", words=words)
    if len(words) == 1:
        return Failure(words[0].kind, words[0].expected, words[0].got, words)
    return Failure("several words", words=words)


def label_of(value: Any) -> str:
    """A short answer as text; empty if it is too long for a label."""
    plain = summarise(value)
    if not isinstance(plain, str | int | bool) or len(str(plain)) > _LONGEST_LABEL:
        return ""
    return str(plain)


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
    alignment = jiwer.process_characters(one, other)
    return 3 * (alignment.substitutions + alignment.deletions + alignment.insertions) <= max(len(one), len(other))
