"""k-means as another partition of the state space, to compare the grid with.

The cell of a vector is the number of the nearest centre. Every vector has one, however far away it is, so that no state
is new and there is no boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import Grid, IntArray
from deepcruiser.errors import InputError

#: Centres are fitted on at most this many vectors for each.
_VECTORS_PER_CENTRE = 50


@dataclass(frozen=True, eq=False)
class Clusters(Grid):
    """The interface of a `Grid` of one component, whose intervals are the numbers of the centres."""

    centres: npt.NDArray[np.float64]

    @classmethod
    def at(cls, centres: npt.NDArray[np.float64]) -> Clusters:
        return cls(np.zeros(1), np.ones(1), len(centres), centres)

    @classmethod
    def fit(cls, vectors: npt.NDArray[np.floating], count: int, *, seed: int = 0) -> Clusters:
        """Centres of `count` clusters, by scikit-learn's k-means on a random part of the vectors."""
        require_k_means()
        if count < 1:
            raise InputError(f"clusters must be at least 1, not {count}")
        from sklearn.cluster import KMeans

        rng = np.random.default_rng(seed)
        if len(vectors) > count * _VECTORS_PER_CENTRE:
            vectors = vectors[np.sort(rng.choice(len(vectors), count * _VECTORS_PER_CENTRE, replace=False))]
        different = len(np.unique(vectors, axis=0))
        if count > different:
            raise InputError(f"clusters must be at most {different:,}, the number of different states, not {count:,}")
        random_state = int(rng.integers(2**32))
        fitted = KMeans(count, init="random", n_init=1, max_iter=50, random_state=random_state).fit(vectors)
        return cls.at(np.asarray(fitted.cluster_centers_, np.float64))

    @property
    def label(self) -> str:
        return f"{len(self.centres)} clusters"

    @property
    def margin(self) -> int:
        return 0

    def cells(self, values: npt.NDArray[np.floating]) -> IntArray:
        """The number of the centre that is nearest to each row."""
        _, nearest = self._tree.query(values)
        return np.asarray(nearest, np.int64)[:, None]

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.centres)


def require_k_means() -> None:
    """Raise an error if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise InputError("k-means needs scikit-learn: install it with pip install 'deepcruiser[evaluate]'")
