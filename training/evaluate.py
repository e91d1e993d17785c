"""Word error rates: python -m training.evaluate test-clean-200=DIR librispeech-held=DIR,DIR ... --card PAGE

A set whose name ends in -held is the held-out share of corpora (see training.prepare), or of the synthetic speech in a
folder of shards. Each set is recognised twice, letter by letter (`english-letters`) and as words (`english`). With
--card the table goes into the card, between its two marks, and with everything else into training/results.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import jiwer
import numpy as np
import torch

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.decoding.beam import ctc_beam
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_model import read_language_model
from deepcruiser.files.atomic import atomic_write
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL
from deepcruiser.systems.builtin.speech.network import ALPHABET, BLANK, RATE
from deepcruiser.systems.builtin.speech.recogniser import English
from training.prepare import is_held_out
from training.shards import is_plain, read_shard

RESULTS = Path(__file__).parent / "results.json"
MARKS = ("<!-- results: written by training.evaluate -->", "<!-- end of results -->")


@dataclass(frozen=True)
class Score:
    """How one set was recognised in one way."""

    name: str
    decoding: str
    utterances: int
    words: int
    wer: float
    cer: float
    perfect: int
    decoding_ms: float  # of one core, for an utterance of 4.5 s
    seconds_per_second: float  # of one core for a second of speech, network and decoding


def recordings(name: str, paths: list[Path]) -> Iterator[tuple[str, Audio]]:
    """The texts and sounds of one set."""
    held = name.endswith("-held")
    for path in paths:
        shards = sorted(path.glob("synthetic-held.*.json"))
        for shard in shards:
            utterances, samples = read_shard(shard)
            for each in utterances:
                part = samples[each.start : each.start + each.samples]
                yield each.text, Audio(part.astype(np.float32) / 32768, RATE)
        for sample in [] if shards else read_corpus(path):
            if is_plain(sample.text or "") and (not held or is_held_out(sample)):
                audio = sample.input
                assert isinstance(audio, Audio)
                yield sample.text or "", audio


def recognised(job: tuple[str, list[Path]]) -> list[Score]:
    """Both scores of one set; the network runs once."""
    name, paths = job
    torch.set_num_threads(1)
    net, model = English().net, read_language_model(LANGUAGE_MODEL)
    ctc_beam(np.zeros((1, BLANK + 1)), ALPHABET, blank=BLANK, language_model=model)  # it is made ready only once
    texts, logs, seconds, spent = [], [], 0.0, [0.0, 0.0, 0.0]
    for text, audio in recordings(name, paths):
        began = time.process_time()
        samples = torch.from_numpy(audio.resample(RATE).samples)
        with torch.no_grad():
            logs.append(net(samples[None], torch.tensor([len(samples)]))[0].log_softmax(-1).numpy())
        spent[2] += time.process_time() - began
        texts.append(text)
        seconds += audio.seconds
    scores = []
    for number, decoding in enumerate(("greedy", "language model")):
        began = time.process_time()
        if number:
            heard = [ctc_beam(each, ALPHABET, blank=BLANK, language_model=model) for each in logs]
        else:
            heard = [ctc_greedy(each, ALPHABET, blank=BLANK) for each in logs]
        spent[number] = time.process_time() - began
        scores.append(
            Score(
                name,
                decoding,
                len(texts),
                sum(len(text.split()) for text in texts),
                jiwer.wer(texts, heard),
                jiwer.cer(texts, heard),
                sum(a == b for a, b in zip(texts, heard, strict=True)),
                4500 * spent[number] / seconds,
                (spent[number] + spent[2]) / seconds,
            )
        )
    return scores


def table(scores: list[Score]) -> str:
    lines = [
        "| test set | utterances | words | WER letters | WER words | CER letters | CER words "
        "| without error, letters | without error, words | ms to decode 4.5 s into words |",
        "|---" + "|---:" * 9 + "|",
    ]
    for greedy, weighed in zip(scores[::2], scores[1::2], strict=True):
        lines.append(
            f"| {greedy.name} | {greedy.utterances:,} | {greedy.words:,} | {greedy.wer:.1%} | {weighed.wer:.1%} "
            f"| {greedy.cer:.1%} | {weighed.cer:.1%} | {greedy.perfect:,} | {weighed.perfect:,} "
            f"| {weighed.decoding_ms:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME=PATH[,PATH]")
    parser.add_argument("--card", type=Path, help="the page whose table is to be written anew")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    jobs = []
    for entry in arguments.sets:
        name, _, paths = entry.partition("=")
        jobs.append((name, [Path(path) for path in paths.split(",")]))
    with ProcessPoolExecutor(arguments.workers) as pool:
        scores = [score for both in pool.map(recognised, jobs) for score in both]
    print(table(scores))
    if arguments.card is not None:
        about = {"torch": torch.__version__, "python": platform.python_version()}
        recorded = {"versions": about, "scores": [asdict(score) for score in scores]}
        with atomic_write(RESULTS) as file:
            file.write(json.dumps(recorded, indent=1).encode())
        before, _, rest = arguments.card.read_text(encoding="utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        page = f"{before}{MARKS[0]}\n{table(scores)}\n{MARKS[1]}{after}"
        with atomic_write(arguments.card) as file:
            file.write(page.encode())


if __name__ == "__main__":
    main()
