"""A text classifier for smart-home commands: trained here in seconds, then tested.

    python examples/text_classifier.py --runs 800

The network is a GRU that reads character by character. It is trained on tidy sentences only: lower case, without typing
errors or filler words. That is its weakness, and the campaign finds it. From the command line:


    deepcruiser profile --system examples/text_classifier.py:system --data examples/text_classifier.py:training -o text.profile
    deepcruiser fuzz --system examples/text_classifier.py:system --data examples/text_classifier.py:texts \\
        --profile text.profile --partitions 20 --mutations text --disagreement --runs 800 -o runs/text
"""  # noqa: E501

from __future__ import annotations

import argparse
import itertools
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import deepcruiser as dc

INTENTS = ("light on", "light off", "music", "weather", "timer")
ROOMS = ("kitchen", "bedroom", "hall", "garden", "office", "cellar")
DAYS = ("today", "tomorrow", "on sunday", "this evening", "next week")
COUNTS = ("two", "three", "five", "ten", "twenty", "forty")


def every(form: str, *words: tuple[str, ...]) -> list[str]:
    """The form with all words in all places."""
    return [form.format(*chosen) for chosen in itertools.product(*words)]


DO, PLEASE = ("turn", "switch"), ("", " please")
ASK = ("will it rain", "is it cold", "how warm is it")
SENTENCES = {
    "light on": every("{} the {} light on{}", DO, ROOMS, PLEASE) + every("make the {} bright", ROOMS),
    "light off": every("{} the {} light off{}", DO, ROOMS, PLEASE) + every("make the {} dark", ROOMS),
    "music": every("play {} music in the {}", ("some", "quiet", "loud", "old"), ROOMS),
    "weather": every("{} {}", ASK, DAYS),
    "timer": every("{} {} minutes", ("wake me in", "set a timer for", "remind me in"), COUNTS),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its name and its right answer."""

    id: str
    input: str
    text: str


def sentences(part: int) -> list[Sentence]:
    """Every fifth sentence is for testing (part 1), the others for training (part 0)."""
    pairs = [(intent, sentence) for intent, result in SENTENCES.items() for sentence in result]
    chosen = [(number, *pair) for number, pair in enumerate(pairs) if (number % 5 == 0) == bool(part)]
    return [Sentence(f"s{number:03}", sentence, intent) for number, intent, sentence in chosen]


class Classifier(nn.Module):
    """The scores of the intents after every character."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(128, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, len(INTENTS))

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(self.embedding(characters))
        scores: torch.Tensor = self.out(states)
        return scores


def characters(text: str) -> torch.Tensor:
    return torch.tensor([min(ord(character), 127) for character in text])


def train(seed: int, steps: int) -> Classifier:
    """The same seed and steps give the same weights, and so the same fingerprint, in every process."""
    torch.set_num_threads(1)  # so that sums are always added in the same order
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Classifier()
    rng, data = np.random.default_rng(seed), sentences(0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(steps):
        chosen = [data[number] for number in rng.integers(len(data), size=32)]
        padded = nn.utils.rnn.pad_sequence([characters(one.input) for one in chosen], batch_first=True)
        last = torch.tensor([len(one.input) - 1 for one in chosen])
        wanted = torch.tensor([INTENTS.index(one.text) for one in chosen])
        scores = net(padded)[torch.arange(len(chosen)), last]
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, wanted).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return net.requires_grad_(False).eval()


# What --system and --data name: functions without arguments.


def system(seed: int = 0, steps: int = 250) -> dc.TorchSystem:
    return dc.TorchSystem(
        train(seed, steps),
        "gru",
        features=characters,
        batch="padded",
        transcribe=lambda scores: INTENTS[int(scores[-1].argmax())],
        doubt=lambda scores: dc.doubt_of(scores[-1]),  # the answer depends on the last character alone
    )


def training() -> list[Sentence]:
    return sentences(0)


def texts() -> list[Sentence]:
    return sentences(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="random seed of the training and the campaign")
    parser.add_argument("--steps", type=int, default=250, help="number of training steps")
    parser.add_argument("--runs", type=int, default=800, help="number of runs of the campaign")
    parser.add_argument("--output", help="folder of the campaign; a temporary one if left out")
    options = parser.parse_args()

    network, tests = system(options.seed, options.steps), texts()
    right = sum(run.output == one.text for run, one in zip(network.run([t.input for t in tests]), tests, strict=True))
    print(f"{right} of {len(tests)} new sentences are classified correctly")

    model = dc.profile(network, training(), components=3, exact=True).abstract(partitions=20)
    print(model)
    print(dc.cover(model, network, tests))

    with tempfile.TemporaryDirectory() as temporary:
        campaign = dc.fuzz(
            network,
            model,
            tests,
            folder=options.output or temporary,
            guide=dc.SBCov(2),  # what training never visited
            oracle=dc.Disagreement(),
            mutations=dc.Mutations.text(),
            runs=options.runs,
            seed=options.seed,
            workers=0,  # texts are changed so fast that worker processes do not pay off
        )
        print(campaign)
        for test in campaign.failed[:5]:
            print(f"{test.make()!r}: {test}")
        same = sum(not test.replay(network).differences for test in campaign.failed)
        print(f"{same} of {len(campaign.failed)} failing tests replay exactly")


if __name__ == "__main__":
    main()
