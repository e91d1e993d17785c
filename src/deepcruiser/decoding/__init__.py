"""From what a network puts out to words, labels and spans of time."""

from deepcruiser.decoding.beam import Hypothesis, LanguageModel, ctc_beam, ctc_beams
from deepcruiser.decoding.detection import classify, spans
from deepcruiser.decoding.doubt import doubt_of
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.language_models import KenlmModel, read_language_model
from deepcruiser.decoding.ngrams import NgramModel

__all__ = [
    "Hypothesis",
    "KenlmModel",
    "LanguageModel",
    "NgramModel",
    "classify",
    "ctc_beam",
    "ctc_beams",
    "ctc_greedy",
    "doubt_of",
    "read_language_model",
    "spans",
]
