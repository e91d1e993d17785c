"""Recognisers of EESEN."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from deepcruiser.audio import Audio
from deepcruiser.decoding.beam import ctc_beam, ctc_beam_symbols
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_model import LanguageModel, read_language_model
from deepcruiser.errors import FileError, InputError
from deepcruiser.features.kaldi import KaldiFeatures, recipes_of
from deepcruiser.files.reading import read_text
from deepcruiser.systems.adapter import Adapter, check_array, check_functions
from deepcruiser.systems.kaldi.files import read_network
from deepcruiser.systems.kaldi.network import LayerPass, Network, in_time, reverse
from deepcruiser.systems.state_choice import (
    Direction,
    Layer,
    Part,
    check_direction,
    check_layers,
    check_part,
    state_words,
)
from deepcruiser.trace import Trace, is_tensor

Array = npt.NDArray[Any]

SPACE = "<SPACE>"
#: Units for sounds that are not speech; they are left out of texts.
SILENT = {"<NOISE>", "<SPOKEN_NOISE>", "<NSN>", "<SPN>"}


class EesenSystem(Adapter):
    """A recogniser in a network file of EESEN, binary or text.

        system = EesenSystem("final.nnet", units="units.txt")

    **Input.** `features` is the name of one of EESEN's recipes, a `KaldiFeatures` with other settings, or any function
    from an input to an array [frames, size]. Without it, "wsj" is used if the network reads its 120 values a frame, and
    otherwise inputs must be arrays of features. With a Kaldi front end, arrays [frames, size] go to the network as they
    are. Arrays of its log-mel features, such as those of a Kaldi archive, go through the rest of the front end.

    **Which state.** `part` is "h" (EESEN's m) or "c"; `layer` is the number of an LSTM layer, or "all" for all of them
    side by side; `direction` of a bidirectional layer is "both", "forward", or "backward" in the order in which that
    direction reads, as in `TorchSystem`. The inputs of the trace are what the layer receives (with "all", the first).

    **Output.** With `units`, a file of lines "unit number", the answer is a text by greedy decoding: characters, with
    <SPACE> between words, or phones with spaces between them. With a `language_model` (or its path) it comes from a
    beam search, with `width`, `alpha` and `beta` as in `ctc_beam`: for characters over the words of the model, for
    phones with a model whose words are phones. Without `units`, the file units.txt beside the network is used; if there
    is none, the answer is the network's output, [frames, outputs]. The doubt is that of the scores.

    Networks of Kaldi's nnet1 with <LstmProjected> layers are read as well. Their outputs are states of hidden Markov
    models, which only Kaldi's decoding graph turns into a text, so they take no units. The transform of their features
    is in another file: give arrays of transformed features, or a function as `features`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        units: str | os.PathLike[str] | None = None,
        *,
        features: str | Callable[[Any], Any] | None = None,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        language_model: LanguageModel | str | os.PathLike[str] | None = None,
        width: int = 150,
        alpha: float = 0.8,
        beta: float = 0.0,
    ) -> None:
        self.path = Path(path)
        network = read_network(self.path)
        self._hidden_markov = any(lstm.projection is not None for lstm in network.lstms)
        label = self.path.name + (" (nnet1: scores of HMM states, no texts)" if self._hidden_markov else "")
        self._part = check_part(part, True, label, "network")
        self._layers = check_layers(layer, len(network.lstms), label)
        ways = {network.lstms[number].ways for number in self._layers}
        self._direction = check_direction(direction, 2 in ways, label)
        if self._direction == "backward" and 1 in ways:
            raise InputError(f"not every layer of {label} reads backward: choose another layer= or direction=")
        words = state_words("LSTM", part, self._layers, len(network.lstms), max(ways), self._direction)
        # Double precision: the shape of a batch changes how products are rounded, and that stays far below the single
        # precision of the states.
        self.network = network.double()
        self.front = self._front(features, label)
        self.units = self._units(units, label)
        from_file = isinstance(language_model, str | os.PathLike)
        self.language_model: Any = read_language_model(language_model) if from_file else language_model  # type: ignore[arg-type]
        if self.language_model is not None and self.units is None:
            raise InputError("a language model needs units=, the file that says what the outputs stand for")
        self.width, self.alpha, self.beta = width, alpha, beta
        super().__init__(label, words, transcribe=None if self.units is None else self._text)

    def _identity(self) -> Iterator[bytes | memoryview]:
        """The choice of state and the weights, which are the same in a binary and a text file."""
        yield self.state_name.encode()
        for name, weight in self.network.state_dict().items():
            yield f"\n{name} {tuple(weight.shape)}\n".encode()
            yield weight.numpy().data

    def _prepare(self, value: Any, position: int) -> Any:
        is_rows = (isinstance(value, np.ndarray) or is_tensor(value)) and value.ndim == 2
        if not isinstance(self.front, KaldiFeatures | None):
            return self.front(value)
        if is_rows and (self.front is None or value.shape[1] == self.network.inputs):
            return value
        if self.front is not None and (isinstance(value, Audio) or (is_rows and value.shape[1] == self.front.bins)):
            return self.front(np.asarray(value) if is_rows else value)
        place = f"input {position} of the batch is"
        if isinstance(value, Audio):
            raise InputError(_misfit(f"{place} Audio, and no front end is given", self.network))
        what = f"rows of {value.shape[1]:,} values" if is_rows else f"a {type(value).__name__}"
        log_mel = f", or log-mel rows of {self.front.bins}" if self.front else ""
        raise InputError(
            f"{place} {what}, but must be Audio or features: rows of {self.network.inputs:,} values{log_mel}"
        )

    def _read(self, value: Any, position: int) -> Tensor:
        check_array(value, position)
        if value.ndim != 2 or value.shape[1] != self.network.inputs:
            what = f"the features of input {position} of the batch have the shape {tuple(value.shape)}"
            raise InputError(_misfit(what, self.network))
        return torch.as_tensor(np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value).double()

    def _forward(self, values: list[Tensor], positions: list[int]) -> list[tuple[Any, Trace]]:
        lengths = torch.tensor([len(rows) for rows in values])
        with torch.no_grad():
            outputs, passes = self.network(pad_sequence(values, batch_first=True), lengths, set(self._layers))
            states = torch.cat([self._states(passes[number], lengths) for number in self._layers], -1).float()
            inputs = passes[self._layers[0]].inputs
            if self._direction == "backward":
                inputs = reverse(inputs, lengths)
            inputs, outputs = inputs.float().numpy(), outputs.float().numpy()
        results = []
        for row, count in enumerate(lengths.tolist()):
            steps = np.zeros((count + 1, states.shape[-1]), dtype=np.float32)
            steps[1:] = states[row, :count].numpy()
            results.append((outputs[row, :count].copy(), Trace(steps, inputs[row, :count].copy())))
        return results

    def _states(self, layer: LayerPass, lengths: Tensor) -> Tensor:
        """The chosen states of one layer, [batch, time, size]."""
        states = layer.h if self._part == "h" else layer.c
        if self._direction == "both":
            return in_time(states, lengths)
        return states[:, int(self._direction == "backward")].transpose(0, 1)

    def _text(self, scores: Array) -> str:
        assert self.units is not None
        units = ["" if unit in SILENT else unit for unit in self.units]
        if SPACE not in units:
            if self.language_model is None:
                return str(ctc_greedy(scores, [f"{unit} " for unit in units], blank=0))
            model = {"language_model": self.language_model, "width": self.width, "alpha": self.alpha}
            heard = ctc_beam_symbols(scores, self.units, **model)
            return " ".join(unit for unit in heard if unit not in SILENT)
        letters = [" " if unit == SPACE else unit for unit in units]
        if self.language_model is None:
            return str(ctc_greedy(scores, letters, blank=0))
        options = {"language_model": self.language_model, "width": self.width, "alpha": self.alpha, "beta": self.beta}
        return ctc_beam(scores, letters, blank=0, **options)

    def _front(self, features: Any, label: str) -> Callable[[Any], Any] | None:
        """The front end; one of Kaldi's that gives another width than the network reads is refused."""
        size = self.network.inputs
        if features is None:
            return KaldiFeatures.recipe("wsj") if "wsj" in recipes_of(size) and not self._hidden_markov else None
        front = KaldiFeatures.recipe(features) if isinstance(features, str) else features
        check_functions(features=front)
        if isinstance(front, KaldiFeatures) and front.size != size:
            raise InputError(_misfit(f"the front end gives {front.size:,} values a frame", self.network))
        return front

    def _units(self, path: str | os.PathLike[str] | None, label: str) -> list[str] | None:
        if self._hidden_markov:
            if path is not None:
                raise InputError(
                    f"{label} has outputs for states of hidden Markov models and not for units: leave out units=, and "
                    "profile it without texts"
                )
            return None
        beside = self.path.with_name("units.txt")
        if path is None and not beside.is_file():
            return None
        path = beside if path is None else path
        units = read_units(path)
        if len(units) != self.network.outputs - 1:
            raise InputError(
                f"{os.fspath(path)!r} has {len(units):,} units, but {label} gives {self.network.outputs:,} scores, one "
                "for each unit and one for the blank: give the units.txt that it was trained with"
            )
        return units


