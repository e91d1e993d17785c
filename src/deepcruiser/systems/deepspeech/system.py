"""Recognisers of Mozilla DeepSpeech and Coqui STT."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.decoding.beam import ctc_beam
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_model import LanguageModel, read_language_model
from deepcruiser.errors import FileError, InputError
from deepcruiser.features import MFCC
from deepcruiser.files.reading import read_bytes, read_text
from deepcruiser.systems.adapter import Adapter
from deepcruiser.trace import Trace

Array = npt.NDArray[Any]
Part = Literal["h", "c", "both"]


class Steps(NamedTuple):
    """The result of a few steps: arrays [steps, ...]."""

    scores: Array
    c: Array
    h: Array
    inputs: Array


class DeepSpeechNetwork(Protocol):
    """A loaded file, which runs at most `steps` windows of features in a call, starting from a given state."""

    steps: int
    window: int  # the number of frames in a window
    features: int
    size: int  # of c and of h
    inputs_name: str
    metadata: dict[str, Any]  # in files from version 0.6 on
    own_features: bool  # whether the file computes the features itself, as from version 0.4 on

    def start(self) -> None:
        """Start a new utterance."""

    def run(self, windows: Array, c: Array, h: Array) -> Steps:
        """Run one step for each window, at most `steps` of them."""


class DeepSpeechSystem(Adapter):
    """A recogniser in a file of Mozilla DeepSpeech or Coqui STT: .pb and .pbmm (TensorFlow) or .tflite.

        system = DeepSpeechSystem("deepspeech-0.9.3-models.tflite", language_model="english.kenlm")

    It works like the projects' own client: the features are padded with zeros at both ends, the last frame is filled up
    with silence, and the network runs a few steps at a time and keeps its state. `alphabet` is the path of an alphabet
    file; files from version 0.6 on contain their own. Decoding is greedy, or a beam search if a `language_model` (or
    its path) is given; `width`, `alpha` and `beta` are those of `ctc_beam`. The doubt is that of the scores.

    The trace has every step, including those inside a call of the network. `part` is "h", "c", or "both" side by side.
    The inputs of the trace are what the LSTM receives, the output of the third dense layer. If that is not found in a
    .tflite file, they are the windows of features; `state_name` says so. Audio is resampled to the network's rate.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        alphabet: str | os.PathLike[str] | None = None,
        *,
        part: Part = "h",
        language_model: LanguageModel | str | os.PathLike[str] | None = None,
        width: int = 150,
        alpha: float = 0.8,
        beta: float = 0.0,
    ) -> None:
        if part not in ("h", "c", "both"):
            raise InputError(f"part must be 'h', 'c' or 'both', not {part!r}")
        self.path, self.part = Path(path), part
        self.network = load(self.path)
        words = "c and h side by side" if part == "both" else part
        state_name = f"LSTM of {self.network.size}: {words}; inputs: {self.network.inputs_name}"
        super().__init__(self.path.name, state_name, transcribe=self._text)
        self.alphabet = self._symbols(alphabet)
        self.front = front_end(self.network, self.path)
        from_file = isinstance(language_model, str | os.PathLike)
        self.language_model: Any = read_language_model(language_model) if from_file else language_model  # type: ignore[arg-type]
        self.width, self.alpha, self.beta = width, alpha, beta

    def _identity(self) -> Iterator[bytes]:
        """The choice of state and the file."""
        yield self.state_name.encode()
        yield read_bytes(self.path)

    def _prepare(self, value: Any, position: int) -> Array:
        if not isinstance(value, Audio):
            raise InputError(f"input {position} of the batch is a {type(value).__name__}, but DeepSpeech reads Audio")
        return self.windows(value)

    def windows(self, audio: Audio) -> Array:
        """The windows of features that the network reads: [steps, 2 * context + 1, features]."""
        samples = audio.resample(self.front.rate).samples if audio.rate != self.front.rate else audio.samples
        # The client fills the rest after the last whole frame with zeros, even if nothing is left.
        samples = np.append(samples, np.float32(0))
        if not self.network.own_features:
            samples = samples * np.float32(32768)
        windows = self.front(samples)
        return np.asarray(windows.reshape(len(windows), self.network.window, self.network.features))

    def _groups(self, values: Sequence[Any]) -> list[list[int]]:
        return [[position] for position in range(len(values))]

    def _forward(self, values: list[Array], positions: list[int]) -> list[tuple[Any, Trace]]:
        (windows,) = values
        c = h = np.zeros(self.network.size, dtype=np.float32)
        self.network.start()
        parts = []
        for first in range(0, len(windows), self.network.steps):
            parts.append(self.network.run(windows[first : first + self.network.steps], c, h))
            c, h = parts[-1].c[-1], parts[-1].h[-1]
        steps = Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        states = {"h": steps.h, "c": steps.c, "both": np.concatenate([steps.c, steps.h], axis=1)}[self.part]
        states = np.concatenate([np.zeros_like(states[:1]), states])
        return [(steps.scores, Trace(states, steps.inputs))]

    def _text(self, scores: Array) -> str:
        if scores.shape[1] != len(self.alphabet) + 1:
            raise InputError(
                f"the alphabet has {len(self.alphabet)} symbols, but {self.path.name} gives {scores.shape[1]} scores, "
                "one for each symbol and one for the blank; give the alphabet file that came with it"
            )
        if self.language_model is None:
            return str(ctc_greedy(scores, self.alphabet, blank=-1))
        options = {"language_model": self.language_model, "alpha": self.alpha, "beta": self.beta}
        return ctc_beam(scores, self.alphabet, blank=-1, width=self.width, **options)

    def _symbols(self, alphabet: str | os.PathLike[str] | None) -> list[str]:
        if alphabet is not None:
            return read_alphabet(alphabet)
        if "alphabet" not in self.network.metadata:
            raise InputError(
                f"{self.path.name} contains no alphabet: give the path of its alphabet.txt too, "
                f"system = dc.DeepSpeechSystem({str(self.path)!r}, 'alphabet.txt')"
            )
        return unpacked_alphabet(self.network.metadata["alphabet"], self.path)


