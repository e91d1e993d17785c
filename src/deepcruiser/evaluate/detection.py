"""How well a score tells one kind of input from another, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.evaluate.statistics import Estimate, bootstrap, ranks

Floats = npt.NDArray[np.float64]
Measure = Callable[[Floats, Floats], float]
#: The share of the good inputs that may raise an alarm where recall is measured.
FALSE_ALARMS = 0.01


def auc(bad: Floats, score: Floats) -> float:
    """The chance that one of the bad (1) has a higher score than one of the good (0); ties count half.

    Not a number where one of the two kinds is missing.
    """
    count = float(bad.sum())
    pairs = count * (len(bad) - count)
    return float((ranks(score)[bad > 0].sum() - count * (count + 1) / 2) / pairs) if pairs else float("nan")


def recall(bad: Floats, score: Floats) -> float:
    """The share of the bad above the lowest threshold that at most `FALSE_ALARMS` of the good exceed."""
    good = np.sort(score[bad == 0])
    if not len(good) or len(good) == len(bad):
        return float("nan")
    threshold = good[len(good) - 1 - int(FALSE_ALARMS * len(good))]
    return float((score[bad > 0] > threshold).mean())


@dataclass(frozen=True, eq=False)
class Contrast:
    """Bad inputs against good ones: their scores by detector, and the cluster of each (its speaker, its seed)."""

    name: str
    bad: dict[str, Floats]
    good: dict[str, Floats]
    bad_clusters: npt.NDArray[Any]
    good_clusters: npt.NDArray[Any]

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.bad_clusters), len(self.good_clusters)

    def estimate(self, measure: Measure, detector: str, *, rng: np.random.Generator, times: int = 1000) -> Estimate:
        """A measure of one detector, with whole clusters drawn again."""
        labels = np.repeat([1.0, 0.0], self.counts)
        scores = np.concatenate([self.bad[detector], self.good[detector]])
        clusters = np.concatenate([self.bad_clusters, self.good_clusters])
        return bootstrap(measure, labels, scores, clusters=clusters, rng=rng, times=times)

    def value(self, measure: Measure, detector: str) -> float:
        """The same without an interval."""
        labels = np.repeat([1.0, 0.0], self.counts)
        return float(measure(labels, np.concatenate([self.bad[detector], self.good[detector]])))


def share(alarms: Floats, clusters: npt.NDArray[Any], *, rng: np.random.Generator) -> Estimate:
    """The share of inputs with an alarm (1), with whole clusters drawn again."""
    return bootstrap(lambda _, values: float(values.mean()), alarms, alarms, clusters=clusters, rng=rng)
