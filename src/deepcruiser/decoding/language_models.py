"""Language models by file name."""

from __future__ import annotations

import os
from typing import Any

from deepcruiser.decoding.beam import LanguageModel
from deepcruiser.decoding.ngrams import NgramModel
from deepcruiser.errors import FileError, InputError

#: How the files of KenLM begin, of any version and either data structure.
KENLM = b"mmap lm http://kheafield.com/code"


def read_language_model(path: str | os.PathLike[str]) -> LanguageModel:
    """The language model in a file: one that `NgramModel.save` wrote, an ARPA file, or a binary file of KenLM."""
    try:
        with open(path, "rb") as file:
            begin = file.read(len(KENLM))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"cannot read the language model {os.fspath(path)!r}: {reason}") from None
    return KenlmModel(path) if begin == KENLM else NgramModel.load(path)


class KenlmModel:
    """A file of KenLM, read by its own library."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import kenlm
        except ImportError:
            raise InputError(
                f"{os.fspath(path)!r} is a binary file of KenLM, which needs the package kenlm: "
                "pip install 'deepcruiser[lm]'"
            ) from None
        try:
            self._model = kenlm.Model(os.fspath(path))
        except (OSError, RuntimeError) as error:
            raise FileError(f"cannot read {os.fspath(path)!r} as a model of KenLM: {error}") from None
        self._new: Any = kenlm.State

    def begin(self) -> Any:
        """The state at the beginning of a sentence."""
        state = self._new()
        self._model.BeginSentenceWrite(state)
        return state

    def word(self, state: Any, word: str) -> tuple[float, Any]:
        """The logarithm of the probability of `word` in this state, and the state behind it."""
        after = self._new()
        return float(self._model.BaseScore(state, word, after)), after

    def end(self, state: Any) -> float:
        """The logarithm of the probability that the sentence ends here."""
        return self.word(state, "</s>")[0]

    def ahead(self, beginning: str) -> float:
        """Nothing is known of it: the library does not tell its words."""
        return 0.0
