"""Decoders: against all alignments, added up one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.decoding import beam
from deepcruiser.decoding.beam import ctc_beam_symbols, has_beam_search

ALPHABET = "ab "
BLANK = 3
#: A language model of pairs of words, as KenLM's build_binary made it of the text beside it.
TINY = Path(__file__).parent / "data" / "tiny.kenlm"
WORDS = ["a", "b", "ab", "bba", "aa"]

needs_beam_search = pytest.mark.skipif(not has_beam_search(), reason="flashlight-text is not installed")


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


def every_text(steps: Any, words: list[str]) -> dict[str, float]:
    """P(text) by adding up all alignments, of the texts of known words."""
    result: dict[str, float] = defaultdict(float)
    for path in product(range(4), repeat=len(steps)):
        result[collapsed(path)] += math.exp(sum(steps[t, token] for t, token in enumerate(path)))
    return {text: probability for text, probability in result.items() if set(text.split()) <= set(words)}


def read_pairs() -> tuple[dict[str, float], dict[str, float]]:
    """The logarithms and backoffs of the tiny model's text."""
    logs, backoffs = {}, {}
    for line in TINY.with_suffix(".arpa").read_text().splitlines():
        parts = line.split("\t")
        if len(parts) > 1:
            logs[parts[1]], backoffs[parts[1]] = float(parts[0]), float(parts[2]) if len(parts) > 2 else 0.0
    return logs, backoffs


def log_of_text(text: str) -> float:
    """log10 P(text) under the tiny model."""
    logs, backoffs = read_pairs()
    words = ["<s>", *(word if word in logs else "<unk>" for word in text.split()), "</s>"]
    return sum(logs.get(f"{a} {b}", backoffs.get(a, 0.0) + logs[b]) for a, b in pairwise(words))


@needs_beam_search
@given(st.integers(0, 10**6), st.integers(0, 6), st.sets(st.sampled_from(WORDS), min_size=1), st.floats(-1, 2))
def test_beam_search_adds_up_all_alignments(seed: int, length: int, words: set[str], beta: float) -> None:
    steps = random_steps(seed, length)
    known = sorted(words)
    values = {t: math.log(p) + beta * len(t.split()) for t, p in every_text(steps, known).items()}
    text = dc.ctc_beam(steps, ALPHABET, blank=BLANK, words=known, width=10**6, beta=beta)
    assert values[text] == pytest.approx(max(values.values()), abs=1e-4)


@needs_beam_search
@given(st.integers(0, 10**6), st.integers(0, 6), st.floats(0, 2), st.booleans())
def test_beam_search_over_symbols_adds_up_all_alignments(seed: int, length: int, alpha: float, weighed: bool) -> None:
    steps = random_steps(seed, length)
    names = ["a", "aa", "ab"]  # words of the tiny model; class 0 is the blank
    result: dict[str, float] = defaultdict(float)
    for path in product(range(4), repeat=length):
        kept = [names[token - 1] for last, token in pairwise((0, *path)) if token not in (0, last)]
        result[" ".join(kept)] += math.exp(sum(steps[t, token] for t, token in enumerate(path)))
    values = {
        text: math.log(p) + (alpha * math.log(10) * log_of_text(text) if weighed else 0) for text, p in result.items()
    }
    model = dc.read_language_model(TINY) if weighed else None
    text = " ".join(ctc_beam_symbols(steps, names, language_model=model, width=10**6, alpha=alpha))
    assert values[text] == pytest.approx(max(values.values()), abs=1e-4)


@needs_beam_search
@given(st.integers(0, 10**6), st.integers(0, 6), st.floats(0, 2), st.floats(-1, 2), st.booleans())
def test_language_model_weighs_every_word_and_the_end(
    seed: int, length: int, alpha: float, beta: float, other: bool
) -> None:
    steps = random_steps(seed, length)
    model = dc.read_language_model(TINY)
    words = ["a", "bb", "ba"] if other else None  # two of them are unknown to the model
    values = {
        text: math.log(p) + alpha * math.log(10) * log_of_text(text) + beta * len(text.split())
        for text, p in every_text(steps, words or WORDS).items()
    }
    settings: dict[str, Any] = {"language_model": model, "words": words, "width": 10**6, "alpha": alpha, "beta": beta}
    text = dc.ctc_beam(steps, ALPHABET, blank=BLANK, **settings)
    assert values[text] == pytest.approx(max(values.values()), abs=1e-4)


@needs_beam_search
def test_narrow_beam_finds_what_greedy_cannot() -> None:
    """Blank is best at every step, yet most alignments say something."""
    steps = np.log(np.array([[0.4, 1e-9, 1e-9, 0.6]] * 2))
    assert dc.ctc_greedy(steps, ALPHABET, blank=BLANK) == ""
    assert dc.ctc_beam(steps, ALPHABET, blank=BLANK, width=2, words=["a"]) == "a"


@needs_beam_search
def test_only_known_words_come_out_and_spaces_between_them_are_found() -> None:
    words = ["blue", "towel", "red", "table"]
    letters = "abcdefghijklmnopqrstuvwxyz "
    for heard in ("bluetowel", "bluu towl", " blue  towl"):
        steps = np.full((2 * len(heard), 28), 0.002)
        steps[:, [letters.index(" "), letters.index("e")]] = 0.01
        steps[np.arange(0, 2 * len(heard), 2), [letters.index(letter) for letter in heard]] = 1
        steps[1::2, -1] = 1
        assert dc.ctc_greedy(steps, letters, blank=-1) != "blue towel"
        assert dc.ctc_beam(steps / steps.sum(1, keepdims=True), letters, blank=-1, words=words) == "blue towel"


