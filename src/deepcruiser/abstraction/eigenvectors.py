"""The leading eigenvectors of a large symmetric matrix, by a block Krylov method; LAPACK would compute them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

#: Up to this size LAPACK is as fast.
_SMALL = 1024
#: Vectors that are iterated besides those wanted, products before each restart, and restarts.
_MORE, _PRODUCTS, _RESTARTS = 12, 6, 30
#: Residuals relative to the largest eigenvalue: when to stop, what is good enough at the end, and what promises no end
#: where a few restarts have not come below it.
_GOAL, _ENOUGH, _HOPELESS = 1e-14, 1e-12, 1e-4


def leading_eigenvectors(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The `count` largest eigenvalues in descending order, and their eigenvectors, one in each row."""
    size = len(matrix)
    found = _krylov(matrix, count) if size > _SMALL and 8 * count <= size else None
    if found is None:
        import scipy.linalg

        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(size - count, size - 1))
        found = values[::-1], vectors[:, ::-1]
    values, vectors = found
    return values, np.ascontiguousarray(vectors.T)


def _krylov(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray] | None:
    """The same; None where eigenvalues lie too close together for it."""
    block: Any = np.random.default_rng(0).standard_normal((len(matrix), count + _MORE))
    block, _ = np.linalg.qr(block)
    for restart in range(_RESTARTS):
        basis, product = block, matrix @ block
        image = product
        for _ in range(_PRODUCTS):
            for _ in range(2):  # once more, for what rounding left
                product = product - basis @ (basis.T @ product)
                product, _ = np.linalg.qr(product)
            basis, product = np.hstack([basis, product]), matrix @ product
            image = np.hstack([image, product])
        values, weights = np.linalg.eigh(basis.T @ image)
        weights = weights[:, ::-1][:, : block.shape[1]]
        values, block = values[::-1][:count], basis @ weights
        residual = np.linalg.norm(image @ weights[:, :count] - block[:, :count] * values, axis=0).max()
        if residual <= _GOAL * values[0] or (restart == 3 and residual > _HOPELESS * values[0]):
            break
    return (values, block[:, :count]) if residual <= _ENOUGH * values[0] else None
