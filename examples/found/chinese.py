"""Test g2pM, Chinese characters to pinyin: are characters read in the same way when the punctuation changes?

    pip install g2pM
    python examples/found/chinese.py

Quotation marks, a mark at the end and an exclamation before a sentence do not change how its characters are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from hunt import free, hunt

import deepcruiser as dc

try:
    from g2pM import G2pM
except ImportError:
    raise SystemExit("this example needs the package g2pM: pip install g2pM") from None

#: Sentences with the reading of a word in each that has a character with several readings.
SENTENCES = {
    "他在银行工作": "yin2 hang2",
    "我们步行去学校": "bu4 xing2",
    "孩子长大了": "zhang3 da4",
    "长城很长": "chang2 cheng2",
    "我喜欢听音乐": "yin1 yue4",
    "祝你生日快乐": "kuai4 le4",
    "这件事很重要": "zhong4 yao4",
    "请再重复一遍": "chong2 fu4",
    "他还没有回来": "hai2 mei2",
    "我把书还给他": "huan2 gei3",
    "我觉得很好": "jue2 de5",
    "他正在睡觉": "shui4 jiao4",
    "她教我们唱歌": "ta1 jiao1",
    "老师在教室里": "jiao4 shi4",
    "我学数学": "shu4 xue2",
    "北京是中国的首都": "shou3 du1",
    "他们都来了": "dou1 lai2",
    "这里很便宜": "pian2 yi5",
    "请随便坐": "sui2 bian4",
    "天气预报说明天下雨": "yu4 bao4",
    "这种花很好看": "zhe4 zhong3",
    "农民在种地": "zhong4 di4",
    "头发很短": "tou2 fa4",
    "发现一个问题": "fa1 xian4",
    "他干了一杯": "gan1 le5",
    "我们应该休息": "ying1 gai1",
    "会计在算账": "kuai4 ji4",
    "我会开车": "wo3 hui4",
    "他处理问题": "chu3 li3",
    "到处都是人": "dao4 chu4",
    "参加比赛": "can1 jia1",
    "人参很贵": "ren2 shen1",
    "他姓单": "xing4 shan4",
    "这道题很简单": "jian3 dan1",
    "他背着书包": "bei1 zhe5",
    "宝藏在这里": "bao3 zang4",
}


@dataclass(frozen=True)
class AddMark:
    """End the sentence with a mark."""

    mark: str

    def __call__(self, text: str) -> str:
        return text + self.mark

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice(["。", "！", "…", ".", "!", "，", "~", "\n"])))


@dataclass(frozen=True)
class Quote:
    """Put the sentence into quotation marks."""

    marks: str

    def __call__(self, text: str) -> str:
        return self.marks[0] + text + self.marks[1]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice(["“”", "「」", '""', "《》", "（）", "()"])))


@dataclass(frozen=True)
class Exclaim:
    """Begin with an exclamation."""

    word: str

    def __call__(self, text: str) -> str:
        return self.word + text

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice(["嗯，", "哎，", "是的，", "你好，", "1. ", "- "])))


class RightReading:
    """Fails if the word is not read as it should be."""

    name = "another reading"

    def reference(self, text: str, output: str) -> str:
        return text

    def score(self, reference: str, output: str) -> float:
        return float(reference not in output)

    def fails(self, score: float) -> bool:
        return score > 0


class Reader:
    """The reading of a sentence, and the forward states of its LSTM."""

    state_name = "h of the forward LSTM"
    fingerprint = "g2pM 0.1.2.5"

    def __init__(self) -> None:
        self.g2p = G2pM()

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [self._run(text) for text in batch]

    def _run(self, text: str) -> dc.Run:
        net = self.g2p
        known = net.char2idx
        inputs = net.get_embedding([known.get(character, known["<UNK>"]) for character in text])
        states = [(np.zeros((1, net.weight_hh.shape[1])),) * 2]
        for step in inputs:
            states.append(net.fw_lstm_cell(step[None], states[-1]))
        trace = dc.Trace(np.concatenate([h for h, _ in states]), inputs)
        return dc.Run(" ".join(net(text)), trace)


def main() -> None:
    texts, marks = list(SENTENCES), free(AddMark, Quote, Exclaim)
    result = hunt(Reader(), texts, list(SENTENCES.items()), oracle=RightReading(), mutations=marks, runs=400)

    print("\nThe package alone:")
    for one in result:
        for text in (one.seed, one.mutant):
            print(f"G2pM()({text!r}) = {' '.join(G2pM()(text))}")


if __name__ == "__main__":
    main()