def load(path: Path) -> DeepSpeechNetwork:
    """The network in a file, by its suffix."""
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    if path.suffix in (".pb", ".pbmm"):
        from deepcruiser.systems.deepspeech.frozen_graph import FrozenGraphNetwork

        return FrozenGraphNetwork(path)
    if path.suffix == ".tflite":
        from deepcruiser.systems.deepspeech.tflite import TfliteNetwork

        return TfliteNetwork(path)
    raise InputError(f"{path.name!r} is not a DeepSpeech file: its name must end in .pb, .pbmm or .tflite")


def front_end(network: DeepSpeechNetwork, path: Path) -> MFCC:
    """The features of the file's version: TensorFlow's, or before version 0.4 those of c_speech_features."""
    metadata = network.metadata
    rate, length, step = (
        int(metadata.get(name, known))
        for name, known in (("sample_rate", 16000), ("feature_win_len", 32), ("feature_win_step", 20))
    )
    if network.window % 2 == 0 or network.features < 1:
        raise InputError(
            f"{path.name} reads windows of {network.window} x {network.features}, but the number of frames must be odd"
        )
    sizes: dict[str, Any] = {"rate": rate, "window_ms": length, "step_ms": step}
    if network.own_features:
        front = MFCC.deepspeech(**sizes)
    else:
        front = MFCC.speech_features(**sizes, bins=max(26, network.features), taper="hamming-symmetric")
    return replace(front, coefficients=network.features, context=network.window // 2, padding="end")


def read_alphabet(path: str | os.PathLike[str]) -> list[str]:
    """The symbols of an alphabet file: one a line; comments start with #, and \\# is the symbol #."""
    text = read_text(path, encoding="utf-8")
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line and line[0] != "#"]
    if not lines:
        raise FileError(f"the alphabet {os.fspath(path)!r} has no symbols; it needs one on each line")
    return ["#" if line == "\\#" else line for line in lines]


def unpacked_alphabet(data: bytes, path: Path) -> list[str]:
    """The symbols in a file's metadata: their count, then the number, length and text of each."""
    try:
        (count,), at, labels = struct.unpack_from("<H", data), 2, {}
        for _ in range(count):
            label, length = struct.unpack_from("<HH", data, at)
            labels[label] = data[at + 4 : at + 4 + length].decode()
            at += 4 + length
        return [labels[number] for number in range(count)]
    except (struct.error, UnicodeDecodeError, KeyError) as error:
        raise FileError(f"the alphabet in {path.name} cannot be read ({error}): give its alphabet.txt") from None
