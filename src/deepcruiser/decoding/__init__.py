"""From what a network puts out to words, labels and spans of time."""

from deepcruiser.decoding.beam import ctc_beam, ctc_beam_symbols, has_beam_search
from deepcruiser.decoding.detection import classify, spans
from deepcruiser.decoding.doubt import doubt_of
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_model import LanguageModel, read_language_model

__all__ = [
    "LanguageModel",
    "classify",
    "ctc_beam",
    "ctc_beam_symbols",
    "ctc_greedy",
    "doubt_of",
    "has_beam_search",
    "read_language_model",
    "spans",
]
