"""Counting n-grams, interpolated modified Kneser-Ney smoothing, and pruning by relative entropy.

Every order is a sorted array of keys, parent * words + word, where the parent is the number of the n-gram without its
last word in the order below. So a key is 64 bits whatever the order, and everything is a few numpy calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError

Array = npt.NDArray[Any]
UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL = ("<unk>", "<s>", "</s>")

#: Discounts of n-grams seen once, twice, and more often where there are too few of them to estimate any.
FALLBACK = (0.5, 1.0, 1.5)


@dataclass
class Order:
    """All n-grams of one length."""

    keys: Array
    words: Array
    parents: Array
    suffixes: Array  # the number of the n-gram without its first word, in the order below
    counts: Array  # how often it was seen
    at_begin: Array  # whether it starts with <s>
    probability: Array
    backoff: Array  # what remains for the words that never followed it

    def only(self, kept: Array, parents: Array, suffixes: Array, size: int) -> Order:
        """The n-grams that are kept, given the new numbers of those below."""
        words, above = self.words[kept], parents[self.parents[kept]]
        return Order(
            above * size + words,
            words,
            above,
            suffixes[self.suffixes[kept]],
            self.counts[kept],
            self.at_begin[kept],
            self.probability[kept],
            self.backoff[kept],
        )


def numbered(sentences: Iterable[str], vocabulary: int | None) -> tuple[Array, list[str], int]:
    """All words as numbers, with <s> and </s> around sentences; the words, frequent ones first; how many are rare.

    Those beyond the `vocabulary` most frequent are rare: all of them become <unk>.
    """
    numbers: dict[str, int] = {name: number for number, name in enumerate(SPECIAL)}
    stream: list[int] = []
    for sentence in sentences:
        if isinstance(sentence, bytes) or not isinstance(sentence, str):
            raise InputError(f"sentences must be texts, not {type(sentence).__name__}")
        found = sentence.split()
        if found:
            stream.append(BEGIN)
            stream.extend([numbers.setdefault(word, len(numbers)) for word in found])
            stream.append(END)
    if not stream:
        raise InputError("there is no word in the text; a language model is made of sentences, one a line")
    tokens = np.array(stream, dtype=np.int64)
    counts = np.bincount(tokens, minlength=len(numbers))
    counts[: len(SPECIAL)] = tokens.size + 1  # they keep their numbers
    order = np.argsort(-counts, kind="stable")
    kept = len(order) if vocabulary is None else min(len(order), vocabulary + len(SPECIAL))
    new = np.zeros(len(order), dtype=np.int64)
    new[order[:kept]] = np.arange(kept)
    names = list(numbers)
    return new[tokens], [names[number] for number in order[:kept]], len(order) - kept


def counted(tokens: Array, size: int, order: int) -> list[Order]:
    """The n-grams of every order up to the highest, none across the border of two sentences."""
    begins = np.flatnonzero(tokens == BEGIN)
    place = np.arange(len(tokens)) - np.repeat(begins, np.diff(np.append(begins, len(tokens))))
    nodes = tokens
    counts = np.bincount(tokens, minlength=size)
    counts[BEGIN] = 0  # it is never predicted
    every = np.arange(size)
    nothing = np.zeros(size)
    levels = [Order(every, every, nothing, nothing, counts, every == BEGIN, nothing.copy(), nothing.copy())]
    for length in range(2, order + 1):
        ends = np.flatnonzero(place >= length - 1)
        if not len(ends):
            break
        keys, first, inverse, counts = np.unique(
            nodes[ends - 1] * size + tokens[ends], return_index=True, return_inverse=True, return_counts=True
        )
        parents = keys // size
        level = Order(
            keys,
            keys % size,
            parents,
            nodes[ends[first]],
            counts,
            levels[-1].at_begin[parents],
            np.zeros(len(keys)),
            np.ones(len(keys)),
        )
        nodes = np.full(len(tokens), -1, dtype=np.int64)
        nodes[ends] = inverse
        levels.append(level)
    return levels


def discounts(counts: Array) -> Array:
    """D(c) for c = 0, 1, 2, 3 and more, after Chen and Goodman."""
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    if n.min() == 0:
        return np.array([0.0, *FALLBACK])
    share = n[0] / (n[0] + 2 * n[1])
    found = [c - (c + 1) * share * n[c] / n[c - 1] for c in (1, 2, 3)]
    sound = all(0 <= discount <= c for c, discount in enumerate(found, start=1))
    return np.array([0.0, *(found if sound else FALLBACK)])


def smoothed(levels: list[Order]) -> None:
    """Set the probabilities and what is left for backing off, from the lowest order to the highest.

    Orders below the highest count in how many contexts an n-gram was seen instead of how often; those at the
    beginning of a sentence have no other context and keep their counts.
    """
    below: Order | None = None
    for number, level in enumerate(levels):
        counts = level.counts
        if number + 1 < len(levels):
            contexts = np.bincount(levels[number + 1].suffixes, minlength=len(level.keys))
            counts = np.where(level.at_begin, counts, contexts)
        off = discounts(counts)[np.minimum(counts, 3)]
        if below is None:
            counts = np.where(level.words == BEGIN, 0, counts)
            off = np.where(level.words == BEGIN, 0, off)
            predicted = level.words != BEGIN
            level.probability = (counts - off + predicted * off.sum() / predicted.sum()) / counts.sum()
        else:
            totals = np.bincount(level.parents, weights=counts, minlength=len(below.keys))
            taken = np.bincount(level.parents, weights=off, minlength=len(below.keys))
            below.backoff = np.divide(taken, totals, out=np.ones_like(taken), where=totals > 0)
            lower = below.probability[level.suffixes]
            level.probability = (counts - off) / totals[level.parents] + below.backoff[level.parents] * lower
        level.backoff = np.ones(len(level.keys))
        below = level


def pruned(levels: list[Order], size: int, threshold: float) -> list[Order]:
    """The model without those n-grams whose loss raises its perplexity, relatively, by less than `threshold` (Stolcke).

    How probable a context is comes from its counts: the lower orders of Kneser-Ney are no estimate of it. What starts
    or ends an n-gram that stays, stays too.
    """
    total = levels[0].counts.sum()
    keep = [np.ones(len(level.keys), dtype=bool) for level in levels]
    needed = np.zeros(len(levels[-1].keys), dtype=bool)
    for number in range(len(levels) - 1, 0, -1):
        level, below = levels[number], levels[number - 1]
        p, lower = level.probability, below.probability[level.suffixes]
        alpha = below.backoff[level.parents]
        left = np.maximum(1e-12, 1 - np.bincount(level.parents, weights=p, minlength=len(below.keys)))[level.parents]
        share = left / alpha
        after = (left + p) / (share + lower)
        often = below.counts[level.parents]
        if number == 1:
            often = np.where(level.parents == BEGIN, below.counts[END], often)  # as many begin as end
        change = p * (np.log(lower * after) - np.log(p)) + left * np.log(after / alpha)
        keep[number] = needed | (np.expm1(-often / total * change) >= threshold)
        needed = np.zeros(len(below.keys), dtype=bool)
        needed[level.parents[keep[number]]] = True
        needed[level.suffixes[keep[number]]] = True
    return only(levels, keep, size)


def only(levels: list[Order], keep: list[Array], size: int) -> list[Order]:
    """The n-grams to keep, with what is left for backing off worked out anew."""
    kept = [replace(levels[0])]
    numbers = np.arange(size)
    for level, mask in zip(levels[1:], keep[1:], strict=True):
        if not mask.any():
            break
        smaller = level.only(mask, numbers, numbers, size)
        below = kept[-1]
        said = np.bincount(smaller.parents, weights=smaller.probability, minlength=len(below.keys))
        lower = below.probability[smaller.suffixes]
        shorter = np.bincount(smaller.parents, weights=lower, minlength=len(below.keys))
        heads = np.bincount(smaller.parents, minlength=len(below.keys)) > 0
        below.backoff = np.where(heads, np.maximum(1e-12, 1 - said) / np.maximum(1e-12, 1 - shorter), 1.0)
        kept.append(smaller)
        numbers = np.cumsum(mask) - 1
    kept[-1].backoff = np.ones(len(kept[-1].keys))
    return kept


def built(
    sentences: Iterable[str], *, order: int, prune: float, vocabulary: int | None
) -> tuple[list[str], int, list[Order]]:
    """The words, how many distinct ones were too rare to be among them, and the n-grams of each order."""
    if not 1 <= order <= 9:
        raise InputError(f"order must be from 1 to 9 words, not {order}")
    if not (prune >= 0 and math.isfinite(prune)):
        raise InputError(f"prune must be 0 or more, not {prune}; 1e-8 prunes lightly, 1e-6 a lot")
    if vocabulary is not None and vocabulary < 1:
        raise InputError(f"vocabulary must be 1 word or more, not {vocabulary}")
    tokens, words, rare = numbered(sentences, vocabulary)
    levels = counted(tokens, len(words), order)
    smoothed(levels)
    return words, rare, pruned(levels, len(words), prune) if prune > 0 else levels
