"""Test chars2vec, words as vectors by their spelling: is a word with a typo still near the word that was meant?

    pip install chars2vec
    python examples/found/nearest_word.py

Its vectors are made so that words of similar spelling lie near each other. So the word nearest to a misspelled one
should be the word itself, or at least one that looks like it; and other words of the same call should not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from hunt import SPEECH, free, hunt

import deepcruiser as dc

try:
    import chars2vec
except ImportError:
    raise SystemExit("this example needs the package chars2vec: pip install chars2vec") from None

#: Words to look up: those of the sentences that come with DeepCruiser, and some longer ones.
MORE = """algorithms improve government development information university international environment communication
understanding responsibility approximately characteristics recommendation administration temperature""".split()
KNOWN = sorted({word for sample in SPEECH for word in sample.text.split() if len(word) > 3} | set(MORE))
#: Tokens that stand beside other words in ordinary texts.
TOKENS = [
    "internationalization",
    "@a_rather_long_user_name",
    "#throwbackthursday",
    "https://example.com/news/2024/05/17/the-headline-of-the-day",
]


@dataclass(frozen=True)
class WrongLetter:
    """Type the letter to the right of one letter of the word on the keyboard."""

    place: float

    def __call__(self, text: str) -> str:
        at, keys = int(self.place * len(text)), "qwertyuiopasdfghjklzxcvbnmq"
        letter = keys[keys.index(text[at]) + 1] if text[at] in keys else text[at]
        return text[:at] + letter + text[at + 1 :]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(round(float(rng.uniform(0, 0.99)), 2))


@dataclass(frozen=True)
class AddToken:
    """Give a long word or an address in the same call; the vector of the first word should not change."""

    token: str

    def __call__(self, text: str) -> str:
        return f"{text} {self.token}"

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice(TOKENS)))


class Dictionary:
    """The known word nearest to the first word of a call, and the states of the second LSTM for that word."""

    def __init__(self) -> None:
        self.package = chars2vec.load_model("eng_50")
        self.words = dc.KerasSystem(self.package.embedding_model, features=self._letters)
        self.known = np.stack([run.output for run in self.words.run(KNOWN)])
        self.state_name, self.fingerprint = self.words.state_name, self.words.fingerprint

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [dc.Run(self._nearest(run.output), run.trace) for run in self.words.run(batch)]

    def _nearest(self, vector: np.ndarray) -> str:
        return KNOWN[int(np.square(self.known - vector).sum(1).argmin())]

    def _letters(self, text: str) -> np.ndarray:
        """What the package makes of the first word: a row for each letter, after zeros if others are longer."""
        first, *others = text.split()
        rows = np.zeros((max(map(len, [first, *others])), self.package.vocab_size), np.float32)
        for row, letter in zip(rows[len(rows) - len(first) :], first, strict=True):
            if letter in self.package.char_to_ix:
                row[self.package.char_to_ix[letter]] = 1
        return rows

    def alone(self, text: str) -> str:
        """The same with the package alone, and with vectors that were computed one by one."""
        self.package.cache.clear()
        return self._nearest(self.package.vectorize_words(text.split())[0])


def main() -> None:
    system, oracle = Dictionary(), dc.CharacterErrorRate(0.5)
    seeds = [(word, word) for word in KNOWN]
    longer = [(word, word) for word in KNOWN if len(word) > 6]
    result = hunt(system, KNOWN, longer, oracle=oracle, mutations=free(WrongLetter), runs=400)
    result += hunt(system, KNOWN, seeds, oracle=oracle, mutations=free(AddToken), runs=200)

    print("\nThe package alone:")
    for one in result:
        for text in (one.seed, one.mutant):
            print(f"nearest to vectorize_words({text.split()})[0]: {system.alone(text)}")


if __name__ == "__main__":
    main()
