"""Oracles for answers that are numbers, sounds, slots, or those of another system."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.audio import Audio
from deepcruiser.errors import InputError
from deepcruiser.oracles import Against, Disagreement, Oracle, against_words, agree, check_against, compared
from deepcruiser.trace import System, is_tensor
from deepcruiser.transformations import AddBackgroundNoise, AddWhiteNoise

#: The greatest score, because a relative error has no bound.
_MOST = 1e9


@dataclass(frozen=True)
class Tolerance:
    """Fail if a number of the answer differs from the reference by more than `limit`; for regression.

    With `relative`, the largest difference is divided by the largest number of the reference. Answers are numbers or
    arrays of one shape; a seed's right answer may be a number, an array, or a text that is a number.
    """

    limit: float
    relative: bool = False
    against: Against | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.limit < float("inf"):
            raise InputError(f"limit must be 0 or more, not {self.limit}")
        check_against(self.against)

    @property
    def name(self) -> str:
        limit = f"{self.limit * 100:g} %" if self.relative else f"{self.limit:g}"
        return f"difference above {limit}{against_words(self.against)}"

    def reference(self, text: Any, output: Any) -> Any:
        return compared(self.against, text, output)

    def score(self, reference: Any, output: Any) -> float:
        right, answer = _numbers(reference), _numbers(output)
        if right.shape != answer.shape:
            raise InputError(
                f"an answer of the shape {list(answer.shape)} cannot be compared with one of {list(right.shape)}: "
                "leave out the transformations that change the length, or give an oracle of your own"
            )
        difference = float(np.abs(answer - right).max(initial=0))
        scale = float(np.abs(right).max(initial=0)) if self.relative else 1.0
        return min(difference / scale, _MOST) if scale else (_MOST if difference else 0.0)

    def fails(self, score: float) -> bool:
        return score > self.limit


@dataclass(frozen=True)
class SignalToDistortion:
    """Fail if the signal-to-distortion ratio of an enhanced sound is below `below_db`.

    A seed is a pair of the noisy sound and the clean one. Everything that is done to the noisy sound is done to the
    clean one too, except adding noise. The ratio does not depend on the volume of the answer (SI-SDR). Use only
    transformations that keep every sample in its place: volume, filters and noise. The score is the size of the
    distortion relative to the signal: 0.1 is 20 dB.
    """

    below_db: float = 10.0

    @property
    def name(self) -> str:
        return f"signal-to-distortion ratio below {self.below_db:g} dB"

    def reference(self, text: Any, output: Any) -> Any:
        if not isinstance(text, Audio | np.ndarray):
            raise InputError(
                f"the right answer must be the clean sound, not {type(text).__name__}: give pairs of (noisy, clean)"
            )
        return text

    def follow(self, reference: Any, seed: Any, recipe: Sequence[Any], mutant: Any) -> Any:
        """The clean sound after the same changes, but without added noise."""
        clean = (
            Audio(reference, seed.rate) if isinstance(reference, np.ndarray) and hasattr(seed, "rate") else reference
        )
        for step in recipe:
            clean = clean if isinstance(step, AddWhiteNoise | AddBackgroundNoise) else step(clean)
        return clean

    def score(self, reference: Any, output: Any) -> float:
        clean, answer = _numbers(reference).ravel(), _numbers(output).ravel()
        if abs(len(clean) - len(answer)) > 0.05 * len(clean):
            raise InputError(
                f"an answer of {len(answer):,} samples cannot be compared with a clean sound of {len(clean):,}: leave "
                "out the transformations that change the length, and let the answer have the rate of the clean sound"
            )
        length = min(len(clean), len(answer))
        clean, answer = clean[:length], answer[:length]
        power = float(clean @ clean)
        signal = clean * (float(answer @ clean) / power) if power else clean
        distortion, size = float(np.linalg.norm(answer - signal)), float(np.linalg.norm(signal))
        return min(distortion / size, _MOST) if size else (_MOST if distortion or power else 0.0)

    def fails(self, score: float) -> bool:
        return score > 10 ** (-self.below_db / 20)


@dataclass(frozen=True)
class Keywords:
    """Fail if one of some words is missed, or heard where it was not said; or if one of some slots is wrong.

    `names` are words or phrases if the answers are texts, and slots if they are dictionaries: the others do not matter.
    The score is the number of keywords missed and wrongly heard, or of wrong slots, over those of the reference.
    """

    names: tuple[str, ...]
    against: Against | None = None

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise InputError(f"names must be one or more words, phrases or slots, not {self.names!r}")
        check_against(self.against)
        object.__setattr__(self, "names", names)

    @property
    def name(self) -> str:
        return f"missed or wrong: {', '.join(self.names)}{against_words(self.against)}"

    def reference(self, text: Any, output: Any) -> Any:
        return compared(self.against, text, output)

    def score(self, reference: Any, output: Any) -> float:
        if isinstance(reference, dict) and isinstance(output, dict):
            wrong = sum(not agree(reference.get(name), output.get(name)) for name in self.names)
            return wrong / len(self.names)
        expected, heard = self._counts(reference), self._counts(output)
        return ((expected - heard) + (heard - expected)).total() / max(1, expected.total())

    def fails(self, score: float) -> bool:
        return score > 0

    def _counts(self, text: Any) -> Counter[str]:
        if not isinstance(text, str):
            raise InputError(
                f"keywords are heard in texts and slots are in dictionaries, not in a {type(text).__name__}"
            )
        words, counts = _words(text), Counter[str]()
        for name in self.names:
            keyword = _words(name)
            starts = range(len(words) - len(keyword) + 1)
            counts[name] = sum(words[start : start + len(keyword)] == keyword for start in starts)
        return counts


@dataclass(frozen=True)
class SystemDisagreement:
    """Fail if two systems answer differently: the reference is the answer of `system` to the same mutant.

    `oracle` says how the two answers are compared.
    """

    system: System
    oracle: Oracle = field(default_factory=Disagreement)

    @property
    def name(self) -> str:
        return f"{self.oracle.name}, compared with {self.system!r}"

    def reference(self, text: Any, output: Any) -> Any:
        return output

    def follow(self, reference: Any, seed: Any, recipe: Sequence[Any], mutant: Any) -> Any:
        """The other system's answer to the mutant."""
        (run,) = self.system.run([mutant])
        return self.oracle.reference(None, run.output)

    def score(self, reference: Any, output: Any) -> float:
        return self.oracle.score(reference, output)

    def fails(self, score: float) -> bool:
        return self.oracle.fails(score)


def _numbers(value: Any) -> npt.NDArray[np.float64]:
    """An answer as an array of numbers."""
    plain = value.samples if isinstance(value, Audio) else value.detach().cpu() if is_tensor(value) else value
    try:
        return np.asarray(float(plain) if isinstance(plain, str) else plain, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"an answer must be a number or an array of numbers, not {str(value)[:60]!r}") from None


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.casefold())
