"""Does it help the network? python -m training.harden TRAIN --held HELD -o RUN [--device cuda]

A campaign looks for failing tests on recordings of training speakers. Copies of the built-in recogniser are then
fine-tuned on clean training recordings and these tests, or on as many random mutants of as many changes and the same
severity. New campaigns on held-out recordings, and word error rates there, compare both with the network as it is.
Writes RUN/harden.json and prints the table. The same command resumes where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soundfile
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import deepcruiser as dc
from deepcruiser.audio import Audio
from deepcruiser.campaign.drawing import Drawing
from deepcruiser.campaign.executors.local import make
from deepcruiser.campaign.failed_test import different_failures
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.store import versions
from deepcruiser.corpora.corpus import Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.decoding.language_model import read_language_model
from deepcruiser.errors import InputError
from deepcruiser.evaluate.campaigns import Matched
from deepcruiser.evaluate.schedulers import SEVERE
from deepcruiser.evaluate.statistics import mann_whitney
from deepcruiser.files.atomic import atomic_write
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL, WEIGHTS
from deepcruiser.systems.builtin.speech.network import Recogniser
from deepcruiser.systems.builtin.speech.recogniser import English
from deepcruiser.transformations.severity import severity
from training.graphs import Scores
from training.pool import Pool
from training.prepare import pcm
from training.shards import is_plain, write_shard
from training.sound import Sounds
from training.train import DROPOUTS, loss_of

#: A text and a recording that says it.
Spoken = tuple[str, Audio]

UNTOUCHED, RANDOM, FAILING = "as it is", "random mutants", "failing tests"
#: What a copy is fine-tuned on, beside clean recordings.
ARMS = {RANDOM: "random", FAILING: "failing"}
#: The share of the time that clean recordings have in fine-tuning.
CLEAN_SHARE = 0.5
#: Updates over which the rate of learning rises.
WARM_UPDATES = 10
#: Inputs that the network reads at a time.
BATCH = 16


@dataclass(frozen=True)
class Network:
    """One of the compared networks: what it was fine-tuned on, with which random seed, and its weights."""

    arm: str
    seed: int
    weights: Path

    @property
    def name(self) -> str:
        return f"{ARMS.get(self.arm, 'untouched')}-{self.seed}"

    def system(self, device: str) -> English:
        model = read_language_model(LANGUAGE_MODEL) if has_beam_search() else None
        return English(weights=self.weights, device=device, language_model=model)


def recordings(folders: Sequence[Path], longest: float) -> list[Sample]:
    """Recordings with plain texts, at most `longest` seconds each."""
    result = [sample for folder in folders for sample in read_corpus(folder) if is_plain(sample.text or "")]
    return [sample for sample in result if soundfile.info(sample.path).duration <= longest]


def spoken(sample: Sample) -> Spoken:
    audio = sample.input
    assert isinstance(audio, Audio)
    return sample.text, audio


def answers(system: English, sounds: Iterator[Audio]) -> list[str]:
    """What the system hears, a batch at a time."""
    heard: list[str] = []
    while batch := [sound for _, sound in zip(range(BATCH), sounds, strict=False)]:
        heard += [run.output for run in system.run(batch)]
    return heard


def right(system: English, samples: Sequence[Sample]) -> tuple[set[str], float]:
    """The names of the recordings that are recognised without an error, and the word error rate of all."""
    heard = answers(system, (spoken(sample)[1] for sample in samples))
    correct = {sample.id for sample, text in zip(samples, heard, strict=True) if sample.text == text}
    return correct, float(jiwer.wer([sample.text for sample in samples], heard))


def campaign(system: English, seeds: Sequence[Sample], folder: Path, **settings: Any) -> CampaignRecord:
    """A campaign of the default scheduler, without a model: each network would need one of its own."""
    oracle = dc.WordErrorRate(above=0)
    return dc.fuzz(system, None, seeds, folder=folder, guide="none", oracle=oracle, workers=0, **settings)


def random_mutants(recipes: Sequence[Any], samples: Sequence[Sample], rng: np.random.Generator) -> list[Spoken]:
    """For each recipe a valid mutant of a random recording, with as many random changes, as severe together."""
    mutations = dc.Mutations()
    matched = Matched(Drawing(mutations, math.inf), [(len(recipe), severity(recipe)) for recipe in recipes])
    mutants: list[Spoken] = []
    while len(mutants) < len(recipes):
        text, audio = spoken(samples[int(rng.integers(len(samples)))])
        made = make(matched.changes(len(mutants) + 1, rng), audio, audio, mutations.invalid)
        if not made.invalid:
            mutants.append((text, made.value))
    return mutants


def fine_tuned(start: Path, data: Path, arm: str, seed: int, options: argparse.Namespace) -> Recogniser:
    """A copy of the network, fine-tuned on clean recordings and the arm's mutants and otherwise unchanged."""
    place, updates, rate = torch.device(options.device), options.updates, options.rate
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
        torch.manual_seed(seed)
        net = Recogniser().to(place)
        net.load_state_dict({name: half.float() for name, half in load_file(start).items()})
        net.dropout.p, net.early_dropout.p = DROPOUTS[1]
        net.train()
        optimiser = torch.optim.AdamW(net.parameters(), lr=rate, betas=(0.9, 0.98))
        pool = Pool(data, place, hours=sum(path.stat().st_size for path in data.glob("*.npy")) / 2 / 16_000 / 3600)
        pool.refresh()
        sounds, rng = Sounds(place, seed=seed), np.random.default_rng(seed)
        mix = {"clean": CLEAN_SHARE, ARMS[arm]: 1 - CLEAN_SHARE}
        update = 0
        while update < updates:
            for batch in pool.batches(mix, rng, seconds=options.batch_seconds, most=BATCH, longest=17.0):
                fall = 0.5 * (1 + math.cos(math.pi * update / updates))
                optimiser.param_groups[0]["lr"] = rate * min(1.0, (update + 1) / WARM_UPDATES) * fall
                loss = loss_of(net, Scores(net), batch, sounds, easy=True)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
                update += 1
                if update == updates:
                    break
    return net.eval()


