"""A pretrained word classifier in PyTorch: profiled on real speech, covered and fuzzed.

    python examples/speech_commands.py speech-commands-lstm ../shared/speech/an4-train --runs 500

The model's folder contains the weights (`lstm_3x64.ckpt`, a state dict), `classes.txt`, and `examples` with recordings
named by their word, which are the seeds. The second argument is a corpus to profile on. One second of each recording is
used, because the network was trained on inputs of one second.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import deepcruiser as dc
from deepcruiser.features import MFCC

RATE = 16_000


class Net(nn.Module):
    """Three LSTMs, and the scores of the words from the last state."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 64, 3, batch_first=True)
        self.fc = nn.Linear(64, classes)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(self.lstm(frames)[0][:, -1])
        return scores


def load(folder: Path) -> tuple[dc.TorchSystem, list[str]]:
    words = (folder / "classes.txt").read_text().split()
    net = Net(len(words))
    net.load_state_dict(torch.load(folder / "lstm_3x64.ckpt", map_location="cpu", weights_only=True))
    system = dc.TorchSystem(
        net.eval(),
        "lstm",
        rate=RATE,
        features=MFCC.librosa(rate=RATE, coefficients=12),
        transcribe=lambda scores: dc.classify(scores, words),
    )
    return system, words


@dataclass(frozen=True, slots=True)
class Word:
    """A recording with its name and its word."""

    id: str
    input: dc.Audio
    text: str


@dataclass(frozen=True, slots=True)
class Second:
    """A second from the middle of a recording, read only when it is needed."""

    sample: dc.Sample

    @property
    def id(self) -> str:
        return self.sample.id

    @property
    def input(self) -> dc.Audio:
        audio = self.sample.input
        assert isinstance(audio, dc.Audio)
        first = max(0, (len(audio) - audio.rate) // 2)
        return audio.replace(audio.samples[first : first + audio.rate])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of the model")
    parser.add_argument("data", help="a corpus of speech to profile on")
    parser.add_argument("--count", type=int, default=900, help="number of recordings to use")
    parser.add_argument("--runs", type=int, default=500, help="number of runs of the campaign")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the campaign")
    parser.add_argument("--output", help="folder of the campaign; a temporary one if left out")
    options = parser.parse_args()

    system, words = load(options.model)
    recordings = sorted((options.model / "examples").glob("*.wav"))
    seeds = [Word(path.stem, dc.Audio.read(path), path.stem) for path in recordings if path.stem in words]
    answers = [run.output for run in system.run([seed.input for seed in seeds])]
    right = sum(answer == seed.text for answer, seed in zip(answers, seeds, strict=True))
    print(f"{len(recordings)} recordings, {len(seeds)} of them of the {len(words)} words; {right} are recognised")

    corpus = dc.read_corpus(options.data)
    every = max(1, len(corpus) // options.count)
    model = dc.profile(system, [Second(sample) for sample in corpus[::every]][: options.count]).abstract(partitions=20)
    print(model)
    print(dc.cover(model, system, seeds))

    with tempfile.TemporaryDirectory() as temporary:
        campaign = dc.fuzz(
            system,
            model,
            seeds,
            folder=options.output or temporary,
            oracle=dc.Disagreement(),  # seeds that it already gets wrong are set aside
            runs=options.runs,
            seed=options.seed,
        )
        print(campaign)
        print(f"BSCov of the queue: {campaign.coverage(dc.BSCov, queue=True).value:.1%}")
        for test in campaign.failed[:5]:
            print(test)
        same = sum(not test.replay(system).differences for test in campaign.failed)
        print(f"{same} of {len(campaign.failed)} failing tests replay exactly")


if __name__ == "__main__":
    main()
