"""Test Resemblyzer, which makes a vector of a voice: is a speaker still recognised over a telephone, or in some noise?

    pip install Resemblyzer 'setuptools<81'
    python examples/found/speakers.py [FOLDER]

Each voice is enrolled with four recordings; a test recording is of the voice whose vector is nearest. FOLDER holds
speech in LibriSpeech's layout; without it, the synthetic voices that come with DeepCruiser are used. The worst
failing tests are written as sound files, before and after.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hunt import SPEECH, hunt

import deepcruiser as dc

try:
    from resemblyzer import VoiceEncoder, audio, preprocess_wav
except ImportError:
    raise SystemExit("this example needs the package Resemblyzer: pip install Resemblyzer 'setuptools<81'") from None

ENROLLED = 4
CHANGES = ["Telephone", "ChangeVolume", "LowPassFilter", "HighPassFilter", "AddWhiteNoise", "DRC"]


def speaker(sample: dc.Sample) -> str:
    """Whose voice it is. Flite and Festival speak with the voices of the same people."""
    if re.match(r"\d+-\d+-\d+", sample.id):
        return sample.id.split("-")[0]
    person = re.search("slt|kal|awb|ked|rms", sample.id)
    return person[0] if person else re.sub(r"-\d+$", "", sample.id)


class Speakers:
    """The name of the enrolled speaker with the nearest vector, and the states of the LSTM in each window."""

    def __init__(self, enrolled: Mapping[str, Sequence[Any]]) -> None:
        self.encoder = VoiceEncoder("cpu", verbose=False).eval()
        self.names = list(enrolled)
        self.vectors = np.stack([self.encoder.embed_speaker(list(map(read, enrolled[name]))) for name in self.names])
        self.system = dc.TorchSystem(self.encoder, state="lstm", features=read, windows=self._windows)
        self.state_name, self.fingerprint = self.system.state_name, self.system.fingerprint

    def run(self, batch: Sequence[Any]) -> list[dc.Run]:
        return [dc.Run(self._nearest(np.mean(run.output, axis=0)), run.trace) for run in self.system.run(batch)]

    def _windows(self, samples: np.ndarray) -> list[np.ndarray]:
        """The parts of 1.6 s that `embed_utterance` cuts a recording into."""
        sounds, rows = self.encoder.compute_partial_slices(len(samples), rate=1.3, min_coverage=0.75)
        padded = np.pad(samples, (0, max(0, sounds[-1].stop - len(samples))))
        mel = audio.wav_to_mel_spectrogram(padded)
        return [mel[part] for part in rows]

    def _nearest(self, vector: np.ndarray) -> str:
        return self.names[int((self.vectors @ vector).argmax())]

    def alone(self, sound: dc.Audio) -> str:
        """The same with the package alone."""
        return self._nearest(self.encoder.embed_utterance(read(sound)))


def read(sound: dc.Audio) -> np.ndarray:
    return np.asarray(preprocess_wav(np.asarray(sound.samples, np.float32)))


def main() -> None:
    corpus = dc.read_corpus(sys.argv[1]) if len(sys.argv) > 1 else SPEECH
    by_speaker = defaultdict(list)
    for sample in corpus:
        by_speaker[speaker(sample)].append(sample)
    voices = {name: samples for name, samples in by_speaker.items() if len(samples) > ENROLLED}
    enrolled = {name: [sample.input for sample in samples[:ENROLLED]] for name, samples in voices.items()}
    rest = [(sample.input, name) for name, samples in voices.items() for sample in samples[ENROLLED : ENROLLED + 5]]
    print(f"{len(voices)} voices, {len(rest)} recordings to recognise")

    system = Speakers(enrolled)
    training = [sound for sounds in enrolled.values() for sound in sounds]
    mutations = dc.Mutations.sound(CHANGES)
    result = hunt(system, training, rest, oracle=dc.Disagreement(), mutations=mutations, runs=300)

    folder = Path(tempfile.mkdtemp())
    print(f"\nThe package alone, and the sounds in {folder}:")
    for number, one in enumerate(result):
        for name, sound in (("before", one.seed), ("after", one.mutant)):
            sound.write(folder / f"{number}-{name}.wav")
            print(f"{number}-{name}.wav, which is {one.reference}: nearest to {system.alone(sound)}")


if __name__ == "__main__":
    main()
