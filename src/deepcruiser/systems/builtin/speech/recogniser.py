"""The built-in recogniser as a system under test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from deepcruiser.audio import Audio
from deepcruiser.decoding.beam import ctc_beam, has_beam_search
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_model import LanguageModel, read_language_model
from deepcruiser.errors import FileError, InputError
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL, WEIGHTS
from deepcruiser.systems.builtin.speech.network import ALPHABET, BLANK, RATE, Recogniser
from deepcruiser.systems.torch.system import TorchSystem
from deepcruiser.trace import Run

#: The maximum number of samples in a batch, with padding: ten minutes of sound.
MOST_SAMPLES = 600 * RATE

LETTERS_ONLY = (
    "the package flashlight-text is not installed (it exists for Python 3.11 and 3.12), so the recogniser decodes "
    "letter by letter, without its language model, and gets more words wrong"
)


class English:
    """English speech to text: `run` takes `Audio` of any rate and length, and gives the text and the trace.

    The state is h of the last of four LSTMs, 512 numbers for every 30 ms. Texts consist of a to z, the apostrophe and
    the space. With a `language_model` they are its most probable words, otherwise the best letters one by one.
    """

    def __init__(
        self, *, weights: Path | str = WEIGHTS, device: str = "cpu", language_model: LanguageModel | None = None
    ) -> None:
        self.net = Recogniser()
        self.net.load_state_dict(_read(Path(weights), self.net))
        self.net.eval().to(device)
        self.language_model = language_model
        self._system = TorchSystem(
            self.net,
            state=f"lstms.{len(self.net.lstms) - 1}",
            features=_samples,
            batch="lengths",
            steps=self.net.steps,
            transcribe=self._text,
            classes=ALPHABET,
            blank=BLANK,
        )

    def __repr__(self) -> str:
        return f"English recogniser of {'letters' if self.language_model is None else 'words'} ({self.state_name})"

    @property
    def state_name(self) -> str:
        return self._system.state_name

    @property
    def transcribe(self) -> Callable[[Any], Any] | None:
        """What makes a text of letters' scores."""
        return self._system.transcribe

    @cached_property
    def fingerprint(self) -> str:
        """Of the network: what a language model makes of its letters changes no state."""
        return self._system.fingerprint

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every recording; those of similar length go through the network together."""
        runs: dict[int, Run] = {}
        for group in _groups([_seconds(each, number) for number, each in enumerate(batch)]):
            runs.update(zip(group, self._system.run([batch[number] for number in group]), strict=True))
        return [runs[number] for number in range(len(batch))]

    def _text(self, scores: Tensor) -> str:
        if self.language_model is None:
            return str(ctc_greedy(scores, ALPHABET, blank=BLANK))
        return ctc_beam(scores, ALPHABET, blank=BLANK, language_model=self.language_model)


def load(*, device: str = "cpu", with_language_model: bool = False) -> English:
    """The recogniser with its own weights, and with its own language model if asked for."""
    if with_language_model and not has_beam_search():
        warnings.warn(LETTERS_ONLY, stacklevel=4)
        with_language_model = False
    return English(device=device, language_model=read_language_model(LANGUAGE_MODEL) if with_language_model else None)


def _read(path: Path, net: Recogniser) -> dict[str, Tensor]:
    try:
        halves = load_file(path)
    except FileNotFoundError:
        raise FileError(f"there is no weights file {path}") from None
    except SafetensorError as error:
        raise FileError(f"{path} is damaged, or not a safetensors file: {error}") from error
    needed = {name: tuple(weight.shape) for name, weight in net.state_dict().items()}
    if {name: tuple(weight.shape) for name, weight in halves.items()} != needed:
        raise FileError(f"{path} holds the weights of another network")
    return {name: weight.float() for name, weight in halves.items()}


def _samples(audio: Audio) -> np.ndarray[Any, Any]:
    """At the network's rate; nothing at all becomes a moment of silence."""
    samples = audio.resample(RATE).samples if len(audio) else np.zeros(1, np.float32)
    return samples if len(samples) else np.zeros(1, np.float32)


def _seconds(value: Any, number: int) -> float:
    if not isinstance(value, Audio):
        raise InputError(f"input {number} of the batch is a {type(value).__name__}; the recogniser takes Audio")
    return value.seconds


def _groups(seconds: list[float]) -> list[list[int]]:
    """Inputs in order of their length, cut where padding them to the longest would make too much."""
    groups: list[list[int]] = []
    for number in sorted(range(len(seconds)), key=seconds.__getitem__):
        if not groups or (len(groups[-1]) + 1) * seconds[number] * RATE > MOST_SAMPLES:
            groups.append([])
        groups[-1].append(number)
    return groups
