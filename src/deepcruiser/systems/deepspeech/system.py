"""Recognisers of Mozilla DeepSpeech and Coqui STT."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.decoding import LanguageModel, ctc_beam, ctc_greedy, read_language_model
from deepcruiser.errors import FileError, InputError
from deepcruiser.features import MFCC
from deepcruiser.trace import Run, Trace

Array = npt.NDArray[Any]
Part = Literal["h", "c", "both"]


class Steps(NamedTuple):
    """What a network made of a few steps, an array [steps, ...] each."""

    scores: Array
    c: Array
    h: Array
    inputs: Array


class Network(Protocol):
    """A file, ready to run: `steps` windows of features at a time, behind the state that is given."""

    steps: int
    window: int  # frames beside and including each one
    features: int
    size: int  # of c and of h
    inputs_name: str
    metadata: dict[str, Any]  # what the file says of itself, as from 0.6 on
    own_features: bool  # whether it computes its features, as from 0.4 on

    def start(self) -> None:
        """Begin another utterance."""

    def run(self, windows: Array, c: Array, h: Array) -> Steps:
        """Go on by as many steps as there are windows, `steps` at most."""


class DeepSpeechSystem:
    """A recogniser in a file of Mozilla DeepSpeech or Coqui STT: .pb and .pbmm (TensorFlow) or .tflite.

        system = DeepSpeechSystem("deepspeech-0.9.3-models.tflite", language_model="english.lm")

    It goes about it as the projects' own client does: features with zeros beyond the ends, a last frame filled up with
    silence, the network a few steps at a time with its state carried on. `alphabet` is the path of an alphabet file;
    files from 0.6 on carry their own. The text is found greedily, or by beam search if a `language_model` (or the path
    of one), or a `width`, is given; `alpha` and `beta` are those of `ctc_beam`.

    The trace shows every step, also those inside a call of the network: `part` "h", "c", or "both" side by side. Its
    inputs are what the LSTM receives, the output of the third dense layer, or the windows of features in a .tflite file
    where that cannot be found; `state_name` tells. Audio is resampled to the network's rate.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        alphabet: str | os.PathLike[str] | None = None,
        *,
        part: Part = "h",
        language_model: LanguageModel | str | os.PathLike[str] | None = None,
        width: int | None = None,
        alpha: float = 0.8,
        beta: float = 2.0,
    ) -> None:
        if part not in ("h", "c", "both"):
            raise InputError(f"part must be 'h', 'c' or 'both', not {part!r}")
        self.path, self.part = Path(path), part
        self.network = load(self.path)
        self.alphabet = self._symbols(alphabet)
        self.front = front_end(self.network, self.path)
        given = isinstance(language_model, str | os.PathLike)
        self.language_model: Any = read_language_model(language_model) if given else language_model  # type: ignore[arg-type]
        self.width = 48 if width is None and self.language_model is not None else width
        self.alpha, self.beta = alpha, beta

    def __repr__(self) -> str:
        return f"DeepSpeechSystem({self.path.name}, {self.state_name})"

    @property
    def state_name(self) -> str:
        """Which vector is the state, in words."""
        state = "c and h side by side" if self.part == "both" else self.part
        return f"LSTM of {self.network.size}: {state}; inputs: {self.network.inputs_name}"

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the file and on the choice of state."""
        sha = hashlib.sha256(self.state_name.encode())
        sha.update(self.path.read_bytes())
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every audio of the batch; the results are in the same order."""
        return [self._run(audio, position) for position, audio in enumerate(batch)]

    def windows(self, audio: Audio) -> Array:
        """What the network reads: [steps, 2 * context + 1, features]."""
        samples = audio.resample(self.front.rate).samples if audio.rate != self.front.rate else audio.samples
        # The client fills what is left behind the last whole frame up with zeros, be it nothing new at all.
        samples = np.append(samples, np.float32(0))
        if not self.network.own_features:
            samples = samples * np.float32(32768)
        found = self.front(samples)
        return np.asarray(found.reshape(len(found), self.network.window, self.network.features))

    def _run(self, audio: Any, position: int) -> Run:
        if not isinstance(audio, Audio):
            raise InputError(f"input {position} of the batch is a {type(audio).__name__}: DeepSpeech hears Audio")
        windows = self.windows(audio)
        c = h = np.zeros(self.network.size, dtype=np.float32)
        self.network.start()
        parts = []
        for first in range(0, len(windows), self.network.steps):
            parts.append(self.network.run(windows[first : first + self.network.steps], c, h))
            c, h = parts[-1].c[-1], parts[-1].h[-1]
        steps = Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        states = {"h": steps.h, "c": steps.c, "both": np.concatenate([steps.c, steps.h], axis=1)}[self.part]
        states = np.concatenate([np.zeros_like(states[:1]), states])
        return Run(self._text(steps.scores), Trace(states, steps.inputs))

    def _text(self, scores: Array) -> str:
        if scores.shape[1] != len(self.alphabet) + 1:
            raise InputError(
                f"the alphabet has {len(self.alphabet)} symbols, but {self.path.name} gives {scores.shape[1]} scores, "
                "one for each symbol and one for the blank; name the alphabet file that came with it"
            )
        if self.width is None:
            return str(ctc_greedy(scores, self.alphabet, blank=-1))
        logs = log_probabilities(scores.astype(np.float64))
        options = {"language_model": self.language_model, "alpha": self.alpha, "beta": self.beta}
        return ctc_beam(logs, self.alphabet, blank=-1, width=self.width, **options)

    def _symbols(self, alphabet: str | os.PathLike[str] | None) -> list[str]:
        if alphabet is not None:
            return read_alphabet(alphabet)
        if "alphabet" not in self.network.metadata:
            raise InputError(
                f"{self.path.name} carries no alphabet: give the path of its alphabet.txt as well, "
                f"system = dc.DeepSpeechSystem({str(self.path)!r}, 'alphabet.txt')"
            )
        return unpacked_alphabet(self.network.metadata["alphabet"], self.path)