class Hardening:
    """The experiment in its folder."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.given, self.folder = arguments, arguments.output
        self.untouched = Network(UNTOUCHED, 0, WEIGHTS)
        self.rng = np.random.default_rng(arguments.seed)
        self.train = recordings([arguments.train], arguments.longest)
        self.held = recordings(arguments.held, arguments.longest)

    def go(self) -> dict[str, Any]:
        recipes = self.prepare()
        networks = [self.untouched, *self.fine_tune()]
        mutants = random_mutants(recipes, self.held, self.rng)
        rows, correct = [], []
        for network in networks:
            system = network.system(self.given.device)
            names, clean = right(system, self.held)
            correct.append(names)
            heard = answers(system, (audio for _, audio in mutants))
            on_mutants = float(jiwer.wer([text for text, _ in mutants], heard))
            rows.append({"arm": network.arm, "seed": network.seed, "wer clean": clean, "wer mutants": on_mutants})
            print(json.dumps(rows[-1]), flush=True)
        both = [sample for sample in self.held if all(sample.id in names for names in correct)]
        seeds = [both[place] for place in sorted(self.rng.permutation(len(both))[: self.given.seeds])]
        for row, network in zip(rows, networks, strict=True):
            row["campaigns"] = [self.measure(network, seeds, number) for number in range(self.given.campaigns)]
            print(json.dumps(row), flush=True)
        about = {name: str(value) for name, value in vars(self.given).items() if name != "output"}
        sizes = {"failing tests": len(recipes), "seeds": len(seeds), "held-out recordings": len(self.held)}
        return {"command": about, "versions": versions(), "sizes": sizes, "networks": rows}

    def prepare(self) -> list[Any]:
        """Find failing tests and write all that is to be trained on; the recipes of the failing tests."""
        system, options = self.untouched.system(self.given.device), self.given
        names, _ = right(system, self.train)
        seeds = [sample for sample in self.train if sample.id in names][: options.train_seeds]
        settings = {"runs": options.train_runs, "seed": options.seed, "severity": options.severity}
        failed = campaign(system, seeds, self.folder / "search", **settings).failed
        if not failed:
            raise InputError(f"no test failed in {options.train_runs} runs: raise --train-runs or --severity")
        recipes, data = [test.recipe for test in failed], self.folder / "data"
        data.mkdir(exist_ok=True)
        failing = [(test.seed_reference, test.make()) for test in failed]
        arms = {"clean": map(spoken, self.train), "failing": failing}
        arms["random"] = random_mutants(recipes, seeds, self.rng)
        for name, sounds in arms.items():
            rows = ((f"{name}-{number}", text, name, pcm(audio)) for number, (text, audio) in enumerate(sounds))
            write_shard(data / f"{name}.000", rows)
        print(
            f"{len(failed)} failing tests of {options.train_runs} runs on {len(seeds)} training recordings", flush=True
        )
        return recipes

    def fine_tune(self) -> list[Network]:
        options = self.given
        networks = [
            Network(arm, seed, self.folder / f"{ARMS[arm]}-{seed}.safetensors")
            for arm in ARMS
            for seed in range(options.repeats)
        ]
        for network in networks:
            if not network.weights.exists():
                net = fine_tuned(WEIGHTS, self.folder / "data", network.arm, network.seed, options)
                halves = {name: weight.half().contiguous().cpu() for name, weight in net.state_dict().items()}
                save_file(halves, network.weights)
                print(f"{network.name} is fine-tuned", flush=True)
        return networks

    def measure(self, network: Network, seeds: Sequence[Sample], number: int) -> dict[str, int]:
        """What a campaign on held-out recordings finds; its random seed is not that of the search."""
        system, folder = network.system(self.given.device), self.folder / f"{network.name}-campaign-{number}"
        settings = {"runs": self.given.runs, "seed": self.given.seed + 1 + number, "severity": self.given.severity}
        result = campaign(system, seeds, folder, **settings)
        severe = [test for test in result.failed if test.score > SEVERE]
        return {
            "failures": len(result.failed),
            "distinct": different_failures(result.failed),
            "severe": different_failures(severe),
            "seeds": len({test.seed for test in result.failed}),
        }


def table(result: dict[str, Any]) -> str:
    """A row for each arm: means over its networks and their campaigns, and the range over the networks."""
    counts = ("failures", "distinct", "severe", "seeds")
    lines = [
        "| fine-tuned on | networks | WER clean | WER mutants | failing tests | distinct | severe | seeds broken |",
        "|---" + "|---:" * 7 + "|",
    ]
    values: dict[tuple[str, str], list[float]] = {}
    for arm in (UNTOUCHED, *ARMS):
        rows = [row for row in result["networks"] if row["arm"] == arm]
        for what in counts:
            values[arm, what] = [float(np.mean([each[what] for each in row["campaigns"]])) for row in rows]
        rates = [_mean([100 * row[what] for row in rows], "%") for what in ("wer clean", "wer mutants")]
        outcome = [_mean(values[arm, what]) for what in counts]
        lines.append(f"| {arm} | {len(rows)} | {' | '.join([*rates, *outcome])} |")
    test = mann_whitney(values[FAILING, "distinct"], values[RANDOM, "distinct"])
    lines += ["", f"Distinct failures, {FAILING} against {RANDOM}: A = {test.superiority:.2f}, p = {test.p:.2f}."]
    return "\n".join(lines)


def _mean(values: Sequence[float], unit: str = "") -> str:
    middle = f"{np.mean(values):.1f}{unit}"
    return f"{middle} ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else middle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, help="recordings of training speakers")
    parser.add_argument("--held", type=Path, action="append", required=True, help="held-out recordings; repeatable")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--longest", type=float, default=8.0, help="seconds of a recording at most")
    parser.add_argument("--train-seeds", type=int, default=100, help="recordings of the first campaign at most")
    parser.add_argument("--train-runs", type=int, default=512, help="runs of the first campaign")
    parser.add_argument("--severity", default="normal", help="budget of all campaigns: mild, normal, hard or a number")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--batch-seconds", type=float, default=30.0, help="of speech in an update")
    parser.add_argument("--rate", type=float, default=1e-4, help="the greatest rate of learning")
    parser.add_argument("--repeats", type=int, default=3, help="networks fine-tuned for each arm")
    parser.add_argument("--seeds", type=int, default=30, help="held-out recordings that every network gets right")
    parser.add_argument("--runs", type=int, default=192, help="runs of a campaign on them")
    parser.add_argument("--campaigns", type=int, default=2, help="campaigns of each network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    result = Hardening(arguments).go()
    with atomic_write(arguments.output / "harden.json") as file:
        file.write(json.dumps(result, indent=1).encode())
    print(table(result))


if __name__ == "__main__":
    main()
