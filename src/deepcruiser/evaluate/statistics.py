"""What the tables rest on: correlations with their intervals, a rank test that is exact, and medians."""

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

#: Up to so many ways to divide the values, a rank test counts them all.
_EXACT = 200_000
#: The least confidence of an interval around a median.
_CONFIDENCE = 0.9


def pearson(x: Floats, y: Floats) -> float:
    """The correlation of two variables; not a number where one of them does not vary."""
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread > 1e-12 * len(x) else float("nan")


def ranks(values: Floats) -> Floats:
    """The ranks, from 1; equal values have the mean of theirs."""
    return np.asarray(stats.rankdata(values), np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """The correlation of the ranks."""
    return pearson(ranks(x), ranks(y))


def without(values: Floats, *known: Floats, groups: npt.NDArray[Any] | None = None) -> Floats:
    """What is left of the values when a linear function of the known variables is taken away, in each group apart."""
    groups = np.zeros(len(values), int) if groups is None else groups
    left = np.empty(len(values))
    for group in np.unique(groups):
        rows = groups == group
        design = np.column_stack([np.ones(rows.sum()), *(variable[rows] for variable in known)])
        left[rows] = values[rows] - design @ np.linalg.lstsq(design, values[rows], rcond=None)[0]
    return left


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

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
    """A measure of two variables with the interval that holds it with 95 % confidence.

    Whole clusters are drawn again, since the mutants of one seed are no independent cases.
    """
    members = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    drawn = []
    for _ in range(times):
        rows = np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        drawn.append(measure(x[rows], y[rows]))
    found = np.array(drawn)
    found = found[np.isfinite(found)]
    low, high = np.quantile(found, (0.025, 0.975)) if len(found) else (np.nan, np.nan)
    return Estimate(measure(x, y), float(low), float(high))


@dataclass(frozen=True)
class RankTest:
    """Mann and Whitney's: `p` is two-sided, `superiority` the chance that one of the first exceeds one of the second.

    Ties count half. 0.5 means no difference.
    """

    p: float
    superiority: float


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest:
    """Compare two samples by ranks; exactly, ties included, as long as all ways to divide them can be counted."""
    together = ranks(np.array([*first, *second], np.float64))
    n, m = len(first), len(second)
    if not n or not m:
        return RankTest(float("nan"), float("nan"))
    superiority = float((together[:n].sum() - n * (n + 1) / 2) / (n * m))
    if comb(n + m, n) > _EXACT:
        found = stats.mannwhitneyu(first, second, alternative="two-sided", method="asymptotic")
        return RankTest(float(found.pvalue), superiority)
    expected = n * (n + m + 1) / 2
    distance = abs(together[:n].sum() - expected)
    sums = np.array([together[list(rows)].sum() for rows in combinations(range(n + m), n)])
    return RankTest(float(np.mean(np.abs(sums - expected) >= distance - 1e-9)), superiority)


@dataclass(frozen=True)
class Median:
    """A median with two of the values between which that of all campaigns lies, with the confidence said."""

    value: float
    low: float
    high: float
    confidence: float


def median(values: Sequence[float]) -> Median:
    """The median, and the closest pair of values from either end that hold the true one with 90 % confidence.

    No distribution is assumed; with four values or fewer the least and the greatest have less confidence than that.
    """
    ascending, n = np.sort(np.asarray(values, np.float64)), len(values)
    if not n:
        return Median(*[float("nan")] * 4)

    def confidence(aside: int) -> float:
        return float(1 - 2 * stats.binom.cdf(aside, n, 0.5))

    aside = max((k for k in range((n + 1) // 2) if confidence(k) >= _CONFIDENCE), default=0)
    low, high = float(ascending[aside]), float(ascending[n - 1 - aside])
    return Median(float(np.median(ascending)), low, high, max(0.0, confidence(aside)))
