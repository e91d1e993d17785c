"""A small built-in network with a planted weakness: it judges nested brackets.

It reads texts such as "a([b]())" symbol by symbol and says whether every bracket is closed, in the right order, by its
own kind. It was trained on texts that never nest deeper than 3. It is hardly ever wrong on new texts of that kind. On
deeper ones it often is, and reaches states that it never reached in training:

    system = brackets.load()
    model = dc.profile(system, brackets.training_texts()).abstract(partitions=10)
    for texts in (brackets.ordinary_tests(), brackets.deep_tests()):
        wrong = sum(run.output != brackets.verdict(text) for run, text in zip(system.run(texts), texts))
        print(wrong, dc.cover(model, system, texts))
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, filterfalse, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from deepcruiser.decoding.scores import doubt_of
from deepcruiser.errors import InputError
from deepcruiser.systems.torch.system import TorchSystem

PAIRS = {"(": ")", "[": "]"}
LETTERS = "ab"
SYMBOLS = "()[]" + LETTERS
#: The depths of the texts that the network was trained on, and of deeper ones.
TRAINED_DEPTHS = range(1, 4)
DEEP_DEPTHS = range(4, 9)
#: What can follow: nothing, a closing bracket, or "!" if the text can no longer be balanced.
DUE = ("", ")", "]", "!")


def due(text: str) -> list[str]:
    """The item of `DUE` after each symbol of the text."""
    answers, waiting, lost = [], [""], False
    for symbol in text:
        if symbol in PAIRS:
            waiting.append(PAIRS[symbol])
        elif symbol in PAIRS.values():
            lost = lost or waiting.pop() != symbol
        answers.append("!" if lost else waiting[-1])
    return answers


def is_balanced(text: str) -> bool:
    """Whether every bracket of the text is closed, in the right order, by its own kind."""
    return not text or due(text)[-1] == ""


def verdict(text: str) -> str:
    """The right answer for a text: "balanced" or "unbalanced"."""
    return "balanced" if is_balanced(text) else "unbalanced"


def nesting(text: str) -> int:
    """The greatest number of brackets that are open at once, as long as the text can still be balanced."""
    alive = text[: sum(expected != "!" for expected in due(text))]
    return max(accumulate(map(_rise, alive), initial=0))


def sentences(rng: np.random.Generator, count: int, *, depths: Sequence[int] = TRAINED_DEPTHS) -> list[str]:
    """Texts of 15 to 24 symbols (more if the depth needs it), each of one of the depths; half are unbalanced."""
    return list(islice(_sentences(rng, depths), count))


def training_texts(count: int = 6000, *, seed: int = 0) -> list[str]:
    """The texts that `train(seed)` learns from; the network is profiled on them too."""
    drawn = _sentences(np.random.default_rng((seed, 0)), TRAINED_DEPTHS)
    return list(islice(filterfalse(_is_for_testing, drawn), count))


def ordinary_tests(count: int = 500, *, seed: int = 0) -> list[str]:
    """New texts like those that the network was trained on; no seed makes one of them a training text."""
    drawn = _sentences(np.random.default_rng((seed, 1)), TRAINED_DEPTHS)
    return list(islice(filter(_is_for_testing, drawn), count))


def deep_tests(count: int = 500, *, seed: int = 0) -> list[str]:
    """Texts of the same lengths that nest 4 to 8 deep, deeper than all training texts."""
    return sentences(np.random.default_rng((seed, 2)), count, depths=DEEP_DEPTHS)


class BracketNet(nn.Module):
    """The scores of the items of `DUE` after each symbol."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(SYMBOLS), 8)
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.output = nn.Linear(32, len(DUE))

    def forward(self, symbols: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(symbols))
        return self.output(states)  # type: ignore[no-any-return]


@torch.enable_grad()
def train(seed: int = 0, *, steps: int = 600) -> BracketNet:
    """Train a network; the same seed gives the same weights, and the global random state is not touched."""
    texts = training_texts(seed=seed)
    shape = (len(texts), max(map(len, texts)))
    symbols, wanted = torch.zeros(shape, dtype=torch.int64), torch.full(shape, -100)  # the loss ignores -100
    for row, text in enumerate(texts):
        symbols[row, : len(text)] = torch.from_numpy(encode(text))
        wanted[row, : len(text)] = torch.tensor([DUE.index(expected) for expected in due(text)])
    net, rng = _untrained(seed), np.random.default_rng((seed, 3))
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=steps)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that sums have one order; a second thread would not be faster
    try:
        for _ in range(steps):
            rows = torch.from_numpy(rng.integers(len(texts), size=64))
            scores = net(symbols[rows])
            loss = functional.cross_entropy(scores.flatten(0, 1), wanted[rows].flatten())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    finally:
        torch.set_num_threads(threads)
    return net.requires_grad_(False).eval()


