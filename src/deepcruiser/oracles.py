"""When a mutant has failed: what its seed should give, and how far from that an answer may be.

An oracle compares the system's answer to a mutant with a reference, which is the same for a seed and all its mutants,
since a transformation keeps the meaning. Crashes, time-outs and answers that are not finite fail by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jiwer
import numpy as np
import torch

from deepcruiser.errors import InputError

#: What is compared with: the text that came with the seed, or the system's own answer to the seed.
Against = Literal["text", "output"]


class Oracle(Protocol):
    """What decides whether an answer is a failure."""

    @property
    def name(self) -> str:
        """What is measured and from where on it fails, in words."""
        ...

    def reference(self, text: str | None, output: Any) -> Any:
        """What mutants of a seed are compared with, given the seed's text, if it has one, and the answer to it."""
        ...

    def score(self, reference: Any, output: Any) -> float:
        """How far an answer is from the reference, 0 where they agree."""
        ...

    def fails(self, score: float) -> bool:
        """Whether a score is a failure."""
        ...


@dataclass(frozen=True)
class _ErrorRate:
    """Wrong words or characters, over those of the reference.

    Compared in lower case and with single spaces. A reference without words counts as one word long, so an empty
    answer to it scores 0 and each word of another answer 1; an empty answer to any other reference scores 1.

    `against` is "text" (the seed's transcript) or "output" (the system's own answer to the seed, for data without
    transcripts or where only a change of the answer is of interest); None takes the transcript where there is one.
    """

    above: float = 0.0
    against: Against | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.above < float("inf"):
            raise InputError(f"above must be 0 or more, not {self.above}")
        _check(self.against)

    def reference(self, text: str | None, output: Any) -> str:
        return _plain(_compared(self.against, text, output))

    def fails(self, score: float) -> bool:
        return score > self.above


@dataclass(frozen=True)
class WordErrorRate(_ErrorRate):
    __doc__ = (_ErrorRate.__doc__ or "").replace("words or characters", "words")

    @property
    def name(self) -> str:
        return f"word error rate above {self.above:g}{_named(self.against)}"

    def score(self, reference: str, output: Any) -> float:
        return float(jiwer.wer(_plain(reference), _plain(output)))


@dataclass(frozen=True)
class CharacterErrorRate(_ErrorRate):
    __doc__ = (_ErrorRate.__doc__ or "").replace("words or characters", "characters")

    @property
    def name(self) -> str:
        return f"character error rate above {self.above:g}{_named(self.against)}"

    def score(self, reference: str, output: Any) -> float:
        return float(jiwer.cer(_plain(reference), _plain(output)))


@dataclass(frozen=True)
class Disagreement:
    """Another answer than the reference, for classifiers: a seed's text is its right label.

    `against` is "text", "output" or None, as of `WordErrorRate`. Arrays agree if all their numbers do, and a label that
    is a number agrees with its text, "3".
    """

    against: Against | None = None

    def __post_init__(self) -> None:
        _check(self.against)

    @property
    def name(self) -> str:
        return f"another answer{_named(self.against)}"

    def reference(self, text: str | None, output: Any) -> Any:
        return _compared(self.against, text, output)

    def score(self, reference: Any, output: Any) -> float:
        return float(not _agree(reference, output))

    def fails(self, score: float) -> bool:
        return score > 0


def is_finite(output: Any) -> bool:
    """Whether every number of an answer is one: arrays and tensors, alone or in lists, tuples and dictionaries."""
    if isinstance(output, torch.Tensor):
        return bool(torch.isfinite(output).all())
    if isinstance(output, np.ndarray):
        return output.dtype.kind not in "fc" or bool(np.isfinite(output).all())
    if isinstance(output, float | np.floating):
        return bool(np.isfinite(output))
    if isinstance(output, dict):
        return all(map(is_finite, output.values()))
    if isinstance(output, list | tuple):
        return all(map(is_finite, output))
    return True


def _agree(reference: Any, output: Any) -> bool:
    if isinstance(reference, str) and isinstance(output, int | np.integer):
        return reference == str(output)
    if isinstance(reference, list | tuple) and isinstance(output, list | tuple):
        return len(reference) == len(output) and all(map(_agree, reference, output))
    if isinstance(reference, dict) and isinstance(output, dict):
        return reference.keys() == output.keys() and all(_agree(reference[key], output[key]) for key in reference)
    reference, output = (x.cpu().numpy() if isinstance(x, torch.Tensor) else x for x in (reference, output))
    if isinstance(reference, np.ndarray) or isinstance(output, np.ndarray):
        return np.array_equal(reference, output)
    return bool(reference == output)


def _check(against: Any) -> None:
    if against not in (None, "text", "output"):
        raise InputError(f"against must be 'text', 'output' or None, not {against!r}")


def _compared(against: Against | None, text: str | None, output: Any) -> Any:
    if against == "text" and text is None:
        raise InputError("a seed has no text to compare with: give texts, or compare against='output'")
    return output if against == "output" or text is None else text


def _named(against: Against | None) -> str:
    return f" (against the {against})" if against else ""


def _plain(text: Any) -> str:
    if not isinstance(text, str):
        raise InputError(
            f"an error rate compares texts, but the system gave a {type(text).__name__}: let it transcribe, "
            "or use Disagreement"
        )
    return " ".join(text.lower().split())
