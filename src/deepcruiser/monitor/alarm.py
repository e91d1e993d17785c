"""What a monitor says of an unusual input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepcruiser.monitor.scores import DOUBT, SCORES

_TEXTS = {DOUBT: "the system doubts its answer by {:.3g}", **{score.name: score.text for score in SCORES}}


@dataclass(frozen=True)
class Alarm:
    """An input that is more unusual than nearly all clean ones: how much, in what, and when.

    `score` is the combined score and `threshold` what it exceeds. `unusual` names the score that adds most to it, with
    its `value` and what is `usual`. `steps` are the first and the last step of the stretch that is most unusual in it
    (none for a doubt), and `seconds` the same in time, where a step has a fixed length. States that are not finite are
    an alarm with an infinite score, and `problem` says so.
    """

    score: float
    threshold: float
    unusual: str
    value: float
    usual: float
    steps: tuple[int, int] | None
    seconds: tuple[float, float] | None
    scores: Mapping[str, float]
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The alarm as JSON holds it, which has no NaN and no infinity."""
        return {
            "score": None if self.problem else self.score,
            "threshold": self.threshold,
            "unusual": self.unusual,
            "value": None if self.problem else self.value,
            "usual": None if self.problem else self.usual,
            "steps": self.steps,
            "seconds": self.seconds,
            "scores": dict(self.scores),
            "problem": self.problem,
        }

    @property
    def when(self) -> str:
        """Where the input is most unusual: "from 1.20 s to 1.92 s"; empty if that is not known."""
        if self.seconds is not None:
            return f"from {self.seconds[0]:.2f} s to {self.seconds[1]:.2f} s"
        return "" if self.steps is None else f"in steps {self.steps[0]:,} to {self.steps[1]:,}"

    def __str__(self) -> str:
        when = f", most {self.when}" if self.when else ""
        if self.problem:
            return f"{self.problem}{when.removeprefix(', most')}"
        usual = f"{self.usual:.1%}" if "%" in _TEXTS[self.unusual] else f"{self.usual:.3g}"
        return f"{_TEXTS[self.unusual].format(self.value)} (usually {usual}){when}"
