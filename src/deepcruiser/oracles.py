"""Oracles decide whether an answer is a failure: what it is compared with, and how far it may differ.

An oracle compares the system's answer to a mutant with a reference, which is the same for a seed and all its mutants,
since a transformation keeps the meaning. Crashes, time-outs and answers that are not finite fail by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.normaliser import check_differences, normalise, respace
from deepcruiser.trace import Run, is_tensor
from deepcruiser.transformations import Transformation

#: What answers are compared with: the text of the seed, or the system's own answer to the seed.
Against = Literal["text", "output"]


class Oracle(Protocol):
    """What decides whether an answer is a failure.  An oracle whose reference does not stay the same, since
    transformations move it, also has a method `follow(reference, seed, recipe, mutant)`, which gives it as it is for a
    mutant (or for the seed, whose recipe is empty): see `SpanDisagreement`. One that knows how near an answer is to
    failing may have a method `distance(reference, run)`, the greater the nearer.
    """

    @property
    def name(self) -> str:
        """A description of the measure and its limit."""
        ...

    def reference(self, text: Any, output: Any) -> Any:
        """The reference for the mutants of a seed: its text or label, if it has one, or the answer to it."""
        ...

    def score(self, reference: Any, output: Any) -> float:
        """How far an answer is from the reference, 0 if they agree."""
        ...

    def fails(self, score: float) -> bool:
        """Whether a score is a failure."""
        ...


def distance(oracle: Oracle, reference: Any, run: Run) -> float | None:
    """How near an answer is to failing, the greater the nearer; guides a scheduler while failures are rare.

    That of the oracle's own method `distance(reference, run)`, if it has one. Otherwise the loss of the reference by
    the scores, else the doubt, else the oracle's score. Six digits are kept, so that the last bits of a network's
    scores change no plan.
    """
    own = getattr(oracle, "distance", None)
    value = _distance(oracle, reference, run) if own is None else own(reference, run)
    if not isinstance(value, int | float | np.number | None):
        raise InputError(f"the distance by {oracle.name!r} must be a number, not {value!r}")
    return None if value is None else float(f"{value:.6g}")


def _distance(oracle: Oracle, reference: Any, run: Run) -> float | None:
    from deepcruiser.decoding.scores import loss_of  # with torch

    loss = None if run.scores is None else loss_of(run.scores, reference)
    if loss is not None or run.doubt is not None:
        return run.doubt if loss is None else loss
    return oracle.score(reference, run.output)


@dataclass(frozen=True)
class _ErrorRate:
    """The common part of the word and character error rates."""

    above: float = 0.0
    against: Against | None = None
    normalise: tuple[str, ...] = ("case",)

    def __post_init__(self) -> None:
        if not 0 <= self.above < float("inf"):
            raise InputError(f"above must be 0 or more, not {self.above}")
        check_against(self.against)
        object.__setattr__(self, "normalise", check_differences(self.normalise))

    def reference(self, text: Any, output: Any) -> str:
        if not isinstance(text, str | None) and self.against != "output":
            raise InputError(
                f"an error rate compares texts, but the right answer is {text!r:.80}, of the type "
                f"{type(text).__name__}: give a text, or use Disagreement (--disagreement)"
            )
        return normalise(_text(compared(self.against, text, output)), self.normalise)

    def fails(self, score: float) -> bool:
        return score > self.above

    def texts(self, reference: Any, output: Any) -> tuple[str, str]:
        """The reference and the answer as they are compared."""
        one, other = (normalise(_text(text), self.normalise) for text in (reference, output))
        return one, respace(one, other) if "spacing" in self.normalise else other

    def _limit(self) -> str:
        ignored = "" if self.normalise == ("case",) else f", ignoring {' and '.join(self.normalise) or 'nothing'}"
        return f"above {self.above:g}{ignored}{against_words(self.against)}"


@dataclass(frozen=True)
class WordErrorRate(_ErrorRate):
    """Fail if the wrong words exceed a share of the reference's words.

    A reference without words counts as one word long: an empty answer to it scores 0, any other answer 1 per word.

    `against` is "text" (the seed's transcript) or "output" (the system's own answer to the seed, for data without
    transcripts or where only a change of the answer matters). None takes the transcript where there is one.
    `normalise` names the differences that are not errors: "case", "punctuation", "spacing" ("sun set" for "sunset")
    and "numbers" ("21" for "twenty one", English). A different number of spaces between two words is never an error.
    """

    @property
    def name(self) -> str:
        return f"word error rate {self._limit()}"

    def score(self, reference: Any, output: Any) -> float:
        import jiwer

        return float(jiwer.wer(*self.texts(reference, output)))


@dataclass(frozen=True)
class CharacterErrorRate(_ErrorRate):
    """Fail if the wrong characters exceed a share of the reference's characters.

    A reference without characters counts as one character long. `against` and `normalise` are as for `WordErrorRate`.
    """

    @property
    def name(self) -> str:
        return f"character error rate {self._limit()}"

    def score(self, reference: Any, output: Any) -> float:
        import jiwer

        return float(jiwer.cer(*self.texts(reference, output)))


@dataclass(frozen=True)
class Disagreement:
    """Fail on any changed answer, for classifiers: a seed's text is its right label.

    `against` is "text", "output" or None, as for `WordErrorRate`. Arrays agree if all their numbers do, and a label
    that is a number agrees with its text, "3".
    """

    against: Against | None = None

    def __post_init__(self) -> None:
        check_against(self.against)

    @property
    def name(self) -> str:
        return f"another answer{against_words(self.against)}"

    def reference(self, text: Any, output: Any) -> Any:
        return compared(self.against, text, output)

    def score(self, reference: Any, output: Any) -> float:
        return float(not agree(reference, output))

    def fails(self, score: float) -> bool:
        return score > 0


@dataclass(frozen=True)
class SpanDisagreement:
    """Fail if the overlap of time spans (of speech, of anything) with those in the seed is below `below`.

    An answer is a list of pairs (start, end) in seconds, as `deepcruiser.spans` gives it. The overlap is intersection
    over union, in time; two answers without spans overlap entirely. The reference is the system's answer to the seed,
    moved as the transformations move the sound: ChangeSpeed stretches it, Trim shifts it and cuts it off.
    """

    below: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.below <= 1:
            raise InputError(f"below must be above 0 and at most 1, not {self.below}")

    @property
    def name(self) -> str:
        return f"overlap of spans below {self.below:g}"

    def reference(self, text: Any, output: Any) -> Any:
        return output

    def follow(self, reference: Any, seed: Any, recipe: Sequence[Any], mutant: Any) -> Any:
        """The spans of the reference in a mutant that was made from the seed by the recipe."""
        if not recipe:
            return reference
        times, length = _spans(reference), getattr(mutant, "seconds", np.inf)
        last = max((at for at, step in enumerate(recipe) if _moves(step)), default=-1)
        for at, step in enumerate(recipe[: last + 1]):
            if _moves(step):
                times = step.moved(times, seed)
            if at < last:  # the sound after the last of them is not needed
                seed = step(seed)
        return np.clip(times, 0, length).tolist()

    def score(self, reference: Any, output: Any) -> float:
        one, other = _spans(reference), _spans(output)
        # The total length of the first spans up to each of their ends; intersections are differences of such lengths.
        until = np.concatenate([[0.0], np.cumsum(one[:, 1] - one[:, 0])])
        ends, before = one.ravel(), np.stack([until[:-1], until[1:]], axis=1).ravel()
        common = float(np.diff(np.interp(other, ends, before)).sum()) if len(one) else 0.0
        either = float(until[-1]) + float(np.sum(other[:, 1] - other[:, 0])) - common
        return 1 - common / either if either > 0 else 0.0

    def fails(self, score: float) -> bool:
        return score > 1 - self.below


def is_finite(output: Any) -> bool:
    """Whether all numbers of an answer are finite: in arrays and tensors, also within lists, tuples and dicts."""
    if is_tensor(output):
        return bool(output.isfinite().all())
    if isinstance(output, np.ndarray):
        return output.dtype.kind not in "fc" or bool(np.isfinite(output).all())
    if isinstance(output, float | np.floating):
        return bool(np.isfinite(output))
    if isinstance(output, dict):
        return all(map(is_finite, output.values()))
    if isinstance(output, list | tuple):
        return all(map(is_finite, output))
    return True


def _moves(change: Any) -> bool:
    """Whether a change moves anything in time: whether its class has its own `moved`."""
    moved = getattr(type(change), "moved", None)
    return moved is not None and moved is not Transformation.moved


def agree(reference: Any, output: Any) -> bool:
    """Whether two answers are equal; arrays are if all their numbers are, and a number equals its text."""
    if isinstance(reference, str) and isinstance(output, int | np.integer):
        return reference == str(output)
    if isinstance(output, str) and isinstance(reference, int):
        return output == str(reference)
    if isinstance(reference, list | tuple) and isinstance(output, list | tuple):
        return len(reference) == len(output) and all(map(agree, reference, output))
    if isinstance(reference, dict) and isinstance(output, dict):
        return reference.keys() == output.keys() and all(agree(reference[key], output[key]) for key in reference)
    reference, output = (x.cpu().numpy() if is_tensor(x) else x for x in (reference, output))
    if isinstance(reference, np.ndarray) or isinstance(output, np.ndarray):
        return np.array_equal(reference, output)
    return bool(reference == output)


def _spans(answer: Any) -> npt.NDArray[np.float64]:
    """Spans as an array [spans, 2], sorted, with those that touch made one, and empty ones left out."""
    try:
        times = np.asarray(answer, np.float64).reshape(-1, 2)
    except (TypeError, ValueError):
        times = np.full((1, 2), np.nan)
    if not (times[:, 0] <= times[:, 1]).all():
        raise InputError(f"spans must be a list of pairs (start, end) in seconds, not {str(answer)[:80]}")
    times = times[times[:, 0] < times[:, 1]]
    times = times[np.argsort(times[:, 0], kind="stable")]
    latest = np.maximum.accumulate(times[:, 1])
    first = np.flatnonzero(np.append(True, times[1:, 0] > latest[:-1])[: len(times)])
    last = np.append(first[1:], len(times))[: len(first)] - 1
    return np.stack([times[first, 0], latest[last]], axis=1)


def check_against(against: Any) -> None:
    """Refuse an unknown value of `against`."""
    if against not in (None, "text", "output"):
        raise InputError(f"against must be 'text', 'output' or None, not {against!r}")


def compared(against: Against | None, text: Any, output: Any) -> Any:
    """The seed's text or the answer to it, depending on `against`."""
    if against == "text" and text is None:
        raise InputError("a seed has no text to compare with: give texts, or compare against='output'")
    return output if against == "output" or text is None else text


def against_words(against: Against | None) -> str:
    """The words for `against` in the name of an oracle."""
    return f" (against the {against})" if against else ""


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise InputError(
            f"an error rate compares texts, but the system returned a value of the type {type(text).__name__}: let it "
            "transcribe, or use Disagreement"
        )
    return text
