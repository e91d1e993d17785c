"""Decoders: against all alignments, added up one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.decoding import ctc_beams

ALPHABET = "ab "
BLANK = 3


class Toy:
    """A language model of pairs of words with probabilities out of a hat; the state is the word before."""

    def probability(self, before: str, word: str) -> float:
        return 0.05 + (hash((len(before), before == word, len(word), word[:1] == "a")) % 97) / 110

    def begin(self) -> str:
        return "<s>"

    def word(self, state: str, word: str) -> tuple[float, str]:
        return math.log10(self.probability(state, word)), word

    def end(self, state: str) -> float:
        return math.log10(self.probability(state, "</s>"))

    def ahead(self, beginning: str) -> float:
        return -0.4 * len(beginning)


def random_steps(seed: int, steps: int) -> Any:
    logits = np.random.default_rng(seed).normal(0, 1.5, (steps, 4))
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def collapsed(path: tuple[int, ...]) -> str:
    text, last = "", BLANK
    for token in path:
        if token not in (last, BLANK):
            text += ALPHABET[token]
        last = token
    return " ".join(text.split())


def every_text(steps: Any) -> dict[str, float]:
    """P(text) by adding up all alignments."""
    found: dict[str, float] = defaultdict(float)
    for path in product(range(4), repeat=len(steps)):
        found[collapsed(path)] += math.exp(sum(steps[t, token] for t, token in enumerate(path)))
    return found


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_beam_search_adds_up_all_alignments(seed: int, length: int) -> None:
    steps = random_steps(seed, length)
    expected = every_text(steps)
    found = ctc_beams(steps, ALPHABET, blank=BLANK, width=10**6, least=0)
    assert {text for text, _ in found} == set(expected)
    for text, score in found:
        assert score == pytest.approx(math.log(expected[text]), abs=1e-9)
    assert math.fsum(math.exp(score) for _, score in found) == pytest.approx(1)
    assert dc.ctc_beam(steps, ALPHABET, blank=BLANK, width=10**6, least=0) == max(expected, key=expected.__getitem__)


@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0, 2), st.floats(-1, 2))
def test_language_model_judges_every_word_and_the_end(seed: int, length: int, alpha: float, beta: float) -> None:
    steps = random_steps(seed, length)
    model = Toy()
    found = ctc_beams(steps, ALPHABET, blank=BLANK, width=10**6, least=0, language_model=model, alpha=alpha, beta=beta)
    expected = {}
    for text, probability in every_text(steps).items():
        score, before = math.log(probability), "<s>"
        for word in text.split():
            score += alpha * math.log(model.probability(before, word)) + beta
            before = word
        expected[text] = score + alpha * math.log(model.probability(before, "</s>"))
    assert {text for text, _ in found} == set(expected)
    for text, score in found:
        assert score == pytest.approx(expected[text], abs=1e-9)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_narrow_beam_finds_what_greedy_cannot() -> None:
    """Blank is best at every step, yet most alignments say something."""
    steps = np.log(np.array([[0.4, 1e-9, 1e-9, 0.6]] * 2))
    assert dc.ctc_greedy(steps, ALPHABET, blank=BLANK) == ""
    assert dc.ctc_beam(steps, ALPHABET, blank=BLANK, width=2) == "a"


@given(st.integers(0, 10**6), st.integers(0, 12))
def test_a_narrow_beam_never_claims_more_than_there_is(seed: int, length: int) -> None:
    steps = random_steps(seed, min(length, 6))
    expected = every_text(steps)
    found = ctc_beams(steps, ALPHABET, blank=BLANK, width=4, least=0.05)
    assert 1 <= len(found) <= 4
    for text, score in found:
        assert score <= math.log(expected[text]) + 1e-9


@given(st.integers(0, 10**6), st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_greedy_is_the_best_class_of_every_step(seed: int, lengths: list[int]) -> None:
    scores = np.random.default_rng(seed).standard_normal((len(lengths), 9, 4))
    expected = [
        collapsed(tuple(int(scores[row, t].argmax()) for t in range(length))) for row, length in enumerate(lengths)
    ]
    assert dc.ctc_greedy(scores, ALPHABET, blank=-1, lengths=lengths) == expected
    tensor = torch.from_numpy(scores)
    assert dc.ctc_greedy(tensor, ALPHABET, blank=BLANK, lengths=torch.tensor(lengths)) == expected
    for row, length in enumerate(lengths):
        assert dc.ctc_greedy(tensor[row, :length], [*ALPHABET, "_"], blank=BLANK) == expected[row]


def test_blank_in_front() -> None:
    scores = np.eye(4)[[1, 0, 1, 2, 3, 3]]
    assert dc.ctc_greedy(scores, "abc", blank=0) == "aabc"
    assert dc.ctc_beam(np.log(scores * 0.99 + 0.0025), "abc", blank=0) == "aabc"


def test_beam_and_greedy_agree_on_certain_steps() -> None:
    """Where every step is all but certain there is one text to find, of any length."""
    rng = np.random.default_rng(0)
    best = rng.integers(0, 4, 200)
    steps = np.log(np.eye(4)[best] * 0.9996 + 1e-4)
    assert dc.ctc_beam(steps, ALPHABET, blank=BLANK) == dc.ctc_greedy(steps, ALPHABET, blank=BLANK)


def test_classify() -> None:
    assert dc.classify(np.array([0.1, 3.0, -1]), ["yes", "no", "stop"]) == "no"
    assert dc.classify(torch.eye(3)[[2, 0]], ["yes", "no", "stop"]) == ["stop", "yes"]
    with pytest.raises(dc.InputError, match=r"scores must be \[2\] or \[batch, 2\], as many as labels: \(3,\)"):
        dc.classify(np.zeros(3), ["yes", "no"])


def bare(probabilities: list[float], **settings: float) -> list[tuple[float, float]]:
    plain = {"shortest_seconds": 0.0, "pause_seconds": 0.0, "pad_seconds": 0.0} | settings
    found = dc.spans(np.array(probabilities), seconds_per_step=0.1, **plain)
    return [(round(start, 9), round(end, 9)) for start, end in found]


def test_spans_begin_above_and_end_below() -> None:
    assert bare([0, 0.4, 0.6, 0.4, 0.4, 0.2, 0.4, 0]) == [(0.2, 0.5)]
    assert bare([0.9, 0.9]) == [(0, 0.2)]
    assert bare([0.4] * 5) == bare([]) == []
    assert bare([0.9, 0, 0.9, 0]) == [(0, 0.1), (0.2, 0.3)]


def test_spans_bridge_pauses_drop_the_short_and_are_widened() -> None:
    brief, long = [0.9, 0.9, 0, 0.9, 0.9, 0, 0, 0], [0.9, 0, 0, 0, 0.9, 0.9, 0.9, 0, 0, 0]
    assert bare(brief, pause_seconds=0.15) == [(0, 0.5)]
    assert bare(brief, pause_seconds=0.05) == [(0, 0.2), (0.3, 0.5)]
    assert bare(long, shortest_seconds=0.25) == [(0.4, 0.7)]
    assert bare(long, pad_seconds=0.1) == [(0, 0.2), (0.3, 0.8)]
    assert bare(brief, pad_seconds=1.0) == [(0, 0.25), (0.25, 0.8)]


def slow_spans(values: list[float], pause: int) -> list[tuple[int, int]]:
    """The rule word by word: from each step above, on to the first below that no step above follows soon."""
    found, at = [], 0
    while at < len(values):
        if values[at] < 0.5:
            at += 1
            continue
        start = at
        while True:
            end = next((n for n in range(at, len(values)) if values[n] < 0.35), len(values))
            again = next((n for n in range(end, min(len(values), end + pause)) if values[n] >= 0.5), None)
            if again is None:
                break
            at = again
        found.append((start, end))
        at = end
    return found


@given(st.lists(st.sampled_from([0.1, 0.4, 0.8]), max_size=30), st.integers(0, 4))
def test_spans_against_the_rule(values: list[float], pause: int) -> None:
    expected = [(start / 10, end / 10) for start, end in slow_spans(values, pause)]
    assert bare(values, pause_seconds=pause / 10 - 0.01) == expected


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dc.ctc_greedy(np.zeros(3), "ab", blank=2), r"scores must be \[steps, classes\] or .*, not \(3,\)"),
        (lambda: dc.ctc_greedy(np.zeros((5, 9)), "ab", blank=2), "2 symbols does not fit scores of 9 classes"),
        (lambda: dc.ctc_greedy(np.zeros((5, 3)), "ab", blank=3), "blank is class 3, but there are 3 classes"),
        (lambda: dc.ctc_greedy(np.zeros((5, 3)), "ab", blank=2, lengths=[9]), "1 numbers from 0 to 5"),
        (lambda: dc.ctc_beam(np.ones((5, 3)), "ab", blank=2), "apply log_softmax to logits"),
        (lambda: dc.ctc_beam(np.zeros((1, 5, 3)), "ab", blank=2), "decode a batch row by row"),
        (lambda: dc.ctc_beam(np.zeros((5, 3)), "ab", blank=2, width=0), "width must be 1 or more, not 0"),
        (lambda: dc.spans([0.1], seconds_per_step=0), "seconds_per_step must be above 0"),
        (lambda: dc.spans([0.1], seconds_per_step=1, below=0.6), "below=0.6 must not be greater than above=0.5"),
        (lambda: dc.spans([[0.1]], seconds_per_step=1), r"probabilities must be \[steps\], one number each"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(dc.InputError, match=words):
        make()
