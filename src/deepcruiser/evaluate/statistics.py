"""Correlations with confidence intervals, an exact rank test, and medians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

#: Up to this many ways to divide the values, the rank test is exact.
_EXACT = 200_000
#: The confidence of the interval of a median.
_CONFIDENCE = 0.9


def pearson(x: Floats, y: Floats) -> float:
    """The correlation of two variables; NaN if one of them is constant, up to rounding."""
    if x.std() * y.std() <= 1e-12:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def ranks(values: Floats) -> Floats:
    """The ranks from 1; equal values get the mean of their ranks."""
    return np.asarray(stats.rankdata(values), np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """The rank correlation of two variables."""
    return pearson(ranks(x), ranks(y))


def residuals(values: Floats, *known: Floats, groups: npt.NDArray[Any] | None = None) -> Floats:
    """Residuals after regressing the values on `known` within each group."""
    groups = np.zeros(len(values), int) if groups is None else groups
    left = np.empty(len(values))
    for group in np.unique(groups):
        rows = groups == group
        design = np.column_stack([np.ones(rows.sum()), *(variable[rows] for variable in known)])
        left[rows] = values[rows] - design @ np.linalg.lstsq(design, values[rows], rcond=None)[0]
    return left


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]" if np.isfinite(self.value) else "n/a"

    @property
    def differs_from_zero(self) -> bool:
        return bool(self.low > 0 or self.high < 0)


def bootstrap(
    measure: Callable[[Floats, Floats], float],
    x: Floats,
    y: Floats,
    *,
    clusters: npt.NDArray[Any],
    rng: np.random.Generator,
    times: int = 1000,
) -> Estimate:
    """A measure of two variables with a 95 % confidence interval.

    Resamples whole clusters, since the mutants of one seed do not vary independently.
    """
    members = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    drawn = []
    for _ in range(times):
        rows = np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        drawn.append(measure(x[rows], y[rows]))
    values = np.array(drawn)
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, (0.025, 0.975)) if len(values) else (np.nan, np.nan)
    return Estimate(measure(x, y), float(low), float(high))


@dataclass(frozen=True)
class RankTest:
    """The rank test of Mann and Whitney: a two-sided `p`, and the `superiority` of the first sample."""

    p: float
    superiority: float


def superiority(first: Sequence[float], second: Sequence[float]) -> float:
    """The chance that a value of the first sample exceeds one of the second; ties count half, 0.5 is no difference."""
    if not len(first) or not len(second):
        return float("nan")
    n = len(first)
    rank_sum = ranks(np.array([*first, *second], np.float64))[:n].sum()
    return float((rank_sum - n * (n + 1) / 2) / (n * len(second)))


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest:
    """Compare two samples by ranks; exactly, ties included, if all ways to divide the values can be counted.

    With ties the distribution may be skewed. Then p is the chance of a rank sum at least as far from its expectation,
    where `scipy.stats.mannwhitneyu` with a `PermutationMethod` doubles the smaller tail (and refuses samples of one).
    """
    n, m = len(first), len(second)
    if not n or not m:
        return RankTest(float("nan"), float("nan"))
    if comb(n + m, n) > _EXACT:
        result = stats.mannwhitneyu(first, second, alternative="two-sided", method="asymptotic")
        return RankTest(float(result.pvalue), superiority(first, second))
    both = ranks(np.array([*first, *second], np.float64))
    expected = n * (n + m + 1) / 2
    distance = abs(both[:n].sum() - expected)
    sums = np.array([both[list(rows)].sum() for rows in combinations(range(n + m), n)])
    return RankTest(float(np.mean(np.abs(sums - expected) >= distance - 1e-9)), superiority(first, second))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number (Holm 1979): the chance of any false alarm stays below the level."""
    corrected, least = [0.0] * len(p_values), 0.0
    for place, number in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[number]))
        corrected[number] = least
    return corrected


@dataclass(frozen=True)
class Median:
    """A median, and an interval that contains the median of the population with the given confidence."""

    value: float
    low: float
    high: float
    confidence: float


def median(values: Sequence[float]) -> Median:
    """The median, and the narrowest interval between two values, as far from either end, of 90 % confidence.

    It assumes no distribution (the sign test). With four values or fewer, the interval is from the smallest to the
    largest value and has less confidence than that.
    """
    ascending, n = np.sort(np.asarray(values, np.float64)), len(values)
    if not n:
        return Median(*[float("nan")] * 4)
    # The interval from value i to value n - 1 - i misses the true median if i or fewer values lie on one side of it.
    confidences = 1 - 2 * stats.binom.cdf(np.arange((n + 1) // 2), n, 0.5)
    skipped = max(0, int(np.count_nonzero(confidences >= _CONFIDENCE)) - 1)
    low, high = float(ascending[skipped]), float(ascending[n - 1 - skipped])
    return Median(float(np.median(ascending)), low, high, max(0.0, float(confidences[skipped])))
