"""The most probable text: prefix beam search, with a language model if there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from deepcruiser.decoding.greedy import as_array, symbols
from deepcruiser.errors import InputError

NEVER = -math.inf
LN10 = math.log(10)


class LanguageModel(Protocol):
    """What beam search asks of a language model: probabilities of words as log10, and opaque states in between."""

    def begin(self) -> Any:
        """The state at the beginning of a text."""

    def word(self, state: Any, word: str) -> tuple[float, Any]:
        """log10 of the probability of `word` in this state, and the state behind it."""

    def end(self, state: Any) -> float:
        """log10 of the probability that the text ends here."""

    def ahead(self, beginning: str) -> float:
        """About what a word that begins so will get, to compare it with complete ones; 0 if nothing is known."""


class Hypothesis(NamedTuple):
    """A text and its score: log P(text | sound) + alpha * log P(text | language) + beta * words."""

    text: str
    score: float


@dataclass(eq=False, slots=True)
class Prefix:
    """What has been said so far: a node of a tree, so that equal texts are the same object."""

    parent: Prefix | None
    token: int
    bonus: float = 0.0  # from the language model, for the words that are complete
    state: Any = None
    word: str = ""  # what there is of the last one
    hope: float = 0.0  # what that one may get: it counts until it is complete, so that no word gains by not ending
    children: dict[int, Prefix] | None = None
    # Log probabilities of all alignments up to now that end in a blank, or in the token; and the same a step later.
    blank: float = NEVER
    spoken: float = NEVER
    next_blank: float = NEVER
    next_spoken: float = NEVER
    rank: float = NEVER


def ctc_beam(
    log_probabilities: Any,
    alphabet: Sequence[str],
    *,
    blank: int,
    width: int = 48,
    language_model: LanguageModel | None = None,
    alpha: float = 0.8,
    beta: float = 2.0,
    least: float = 1e-3,
) -> str:
    """The most probable text of [steps, classes]; see `ctc_beams`, which gives the runners-up as well."""
    found = ctc_beams(
        log_probabilities,
        alphabet,
        blank=blank,
        width=width,
        language_model=language_model,
        alpha=alpha,
        beta=beta,
        least=least,
    )
    return found[0].text


def ctc_beams(
    log_probabilities: Any,
    alphabet: Sequence[str],
    *,
    blank: int,
    width: int = 48,
    language_model: LanguageModel | None = None,
    alpha: float = 0.8,
    beta: float = 2.0,
    least: float = 1e-3,
) -> list[Hypothesis]:
    """Up to `width` texts, best first: each one's probability is the sum over all alignments that were not dropped.

    `log_probabilities` are natural logarithms, a numpy array or a tensor. `alphabet` and `blank` are those of
    `ctc_greedy`, and spaces are treated alike. After every step the best `width` texts are kept, and classes of a
    probability below `least` are not followed (0 follows all).

    The language model judges a word when the space behind it is there, the last word and the end of the text at the
    end; until then its guess at what the word will get decides with the sound whether a text is kept. `alpha` is the
    model's weight, `beta` what every word adds, so that it need not favour few words.
    """
    steps = as_array(log_probabilities)
    if steps.ndim != 2:
        raise InputError(f"log_probabilities must be [steps, classes], not {steps.shape}; decode a batch row by row")
    if width < 1:
        raise InputError(f"width must be 1 or more, not {width}")
    if steps.max(initial=0.0) > 1e-3 or np.isnan(steps).any():
        raise InputError(
            f"log_probabilities must be natural logarithms, 0 at most, but there is {steps.max(initial=0.0):g}; "
            "apply log_softmax to logits, or log to probabilities"
        )
    names, blank = symbols(alphabet, steps.shape[1], blank)
    space = next((number for number, name in enumerate(names) if name == " "), -1)
    judge = Judge(names, space, language_model, alpha, beta)
    # The beginning counts as a space: spaces in front are dropped like doubled ones.
    root = Prefix(None, space, state=language_model.begin() if language_model else None, blank=0.0)
    beams = [root]
    lowest = math.log(least) if least > 0 else NEVER
    for row, best in zip(steps.tolist(), steps.max(axis=1, initial=NEVER).tolist(), strict=True):
        heard = [(token, log_p) for token, log_p in enumerate(row) if token != blank and log_p >= min(lowest, best)]
        beams = step(beams, heard, row[blank], space=space, width=width, judge=judge)
    return finished(beams, judge)


def step(
    beams: list[Prefix],
    heard: list[tuple[int, float]],
    log_blank: float,
    *,
    space: int,
    width: int,
    judge: Judge,
) -> list[Prefix]:
    """The best prefixes after one more step."""
    touched = dict.fromkeys(beams)  # not a set: equal ranks are resolved by the order of arrival, the same every time
    for prefix in beams:
        total = added(prefix.blank, prefix.spoken)
        prefix.next_blank = added(prefix.next_blank, total + log_blank)
        for token, log_p in heard:
            if token == prefix.token:
                # Said without a pause it is the same token still, said again it is another: but not of spaces.
                still = total if token == space else prefix.spoken
                prefix.next_spoken = added(prefix.next_spoken, still + log_p)
                if token == space:
                    continue
                reached = prefix.blank + log_p
            else:
                reached = total + log_p
            if reached == NEVER:
                continue
            if prefix.children is None:
                prefix.children = {}
            child = prefix.children.get(token)
            if child is None:
                child = prefix.children[token] = judge.longer(prefix, token)
            child.next_spoken = added(child.next_spoken, reached)
            touched[child] = None
    for prefix in touched:
        prefix.blank, prefix.spoken = prefix.next_blank, prefix.next_spoken
        prefix.next_blank = prefix.next_spoken = NEVER
        prefix.rank = added(prefix.blank, prefix.spoken) + prefix.bonus + prefix.hope
    kept = sorted(touched, key=attrgetter("rank"), reverse=True)
    for prefix in kept[width:]:
        prefix.blank = prefix.spoken = NEVER
    return kept[:width]


class Judge:
    """The language model's part: what a prefix's words are worth."""

    def __init__(self, names: Any, space: int, model: LanguageModel | None, alpha: float, beta: float) -> None:
        self.names, self.space, self.model = names, space, model
        self.alpha, self.beta = alpha, beta

    def longer(self, prefix: Prefix, token: int) -> Prefix:
        """The prefix with one token more; a space completes a word."""
        if self.model is None:
            return Prefix(prefix, token)
        if token == self.space:
            return Prefix(prefix, token, *self.word(prefix))
        word = prefix.word + self.names[token]
        hope = self.alpha * LN10 * self.model.ahead(word) + self.beta
        return Prefix(prefix, token, prefix.bonus, prefix.state, word, hope)

    def word(self, prefix: Prefix) -> tuple[float, Any]:
        """The bonus and the state with the prefix's last word taken as complete."""
        if self.model is None or not prefix.word:
            return prefix.bonus, prefix.state
        log10, state = self.model.word(prefix.state, prefix.word)
        return prefix.bonus + self.alpha * LN10 * log10 + self.beta, state

    def whole(self, prefix: Prefix) -> float:
        """The bonus of a text that ends here."""
        bonus, state = self.word(prefix)
        return bonus if self.model is None else bonus + self.alpha * LN10 * self.model.end(state)

    def text(self, prefix: Prefix) -> str:
        letters = []
        while prefix.parent is not None:
            letters.append(self.names[prefix.token])
            prefix = prefix.parent
        return "".join(reversed(letters)).removesuffix(" ")


def finished(beams: list[Prefix], judge: Judge) -> list[Hypothesis]:
    """The prefixes as texts; those that differ by a space at the end are one."""
    sounds: dict[str, float] = {}
    bonuses: dict[str, float] = {}
    for prefix in beams:
        text = judge.text(prefix)
        sounds[text] = added(sounds.get(text, NEVER), added(prefix.blank, prefix.spoken))
        if text not in bonuses:
            bonuses[text] = judge.whole(prefix)
    found = [Hypothesis(text, sounds[text] + bonuses[text]) for text in sounds]
    return sorted(found, key=lambda hypothesis: (-hypothesis.score, hypothesis.text))


def added(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == NEVER else a + math.log1p(math.exp(b - a))
