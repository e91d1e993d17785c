"""How a database stores visits, answers, references and inputs, and that they read back unchanged."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import deepcruiser as dc
from deepcruiser.campaign.database import pack, unpack
from deepcruiser.serialise import decode, digest_of, encode, summarise

edges = [2**bits - less for bits in (7, 14, 61) for less in (0, 1)]
numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**61), st.sampled_from(edges))


@st.composite
def ascending(draw: st.DrawFn) -> npt.NDArray[np.int64]:
    """Distinct numbers in order, the first of them often negative, with gaps of all sizes."""
    first, gaps = draw(numbers), draw(st.lists(numbers.map(lambda gap: gap + 1), max_size=20))
    values = np.cumsum([first * draw(st.sampled_from([1, -1])), *gaps], dtype=object)
    return np.array([value for value in values if value < 2**62][: draw(st.integers(0, 20))], np.int64)


@given(st.lists(ascending(), min_size=1, max_size=5))
@example([np.empty(0, np.int64)] * 4)
@example([np.array([-(2**62), 2**62 - 1])])
@example([np.arange(-3, 100_000), np.array([2**62 - 1])])
def test_packed_arrays_come_back(arrays: list[npt.NDArray[np.int64]]) -> None:
    (result, again) = unpack([pack(arrays)] * 2, len(arrays))
    assert [array.tolist() for array in again] == [array.tolist() for array in arrays]
    assert [array.tolist() for array in result] == [array.tolist() for array in arrays]
    assert all(array.dtype == np.int64 for array in result)


def test_dense_arrays_take_about_a_byte_for_each_number_at_most() -> None:
    rng = np.random.default_rng(0)
    arrays = [np.sort(rng.choice(8 * size, size, replace=False)) for size in (100, 400, 400, 20)]
    assert len(pack(arrays)) < 1.1 * sum(map(len, arrays))


@pytest.mark.parametrize(
    "data", [b"", b"no zlib", zlib.compress(b""), zlib.compress(b"\x80"), zlib.compress(b"\x08" * 4)]
)
def test_what_pack_did_not_make_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, zlib.error)):
        unpack([data], 4)


def test_arrays_of_another_number_are_refused() -> None:
    for count in (1, 2, 4, 5):
        with pytest.raises(ValueError, match="do not fit together"):
            unpack([pack([np.arange(5)] * 3)], count)


leaves = st.one_of(
    st.none(), st.booleans(), st.text(), st.integers(), st.floats(allow_nan=False),
    hnp.arrays(st.sampled_from(["f4", "i8", "?", "U3", "c8"]), hnp.array_shapes(max_dims=2, max_side=3)),
)  # fmt: skip
answers = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.one_of(st.text(), st.integers(), st.tuples(st.integers())), inner, max_size=3)
    ),
    max_leaves=6,
)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@given(answers)
def test_references_come_back_as_they_were(value: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@given(answers)
def test_answers_can_be_stored_and_are_told_apart(value: Any) -> None:
    stored = json.loads(json.dumps(summarise(value), allow_nan=False))
    assert stored == summarise(value) == summarise(stored)


@given(answers, answers)
def test_digests_are_the_same_just_for_the_same(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(decode(encode(one)))
    if digest_of(one) == digest_of(other):
        assert repr(one) == repr(other)


def test_digests_of_large_and_of_strange_inputs() -> None:
    """Their repr is shortened, or contains an address."""
    large = np.zeros(5000, np.float32)
    changed = large.copy()
    changed[2500] = 1e-6
    tensors = torch.from_numpy(large), torch.from_numpy(changed)
    for one, other in ((large, changed), tensors, ([large], [changed]), ({"x": large}, {"x": changed})):
        assert digest_of(one) != digest_of(other)
    assert digest_of(tensors[0]) == digest_of(large)
    assert digest_of(dc.Audio(large, 8000)) != digest_of(dc.Audio(large, 16000)) != digest_of(dc.Audio(changed, 16000))
    assert digest_of(dc.Audio(large, 8000)) == digest_of(dc.Audio(large.copy(), 8000))
    assert digest_of(torch.zeros(2, dtype=torch.bfloat16)) == digest_of(torch.zeros(2))


class Ugly:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_a_value_that_cannot_be_shown_is_an_error_of_ours() -> None:
    with pytest.raises(dc.InputError, match="a Ugly in an input cannot be shown: RuntimeError: no text"):
        digest_of(["a", Ugly()])
