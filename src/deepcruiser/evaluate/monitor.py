"""Is an abstract model worth anything as a watch? Detection of wrong answers, strange recordings and attacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.evaluate.detection import Contrast, Floats, auc, recall, share
from deepcruiser.evaluate.experiment import narrowed, one_thread
from deepcruiser.evaluate.figures import COLOURS, Figure, panels
from deepcruiser.evaluate.monitor_sets import ATTACKED, Evidence, Sets, run_sets, wrong
from deepcruiser.evaluate.observations import Observation
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.statistics import Estimate
from deepcruiser.evaluate.tables import Row, Table, percent
from deepcruiser.monitor.calibration import Calibration
from deepcruiser.monitor.monitor import Monitor
from deepcruiser.monitor.scores import DOUBT, SCORES, state_similarity, transition_similarity
from deepcruiser.trace import Trace

#: What is compared, the monitor first: without the doubt of the system, then with it.
DETECTORS = ("monitor", "monitor and doubt", DOUBT, "gaussian", "gaussian, two-sided", "projected gaussian", "random")


def monitor(evidence: Evidence) -> Answer:
    """The evidence as tables, with a figure."""
    began = time.perf_counter()
    with one_thread():
        sets = run_sets(evidence)
    rng = np.random.default_rng(evidence.seed)
    monitors = {m: calibrated(evidence, sets, m) for m in evidence.partitions}
    main = monitors[evidence.partitions[0]]
    with_doubt = calibrated(evidence, sets, evidence.partitions[0], doubt=True)
    found = contrasts(evidence, sets, main, with_doubt)
    detectors = [name for name in DETECTORS if all(name in contrast.bad for contrast in found)]
    rows = {
        measure: [{**named(c), **{d: c.estimate(measure, d, rng=rng) for d in detectors}} for c in found]
        for measure in (auc, recall)
    }
    scores = [{**named(c), **{s.name: c.value(auc, s.name) for s in SCORES}} for c in found]
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
        "The abstract model as a watch",
        tuple(tables),
        data=Table("monitor-data", tuple(data(evidence, sets, main, with_doubt))),
        said=notes(evidence, sets),
        draw=lambda: draw(rows[auc], detectors),
        seconds=time.perf_counter() - began,
        runs=sets.runs,
    )


def calibrated(evidence: Evidence, sets: Sets, partitions: int, *, doubt: bool = False) -> Monitor:
    """The monitor on one grid, which takes traces that are projected already."""
    plain = Monitor(narrowed(evidence.profile, evidence.components).abstract(partitions))
    clean = [observation.reading(plain, doubt=doubt) for observation in sets.calibration]
    return Monitor(plain.model, Calibration.of(clean, alarm_rate=evidence.alarm_rate))


def contrasts(evidence: Evidence, sets: Sets, monitor: Monitor, with_doubt: Monitor | None = None) -> list[Contrast]:
    """What is to be told from what."""
    bad = [each for each in sets.tests if each.item.text and wrong(evidence, each.item.text, each)]
    right = [each for each in sets.tests if each.item.text and not wrong(evidence, each.item.text, each)]
    pairs = [(f"answers with more than {percent(evidence.wer_above)} wrong words", bad, right)]
    pairs += [(name, observations, sets.tests) for name, observations in sets.far.items()]
    pairs += [("mutants that fail", sets.failing, sets.passing)]
    pairs += [(name, observations, sets.originals) for name, observations in sets.attacked.items()]

    def scored(observations: Sequence[Observation]) -> dict[str, Any]:
        rows = [scores_of(each, evidence.seed, monitor, with_doubt) for each in observations]
        names = set.intersection(*map(set, rows)) if rows else set()
        return {name: np.array([row[name] for row in rows]) for name in names}

    def clusters(observations: Sequence[Observation]) -> Any:
        return np.array([each.item.cluster for each in observations])

    return [
        Contrast(name, scored(one), scored(other), clusters(one), clusters(other))
        for name, one, other in pairs
        if one and other
    ]


def scores_of(observation: Observation, seed: int, monitor: Monitor, with_doubt: Monitor | None) -> dict[str, float]:
    """Everything that is compared, for one input."""
    reading = observation.reading(monitor, doubt=True)
    scores = {"monitor": monitor.score(reading), **reading.scores, **observation.baselines(seed)}
    if with_doubt is not None and DOUBT in reading.scores:
        scores["monitor and doubt"] = with_doubt.score(reading)
    return scores


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
        f"**Alarms** of the monitor, calibrated on {len(calibration.clean):,} clean inputs to raise them for "
        f"{percent(calibration.alarm_rate)} (with so many inputs, {percent(low)} to {percent(high)})."
    )


TRANSCRIPT = (
    "**The transcript, synthesised**: attacked recordings are told from the originals by how little the cells "
    "they visit have in common with those of their own transcript, spoken by espeak-ng."
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


def data(evidence: Evidence, sets: Sets, monitor: Monitor, with_doubt: Monitor) -> Iterator[Row]:
    """A row for every input that was run."""
    groups = {"calibration": sets.calibration, "fresh": sets.fresh, "tests": sets.tests, **sets.far}
    groups |= {"passing mutants": sets.passing, "failing mutants": sets.failing}
    groups |= {"originals": sets.originals, **sets.attacked}
    for group, observations in groups.items():
        for each in observations:
            scores = scores_of(each, evidence.seed, monitor, with_doubt)
            yield {"set": group, "input": each.item.name, "output": each.output, **scores}


def notes(evidence: Evidence, sets: Sets) -> tuple[str, ...]:
    text = (
        "*monitor* is the largest standardised score of the five, without the doubt; *gaussian* the mean squared "
        "Mahalanobis distance of all numbers of the states from those of the calibration set, *two-sided* if too near "
        "is as strange as too far; *projected gaussian* the same of the "
        f"{evidence.components} components from the profile. Recordings are at most "
        f"{evidence.longest:g} s long. Far recordings are compared with all of the test data, mutants and attacked "
        "recordings with those that pass and with their originals. Intervals draw whole speakers (seeds, recordings) "
        "again. A mutant fails if its answer differs from its seed's by more than "
        f"{percent(evidence.wer_above)} of the words."
    )
    if not sets.attempts:
        return (text,)
    quiet = np.median([ratio for success, ratio in sets.attempts if success] or [float("nan")])
    attack = evidence.attack
    return (
        text,
        f"Of {len(sets.attempts)} attacks, {sum(success for success, _ in sets.attempts)} made the recogniser write "
        f"the target, letter by letter, within {attack.steps} steps and {percent(attack.peak)} of the peak; the median "
        f"signal-to-noise ratio is {quiet:.1f} dB. Only those count above.",
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
