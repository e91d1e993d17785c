"""Principal components of vectors that arrive in blocks, and the projection onto them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.trace import Array, is_tensor

if TYPE_CHECKING:
    import torch

FloatArray = npt.NDArray[np.float64]

#: How many numbers are converted to double precision at a time: enough for a fast matrix product ...
_TO_MEASURE = 2**22
#: ... or few enough to stay in the CPU's cache during a projection.
_TO_PROJECT = 2**19
#: A GPU has enough memory, and every block costs a kernel launch.
_ON_GPU = 2**26
#: Up to this size, LAPACK is as fast.
_SMALL = 1024
#: Number of extra vectors that are iterated, of products before each restart, and of restarts.
_MORE, _PRODUCTS, _RESTARTS = 12, 6, 30
#: Residuals relative to the largest eigenvalue: when to stop, what is good enough at the end, and what promises no end
#: where a few restarts have not come below it.
_GOAL, _ENOUGH, _HOPELESS = 1e-14, 1e-12, 1e-4
#: Vectors whose triangular factor has a diagonal that spreads further than this are almost dependent: their products
#: with each other hold too few digits for Cholesky.
_DEPENDENT = 1e-4


class Moments:
    """Count, mean and scatter matrix of the vectors seen so far; all that PCA needs to know of them.

    Sums are kept in double precision and updated by the pairwise formula of Chan, Golub and LeVeque, so that neither
    a large mean nor the order of the blocks costs digits: parts that were measured apart and merged agree with the
    whole to about 1e-14 of the largest entry.
    """

    def __init__(self, size: int, *, device: torch.device | str = "cpu") -> None:
        import torch

        self.count = 0
        self.mean = torch.zeros(size, dtype=torch.float64, device=device)
        self.scatter = torch.zeros(size, size, dtype=torch.float64, device=device)

    @classmethod
    def of(cls, count: int, mean: FloatArray, scatter: FloatArray) -> Self:
        """Moments from earlier results, on the CPU."""
        import torch

        moments = cls.__new__(cls)
        moments.count, moments.mean, moments.scatter = count, torch.tensor(mean), torch.tensor(scatter)
        return moments

    def __reduce__(self) -> tuple[Any, ...]:
        """As plain arrays, for other processes."""
        return Moments.of, (self.count, self.mean.cpu().numpy(), self.scatter.cpu().numpy())

    @property
    def size(self) -> int:
        return len(self.mean)

    def fetch(self) -> Callable[[], Moments]:
        """Start to copy them to the CPU, and return a function that waits for the copy."""
        mean, scatter = fetch(self.mean), fetch(self.scatter)
        return lambda: Moments.of(self.count, mean(), scatter())

    def add(self, vectors: Array) -> None:
        """Take in vectors of the shape (n, size)."""
        for block in _blocks(vectors, self.mean.device, _TO_MEASURE):
            mean = block.mean(0)
            block -= mean
            self._join(len(block), mean, _scatter(block))

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of vectors together."""
        if self.size != other.size:
            raise InputError(f"moments of {self.size} and of {other.size} numbers cannot be merged")
        merged = Moments(self.size, device=self.mean.device)
        for part in (self, other):
            merged._join(part.count, part.mean.to(merged.mean.device), part.scatter.to(merged.mean.device))
        return merged

    def _join(self, count: int, mean: torch.Tensor, scatter: torch.Tensor) -> None:
        if count == 0:
            return
        total = self.count + count
        shift = mean - self.mean
        self.scatter += scatter
        self.scatter.addr_(shift, shift, alpha=self.count * count / total)
        self.mean += shift * (count / total)
        self.count = total

    def projection(self, components: int) -> Projection:
        """The projection onto the first principal components, largest variance first."""
        if not 1 <= components <= self.size:
            raise InputError(f"components must be 1 to {self.size}, the size of the vectors, not {components}")
        if self.count == 0:
            raise InputError("there is nothing to fit a projection to: no vectors were given")
        covariance = (self.scatter / self.count).cpu().numpy()
        variances, axes = leading_eigenvectors(covariance, components)
        variances = np.clip(variances, 0, None)
        # Past the last real component there is only rounding noise; an axis of zeros gives one interval.
        axes[variances <= variances[0] * self.size * np.finfo(np.float64).eps] = 0.0
        return Projection(
            mean=self.mean.cpu().numpy(),
            axes=_fix_signs(axes),
            variances=variances,
            total_variance=float(self.scatter.trace()) / self.count,
        )