def _misfit(what: str, network: Network) -> str:
    """What is wrong with the width of features, and the recipes that would fit."""
    fitting = " or ".join(f"features={name!r}" for name in recipes_of(network.inputs))
    remedy = f"{fitting}, or" if fitting else "no recipe of EESEN, but features="
    return f"{what}, but the network reads rows of {network.inputs:,}: give EesenSystem {remedy} one of your own"


def read_units(path: str | os.PathLike[str]) -> list[str]:
    """The units in a file of lines "unit number", in the order of their numbers, which begin with 1."""
    name = os.fspath(path)
    lines = read_text(path, encoding="utf-8").split("\n")
    units: dict[int, str] = {}
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        place = int(fields[1]) if len(fields) == 2 and re.fullmatch("[0-9]{1,9}", fields[1]) else None
        if place is None or place in units or fields[0] in seen:
            raise FileError(f"{name}, line {number}: expected another unit and its number, not {line[:80]!r}")
        units[place] = fields[0]
        seen.add(fields[0])
    if not units or sorted(units) != list(range(1, len(units) + 1)):
        raise FileError(
            f"the numbers in {name!r} must be 1, 2, ... without gaps; is it tokens.txt (which begins with <eps> 0)? "
            "expected units.txt"
        )
    return [units[number] for number in sorted(units)]
