"""Test e2k, English spelling to Japanese katakana: does a word keep its sounds with an ending, or another apostrophe?

    pip install e2k
    python examples/found/katakana.py

The network reads the letters of a word. With an ending whose katakana are known it should say the word as before, and
then the ending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from hunt import free, hunt

import deepcruiser as dc

try:
    from e2k import C2K
except ImportError:
    raise SystemExit("this example needs the package e2k: pip install e2k") from None

ENDINGS = {"ness": "ネス", "less": "レス", "like": "ライク", "hood": "フッド", "ship": "シップ"}
#: Words that Japanese has borrowed, as it writes them.
WORDS = {
    "camera": "カメラ",
    "card": "カード",
    "cat": "キャット",
    "circus": "サーカス",
    "computer": "コンピューター",
    "dragon": "ドラゴン",
    "engine": "エンジン",
    "forest": "フォレスト",
    "friend": "フレンド",
    "garden": "ガーデン",
    "golden": "ゴールデン",
    "island": "アイランド",
    "kitchen": "キッチン",
    "lemon": "レモン",
    "limit": "リミット",
    "market": "マーケット",
    "member": "メンバー",
    "network": "ネットワーク",
    "office": "オフィス",
    "orange": "オレンジ",
    "partner": "パートナー",
    "pencil": "ペンシル",
    "planet": "プラネット",
    "rabbit": "ラビット",
    "robot": "ロボット",
    "simple": "シンプル",
    "summer": "サマー",
    "world": "ワールド",
}
#: With the apostrophes of books, which the package leaves out.
CONTRACTIONS = {
    "don\N{RIGHT SINGLE QUOTATION MARK}t": "ドント",
    "won\N{RIGHT SINGLE QUOTATION MARK}t": "ウォント",
    "can\N{RIGHT SINGLE QUOTATION MARK}t": "カント",
    "let\N{RIGHT SINGLE QUOTATION MARK}s": "レッツ",
    "it\N{RIGHT SINGLE QUOTATION MARK}s": "イッツ",
    "mother\N{RIGHT SINGLE QUOTATION MARK}s": "マザーズ",
    "father\N{RIGHT SINGLE QUOTATION MARK}s": "ファザーズ",
    "today\N{RIGHT SINGLE QUOTATION MARK}s": "トゥデイズ",
}


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
class PlainApostrophes:
    """Write apostrophes as keyboards do."""

    def __call__(self, text: str) -> str:
        return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls()


@dataclass(frozen=True)
class StemKept(dc.CharacterErrorRate):
    """Compares katakana; the reference grows with the endings."""

    def follow(self, reference: str, seed: str, recipe: Sequence[Any], mutant: str) -> str:
        return reference + "".join(ENDINGS[step.ending] for step in recipe if isinstance(step, AddEnding))


class Writer:
    """The katakana of a word, and the states in which its encoder reads the letters from left to right."""

    state_name = "h of the encoder's forward GRU"
    fingerprint = "e2k 0.8.1"

    def __init__(self) -> None:
        self.c2k = C2K()

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [self._run(word) for word in batch]

    def _run(self, word: str) -> dc.Run:
        net, known = self.c2k.s2s, self.c2k.in_table
        letters = [net.sos_idx, *(known[letter] for letter in word.lower() if letter in known), net.eos_idx]
        inputs = net.e_emb.forward(np.array(letters))
        states, _ = net.encoder.forward(inputs)
        return dc.Run(self.c2k(word), dc.Trace(np.vstack([np.zeros_like(states[:1]), states]), inputs))


def main() -> None:
    system, words = Writer(), [*WORDS]
    result = hunt(system, words, list(WORDS.items()), oracle=StemKept(0.35), mutations=free(AddEnding), runs=150)
    oracle, apostrophes = dc.CharacterErrorRate(0.2), free(PlainApostrophes)
    result += hunt(system, words, list(CONTRACTIONS.items()), oracle=oracle, mutations=apostrophes, runs=40)

    print("\nThe package alone:")
    for one in result:
        for word in (one.seed, one.mutant):
            print(f"C2K()({word!r}) = {system.c2k(word)}")


if __name__ == "__main__":
    main()
