"""The monitor, what it is compared with, and what they are to tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepcruiser.evaluate.detection import Contrast
from deepcruiser.evaluate.experiment import narrowed
from deepcruiser.evaluate.monitor_sets import Evidence, Sets, wrong
from deepcruiser.evaluate.observations import Observation
from deepcruiser.evaluate.tables import percent
from deepcruiser.monitor.calibration import Calibration
from deepcruiser.monitor.monitor import Monitor
from deepcruiser.monitor.scores import DOUBT

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
    """What is to be told from what."""
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
    if DOUBT in reading.scores:  # without it, the others would be the monitor once more
        scores |= {name: other.score(reading) for name, other in others.items()}
    return scores
