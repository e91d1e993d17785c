"""Streaming PCA against numpy.linalg."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.abstraction.projection import Moments
from tests.support import plain


def cloud(seed: int, count: int = 200, size: int = 8, offset: float = 0.0) -> np.ndarray:
    """Vectors whose components differ clearly in variance, so that the axes are well determined."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((size, size)))[0]
    vectors: np.ndarray = rng.standard_normal((count, size)) * 0.6 ** np.arange(size) @ rotation + offset
    return vectors


def moments_of(*blocks: np.ndarray) -> Moments:
    moments = Moments(blocks[0].shape[1])
    for block in blocks:
        moments.add(block)
    return moments


@given(st.integers(0, 2**32), st.integers(1, 8), st.lists(st.integers(1, 199), max_size=4))
def test_blocks_of_any_length_give_the_axes_of_the_whole(seed: int, components: int, cuts: list[int]) -> None:
    vectors = cloud(seed)
    projection = moments_of(*np.split(vectors, sorted(cuts))).projection(components)
    mean, axes = plain.pca(vectors, components)
    assert projection.mean == pytest.approx(mean, abs=1e-13)
    assert projection.axes == pytest.approx(axes, abs=1e-6)
    assert projection(vectors) == pytest.approx((vectors - mean) @ axes.T, abs=1e-5)


def test_a_large_offset_costs_no_digits() -> None:
    near, far = cloud(1), cloud(1, offset=1e6)
    a, b = moments_of(near[:77], near[77:]).projection(3), moments_of(far[:77], far[77:]).projection(3)
    assert b.axes == pytest.approx(a.axes, abs=1e-7)
    assert b.variances == pytest.approx(a.variances, rel=1e-8)


def test_parts_merged_agree_with_the_whole_to_the_last_bits() -> None:
    vectors = cloud(2, count=5000, size=32)
    whole = moments_of(vectors)
    merged = moments_of(vectors[:1234]).merge(moments_of(vectors[1234:]))
    assert merged.count == whole.count
    largest = whole.scatter.abs().max()
    assert float((merged.scatter - whole.scatter).abs().max() / largest) < 1e-14
    assert np.abs(merged.projection(3).axes - whole.projection(3).axes).max() < 1e-12


def test_explained_variance_is_the_share_of_the_eigenvalues() -> None:
    vectors = cloud(3)
    values = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
    for components in (1, 3, 8):
        explained = moments_of(vectors).projection(components).explained
        assert explained == pytest.approx(values[:components].sum() / values.sum())


def test_signs_are_fixed_by_the_largest_loading() -> None:
    axes = moments_of(cloud(4)).projection(8).axes
    assert (axes[np.arange(8), np.abs(axes).argmax(axis=1)] > 0).all()
    flipped = moments_of(-cloud(4)).projection(8).axes
    assert flipped == pytest.approx(axes, abs=1e-9)


def test_equal_loadings_have_one_sign_whatever_the_rounding() -> None:
    """(1, -1) and (-1, 1) are the same axis, and neither loading is the larger."""
    rng = np.random.default_rng(0)
    t = rng.standard_normal(100)
    for noise in (0.0, 1e-13, -1e-13):
        axis = moments_of(np.stack([-t, t * (1 + noise)], axis=1)).projection(1).axes[0]
        assert axis[0] > 0 > axis[1]


def test_a_row_is_projected_alike_in_any_company_and_precision() -> None:
    vectors = cloud(5, count=3000, size=64).astype(np.float32)
    projection = moments_of(vectors).projection(4)
    whole = projection(vectors)
    assert whole.dtype == np.float32
    for rows in (1, 7, 512):
        assert (np.concatenate([projection(vectors[i : i + rows]) for i in range(0, 3000, rows)]) == whole).all()
    assert (projection(torch.from_numpy(vectors)) == whole).all()


def test_components_without_variance_are_one_interval() -> None:
    rng = np.random.default_rng(6)
    flat = rng.standard_normal((50, 1)) @ rng.standard_normal((1, 5))
    projection = moments_of(flat).projection(3)
    assert (projection.axes[1:] == 0).all()
    assert projection.explained == pytest.approx(1.0)
    trace = dc.Trace(np.concatenate([flat, flat]), np.ones((99, 1)))
    model = dc.Profile.of([trace], components=3).abstract(10)
    assert (model.grid.decode(model.states)[:, 1:] == 0).all()
    assert model.grid.size == 10


def test_an_empty_block_changes_nothing() -> None:
    moments = moments_of(cloud(7))
    mean = moments.mean.clone()
    moments.add(np.empty((0, 8)))
    assert torch.equal(moments.mean, mean)
    assert moments.projection(2)(np.empty((0, 8))).shape == (0, 2)


@pytest.mark.parametrize("components", [0, 9, -1])
def test_components_beyond_the_size_are_refused(components: int) -> None:
    with pytest.raises(dc.InputError, match=f"1 to 8, the size of the vectors, not {components}"):
        moments_of(cloud(8)).projection(components)


@pytest.mark.cuda
def test_cuda_agrees_with_the_cpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    vectors = cloud(9, count=20000, size=256).astype(np.float32)
    cpu = moments_of(vectors)
    cuda = Moments(256, device="cuda")
    cuda.add(torch.from_numpy(vectors).cuda())
    assert np.abs(cpu.projection(3).axes - cuda.projection(3).axes).max() < 1e-10
    projection = cpu.projection(3)
    assert (projection(vectors) == projection(torch.from_numpy(vectors).cuda())).mean() > 0.9999
