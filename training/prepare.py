"""Decode corpora into shards: python -m training.prepare librispeech=FOLDER an4=FOLDER ... -o DATA

A share of each corpus is held out of training as NAME-held: whole speakers where the file names tell them, whole
texts otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.corpora.corpus import Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import FileError
from deepcruiser.systems.builtin.speech.network import RATE
from training.shards import is_plain, write_shard

#: The share of speakers, or of texts, that training never sees.
HELD_OUT = 0.05
LONGEST_SECONDS = 20.0
PER_SHARD = 500

#: Who speaks, by the file names of LibriSpeech (1272-128104-0000) and AN4 (an251-fash-b).
SPEAKERS = (re.compile(r"^(\d+)-\d+-\d+$"), re.compile(r"^[a-z]+\d+-(\w+)-b$"))


def speaker(sample: Sample) -> str:
    """The speaker, or the text if the file does not name one."""
    for pattern in SPEAKERS:
        if result := pattern.match(sample.id):
            return result[1]
    return sample.text or ""


def is_held_out(sample: Sample) -> bool:
    """Decided by a hash of the speaker (or text), so that it is the same whatever else is in the corpus."""
    digest = hashlib.sha256(f"held out {speaker(sample)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < HELD_OUT


def pcm(audio: Audio) -> npt.NDArray[np.int16]:
    """Its samples at the network's rate, in 16 bits."""
    samples = audio.resample(RATE).samples
    return np.asarray(np.round(np.clip(samples, -1, 1) * 32767), dtype=np.int16)


def _shard(path: Path, samples: list[Sample]) -> float:
    rows = []
    for sample in samples:
        try:
            audio = sample.input
        except FileError as error:
            print(f"left out: {error}")
            continue
        assert isinstance(audio, Audio)
        if audio.seconds <= LONGEST_SECONDS:
            rows.append((sample.id, sample.text or "", speaker(sample), pcm(audio)))
    return write_shard(path, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="NAME=PATH")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    jobs = []
    for entry in arguments.corpora:
        name, _, path = entry.partition("=")
        samples = [sample for sample in read_corpus(path) if is_plain(sample.text or "")]
        for share, held in ((name, False), (f"{name}-held", True)):
            chosen = [sample for sample in samples if is_held_out(sample) == held]
            for number in range(0, len(chosen), PER_SHARD):
                jobs.append(
                    (arguments.output / f"{share}.{number // PER_SHARD:03}", chosen[number : number + PER_SHARD])
                )
    with ProcessPoolExecutor(arguments.workers) as pool:
        for (path, _), hours in zip(jobs, pool.map(_shard, *zip(*jobs, strict=True)), strict=True):
            print(f"{path.name}: {hours:.2f} h", flush=True)


if __name__ == "__main__":
    main()
