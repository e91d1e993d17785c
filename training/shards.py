"""Speech stored for training: files of 16 kHz samples end to end, each with a list of its utterances."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deepcruiser.files.atomic import atomic_write
from deepcruiser.systems.builtin.speech.network import ALPHABET, RATE

#: From a letter's code to the network's output.
_OUTPUTS = np.array([ALPHABET.find(chr(code)) for code in range(128)])


@dataclass(frozen=True)
class Utterance:
    """The position of an utterance in its file, and its text; `voice` is a speaker or a synthetic voice."""

    id: str
    text: str
    voice: str
    start: int
    samples: int

    @property
    def seconds(self) -> float:
        return self.samples / RATE


def write_shard(path: Path, utterances: Iterable[tuple[str, str, str, npt.NDArray[np.int16]]]) -> float:
    """Write (id, text, voice, samples) as `path`.npy and `path`.json, the list last; returns the hours of speech."""
    listed: list[Utterance] = []
    parts = [np.zeros(0, np.int16)]
    start = 0
    for id, text, voice, samples in utterances:  # noqa: A001
        listed.append(Utterance(id, text, voice, start, len(samples)))
        parts.append(samples)
        start += len(samples)
    with atomic_write(path.with_name(f"{path.name}.npy")) as file:
        np.save(file, np.concatenate(parts))
    with atomic_write(path.with_name(f"{path.name}.json")) as file:
        file.write(json.dumps([asdict(utterance) for utterance in listed]).encode())
    return start / RATE / 3600


def read_shard(path: Path) -> tuple[list[Utterance], npt.NDArray[np.int16]]:
    """The list and the samples of one shard, named by its list."""
    return [Utterance(**row) for row in json.loads(path.read_bytes())], np.load(path.with_suffix(".npy"))


def spelled(text: str) -> npt.NDArray[np.int64]:
    """A text as the network's outputs."""
    return np.asarray(_OUTPUTS[np.frombuffer(text.encode("ascii"), np.uint8)])


def is_plain(text: str) -> bool:
    """Whether a text has nothing but the network's letters."""
    return bool(text) and set(text) <= set(ALPHABET)
