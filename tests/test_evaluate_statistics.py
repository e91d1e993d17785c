"""The statistics of the tables against values that were worked out by hand, scipy's, and brute force."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deepcruiser.evaluate.statistics import bootstrap, mann_whitney, median, pearson, residuals, spearman


def test_correlations_by_hand() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 10.0])
    assert pearson(x, y) == pytest.approx(13 / np.sqrt(5 * 50))  # deviations -1.5 -.5 .5 1.5 and -3 -1 -2 6
    assert spearman(x, y) == pytest.approx(1 - 6 * 2 / (4 * 15))  # one swap: squares of 1 and 1
    assert spearman(x, np.exp(x)) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)
    assert np.isnan(pearson(x, np.ones(4)))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_correlations_are_those_of_scipy_ties_included(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, np.float64).T
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)


def test_what_a_third_variable_explains_is_gone() -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 200)
    strength = kinds * 5 + rng.normal(size=600)
    x, y = -strength + rng.normal(size=600), strength + rng.normal(size=600)
    assert spearman(x, y) < -0.9
    by_kind = pearson(residuals(x, groups=kinds), residuals(y, groups=kinds))
    assert -0.65 < by_kind < -0.35  # x and y share half of their variance within a kind
    assert abs(pearson(residuals(x, strength, groups=kinds), residuals(y, strength, groups=kinds))) < 0.1


def test_residuals_without_groups_are_the_deviation_from_the_mean() -> None:
    values = np.array([1.0, 2.0, 6.0, 10.0, 20.0])
    assert residuals(values) == pytest.approx(values - 7.8)
    assert residuals(values, groups=np.array(list("aaabb"))) == pytest.approx([-2, -1, 3, -5, 5])


def test_whole_seeds_are_drawn_again() -> None:
    """Ten copies of every case are not more evidence: the interval stays as wide."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    seeds = np.arange(30)
    once = bootstrap(pearson, x, y, clusters=seeds, rng=np.random.default_rng(0))
    tenfold = [np.repeat(each, 10) for each in (x, y, seeds)]
    often = bootstrap(pearson, tenfold[0], tenfold[1], clusters=tenfold[2], rng=np.random.default_rng(0))  # type: ignore[arg-type]
    assert (once.low, once.value, once.high) == pytest.approx((often.low, often.value, often.high))
    assert once.low < once.value < once.high
    assert once.differs_from_zero
    alone = bootstrap(pearson, tenfold[0], tenfold[1], clusters=np.arange(300), rng=np.random.default_rng(0))  # type: ignore[arg-type]
    assert alone.high - alone.low < 0.5 * (often.high - often.low)


def test_rank_test_by_hand() -> None:
    least = mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert least.p == pytest.approx(2 / 252)  # of 252 ways to divide ten, this one and its mirror
    assert least.superiority == 0
    assert mann_whitney([3, 4], [1, 2]).p == pytest.approx(2 / 6)
    assert mann_whitney([3, 4], [1, 2]).superiority == 1
    same = mann_whitney([7, 7, 7], [7, 7])
    assert (same.p, same.superiority) == (1, 0.5)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_rank_test_by_brute_force(first: list[int], second: list[int]) -> None:
    def superiority(values: tuple[int, ...]) -> float:
        a, b = values[: len(first)], values[len(first) :]
        return sum((x > y) + (x == y) / 2 for x in a for y in b) / (len(a) * len(b))

    result = mann_whitney(first, second)
    here = superiority((*first, *second))
    every = [superiority(order) for order in permutations((*first, *second))]
    assert result.superiority == pytest.approx(here)
    assert result.p == pytest.approx(np.mean([abs(each - 0.5) >= abs(here - 0.5) - 1e-9 for each in every]))


def test_rank_test_is_that_of_scipy_without_ties() -> None:
    rng = np.random.default_rng(2)
    for size in (5, 7, 12):  # the last is too large to count all ways
        first, second = rng.normal(size=size).tolist(), (rng.normal(size=size) + 1).tolist()
        method = "exact" if comb(2 * size, size) < 200_000 else "asymptotic"
        assert mann_whitney(first, second).p == pytest.approx(stats.mannwhitneyu(first, second, method=method).pvalue)


def test_median_lies_between_two_of_the_values() -> None:
    five = median([3, 1, 2, 5, 4])
    assert (five.value, five.low, five.high, five.confidence) == (3, 1, 5, pytest.approx(1 - 2 / 32))  # type: ignore[comparison-overlap]
    ten = median(range(10))
    assert (ten.value, ten.low, ten.high) == (4.5, 1, 8)
    assert ten.confidence == pytest.approx(1 - 2 * 11 / 1024)
    assert (median([7]).low, median([7]).high, median([7]).confidence) == (7, 7, 0)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_interval_of_the_median_is_that_of_scipys_quantile_test(values: list[int]) -> None:
    result = median(values)
    interval = stats.quantile_test(values, p=0.5).confidence_interval(0.9)
    if result.confidence >= 0.9:
        assert (result.low, result.high) == (interval.low, interval.high)
    else:  # scipy has no interval for so few values
        assert (result.low, result.high) == (min(values), max(values))
        assert len(values) < 5