def load(seed: int = 0) -> TorchSystem:
    """The trained network as a system: its inputs are texts, its answers "balanced" or "unbalanced"."""
    return TorchSystem(
        _ready() if seed == 0 else train(seed),
        "lstm",
        features=encode,
        batch="padded",
        transcribe=_answer,
        doubt=_doubt,
    )


def _ready() -> BracketNet:
    """What `train(0)` gives, from a file, so that each process of a campaign has it at once."""
    with torch.device("meta"):
        net = BracketNet()
    net.load_state_dict(load_file(Path(__file__).with_suffix(".safetensors")), assign=True)
    return net.requires_grad_(False).eval()


def encode(text: str) -> npt.NDArray[np.int64]:
    """The number of each symbol, as the network reads it."""
    if not isinstance(text, str) or not text:
        raise InputError(f"the network reads texts of at least one symbol, not {text!r}")
    numbers = [SYMBOLS.find(symbol) for symbol in text]
    if -1 in numbers:
        at = numbers.index(-1)
        raise InputError(f"unknown symbol {text[at]!r} at position {at} of {text!r}: the network reads {SYMBOLS} only")
    return np.array(numbers, np.int64)


def _answer(scores: Tensor) -> str:
    return "balanced" if DUE[int(scores[-1].argmax())] == "" else "unbalanced"


def _doubt(scores: Tensor) -> float | None:
    """The answer depends on the scores after the last symbol alone."""
    return doubt_of(scores[-1])


def _untrained(seed: int) -> BracketNet:
    with torch.device("meta"):  # there, the layers' own initialisation draws no random numbers
        net = BracketNet().to_empty(device="cpu")
    generator = torch.Generator().manual_seed(seed)
    for name, weight in net.named_parameters():
        reach = 1.0 if name.startswith("embedding") else net.lstm.hidden_size**-0.5
        nn.init.uniform_(weight, -reach, reach, generator=generator)
    return net


def _sentences(rng: np.random.Generator, depths: Sequence[int]) -> Iterator[str]:
    if min(depths, default=0) < 1:
        raise InputError(f"depths must be one or more numbers of at least 1, not {list(depths)}")
    while True:
        depth = depths[int(rng.integers(len(depths)))]
        text = _balanced(rng, depth, length=max(2 * depth, int(rng.integers(16, 25))))
        yield text if rng.random() < 0.5 else _broken(rng, text, depth)


def _balanced(rng: np.random.Generator, depth: int, *, length: int) -> str:
    """The deepest brackets, with pairs and letters inserted anywhere until the text is long enough."""
    openings = [list(PAIRS)[kind] for kind in rng.integers(2, size=depth)]
    text = "".join(openings) + "".join(PAIRS[opening] for opening in reversed(openings))
    while len(text) < length:
        at, kind = int(rng.integers(len(text) + 1)), int(rng.integers(2))
        fits = sum(map(_rise, text[:at])) < depth and len(text) + 2 <= length
        new = "".join(list(PAIRS.items())[kind]) if fits and rng.random() < 0.75 else LETTERS[kind]
        text = text[:at] + new + text[at:]
    return text


def _broken(rng: np.random.Generator, text: str, depth: int) -> str:
    """The text with one bracket removed or replaced by the other kind, so that it is unbalanced."""
    other = {"(": "[", "[": "(", ")": "]", "]": ")"}
    while True:
        at = int(rng.integers(len(text)))
        if text[at] in other:
            broken = text[:at] + (other[text[at]] if rng.random() < 0.5 else "") + text[at + 1 :]
            if nesting(broken) == depth:
                return broken


def _rise(symbol: str) -> int:
    return (symbol in PAIRS) - (symbol in PAIRS.values())


def _is_for_testing(text: str) -> bool:
    """True for a quarter of all texts, which no seed trains on."""
    return zlib.crc32(text.encode()) % 4 == 0
