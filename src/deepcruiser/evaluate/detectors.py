"""The monitor and the detectors it is compared with: how well they distinguish kinds of input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.evaluate.experiment import narrowed
from deepcruiser.evaluate.monitor_sets import Evidence, Sets, wrong
from deepcruiser.evaluate.observations import Observation
from deepcruiser.evaluate.statistics import Estimate, bootstrap, ranks
from deepcruiser.evaluate.tables import percent
from deepcruiser.monitor.calibration import Calibration
from deepcruiser.monitor.monitor import Monitor
from deepcruiser.monitor.scores import DOUBT

Floats = npt.NDArray[np.float64]
Measure = Callable[[Floats, Floats], float]
#: The share of good inputs that may raise an alarm when recall is measured.
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


#: The monitor with the doubt and with wrong answers to the calibration data as bad examples.
FITTED = "fitted monitor"
#: It needs this many right and wrong answers.
LEAST_EXAMPLES = 20
#: What is compared, the monitor first: without the doubt of the system, then with it.
DETECTORS = (
    "monitor",
    "monitor and doubt",
    FITTED,
    DOUBT,
    "gaussian",
    "gaussian, two-sided",
    "projected gaussian",
    "random",
)


def calibrated(evidence: Evidence, sets: Sets, partitions: int, *, doubt: bool = False) -> Monitor:
    """The monitor on one grid, which takes traces that are projected already."""
    profile = narrowed(evidence.profile, evidence.components)
    plain = Monitor(profile.abstract(partitions, input_partitions=evidence.input_partitions))
    clean = [observation.reading(plain, doubt=doubt) for observation in sets.calibration]
    return Monitor(plain.model, Calibration.of(clean, alarm_rate=evidence.alarm_rate))


def fitted(evidence: Evidence, sets: Sets, monitor: Monitor) -> Monitor | None:
    """A monitor that has seen wrong answers: those to the calibration data."""
    texts = [each for each in sets.calibration if each.item.text]
    bad = [each.reading(monitor, doubt=True) for each in texts if wrong(evidence, each.item.text, each)]
    right = [each.reading(monitor, doubt=True) for each in texts if not wrong(evidence, each.item.text, each)]
    if len(bad) < LEAST_EXAMPLES or len(right) < LEAST_EXAMPLES:
        return None
    return Monitor(monitor.model, Calibration.of(right, bad, alarm_rate=evidence.alarm_rate))


def contrasts(
    evidence: Evidence, sets: Sets, monitor: Monitor, others: Mapping[str, Monitor] | None = None
) -> list[Contrast]:
    """The contrasts: which inputs should be distinguished."""
    bad = [each for each in sets.tests if each.item.text and wrong(evidence, each.item.text, each)]
    right = [each for each in sets.tests if each.item.text and not wrong(evidence, each.item.text, each)]
    pairs = [(f"answers with more than {percent(evidence.wer_above)} wrong words", bad, right)]
    pairs += [(name, observations, sets.tests) for name, observations in sets.far.items()]
    pairs += [("mutants that fail", sets.failing, sets.passing)]
    pairs += [(name, observations, sets.originals) for name, observations in sets.attacked.items()]

    def scored(observations: Sequence[Observation]) -> dict[str, Any]:
        rows = [scores_of(each, evidence.seed, monitor, others or {}) for each in observations]
        names = set.intersection(*map(set, rows)) if rows else set()
        return {name: np.array([row[name] for row in rows]) for name in names}

    def clusters(observations: Sequence[Observation]) -> Any:
        return np.array([each.item.cluster for each in observations])

    return [
        Contrast(name, scored(one), scored(other), clusters(one), clusters(other))
        for name, one, other in pairs
        if one and other
    ]


def scores_of(observation: Observation, seed: int, monitor: Monitor, others: Mapping[str, Monitor]) -> dict[str, float]:
    """Everything that is compared, for one input."""
    reading = observation.reading(monitor, doubt=True)
    scores = {"monitor": monitor.score(reading), **reading.scores, **observation.baselines(seed)}
    if DOUBT in reading.scores:  # without doubt, the others equal the monitor
        scores |= {name: other.score(reading) for name, other in others.items()}
    return scores
