"""Is an abstract model worth anything as a watch? Detection of wrong answers, strange recordings and attacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.evaluate.detectors import (
    DETECTORS,
    FITTED,
    Contrast,
    Floats,
    auc,
    calibrated,
    contrasts,
    fitted,
    recall,
    scores_of,
    share,
)
from deepcruiser.evaluate.figures import COLOURS, Figure, panels
from deepcruiser.evaluate.monitor_sets import ATTACKED, Evidence, Sets, run_sets
from deepcruiser.evaluate.observations import Observation
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.statistics import Estimate
from deepcruiser.evaluate.tables import Row, Table, percent
from deepcruiser.monitor.monitor import Monitor
from deepcruiser.monitor.scores import SCORES, state_similarity, transition_similarity
from deepcruiser.trace import Trace
from deepcruiser.workers import one_thread


def monitor(evidence: Evidence) -> Answer:
    """The evidence as tables, with a figure."""
    began = time.perf_counter()
    with one_thread():
        sets = run_sets(evidence)
    rng = np.random.default_rng(evidence.seed)
    monitors = {m: calibrated(evidence, sets, m) for m in evidence.partitions}
    main = monitors[evidence.partitions[0]]
    others = {"monitor and doubt": calibrated(evidence, sets, evidence.partitions[0], doubt=True)}
    if (trained := fitted(evidence, sets, main)) is not None:
        others[FITTED] = trained
    compared = contrasts(evidence, sets, main, others)
    detectors = [name for name in DETECTORS if all(name in contrast.bad for contrast in compared)]
    rows = {
        measure: [{**named(c), **{d: c.estimate(measure, d, rng=rng) for d in detectors}} for c in compared]
        for measure in (auc, recall)
    }
    scores = [{**named(c), **{s.name: c.value(auc, s.name) for s in SCORES}} for c in compared]
    grids = [contrasts(evidence, sets, each) for each in monitors.values()]
    by_grid = [
        {
            **named(same[0]),
            **{m.model.name: c.value(auc, "monitor") for m, c in zip(monitors.values(), same, strict=True)},
        }
        for same in zip(*grids, strict=True)
    ]
    tables = [
        Table("monitor", tuple(rows[auc]), "**AUC** (0.5: no better than chance), with 95 % intervals."),
        Table(
            "monitor-recall", tuple(rows[recall]), "**Recall at 1 % false alarms.**", dict.fromkeys(detectors, shares)
        ),
        Table("monitor-scores", tuple(scores), "**AUC of each score of the monitor** alone."),
        Table("monitor-grids", tuple(by_grid), "**AUC of the monitor** on other grids."),
        Table("monitor-alarms", tuple(alarms(evidence, sets, main, rng)), calibration_text(main), {"alarms": shares}),
    ]
    if sets.spoken:
        models = [each.model for each in monitors.values()]
        tables.append(
            Table("monitor-transcript", tuple(transcripts(sets, models, rng)), TRANSCRIPT, {"recall": shares})
        )
    return Answer(
        "monitor",
        "The abstract model as a monitor",
        tuple(tables),
        data=Table("monitor-data", tuple(data(evidence, sets, main, others))),
        notes=notes(evidence, sets),
        draw=lambda: draw(rows[auc], detectors),
        seconds=time.perf_counter() - began,
        runs=sets.runs,
    )


def named(contrast: Contrast) -> Row:
    bad, good = contrast.counts
    return {"detected": contrast.name, "inputs": f"{bad} against {good}"}


def alarms(evidence: Evidence, sets: Sets, monitor: Monitor, rng: np.random.Generator) -> Iterator[Row]:
    """How often the monitor raises an alarm, by set."""
    groups = {"clean, other speakers than calibrated on": sets.fresh, "test data": sets.tests, **sets.far}
    groups |= {"mutants that pass": sets.passing, "mutants that fail": sets.failing, **sets.attacked}
    for name, observations in groups.items():
        if observations:
            raised = np.array([monitor.judge(each.reading(monitor)) is not None for each in observations], np.float64)
            clusters = np.array([each.item.cluster for each in observations])
            yield {"set": name, "inputs": len(observations), "alarms": share(raised, clusters, rng=rng)}


def calibration_text(monitor: Monitor) -> str:
    calibration = monitor.calibration
    assert calibration is not None
    low, high = calibration.interval
    return (
        f"**Alarms** of the monitor, calibrated to {percent(calibration.alarm_rate)} on {len(calibration.clean):,} "
        f"clean inputs (this number of inputs determines the rate to {percent(low)} to {percent(high)})."
    )


TRANSCRIPT = (
    "**The synthesised transcript**: how well the overlap between the cells of a recording and those of its own "
    "transcript, spoken by espeak-ng, distinguishes attacked recordings from their originals."
)


def transcripts(sets: Sets, models: Sequence[AbstractModel], rng: np.random.Generator) -> Iterator[Row]:
    for kind, similarity in (("states", state_similarity), ("transitions", transition_similarity)):
        for model in models:
            bad, good = (_unlike(sets.spoken[name], similarity, model) for name in (ATTACKED, "originals"))
            contrast = Contrast(kind, {kind: bad[0]}, {kind: good[0]}, bad[1], good[1])
            yield {
                "Jaccard index of": kind,
                "grid": model.name,
                "AUC": contrast.estimate(auc, kind, rng=rng),
                "recall": contrast.estimate(recall, kind, rng=rng),
                "median, originals": float(1 - np.median(good[0])),
                "median, attacked": float(1 - np.median(bad[0])),
            }


def _unlike(
    pairs: Sequence[tuple[Observation, Observation]],
    similarity: Callable[[AbstractModel, Trace, Trace], float],
    model: AbstractModel,
) -> tuple[Floats, Any]:
    """How little recordings have in common with their transcripts, and their clusters."""
    unlike = np.array([1 - similarity(model, one.trace, spoken.trace) for one, spoken in pairs])
    return unlike, np.array([one.item.cluster for one, _ in pairs])


def data(evidence: Evidence, sets: Sets, monitor: Monitor, others: Mapping[str, Monitor]) -> Iterator[Row]:
    """A row for every input that was run."""
    groups = {"calibration": sets.calibration, "fresh": sets.fresh, "tests": sets.tests, **sets.far}
    groups |= {"passing mutants": sets.passing, "failing mutants": sets.failing}
    groups |= {"originals": sets.originals, **sets.attacked}
    for group, observations in groups.items():
        for each in observations:
            scores = scores_of(each, evidence.seed, monitor, others)
            yield {"set": group, "input": each.item.name, "output": each.output, **scores}


def notes(evidence: Evidence, sets: Sets) -> tuple[str, ...]:
    text = (
        "*monitor* is the largest of the five standardised scores, without the doubt. *fitted monitor* is a logistic "
        "model of the five scores and the doubt, fitted to right and wrong answers in the calibration set. *gaussian* "
        "is the mean squared Mahalanobis distance of the whole states from those of the calibration set; *two-sided* "
        "also counts states that are too close as unusual; *projected gaussian* uses only the "
        f"{evidence.components} components of the profile. Recordings are at most {evidence.longest:g} s long. Far "
        "recordings are compared with all of the test data, failing mutants with passing ones, and attacked "
        "recordings with their originals. The intervals resample whole speakers (seeds, recordings). The "
        f"mutants come from a campaign of {evidence.inputs:,} runs; one fails if its answer differs from its seed's "
        f"by more than {percent(evidence.wer_above)} of the words."
    )
    if not sets.attempts:
        return (text,)
    quiet = np.median([ratio for success, ratio in sets.attempts if success] or [float("nan")])
    attack = evidence.attack
    return (
        text,
        f"{sum(success for success, _ in sets.attempts)} of {len(sets.attempts)} attacks made the recogniser write "
        f"the target, letter by letter, within {attack.steps} steps and {percent(attack.peak)} of the peak; their "
        f"median signal-to-noise ratio is {quiet:.1f} dB. Only these count above.",
    )


def shares(value: Any) -> str:
    """An estimated share in per cent."""
    if not isinstance(value, Estimate):
        return str(value)
    return f"{percent(value.value)} [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def draw(rows: Sequence[Row], detectors: Sequence[str]) -> Figure:
    figure, (axis,) = panels(1, width=7.5, height=0.5 + 0.45 * len(rows))
    for number, detector in enumerate(detectors):
        values: list[Estimate] = [row[detector] for row in rows]
        places = np.arange(len(rows)) + 0.13 * (number - (len(detectors) - 1) / 2)
        middle = np.array([value.value for value in values])
        spread = [middle - [value.low for value in values], [value.high for value in values] - middle]
        axis.errorbar(
            middle, places, xerr=np.maximum(spread, 0), fmt="o", ms=3, lw=1, color=COLOURS[number], label=detector
        )
    axis.axvline(0.5, color="black", lw=0.8)
    axis.set_yticks(range(len(rows)), [row["detected"] for row in rows])
    axis.invert_yaxis()
    axis.set(xlabel="AUC, with 95 % intervals", xlim=(0, 1.02))
    axis.legend(loc="lower left")
    return figure
