"""The most probable text of known words: beam search over a lexicon, with a language model if there is one.

flashlight-text does the search. This module turns words into spellings, and scores into what the search reads.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.decoding.language_model import LanguageModel
from deepcruiser.decoding.scores import as_array, log_probabilities, symbols
from deepcruiser.errors import InputError
from deepcruiser.files.trial import check_loads

LN10 = math.log(10)
_PACKAGE = Path(__file__).resolve().parents[1]

#: In each step, the search follows this many of the best symbols and drops texts whose log-probability
#: is this far below that of the best.
SYMBOLS, BELOW = 10, 12.0

#: The logarithm of a probability of zero, for sums without infinities.
NEVER = -1e4


@dataclass(frozen=True)
class Lexicon:
    """Words for the search: a trie of their spellings, and a scorer of word sequences."""

    words: Sequence[str]
    trie: Any
    scorer: Any


def ctc_beam(
    scores: Any,
    alphabet: Sequence[str],
    *,
    blank: int,
    language_model: LanguageModel | None = None,
    words: Sequence[str] | None = None,
    width: int = 150,
    alpha: float = 0.8,
    beta: float = 0.0,
) -> str:
    """The text of [steps, classes] that maximises log P(text | sound) + alpha * log P(text | language) + beta * words.

    `scores`, `alphabet` and `blank` are those of `ctc_greedy`; one symbol is the space. The text consists of words of
    the `language_model`, or of the list `words` if given; words with letters outside the alphabet are left out. P(text
    | sound) adds up all the ways in which a text can be heard. After every step the `width` best texts are kept.
    """
    table = _table(scores, width)
    names, blank = symbols(alphabet, table.shape[1], blank)
    lexicon = _lexicon(tuple(names), language_model, None if words is None else tuple(words))
    space = list(names).index(" ")
    decoder = _flashlight()
    options = decoder.LexiconDecoderOptions(
        beam_size=width,
        beam_size_token=SYMBOLS,
        beam_threshold=BELOW,
        lm_weight=alpha * LN10,  # KenLM's logarithms are of base 10
        word_score=beta,
        unk_score=-math.inf,
        sil_score=0.0,
        log_add=True,
        criterion_type=decoder.CriterionType.CTC,
    )
    search = decoder.LexiconDecoder(options, lexicon.trie, lexicon.scorer, space, blank, -1, [], False)
    # A word is complete only after its space, so one more step contains only a space.
    steps = np.full((len(table) + 1, table.shape[1]), NEVER, dtype=np.float32)
    steps[:-1] = np.maximum(log_probabilities(table), NEVER)
    steps[-1, space] = 0
    best = search.decode(steps.ctypes.data, *steps.shape)[0]
    return " ".join(lexicon.words[number] for number in best.words if number >= 0)


def ctc_beam_symbols(
    scores: Any,
    symbols: Sequence[str],
    *,
    language_model: LanguageModel | None = None,
    width: int = 150,
    alpha: float = 0.8,
) -> list[str]:
    """The symbols, such as phones, that maximise log P(symbols | sound) + alpha * log P(symbols | language).

    Class 0 of the [steps, classes] is the blank, and `symbols` are the others. The words of the `language_model` are
    such symbols.
    """
    table = _table(scores, width)
    if len(symbols) != table.shape[1] - 1:
        raise InputError(f"{len(symbols)} symbols do not fit scores of {table.shape[1]} classes: one less is needed")
    decoder = _flashlight()
    names = ["", *symbols]
    options = decoder.LexiconFreeDecoderOptions(
        beam_size=width,
        beam_size_token=SYMBOLS,
        beam_threshold=BELOW,
        lm_weight=alpha * LN10,
        sil_score=0.0,
        log_add=True,
        criterion_type=decoder.CriterionType.CTC,
    )
    scorer = decoder.ZeroLM() if language_model is None else _kenlm(language_model, names)
    search = decoder.LexiconFreeDecoder(options, scorer, -1, 0, [])
    steps = np.maximum(log_probabilities(table), NEVER).astype(np.float32, order="C")
    best = search.decode(steps.ctypes.data, *steps.shape)[0].tokens[1:-1]  # one more before and after the steps
    return [names[token] for before, token in zip([0, *best], best, strict=False) if token not in (0, before)]


def has_beam_search() -> bool:
    """Whether flashlight-text is installed."""
    return importlib.util.find_spec("flashlight") is not None


def _table(scores: Any, width: int) -> npt.NDArray[np.float64]:
    """Scores that can be searched."""
    table = as_array(scores)
    if table.ndim != 2:
        raise InputError(f"scores must be [steps, classes], not {list(table.shape)}; decode a batch row by row")
    if np.isnan(table).any():
        raise InputError("scores must be numbers, but there is NaN among them")
    if width < 1:
        raise InputError(f"width must be 1 or more, not {width}")
    return table


@lru_cache(maxsize=8)
def _lexicon(names: tuple[str, ...], model: LanguageModel | None, words: tuple[str, ...] | None) -> Lexicon:
    """The words that the alphabet can spell; cached, because it takes a tenth of a second or more."""
    decoder = _flashlight()
    if words is None and model is None:
        raise InputError("ctc_beam needs known words: give a language_model or a list of words, or use ctc_greedy")
    numbers = {name: number for number, name in enumerate(names) if len(name) == 1}
    if " " not in numbers:
        raise InputError("the alphabet has no space, and words end with one; use ctc_greedy")
    all_words = dict.fromkeys(model.words if words is None and model is not None else words or ())
    letters = numbers.keys() - {" "}
    known = [word for word in all_words if word and letters.issuperset(word)]
    if not known:
        alphabet = "".join(numbers)
        raise InputError(f"none of the {len(all_words):,} words can be spelled with the alphabet {alphabet!r}")
    scorer = decoder.ZeroLM() if model is None else _kenlm(model, known)
    start = scorer.start(True)
    trie = decoder.Trie(len(names), numbers[" "])
    for number, word in enumerate(known):
        # The score of a word without context makes unfinished words comparable with finished ones.
        trie.insert([numbers[letter] for letter in word] + [numbers[" "]], number, scorer.score(start, number)[1])
    trie.smear(decoder.SmearingMode.MAX)
    return Lexicon(known, trie, scorer)


def _kenlm(model: LanguageModel, words: list[str]) -> Any:
    from flashlight.lib.text.decoder.kenlm import KenLM
    from flashlight.lib.text.dictionary import Dictionary

    if not model.path.is_relative_to(_PACKAGE):  # KenLM does not check the file that it maps into memory
        check_loads("kenlm", model.path, name="KenLM")
    try:
        return KenLM(str(model.path), Dictionary(words))
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"KenLM cannot read {str(model.path)!r}: {error}") from None


def _flashlight() -> Any:
    if not has_beam_search():
        raise InputError(
            "beam search needs the package flashlight-text, which exists for Python 3.11 and 3.12; "
            "use one of these, or decode letter by letter (ctc_greedy, the system english-letters)"
        )
    from flashlight.lib.text import decoder

    return decoder
