"""From what a network puts out to words, labels and spans of time."""

from deepcruiser.decoding.beam import Hypothesis, LanguageModel, ctc_beam, ctc_beams
from deepcruiser.decoding.detection import classify, spans
from deepcruiser.decoding.greedy import ctc_greedy

__all__ = ["Hypothesis", "LanguageModel", "classify", "ctc_beam", "ctc_beams", "ctc_greedy", "spans"]
