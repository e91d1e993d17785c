from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.abstraction.grid import Grid
from tests.support import plain


def grid(lower: list[float], upper: list[float], partitions: int) -> Grid:
    return Grid(np.array(lower), np.array(upper), partitions)


@given(
    st.floats(-5, 5, width=32),
    st.floats(0, 5, width=32),
    st.integers(1, 100),
    st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=20),
)
def test_indices_follow_the_formula(lower: float, width: float, partitions: int, values: list[float]) -> None:
    upper = float(np.float32(lower + width))
    rows = np.array([*values, lower, upper], np.float32)[:, None]
    expected = plain.cells(rows, [lower], [upper], partitions)
    got = grid([lower], [upper], partitions).cells(rows)[:, 0].tolist()
    for v, index, (formula,) in zip(rows[:, 0].tolist(), got, expected, strict=True):
        if lower <= v <= upper and upper > lower:  # here the quotient's rounding may carry the formula over the edge
            assert index == min(max(formula, 0), partitions - 1)
        else:
            assert index == formula or (v > upper and index == max(formula, partitions)) or (v < lower and index == -1)


def test_edges() -> None:
    cells = grid([0.0], [1.0], 4).cells(np.array([[0.0], [0.25], [0.4999], [0.5], [1.0], [1.0001], [-0.0001], [1.25]]))
    assert cells[:, 0].tolist() == [0, 1, 1, 2, 3, 4, -1, 5]


def test_equal_bounds_have_one_interval() -> None:
    cells = grid([2.0], [2.0], 10).cells(np.array([[2.0], [1.0], [7.0]]))
    assert cells[:, 0].tolist() == [0, -1, 1]


@given(
    st.integers(1, 6),
    st.sampled_from([1, 2, 10, 100]),
    st.data(),
)
def test_codes_are_unique_ordered_and_reversible(components: int, partitions: int, data: st.DataObject) -> None:
    one = grid([0.0] * components, [1.0] * components, partitions)
    index = st.integers(-one.margin, partitions + one.margin - 1)
    cells = data.draw(st.lists(st.tuples(*[index] * components), min_size=1, max_size=20, unique=True))
    codes = one.encode(np.array(cells, np.int64))
    assert (codes >= 0).all()
    assert len(set(codes.tolist())) == len(cells)
    assert list(map(tuple, one.decode(codes).tolist())) == cells
    assert [cells[i] for i in np.argsort(codes)] == sorted(cells)


def test_the_corners_of_the_codes() -> None:
    one = grid([0.0] * 3, [1.0] * 3, 100)
    low, high = -one.margin, 99 + one.margin
    corners = np.array([[a, b, c] for a in (low, high) for b in (low, high) for c in (low, high)], np.int64)
    assert (one.decode(one.encode(corners)) == corners).all()


def test_what_lies_too_far_out_is_said_with_its_numbers() -> None:
    one = grid([0.0] * 3, [1.0] * 3, 100)
    with pytest.raises(dc.InputError, match=r"interval 100,000,000,000 of component 1.*0 to 99.*fewer components"):
        one.encode(one.cells(np.array([[0.5, 1e9, 0.5]])))
    assert one.encode(one.cells(np.array([[0.5, 1e3, 0.5]]))) > 0
    with pytest.raises(dc.InputError, match="of component 0"):
        grid([0.0], [1.0], 10).encode(grid([0.0], [1.0], 10).cells(np.array([[1e30], [1e35]])))


def test_grids_that_cannot_be_numbered_are_refused() -> None:
    with pytest.raises(dc.InputError, match=r"100 partitions of 12 components make 1.0e\+24 cells"):
        grid([0.0] * 12, [1.0] * 12, 100)


@pytest.mark.parametrize("partitions", [0, -3])
def test_partitions_below_one(partitions: int) -> None:
    with pytest.raises(dc.InputError, match=f"at least 1, not {partitions}"):
        grid([0.0], [1.0], partitions)


def test_a_boundary_beyond_the_codes_is_refused() -> None:
    trace = dc.Trace(np.random.default_rng(0).standard_normal((9, 9)), np.ones((8, 1)))
    model = dc.Profile.of([trace], components=8).abstract(100)
    assert model.grid.margin < 200
    with pytest.raises(dc.InputError, match=r"200 steps from the states.*only \d+"):
        model.boundary(200)
