"""Word n-gram language models."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.decoding import ngram_files
from deepcruiser.decoding.arpa import read_arpa, write_arpa
from deepcruiser.decoding.ngram_building import BEGIN, END, UNKNOWN, built
from deepcruiser.errors import InputError

#: For every length of context, the number of the n-gram that the last so many words are; -1 if there is none.
State = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Probabilities of words after the words before them, with backing off; all logarithms are of base 10.

        model = NgramModel.build(open("sentences.txt"), order=3)
        model.save("english.lm")
        model.score("the cat sat", context="<s>")

    `words` begin with <unk>, <s> and </s>. For every length there are sorted `keys` (the number of the n-gram without
    its last word, times len(words), plus the last word), `logs` and `backoffs`. A word that is not in `words` counts as
    <unk>, whose probability is shared by the `rare` words that building met and left out: log P(<unk>) - log(rare).
    """

    words: Sequence[str]
    keys: Sequence[npt.NDArray[np.int64]]
    logs: Sequence[npt.NDArray[np.float32]]
    backoffs: Sequence[npt.NDArray[np.float32]]
    rare: int = 0

    @classmethod
    def build(
        cls, sentences: Iterable[str], *, order: int = 4, prune: float = 0.0, vocabulary: int | None = None
    ) -> NgramModel:
        """Learn from normalised sentences, words between spaces, by interpolated modified Kneser-Ney smoothing.

        `prune` leaves out the n-grams without which the perplexity grows, relatively, by less than this: 1e-8 to 1e-6.
        `vocabulary` keeps so many of the most frequent words.
        """
        words, rare, levels = built(sentences, order=order, prune=prune, vocabulary=vocabulary)
        with np.errstate(divide="ignore"):  # <s> is never predicted
            logs = [np.maximum(-99, np.log10(level.probability)).astype(np.float32) for level in levels]
        backoffs = [np.log10(level.backoff).astype(np.float32) for level in levels]
        return cls(words, [level.keys for level in levels], logs, backoffs, rare)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NgramModel:
        """Read what `save` wrote, or an ARPA file (plain or .gz)."""
        parts = ngram_files.load(path) if ngram_files.is_ours(path) else read_arpa(path)
        return cls(*parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one compact file, with logarithms in sixteenths; or an ARPA file, if it ends in .arpa or .arpa.gz."""
        if os.fspath(path).endswith((".arpa", ".arpa.gz")):
            # There is no place for `rare` in such a file: its <unk> is one unknown word.
            one = [
                log - self._rarity * (key % len(self.words) == UNKNOWN)
                for key, log in zip(self.keys, self.logs, strict=True)
            ]
            write_arpa(path, self.words, self.keys, one, self.backoffs)
        else:
            ngram_files.save(path, self.words, self.keys, self.logs, self.backoffs, self.rare)

    def __repr__(self) -> str:
        counts = " + ".join(f"{len(keys):,}" for keys in self.keys)
        return f"NgramModel of order {self.order}: {counts} n-grams"

    @property
    def order(self) -> int:
        """The greatest length of an n-gram."""
        return len(self.keys)

    def begin(self) -> State:
        """The state at the beginning of a sentence."""
        return (BEGIN,)[: self.order - 1]

    def word(self, state: State, word: str) -> tuple[float, State]:
        """The logarithm of the probability of `word` in this state, and the state behind it."""
        number = self._numbers.get(word, UNKNOWN)
        log, after = self._next(state, number)
        return (log, after) if number != UNKNOWN else (log - self._rarity, after)

    def end(self, state: State) -> float:
        """The logarithm of the probability that the sentence ends here."""
        return self._next(state, END)[0]

    def ahead(self, beginning: str) -> float:
        """The logarithm of the probability, without context, of the most frequent word that begins so."""
        return self._beginnings.get(beginning, self._beginnings[""])

    def state(self, context: str | Sequence[str] = "<s>") -> State:
        """The state behind these words; `()` is one in which nothing is known."""
        state: State = ()
        for word in context.split() if isinstance(context, str) else context:
            state = self.begin() if word == "<s>" else self._next(state, self._numbers.get(word, UNKNOWN))[1]
        return state

    def score(self, words: str | Sequence[str], context: str | Sequence[str] = "<s>") -> float:
        """The logarithm of the probability of these words behind the context; </s> may be the last of them."""
        state, total = self.state(context), 0.0
        for word in words.split() if isinstance(words, str) else words:
            log, state = self.word(state, word)
            total += log
        return total

    def perplexity(self, sentences: Iterable[str]) -> float:
        """How many words the model takes to be possible, on average, at each word and each end of these sentences."""
        total, count = 0.0, 0
        for sentence in sentences:
            words = sentence.split()
            total += self.score([*words, "</s>"])
            count += len(words) + 1
        if count == 0:
            raise InputError("there is no sentence to take the perplexity of")
        return math.pow(10, -total / count)

    def probabilities(self, context: str | Sequence[str] = "<s>") -> npt.NDArray[np.float64]:
        """P(word | context) for all of `words` at once; that of <unk> is for all unknown words together."""
        result = np.float64(10) ** self.logs[0]
        for length, node in enumerate(self.state(context), start=1):
            if node < 0 or length >= self.order:
                continue
            result *= 10 ** float(self.backoffs[length - 1][node])
            first, last = np.searchsorted(self.keys[length], [node * len(self.words), (node + 1) * len(self.words)])
            result[self.keys[length][first:last] % len(self.words)] = np.float64(10) ** self.logs[length][first:last]
        return np.asarray(result)

    def _next(self, state: State, word: int) -> tuple[float, State]:
        size, (keys, logs, backoffs) = len(self.words), self._views
        log: float = logs[0][word]
        after = [word]
        for length, node in enumerate(state, start=1):
            if node < 0:
                after.append(-1)
                continue
            key = node * size + word
            at = bisect_left(keys[length], key)
            if at < len(keys[length]) and keys[length][at] == key:
                log = logs[length][at]
                after.append(at)
            else:
                log += backoffs[length - 1][node]
                after.append(-1)
        while after[-1] < 0:  # equal states are equal tuples, so that their futures can be shared
            after.pop()
        return log, tuple(after[: self.order - 1])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _beginnings(self) -> dict[str, float]:
        """The best of the words with each beginning; under "", what an unknown word gets."""
        best: dict[str, float] = {}
        logs = self.logs[0].tolist()
        for number in np.argsort(self.logs[0], kind="stable").tolist():
            if number > END:
                word = self.words[number]
                for end in range(len(word), 0, -1):
                    best[word[:end]] = logs[number]
        return best | {"": logs[UNKNOWN] - self._rarity}

    @cached_property
    def _rarity(self) -> float:
        return math.log10(max(1, self.rare))

    @cached_property
    def _views(self) -> tuple[list[Any], list[Any], list[Any]]:
        # A number out of a memoryview is a plain int or float, in a fifth of the time that numpy takes.
        keys, logs, backoffs = (
            [memoryview(part.data) for part in parts] for parts in (self.keys, self.logs, self.backoffs)
        )
        return keys, logs, backoffs
