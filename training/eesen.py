"""Train a small EESEN network: python -m training.eesen CORPUS -o RUN --epochs 40

A few bidirectional LSTMs with peepholes learn characters by CTC, on the features of EESEN's LibriSpeech recipe. Writes
RUN/final.nnet and RUN/units.txt in EESEN's formats, RUN/train and RUN/held (lists of the recordings and their texts)
and RUN/log.jsonl. Whole speakers are held out. The same seed gives the same file.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import jiwer
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import ctc_loss
from torch.nn.utils.rnn import pad_sequence

from deepcruiser.corpora.corpus import Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.features.kaldi import KaldiFeatures
from deepcruiser.files.atomic import atomic_write
from deepcruiser.systems.kaldi.files import write_network
from deepcruiser.systems.kaldi.network import Affine, Network, PeepholeLstm
from deepcruiser.systems.kaldi.system import EesenSystem
from training.prepare import speaker

Frames = npt.NDArray[np.float32]

RECIPE = "librispeech"
SPACE = "<SPACE>"
BATCH = 32
RATE, WARM_SHARE = 5e-3, 0.05
#: One speaker in this many is held out.
HELD_EVERY = 8


def lstm(inputs: int, cells: int, rng: torch.Generator) -> PeepholeLstm:
    """A bidirectional layer with small random weights; it begins by remembering."""

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=rng).sub(0.5).mul(2 / math.sqrt(cells))

    bias = torch.zeros(2, 4 * cells)
    bias[:, 2 * cells : 3 * cells] = 1
    return PeepholeLstm(uniform(2, 4 * cells, inputs), uniform(2, 4 * cells, cells), bias, 0.1 * uniform(2, 3, cells))


def network(inputs: int, cells: int, layers: int, outputs: int, rng: torch.Generator) -> Network:
    lstms = [lstm(inputs if n == 0 else 2 * cells, cells, rng) for n in range(layers)]
    weight = (torch.rand((outputs, 2 * cells), generator=rng) * 2 - 1) * (2 * cells) ** -0.5
    return Network([*lstms, Affine(weight, torch.zeros(outputs)), nn.Softmax(-1)])


def split(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Those to train on, and those of the speakers that are held out."""
    held = set(sorted({speaker(sample) for sample in samples})[HELD_EVERY // 2 :: HELD_EVERY])
    return [s for s in samples if speaker(s) not in held], [s for s in samples if speaker(s) in held]


def units_of(samples: list[Sample]) -> list[str]:
    letters = sorted({letter for sample in samples for letter in sample.text or ""} - {" "})
    return [SPACE, *letters]


class Training:
    """The features of every recording, at each of the three ways to take every third frame, and the network."""

    def __init__(self, samples: list[Sample], cells: int, layers: int, seed: int) -> None:
        self.units = units_of(samples)
        numbers = {unit: number for number, unit in enumerate(self.units, 1)}
        self.targets = [
            torch.tensor([numbers[SPACE if letter == " " else letter] for letter in sample.text or ""])
            for sample in samples
        ]
        fronts = [KaldiFeatures.recipe(RECIPE, first=first) for first in range(3)]
        sounds = [sample.input for sample in samples]
        self.frames: list[list[Frames]] = [[front(sound) for front in fronts] for sound in sounds]
        self.rng = np.random.default_rng(seed)
        self.net = network(fronts[0].size, cells, layers, len(self.units) + 1, torch.Generator().manual_seed(seed))
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=RATE)

    def batches(self, easy: bool) -> list[list[int]]:
        """Recordings of like length together; the short ones first to begin with, and then in any order."""
        jitter = self.rng.uniform(0.9, 1.1, len(self.frames))
        order = sorted(range(len(self.frames)), key=lambda n: len(self.frames[n][0]) * jitter[n])
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        return batches if easy else [batches[n] for n in self.rng.permutation(len(batches))]

    def epoch(self, number: int, epochs: int) -> float:
        losses = []
        batches = self.batches(easy=number == 0)
        for position, batch in enumerate(batches):
            progress = (number + position / len(batches)) / epochs
            for group in self.optimiser.param_groups:
                group["lr"] = RATE * min(1, progress / WARM_SHARE + 0.1) * 0.5 * (1 + np.cos(np.pi * progress))
            losses.append(self.update(batch, mask=number > 2))
        return float(np.mean(losses))

    def update(self, batch: list[int], *, mask: bool) -> float:
        rows = [torch.from_numpy(self.frames[n][self.rng.integers(3)].copy()) for n in batch]
        if mask:
            rows = [self.masked(row) for row in rows]
        lengths = torch.tensor([len(row) for row in rows])
        targets = [self.targets[n] for n in batch]
        scores, _ = self.net(pad_sequence(rows, batch_first=True), lengths)
        loss = ctc_loss(
            scores.clamp_min(1e-12).log().transpose(0, 1),
            torch.cat(targets),
            lengths,
            torch.tensor([len(target) for target in targets]),
            zero_infinity=True,
        )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimiser.step()
        return loss.item()

    def masked(self, row: Tensor) -> Tensor:
        """A few neighbouring bands, and a few neighbouring frames, set to their mean."""
        band, wide = int(self.rng.integers(40)), int(self.rng.integers(8))
        row.view(len(row), -1, 40)[:, :, band : band + wide] = 0
        start, long = int(self.rng.integers(len(row))), int(self.rng.integers(6))
        row[start : start + long] = 0
        return row


def write_list(samples: list[Sample], folder: Path) -> None:
    """The recordings and their texts in Kaldi's form, so that the other commands can read them."""
    folder.mkdir(exist_ok=True)
    for name, lines in (
        ("wav.scp", [f"{s.id} {s.path}" for s in samples]),
        ("text", [f"{s.id} {s.text}" for s in samples]),
    ):
        with atomic_write(folder / name) as file:
            file.write("".join(f"{line}\n" for line in sorted(lines)).encode())


def error_rates(run: Path, samples: list[Sample]) -> dict[str, float]:
    """The error rates of the finished file, loaded as a user would."""
    system = EesenSystem(run / "final.nnet", units=run / "units.txt", features=RECIPE)
    message = [sample.text or "" for sample in samples]
    heard = [
        result.output
        for start in range(0, len(samples), BATCH)
        for result in system.run([sample.input for sample in samples[start : start + BATCH]])
    ]
    return {"wer": round(jiwer.wer(message, heard), 4), "cer": round(jiwer.cer(message, heard), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="recordings with texts, named as those of AN4 or LibriSpeech are")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--cells", type=int, default=64, help="of each direction of each layer")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    run: Path = arguments.output
    run.mkdir(parents=True, exist_ok=True)
    train, held = split(list(read_corpus(arguments.corpus)))
    write_list(train, run / "train")
    write_list(held, run / "held")
    training = Training(train, arguments.cells, arguments.layers, arguments.seed)
    (run / "units.txt").write_text("".join(f"{unit} {n}\n" for n, unit in enumerate(training.units, 1)))
    with open(run / "log.jsonl", "w") as log:
        for number in range(arguments.epochs):
            line = {"epoch": number + 1, "loss": round(training.epoch(number, arguments.epochs), 4)}
            if (number + 1) % 5 == 0 or number + 1 == arguments.epochs:
                write_network(training.net, run / "final.nnet")
                line |= error_rates(run, held)
            line["cpu_seconds"] = round(time.process_time())
            print(json.dumps(line), file=log, flush=True)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