@dataclass(frozen=True, eq=False)
class Projection:
    """From vectors of `size` numbers to `components` numbers: centred, then onto orthogonal axes."""

    mean: FloatArray
    axes: FloatArray
    variances: FloatArray
    total_variance: float

    @property
    def components(self) -> int:
        return len(self.axes)

    @property
    def size(self) -> int:
        return len(self.mean)

    @property
    def explained(self) -> float:
        """The share of the variance that the components keep, 0 to 1."""
        return float(self.variances.sum() / self.total_variance) if self.total_variance > 0 else 1.0

    def __call__(self, vectors: Array) -> npt.NDArray[np.float32]:
        """Project vectors of the shape (n, size), on their own device, to an array (n, components).

        Summed in double and rounded to single precision: the sums of one and the same vector differ in their last
        bits with the shape of the block it is in and with the device, and the rounding makes them equal again.
        """
        return fetch(self.on_device(vectors))()

    def on_device(self, vectors: Array) -> torch.Tensor:
        """The same as a tensor on the vectors' device, without waiting for it."""
        import torch

        device = vectors.device if is_tensor(vectors) else torch.device("cpu")
        if device not in self._on_device:  # once, because a copy to a GPU waits for all its work
            arrays = self.mean, self.axes.T, self.mean @ self.axes.T
            self._on_device[device] = tuple(torch.from_numpy(array).to(device) for array in arrays)
        mean, axes, centre = self._on_device[device]
        if device.type == "cuda":  # where centring all of them would cost more than the sums
            projected = [torch.addmm(centre, block, axes, beta=-1).float() for block in _blocks(vectors, device, 0)]
        else:
            projected = [(block.sub_(mean) @ axes).float() for block in _blocks(vectors, device, _TO_PROJECT)]
        if len(projected) == 1:
            return projected[0]
        return torch.cat(projected) if projected else torch.empty((0, self.components), device=device)

    @cached_property
    def _on_device(self) -> dict[torch.device, tuple[torch.Tensor, ...]]:
        """The mean, the axes and the projected mean on each device where vectors were projected."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_on_device"}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Projection)
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.axes, other.axes)
        )


def fetch(tensor: torch.Tensor) -> Callable[[], npt.NDArray[Any]]:
    """Start to copy a tensor to the CPU, and return a function that waits for the array."""
    import torch

    if tensor.device.type != "cuda":
        array = tensor.cpu().numpy()
        return lambda: array
    copy = tensor.to("cpu", non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(tensor.device))

    def wait() -> npt.NDArray[Any]:
        copied.synchronize()  # waits for this copy only, not for later work of the device
        return copy.numpy()

    return wait


@contextmanager
def beside(arrays: Sequence[Array]) -> Iterator[None]:
    """Let a GPU do the work of this block, which reads the arrays, at the same time as later work."""
    import torch

    device = arrays[0].device if arrays and is_tensor(arrays[0]) else torch.device("cpu")
    if device.type != "cuda":
        yield
        return
    stream = _second_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        tensors = {array.untyped_storage().data_ptr(): array for array in arrays if is_tensor(array)}
        for tensor in tensors.values():
            if tensor.device == device:
                tensor.record_stream(stream)  # otherwise their memory could be reused before they are read


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _fix_signs(axes: FloatArray) -> FloatArray:
    """Turn each axis so that its largest loading is positive; if several are equal up to rounding, the first."""
    loadings = np.abs(axes)
    largest = np.argmax(loadings >= loadings.max(1, keepdims=True) * (1 - 1e-6), axis=1)
    signs = np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)
    fixed: FloatArray = axes * signs[:, None]
    return fixed


def _blocks(vectors: Array, device: torch.device, numbers: int) -> Iterator[torch.Tensor]:
    """`vectors` in double precision on `device`, a block of rows at a time; each block is a copy of its own."""
    import torch

    tensor = vectors.detach() if is_tensor(vectors) else torch.from_numpy(np.ascontiguousarray(vectors))
    rows = max(1, (_ON_GPU if device.type == "cuda" else numbers) // max(1, tensor.shape[1]))
    for start in range(0, len(tensor), rows):
        yield tensor[start : start + rows].to(device=device, dtype=torch.float64, copy=True)


def _scatter(block: torch.Tensor) -> torch.Tensor:
    """block.T @ block; numpy sees that it is symmetric, and computes half of it."""
    if block.device.type != "cpu":
        return block.T @ block
    import torch

    array = block.numpy()
    return torch.from_numpy(array.T @ array)


def leading_eigenvectors(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The `count` largest eigenvalues in descending order, and their eigenvectors, one in each row."""
    size = len(matrix)
    pairs = _krylov(matrix, count) if size > _SMALL and 8 * count <= size else None
    if pairs is None:
        import scipy.linalg

        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(size - count, size - 1))
        pairs = values[::-1], vectors[:, ::-1]
    values, vectors = pairs
    return values, np.ascontiguousarray(vectors.T)


def _krylov(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray] | None:
    """The same; None if eigenvalues lie too close together for it."""
    block: Any = np.random.default_rng(0).standard_normal((len(matrix), count + _MORE))
    block, _ = np.linalg.qr(block)
    for restart in range(_RESTARTS):
        basis, product = block, matrix @ block
        image = product
        for _ in range(_PRODUCTS):
            for _ in range(2):  # a second time, to remove what rounding left
                product = _orthonormal(product - basis @ (basis.T @ product))
            basis, product = np.hstack([basis, product]), matrix @ product
            image = np.hstack([image, product])
        values, weights = np.linalg.eigh(basis.T @ image)
        weights = weights[:, ::-1][:, : block.shape[1]]
        values, block = values[::-1][:count], basis @ weights
        residual = np.linalg.norm(image @ weights[:, :count] - block[:, :count] * values, axis=0).max()
        if residual <= _GOAL * values[0] or (restart == 3 and residual > _HOPELESS * values[0]):
            break
    return (values, block[:, :count]) if residual <= _ENOUGH * values[0] else None


def _orthonormal(vectors: Any) -> Any:
    """An orthonormal basis of a few long vectors: by Cholesky, or by Householder where they are almost dependent."""
    try:
        lower = np.linalg.cholesky(vectors.T @ vectors)
    except np.linalg.LinAlgError:
        return np.linalg.qr(vectors)[0]
    if lower.diagonal().min() <= _DEPENDENT * lower.diagonal().max():
        return np.linalg.qr(vectors)[0]
    return vectors @ np.linalg.inv(lower).T
