"""The front ends of Kaldi's and EESEN's recipes: log-mel, normalised, with deltas, spliced, subsampled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.features.mel import LogMel
from deepcruiser.features.spectrum import at_least

Array = npt.NDArray[Any]
Step = Literal["cmvn", "deltas", "splice", "subsample"]

#: The settings of EESEN's recipes, by the name of their folder.
RECIPES: dict[str, dict[str, Any]] = {
    "wsj": {"order": ("cmvn", "deltas")},
    "swbd": {"order": ("cmvn", "deltas"), "rate": 8000},
    "librispeech": {"order": ("cmvn", "splice", "deltas", "subsample"), "first": 1},
    "tedlium": {"order": ("cmvn", "splice", "subsample", "deltas")},
}


@dataclass(frozen=True, kw_only=True, eq=False)
class KaldiFeatures:
    """Log-mel features (`LogMel.kaldi`) and the further steps of a recipe, in the order of `order`.

        features = KaldiFeatures.recipe("librispeech")

    Called with an `Audio` or samples, it returns an array [frames, size]. Called with an array [frames, bins], such as
    one of a Kaldi archive, it does only the further steps.

    * "cmvn": the mean of each value is subtracted, and with `variance` the value is divided by its deviation. Both are
      those of the recording itself, or of `statistics`: a speaker's, [2, bins + 1], as compute-cmvn-stats writes them
      and as `statistics_of` computes them.
    * "deltas": the first and second derivatives, each over two frames on either side, are put beside the values.
    * "splice": each frame with `context` frames on either side; the first and last are repeated beyond the ends.
    * "subsample": every `every`-th frame, from frame `first` on.
    """

    rate: int = 16000
    bins: int = 40
    order: tuple[Step, ...] = ("cmvn", "deltas")
    statistics: Array | None = None
    variance: bool = True
    context: int = 1
    every: int = 3
    first: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(self.order))
        wrong = [step for step in self.order if step not in get_args(Step)]
        if wrong or len(set(self.order)) < len(self.order):
            raise InputError(f"order must name some of {', '.join(get_args(Step))}, each once, not {self.order!r}")
        at_least("context", self.context, 0)
        at_least("every", self.every, 1)
        at_least("first", self.first, 0)
        if self.statistics is not None:
            table = np.array(self.statistics, dtype=np.float64)
            if table.shape != (2, self.bins + 1) or not table[0, -1] > 0 or not np.isfinite(table).all():
                raise InputError(
                    f"statistics must be [2, {self.bins + 1}]: sums and a count above 0, then sums of squares; this is "
                    f"{list(table.shape)}"
                )
            object.__setattr__(self, "statistics", table)

    @classmethod
    def recipe(cls, name: str, **settings: Any) -> Self:
        """The front end of a recipe of EESEN, with some settings changed."""
        if name not in RECIPES:
            raise InputError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
        return cls(**{**RECIPES[name], **settings})

    @cached_property
    def fbank(self) -> LogMel:
        """The log-mel features that the other steps start from."""
        return LogMel.kaldi(rate=self.rate, bins=self.bins)

    @property
    def size(self) -> int:
        """The number of values in a row of the result."""
        times = {"deltas": 3, "splice": 2 * self.context + 1}
        return self.bins * int(np.prod([times.get(step, 1) for step in self.order]))

    def __call__(self, value: Any) -> Array:
        rows = value if np.ndim(value) == 2 else self.fbank(value)
        rows = np.asarray(rows, dtype=np.float64)
        if rows.shape[1] != self.bins:
            raise InputError(f"features of {rows.shape[1]} values are not those of {self.bins} bins; set bins=")
        for step in self.order:
            rows = getattr(self, f"_{step}")(rows) if len(rows) else rows
        return rows.astype(np.float32) if len(rows) else np.zeros((0, self.size), dtype=np.float32)

    def statistics_of(self, values: Iterable[Any]) -> Array:
        """The statistics of a speaker's recordings, [2, bins + 1], for `statistics`."""
        total = np.zeros((2, self.bins + 1))
        for value in values:
            total += _statistics(np.asarray(self.fbank(value), dtype=np.float64))
        return total

    def _cmvn(self, rows: Array) -> Array:
        sums, squares = _statistics(rows) if self.statistics is None else self.statistics
        mean = sums[:-1] / sums[-1]
        variances = np.maximum(squares[:-1] / sums[-1] - mean**2, 1e-20) if self.variance else 1.0
        return np.asarray((rows - mean) / np.sqrt(variances))

    def _deltas(self, rows: Array) -> Array:
        # One filter over the rows, and the same filter over itself; beyond the ends, the first row or
        # the last one, also for the second derivative.
        once = np.array([-2, -1, 0, 1, 2]) / 10
        return np.concatenate([rows, _filtered(rows, once), _filtered(rows, np.convolve(once, once))], axis=1)

    def _splice(self, rows: Array) -> Array:
        places = np.arange(len(rows))[:, None] + np.arange(-self.context, self.context + 1)
        return np.asarray(rows[places.clip(0, len(rows) - 1)].reshape(len(rows), -1))

    def _subsample(self, rows: Array) -> Array:
        return rows[self.first :: self.every]


def recipes_of(size: int) -> list[str]:
    """The recipes whose features have `size` values."""
    return [name for name in RECIPES if KaldiFeatures.recipe(name).size == size]


def _statistics(rows: Array) -> Array:
    return np.array([[*rows.sum(0), len(rows)], [*(rows**2).sum(0), 0]])


def _filtered(rows: Array, weights: Array) -> Array:
    half = len(weights) // 2
    padded = np.pad(rows, ((half, half), (0, 0)), mode="edge")
    return np.asarray(sum(w * padded[k : k + len(rows)] for k, w in enumerate(weights)))