def log_probabilities(scores: Array) -> Array:
    """The logarithms of scores that are probabilities, as the projects export them, or bare logits, as others do."""
    if scores.min(initial=0) < 0 or np.abs(scores.sum(axis=1) - 1).max(initial=0) > 1e-2:
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))
    with np.errstate(divide="ignore"):
        return np.minimum(0, np.log(scores))


def load(path: Path) -> Network:
    """The network in a file, by its suffix."""
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    if path.suffix in (".pb", ".pbmm"):
        from deepcruiser.systems.deepspeech.frozen_graph import GraphNetwork

        return GraphNetwork(path)
    if path.suffix == ".tflite":
        from deepcruiser.systems.deepspeech.tflite import LiteNetwork

        return LiteNetwork(path)
    raise InputError(f"{path.name!r} is no file of DeepSpeech: its name must end in .pb, .pbmm or .tflite")


def front_end(network: Network, path: Path) -> MFCC:
    """The features, as the file's version has them: TensorFlow's, or before 0.4 those of c_speech_features."""
    about = network.metadata
    rate, length, step = (
        int(about.get(name, known))
        for name, known in (("sample_rate", 16000), ("feature_win_len", 32), ("feature_win_step", 20))
    )
    if network.window % 2 == 0 or network.features < 1:
        raise InputError(
            f"{path.name} reads windows of {network.window} x {network.features}; an odd number of frames is needed"
        )
    sizes: dict[str, Any] = {"rate": rate, "window_ms": length, "step_ms": step}
    if network.own_features:
        front = MFCC.deepspeech(**sizes)
    else:
        front = MFCC.speech_features(**sizes, bins=max(26, network.features), taper="hamming-symmetric")
    return replace(front, coefficients=network.features, context=network.window // 2, padding="end")


def read_alphabet(path: str | os.PathLike[str]) -> list[str]:
    """The symbols of an alphabet file: a line each, comments begin with #, and \\# is that sign itself."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise FileError(f"cannot read the alphabet {os.fspath(path)!r}: {reason}") from None
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line and line[0] != "#"]
    if not lines:
        raise FileError(f"the alphabet {os.fspath(path)!r} has no symbols; it needs one a line")
    return ["#" if line == "\\#" else line for line in lines]


def unpacked_alphabet(data: bytes, path: Path) -> list[str]:
    """The symbols that a file carries: their number, then number, length and text of each."""
    try:
        (count,), at, found = struct.unpack_from("<H", data), 2, {}
        for _ in range(count):
            label, length = struct.unpack_from("<HH", data, at)
            found[label] = data[at + 4 : at + 4 + length].decode()
            at += 4 + length
        return [found[number] for number in range(count)]
    except (struct.error, UnicodeDecodeError, KeyError) as error:
        raise FileError(f"the alphabet in {path.name} cannot be read ({error}): give its alphabet.txt") from None
