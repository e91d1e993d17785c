"""Train the recogniser: python -m training.train DATA -o RUN --minutes 25 [--shape deepspeech] [--noise FOLDER]

Reads the shards in DATA, also those that appear later. Writes RUN/last.pt (to go on from: the same command resumes),
RUN/log.jsonl, and RUN/weights.safetensors, the moving average of the weights in half precision. With --start it is a
second stage, which begins with such weights, learns less and falls sooner.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import time
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.systems.builtin.speech.network import ALPHABET, BLANK, MEL, RATE, log_mel, normalised
from training.graphs import Forward, Graphs, Scores
from training.pool import Batch, Pool, sent
from training.shapes import SHAPES
from training.sound import Sounds

#: Shares of training time by what is in a shard, at the beginning and at the end.
MIX_FIRST = {"synthetic": 0.62, "librispeech": 0.24, "commonvoice": 0.10, "an4": 0.04}
MIX_LAST = {"synthetic": 0.38, "librispeech": 0.42, "commonvoice": 0.15, "an4": 0.05}
HELD = ("synthetic-held", "librispeech-held", "commonvoice-held", "an4-held")

#: The greatest rate of learning, the steps to it, and the share of the time before it falls, by stage.
RATES, WARM_STEPS, HOLD = (1.2e-3, 1.0e-3), (400, 150), (0.35, 0.2)
DROPOUTS = ((0.25, 0.1), (0.2, 0.08))
#: The first steps take short texts and nothing that makes them harder, or the network stays with blanks for long.
EASY_STEPS, EASY_SECONDS = 500, 3.5
AVERAGE = 0.9995
MIDDLE_WEIGHT = 0.3
#: What is held out is recognised, and the weights are saved, so often.
TELL_SECONDS = 120.0


def learning(step: int, progress: float, stage: int) -> float:
    """The learning rate: warm up, hold, fall as a cosine to zero."""
    fall = max(0.0, (progress - HOLD[stage]) / (1 - HOLD[stage]))
    return RATES[stage] * min(1.0, (step + 1) / WARM_STEPS[stage]) * 0.5 * (1 + math.cos(math.pi * min(1.0, fall)))


def loss_of(net: Any, forward: Forward, batch: Batch, sounds: Sounds, *, easy: bool) -> Tensor:
    """The CTC loss of a batch, changed in every way that training knows unless it is an easy one."""
    device = batch.waves.device
    with torch.no_grad():
        waves = batch.waves if easy else sounds.waves(batch.waves, batch.lengths)
        frames, _ = log_mel(waves, sent(batch.lengths, device))
        counts = batch.lengths // MEL.step + 1
        if not easy:
            frames, counts = sounds.frames(frames, counts)
        frames, on_device = normalised(frames, sent(counts, device))
        if not easy:
            frames = sounds.gaps(frames, counts)
    scores, middle = forward(frames, on_device)
    losses = [ctc(each, net.steps_of(counts), batch) for each in (scores, middle)]
    return losses[0] if middle is scores else (1 - MIDDLE_WEIGHT) * losses[0] + MIDDLE_WEIGHT * losses[1]


def ctc(scores: Tensor, steps: Tensor, batch: Batch) -> Tensor:
    return functional.ctc_loss(
        scores.float().log_softmax(-1).transpose(0, 1),
        sent(batch.targets, scores.device),
        steps,
        batch.target_lengths,
        blank=BLANK,
        zero_infinity=True,
    )


@torch.no_grad()
def heard(net: Any, batch: Batch) -> list[str]:
    """The greedy transcripts of a batch."""
    frames, counts = normalised(*log_mel(batch.waves, batch.lengths.to(batch.waves.device)))
    scores = Scores(net)(frames, counts)[0]
    texts: list[str] = ctc_greedy(scores.float(), ALPHABET, blank=BLANK, lengths=net.steps_of(counts))
    return texts


def held_out(net: Any, pool: Pool, most: int = 240) -> dict[str, float]:
    """The word error rate of every held-out share."""
    rates = {}
    for share in HELD:
        utterances = sorted(pool.shares.get(share, [])[:most], key=lambda each: each.samples)
        message, written = [], []
        for start in range(0, len(utterances), 60):
            batch = pool.batch(utterances[start : start + 60])
            message += [each.text for each in batch.utterances]
            written += heard(net, batch)
        if message:
            rates[share] = round(jiwer.wer(message, written), 4)
    return rates


def noises(folder: Path | None, device: torch.device) -> Tensor | None:
    """Recordings of noise, end to end rows of 30 s."""
    if folder is None:
        return None
    rows = []
    for sample in read_corpus(folder):
        audio = sample.input
        assert isinstance(audio, Audio)
        rows.append(np.resize(audio.resample(RATE).samples, 30 * RATE))
    return torch.from_numpy(np.stack(rows)).to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=25.0, help="of training in all, earlier parts counted in")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="english")
    parser.add_argument("--start", type=Path, help="weights of an earlier stage to begin with")
    parser.add_argument("--noise", type=Path, help="a folder of recordings of noise")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-graphs", action="store_true", help="launch every kernel by itself, as without a GPU")
    parser.add_argument("--hours", type=float, default=320.0, help="room for so much speech on the device")
    parser.add_argument("--batch-seconds", type=float, default=1500.0)
    parser.add_argument("--batch-most", type=int, default=256)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    Training(arguments).go()


class Training:
    """Network, moving average, optimiser and data of one run."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.device = arguments, torch.device(arguments.device)
        with torch.random.fork_rng():
            torch.random.manual_seed(arguments.seed)
            self.net: Any = SHAPES[arguments.shape]().to(self.device)
        self.stage = int(arguments.start is not None)
        if arguments.start is not None:
            self.net.load_state_dict({name: half.float() for name, half in load_file(arguments.start).items()})
        self.forward = Scores(self.net) if arguments.no_graphs else Graphs(self.net)
        self.average = copy.deepcopy(self.net).eval()
        decayed = [weight for weight in self.net.parameters() if weight.ndim > 1]
        plain = [weight for weight in self.net.parameters() if weight.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=self.device.type == "cuda")
        self.pool = Pool(arguments.data, self.device, arguments.hours)
        self.sounds = Sounds(self.device, seed=arguments.seed, noises=noises(arguments.noise, self.device))
        self.rng = np.random.default_rng(arguments.seed)
        self.step, self.spent = 0, 0.0
        if (arguments.output / "last.pt").exists():
            self._load(torch.load(arguments.output / "last.pt", weights_only=True, map_location=self.device))

    @property
    def progress(self) -> float:
        return float(self.spent / 60 / self.arguments.minutes)

    def go(self) -> None:
        began, reported, losses = time.monotonic() - self.spent, 0.0, []
        while self.progress < 1:
            self.pool.refresh(limit=40 if self.step else 1_000_000)
            easy = self.stage == 0 and self.step < EASY_STEPS
            self.net.dropout.p, self.net.early_dropout.p = (0.0, 0.0) if easy else DROPOUTS[self.stage]
            for batch in self.batches(easy):
                losses.append(self.update(batch, easy=easy))
                self.spent = time.monotonic() - began
                if self.progress >= 1 or (easy and self.step >= EASY_STEPS):
                    break
            if self.spent - reported > TELL_SECONDS or self.progress >= 1:
                reported = self.spent
                self.tell(torch.stack(losses).mean().item() if losses else math.nan)
                losses = []

    def batches(self, easy: bool) -> Any:
        mix = {share: (1 - self.progress) * MIX_FIRST[share] + self.progress * MIX_LAST[share] for share in MIX_FIRST}
        options = self.arguments
        longest = EASY_SECONDS if easy else 17.0
        return self.pool.batches(mix, self.rng, seconds=options.batch_seconds, most=options.batch_most, longest=longest)

    def update(self, batch: Batch, *, easy: bool) -> Tensor:
        self.net.train()
        loss = loss_of(self.net, self.forward, batch, self.sounds, easy=easy)
        for group in self.optimiser.param_groups:
            group["lr"] = learning(self.step, self.progress, self.stage)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimiser.step()
        keep = min(AVERAGE, 1 - 1 / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.net.parameters()), 1 - keep)
        self.step += 1
        return loss.detach()

    def tell(self, loss: float) -> None:
        """Write the log, the weights, and what is needed to go on."""
        line = {"step": self.step, "seconds": round(self.spent), "loss": round(loss, 4)}
        line |= {"hours": round(sum(map(self.pool.hours_of, self.pool.shares)), 1), **held_out(self.average, self.pool)}
        print(json.dumps(line), flush=True)
        with open(self.arguments.output / "log.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        halves = {name: weight.half().contiguous() for name, weight in self.average.state_dict().items()}
        save_file(halves, self.arguments.output / "weights.safetensors")
        state = {"net": self.net.state_dict(), "average": self.average.state_dict(), "step": self.step}
        state |= {"optimiser": self.optimiser.state_dict(), "spent": self.spent}
        torch.save(state, self.arguments.output / "last.pt.new")
        (self.arguments.output / "last.pt.new").replace(self.arguments.output / "last.pt")

    def _load(self, state: dict[str, Any]) -> None:
        self.net.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.spent = state["step"], state["spent"]


if __name__ == "__main__":
    main()