@needs_beam_search
def test_words_outside_the_alphabet_are_left_out() -> None:
    steps = np.log(np.full((4, 4), 0.25))
    assert dc.ctc_beam(steps, ALPHABET, blank=BLANK, words=["caf\u00e9", "ab", ""], beta=9) == "ab"
    with pytest.raises(dc.InputError, match="none of the 1 words can be spelled with the alphabet 'ab '"):
        dc.ctc_beam(steps, ALPHABET, blank=BLANK, words=["AB"])


@needs_beam_search
def test_beam_search_takes_probabilities_their_logarithms_logits_and_tensors() -> None:
    steps = random_steps(5, 30)
    texts = {
        dc.ctc_beam(scores, ALPHABET, blank=BLANK, words=WORDS)
        for scores in (steps, np.exp(steps), steps + 7.5, torch.from_numpy(steps))
    }
    assert len(texts) == 1
    certain = np.eye(4)[[0, 3, 1, 2, 1]]  # probabilities of 0 and 1
    assert dc.ctc_beam(certain, ALPHABET, blank=BLANK, words=WORDS) == "ab b"


def test_a_language_model_tells_its_words(tmp_path: Path) -> None:
    model = dc.read_language_model(TINY)
    assert sorted(model.words) == sorted(WORDS)
    assert str(model) == "tiny.kenlm: 5 words"
    data = TINY.read_bytes()
    for number, (content, words) in enumerate(
        [
            (data[:-3], "has 6 of its 8 words: it is cut short"),
            (data[:200], "has 0 of its 8 words"),
            (data[:90], "not a language model in the binary format of KenLM"),
            (b"", "not a language model in the binary format of KenLM"),
            (TINY.with_suffix(".arpa").read_bytes(), "is an ARPA file; convert it first: build_binary trie"),
        ]
    ):
        path = tmp_path / f"{number}.kenlm"
        path.write_bytes(content)
        with pytest.raises(dc.FileError, match=words):
            dc.read_language_model(path)
    with pytest.raises(dc.FileError, match=r"cannot read the language model .*: no such file"):
        dc.read_language_model(tmp_path / "none")


@needs_beam_search
def test_a_damaged_language_model_is_refused(tmp_path: Path) -> None:
    data = TINY.read_bytes()
    (tmp_path / "damaged.kenlm").write_bytes(data[:60] + b"\1" + data[61:])
    model = dc.read_language_model(tmp_path / "damaged.kenlm")
    with pytest.raises(dc.InputError, match="KenLM cannot read"):
        dc.ctc_beam(np.zeros((2, 4)), ALPHABET, blank=BLANK, language_model=model)


def test_without_flashlight_there_is_a_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "has_beam_search", lambda: False)
    with pytest.raises(dc.InputError, match="needs the package flashlight-text, which exists for"):
        dc.ctc_beam(np.zeros((2, 4)), ALPHABET, blank=BLANK, words=["a", "b", "bb"])


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


@needs_beam_search
@pytest.mark.parametrize("blank", [0, 2, -1])
def test_beam_and_greedy_agree_on_certain_steps(blank: int) -> None:
    """If every step is nearly certain, there is one text to find, of any length; with known words, that text."""
    rng = np.random.default_rng(0)
    best = rng.integers(0, 4, 200)
    steps = np.log(np.eye(4)[best] * 0.9996 + 1e-4)
    heard = dc.ctc_greedy(steps, ALPHABET, blank=blank)
    assert dc.ctc_beam(steps, ALPHABET, blank=blank, words=heard.split()) == heard


def test_classify() -> None:
    assert dc.classify(np.array([0.1, 3.0, -1]), ["yes", "no", "stop"]) == "no"
    assert dc.classify(torch.eye(3)[[2, 0]], ["yes", "no", "stop"]) == ["stop", "yes"]
    with pytest.raises(dc.InputError, match=r"scores must be \[2\] or \[batch, 2\], as many as labels: \(3,\)"):
        dc.classify(np.zeros(3), ["yes", "no"])


def bare(probabilities: list[float], **settings: float) -> list[tuple[float, float]]:
    plain = {"shortest_seconds": 0.0, "pause_seconds": 0.0, "pad_seconds": 0.0} | settings
    result = dc.spans(np.array(probabilities), seconds_per_step=0.1, **plain)
    return [(round(start, 9), round(end, 9)) for start, end in result]


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
    result, at = [], 0
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
        result.append((start, end))
        at = end
    return result


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
        (lambda: dc.ctc_beam(np.zeros((1, 5, 3)), "a ", blank=2, words=["a"]), "decode a batch row by row"),
        (lambda: dc.ctc_beam(np.zeros((5, 3)), "a ", blank=2, words=["a"], width=0), "width must be 1 or more, not 0"),
        (lambda: dc.ctc_beam(np.full((5, 3), np.nan), "a ", blank=2, words=["a"]), "there is NaN among them"),
        (lambda: dc.ctc_beam(np.zeros((5, 3)), "a ", blank=2), "needs known words: give a language_model or a list"),
        (lambda: dc.ctc_beam(np.zeros((5, 3)), "ab", blank=2, words=["a"]), "the alphabet has no space"),
        (lambda: dc.spans([0.1], seconds_per_step=0), "seconds_per_step must be above 0"),
        (lambda: dc.spans([0.1], seconds_per_step=1, below=0.6), "below=0.6 must not be greater than above=0.5"),
        (lambda: dc.spans([[0.1]], seconds_per_step=1), r"probabilities must be \[steps\], one number each"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(dc.InputError, match=words):
        make()
