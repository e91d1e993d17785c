"""Test g2p-en, English spelling to sounds: does a word keep its sounds when it takes an ending, or another apostrophe?

    pip install g2p-en
    python examples/found/pronunciation.py

Words of its dictionary take endings whose sounds are known. The network reads the letters of words that are not in the
dictionary, and should say the word as before, and then the ending.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from hunt import free, hunt

import deepcruiser as dc

try:
    from g2p_en import g2p
except ImportError:
    raise SystemExit("this example needs the package g2p-en: pip install g2p-en") from None

# Its tagger chooses between homographs only, and needs a download that newer versions of nltk name otherwise.
g2p.pos_tag = lambda words: [(word, "NN") for word in words]

ENDINGS = {
    "ness": "N AH0 S",
    "less": "L AH0 S",
    "like": "L AY1 K",
    "hood": "HH UH2 D",
    "ward": "W ER0 D",
    "'s": "Z",
    "ing": "IH0 NG",
}
WORDS = """being human gentle kindness robot river garden network laptop window camera planet market computer teacher
daughter answer number summer winter morning evening yellow purple orange silver golden simple double
circus carbon dragon engine forest hammer island jungle kitchen lemon mirror needle office pencil rabbit
responsibility representative identification communication administration characterization""".split()
SENTENCES = [
    "we'll see you there",
    "I'll call when they're back",
    "she'll say that it's fine",
    "we can't go if he won't",
    "don't tell them that you're here",
]


@dataclass(frozen=True)
class AddEnding:
    """Add an ending that leaves the sounds of the word as they are."""

    ending: str

    def __call__(self, text: str) -> str:
        return text + self.ending

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice([*ENDINGS])))


@dataclass(frozen=True)
class CurlyApostrophes:
    """Write apostrophes as books, telephones and word processors do."""

    def __call__(self, text: str) -> str:
        return text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls()


@dataclass(frozen=True)
class StemKept(dc.WordErrorRate):
    """Compares sounds as words; the reference grows with the endings."""

    def follow(self, reference: str, seed: str, recipe: Sequence[Any], mutant: str) -> str:
        return " ".join([reference, *(ENDINGS[step.ending] for step in recipe if isinstance(step, AddEnding))])


class Pronouncer:
    """The sounds of a text, and the states in which its encoder reads the letters."""

    state_name = "h of the encoder's GRU"

    def __init__(self) -> None:
        self.g2p = g2p.G2p()
        self.fingerprint = "g2p-en 2.1.0"

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [self._run(text) for text in batch]

    def _run(self, text: str) -> dc.Run:
        net, letters = self.g2p, self.g2p.encode(text)
        weights = net.enc_w_ih, net.enc_w_hh, net.enc_b_ih, net.enc_b_hh
        (states,) = net.gru(letters, len(text) + 1, *weights)
        trace = dc.Trace(np.vstack([np.zeros_like(states[:1]), states]), letters[0])
        return dc.Run(" ".join(sound for sound in net(text) if sound.strip()), trace)


def main() -> None:
    system = Pronouncer()
    dictionary = [word for word in system.g2p.cmu if re.fullmatch("[a-z]{4,12}", word)][::60]
    result = hunt(system, dictionary, WORDS, oracle=StemKept(0.4), mutations=free(AddEnding), runs=400)
    result += hunt(system, dictionary, SENTENCES, oracle=dc.WordErrorRate(), mutations=free(CurlyApostrophes), runs=10)

    print("\nThe package alone:")
    for one in result:
        for text in (one.seed, one.mutant):
            print(f"G2p()({text!r}) = {' '.join(system.g2p(text))}")


if __name__ == "__main__":
    main()
