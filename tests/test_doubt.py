"""The doubt of scores against a plain loop, and in a `Run`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.decoding.scores import doubt_of, log_probabilities

floats = st.floats(-30, 30, width=32)


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    classes = draw(st.integers(2, 5))
    return draw(st.lists(st.lists(floats, min_size=classes, max_size=classes), min_size=1, max_size=6))


def plain_softmax(row: list[float]) -> list[float]:
    largest = max(row)
    total = sum(math.exp(value - largest) for value in row)
    return [math.exp(value - largest) / total for value in row]


def plain_doubt(rows: list[list[float]]) -> float:
    """The mean over the steps of -log of the best probability, in a loop."""
    total = 0.0
    for row in rows:
        total += -math.log(max(plain_softmax(row)))
    return total / len(rows)


@given(tables())
def test_logits_probabilities_and_their_logarithms_have_the_same_doubt(rows: list[list[float]]) -> None:
    logits = [[value - 1000 for value in row] for row in rows]  # negative, so never taken for probabilities
    expected = pytest.approx(plain_doubt(logits), abs=1e-9)
    probabilities = np.array([plain_softmax(row) for row in logits])
    assert doubt_of(np.array(logits)) == expected
    assert doubt_of(torch.tensor(logits, dtype=torch.float64)) == expected
    assert doubt_of(probabilities) == expected
    with np.errstate(divide="ignore"):
        assert doubt_of(np.log(probabilities)) == expected
    assert doubt_of(np.array(logits[0])) == pytest.approx(plain_doubt(logits[:1]), abs=1e-9), "one vector"
    np.testing.assert_allclose(np.exp(log_probabilities(np.array(logits))), probabilities, atol=1e-12)


def test_the_bounds_of_doubt() -> None:
    assert doubt_of([1.0, 0.0, 0.0]) == 0
    assert doubt_of([[0.25] * 4] * 3) == pytest.approx(math.log(4))
    assert doubt_of(np.array([1e5, 0.0], np.float32)) == 0


@pytest.mark.parametrize("scores", [np.zeros((0, 3)), [math.nan, 1.0], [math.inf, 1.0], [[0.5, 0.5], [math.nan] * 2]])
def test_no_doubt(scores: Any) -> None:
    assert doubt_of(scores) is None


@pytest.mark.parametrize("scores", [0.5, np.zeros((2, 2, 2)), np.zeros(0), np.zeros((2, 0))])
def test_what_has_no_scores(scores: Any) -> None:
    with pytest.raises(dc.InputError, match=r"scores must be \[steps, classes\] or \[classes\], not \["):
        doubt_of(scores)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, np.float32("nan"), torch.tensor(math.inf), 10**400, None]
)
def test_a_doubt_that_is_not_finite_is_none(value: Any) -> None:
    assert dc.Run("text", doubt=value).doubt is None


@pytest.mark.parametrize("value", [0.25, np.float32(0.25), torch.tensor(0.25), np.array(0.25)])
def test_a_doubt_is_a_float(value: Any) -> None:
    doubt = dc.Run("text", doubt=value).doubt
    assert doubt == 0.25
    assert type(doubt) is float
    assert dc.Run("text").doubt is None


@pytest.mark.parametrize("value", ["low", [0.1, 0.2], object()])
def test_a_doubt_that_is_not_a_number(value: Any) -> None:
    with pytest.raises(dc.InputError, match="doubt must be a number or None, not "):
        dc.Run("text", doubt=value)
