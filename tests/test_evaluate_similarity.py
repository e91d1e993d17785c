"""The Jaccard index of runs, on traces with few cells."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.evaluate.configurations import TENTHS, saturation
from deepcruiser.evaluate.experiment import narrowed
from deepcruiser.evaluate.records import Record
from deepcruiser.evaluate.rq1 import histogram
from deepcruiser.evaluate.similarity import jaccard, seed_similarities, visited
from deepcruiser.files.spooled_rows import Rows
from tests.conftest import walks


def record(cells: list[tuple[int, int]]) -> Record:
    """A run through the middles of these cells of a grid from 0 to 4 with 4 partitions."""
    states = np.array(cells, np.float32).reshape(-1, 2) + 0.5
    return Record("s", (), "", "", None, "", None, states, np.zeros((len(cells) - 1, 1), np.float32))


@cache
def model() -> dc.AbstractModel:
    """A grid from 0 to 4 in both components, of whose cells profiling visited the diagonal."""
    corners = np.array([[0, 0], [1.5, 1.5], [2.5, 2.5], [4, 4]], np.float32)
    profile = narrowed(dc.Profile.of([dc.Trace(corners, np.arange(3.0)[:, None])], components=2), 2)
    states = Rows(2)  # principal components lie along the diagonal, and here the components are the numbers themselves
    states.append(corners)
    return dc.Profile(profile.projections, states, profile.inputs, profile.lengths, profile.origin).abstract(4)


def test_jaccard_of_sets() -> None:
    assert jaccard(np.array([1, 2, 3]), np.array([2, 3, 4, 5])) == 2 / 5
    assert jaccard(np.array([1, 2]), np.array([1, 2])) == 1
    assert jaccard(np.array([1]), np.array([2])) == 0
    assert jaccard(np.empty(0, int), np.empty(0, int)) == 1


def test_known_indices() -> None:
    seed = record([(0, 0), (1, 1), (2, 2), (1, 1)])
    same, shorter, aside, outside = seed_similarities(
        model(),
        seed,
        [
            seed,
            record([(0, 0), (1, 1)]),
            record([(0, 0), (1, 0), (1, 1), (2, 2)]),  # one cell that profiling did not visit
            record([(0, 0), (9, 9), (-3, 7)]),
        ],
    )
    assert same == {"states": 1, "basic": 1, "transitions": 1}
    assert shorter == {"states": 2 / 3, "basic": 2 / 3, "transitions": 1 / 3}
    assert aside == {"states": 3 / 4, "basic": 1, "transitions": 1 / 5}  # only 11 -> 22 of 5 pairs
    assert outside == {"states": 1 / 5, "basic": 1 / 3, "transitions": 0}


cells = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=2, max_size=9)


@given(cells, cells)
def test_indices_are_those_of_plain_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    known = {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert set(map(tuple, model().grid.decode(model().states).tolist())) == known
    first, second = visited(model(), [record(one), record(other)])

    def index(a: set[Any], b: set[Any]) -> float:
        return len(a & b) / len(a | b) if a | b else 1.0

    assert first.similarity(second) == {
        "states": index(set(one), set(other)),
        "basic": index(set(one) & known, set(other) & known),
        "transitions": index(set(pairwise(one)), set(pairwise(other))),
    }


def test_histogram_has_ten_shares_and_one_is_in_the_last() -> None:
    indices = np.array([0, 0.05, 0.1, 3 / 10, 0.6 / 2, 0.95, 1.0, 1.0])
    assert histogram(indices) == pytest.approx(np.array([2, 1, 0, 2, 0, 0, 0, 0, 0, 3]) / 8)


def test_saturation_is_the_share_that_the_first_sequences_visit() -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(0), 30), components=2)
    model = profile.abstract(6)
    grown = saturation(profile, model, seed=3, orders=1)
    turn = np.random.default_rng((3, 0)).permutation(30)
    starts = np.concatenate([[0], np.cumsum(profile.lengths + 1)])
    codes = model.grid.encode(model.grid.cells(profile.states[:]))
    for share, value in zip(TENTHS, grown["states"], strict=True):
        early = [i for i in range(30) if turn[i] < share * 30 - 1e-9]
        seen = {code for i in early for code in codes[starts[i] : starts[i + 1]].tolist()}
        assert value == pytest.approx(len(seen) / len(model.states))
    for item in grown.values():
        assert item[-1] == 1
        assert (np.diff(item) >= 0).all()
