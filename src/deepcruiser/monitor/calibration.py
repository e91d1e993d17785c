"""What is usual: the scores of clean data, how they are combined, and the threshold of an alarm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deepcruiser.errors import InputError
from deepcruiser.monitor.scores import DOUBT, SCORES, FloatArray
from deepcruiser.monitor.step_monitor import Reading

#: With fewer clean inputs, the alarm rate is uncertain.
ENOUGH = 50


@dataclass(frozen=True, eq=False)
class Calibration:
    """The scores of held-out clean inputs, a row for each, and of bad ones if there were any.

    One score comes of several in one of two ways. Without bad examples it is the largest standardised score,
    max over k of (score_k - mean_k) / deviation_k. With them it is a logistic model's sum of weights times arcsinh of
    the standardised scores. An input raises an alarm if that exceeds the `threshold`.
    """

    names: tuple[str, ...]
    clean: FloatArray
    bad: FloatArray
    alarm_rate: float
    steps: int
    #: The duration of a step in seconds, if the inputs were sounds.
    step_seconds: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alarm_rate < 1:
            raise InputError(f"the alarm rate must be above 0 and below 1, such as 0.01, not {self.alarm_rate}")
        if len(self.clean) < 2:
            raise InputError(f"a calibration needs at least 2 clean inputs, better {ENOUGH}, not {len(self.clean)}")

    @classmethod
    def of(
        cls,
        clean: Sequence[Reading],
        bad: Sequence[Reading] = (),
        *,
        alarm_rate: float = 0.01,
        step_seconds: float | None = None,
    ) -> Calibration:
        """The calibration from readings; doubt is one of the scores if every input has it."""
        bad = [reading for reading in bad if not reading.problem]
        names = [score.name for score in SCORES]
        if all(DOUBT in reading.scores for reading in (*clean, *bad)):
            names.append(DOUBT)

        def table(readings: Sequence[Reading]) -> FloatArray:
            return np.array([[r.scores[name] for name in names] for r in readings]).reshape(len(readings), len(names))

        steps = sum(reading.steps for reading in clean)
        return cls(tuple(names), table(clean), table(bad), alarm_rate, steps, step_seconds)

    @cached_property
    def mean(self) -> FloatArray:
        mean: FloatArray = self.clean.mean(0)
        return mean

    @cached_property
    def deviation(self) -> FloatArray:
        """The standard deviation; if a score hardly varied, the change that a single step would have made."""
        deviation: FloatArray = np.maximum(self.clean.std(0), 1 / max(1, self.steps))
        return deviation

    def standardised(self, scores: FloatArray) -> FloatArray:
        """How many deviations each score lies above the mean of clean data."""
        standard: FloatArray = (scores - self.mean) / self.deviation
        return standard

    def parts(self, scores: FloatArray) -> FloatArray:
        """The contribution of each score to the combined score, which is their maximum or their sum."""
        standard = self.standardised(scores)
        return np.arcsinh(standard) * self.weights if len(self.bad) else standard

    def combine(self, scores: FloatArray) -> FloatArray:
        """One score for each row."""
        parts = self.parts(scores)
        together: FloatArray = parts.sum(-1) if len(self.bad) else parts.max(-1)
        return together

    @cached_property
    def weights(self) -> FloatArray:
        """The weights of a logistic model that separates bad from clean inputs, with a ridge of 1."""
        from scipy.optimize import minimize  # imported here, because it loads slowly

        rows = np.arcsinh(self.standardised(np.concatenate([self.clean, self.bad])))
        sign = np.repeat([-1.0, 1.0], [len(self.clean), len(self.bad)])

        def loss(weights: FloatArray) -> tuple[float, FloatArray]:
            margin = sign * (rows @ weights[:-1] + weights[-1])
            slope = -sign * np.exp(-np.logaddexp(0, margin))
            gradient = np.append(rows.T @ slope + weights[:-1], slope.sum())
            return float(np.logaddexp(0, -margin).sum() + weights[:-1] @ weights[:-1] / 2), gradient

        result = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B")
        weights: FloatArray = result.x[:-1]
        return weights

    @cached_property
    def order(self) -> int:
        """The rank of the threshold among the clean scores in ascending order, from 1: ceil((n + 1)(1 - rate))."""
        return min(len(self.clean), math.ceil((len(self.clean) + 1) * (1 - self.alarm_rate) - 1e-9))

    @cached_property
    def threshold(self) -> float:
        """The score above which an input raises an alarm."""
        return float(np.sort(self.combine(self.clean))[self.order - 1])

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the alarm rate on such clean data: quantiles of a beta distribution."""
        from scipy.stats import beta

        low, high = beta.ppf((0.025, 0.975), len(self.clean) + 1 - self.order, self.order)
        return float(low), float(high)

    @property
    def warning(self) -> str:
        """The warning about a calibration on too few inputs; empty if there are enough."""
        needed = max(ENOUGH, math.ceil(1 / self.alarm_rate) - 1)
        if len(self.clean) >= needed:
            return ""
        low, high = self.interval
        return (
            f"calibrated on {len(self.clean)} clean inputs only, so the alarm rate may be anything from {low:.2%} to "
            f"{high:.2%} (95 % interval); {self.alarm_rate:.2%} needs at least {needed} inputs"
        )

    def row(self, scores: Mapping[str, float]) -> FloatArray:
        """The scores in the order of `names`; one that is missing, such as the doubt of a stream, is taken as usual."""
        return np.array([scores.get(name, usual) for name, usual in zip(self.names, self.mean, strict=True)])

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Calibration on {len(self.clean):,} clean and {len(self.bad):,} bad inputs: alarm above "
            f"{self.threshold:.2f}, at a rate of {low:.2%} to {high:.2%}"
        )
