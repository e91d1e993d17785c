"""RQ2: do mutants that visit other states than their seeds get worse answers?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import InputError
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.figures import COLOURS, Figure, log_norm, panels
from deepcruiser.evaluate.mutants import Family, choose_seeds, families, is_right
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.rq1 import column, measured, values
from deepcruiser.evaluate.statistics import Estimate, Floats, bootstrap, pearson, ranks, residuals, spearman
from deepcruiser.evaluate.tables import Row, Table

TIMES = 1000


def rq2(pool: Pool, *, seeds: int = 100, mutants: int = 100, changes: int = 1, times: int = TIMES) -> Answer:
    """The correlation of the Jaccard index and the error rate, over mutants of seeds that are answered correctly.

    Each mutant has one transformation, or a chain of up to `changes`.
    """
    experiment = pool.experiment
    right = choose_seeds(pool, seeds, accept=is_right, what="answered without an error")
    seed_families = families(pool, right, mutants, changes=changes)
    data = measured(experiment, seed_families)
    if len({row["score"] for row in data}) < 2:
        raise InputError(
            f"all {len(data):,} mutants have the score {data[0]['score'] if data else 'none'}, so there is no "
            "correlation to measure; use more seeds or mutants, or a stronger --range"
        )
    known = strengths(seed_families) if changes == 1 else None
    whole = [overall(experiment, data, known, partitions, times) for partitions in experiment.partitions]
    wrong = float(np.mean(values(data, "score") > 0))
    return Answer(
        "rq2",
        "RQ2: Jaccard index against errors",
        (
            Table("rq2", tuple(whole), caption="Correlation of the Jaccard index of the states with the error rate:"),
            by_transformation(experiment, data) if changes == 1 else by_length(experiment, data),
        ),
        data=Table("rq2-data", tuple(data)),
        notes=(
            f"{len(data):,} mutants of {seeds:,} seeds that the system answers without an error; {wrong:.1%} of the "
            f"mutants have an error, and the mean error rate of all is {values(data, 'score').mean():.3f}. In "
            f"brackets: 95 % confidence intervals from {times:,} bootstrap samples of the seeds. *Given*: Spearman's "
            f"correlation after regressing {known_of(changes)} out of the ranks.",
            *(explained(row) for row in whole if changes == 1),
        ),
        draw=lambda: draw(experiment, data, whole),
        seconds=sum(family.seconds for family in seed_families),
        runs=seeds + len(data),
    )


def known_of(changes: int) -> str:
    """A description of what is regressed out of the ranks."""
    return "the seed" if changes > 1 else "the seed, the transformation, or the transformation with its parameters"


def overall(
    experiment: Experiment, data: Sequence[Row], known: npt.NDArray[np.float64] | None, partitions: int, times: int
) -> dict[str, Any]:
    """All correlations for one configuration; `known` is None for chains of transformations."""
    x, y = values(data, column(experiment, partitions, "states")), values(data, "score")
    basic, pairs = (values(data, column(experiment, partitions, kind)) for kind in ("basic", "transitions"))
    seeds, kinds = (np.array([row[name] for row in data]) for name in ("seed", "transformation"))

    def interval(measure: Any, one: Floats, other: Floats) -> Estimate:
        rng = np.random.default_rng((experiment.seed, partitions))
        return bootstrap(measure, one, other, clusters=seeds, rng=rng, times=times)

    groupings: dict[str, tuple[npt.NDArray[Any], tuple[Floats, ...]]] = {"given the seed": (seeds, ())}
    if known is not None:
        groupings["given the transformation"] = kinds, ()
        groupings["given transformation and strength"] = kinds, tuple(known.T)
    return {
        "configuration": experiment.models[partitions].name,
        "Spearman": interval(spearman, x, y),
        "Pearson": interval(pearson, x, y),
        **{
            name: interval(pearson, *(residuals(ranks(v), *more, groups=groups) for v in (x, y)))
            for name, (groups, more) in groupings.items()
        },
        "Spearman of states of the model": interval(spearman, basic, y),
        "Spearman of transitions": interval(spearman, pairs, y),
    }


def strengths(seed_families: Sequence[Family]) -> npt.NDArray[np.float64]:
    """The strength of each mutant's transformation: the ranks of its parameters and of their distance from mid-range.

    The neutral value of many parameters (a gain, a shift) is the middle of their range. Random seeds are left out.
    """
    changes = [mutant.recipe[0] for family in seed_families for mutant in family.valid]
    numbers = [
        [float(value) for f in fields(change) if f.name != "seed" and _is_number(value := getattr(change, f.name))]
        for change in changes
    ]
    known = np.zeros((len(changes), 2 * max(map(len, numbers), default=0)))
    kinds = np.array([type(change).__name__ for change in changes])
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        for i, parameter in enumerate(np.array([numbers[row] for row in rows]).T):
            middle = (parameter.min() + parameter.max()) / 2
            known[rows, 2 * i] = ranks(parameter)
            known[rows, 2 * i + 1] = ranks(np.abs(parameter - middle))
    return known


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def by_transformation(experiment: Experiment, data: Sequence[Row]) -> Table:
    kinds = sorted({row["transformation"] for row in data})
    rows = [
        {"transformation": kind, **_part(experiment, [row for row in data if row["transformation"] == kind])}
        for kind in kinds
    ]
    return Table("rq2-transformations", tuple(rows), caption="Spearman's correlation for each transformation alone:")


def by_length(experiment: Experiment, data: Sequence[Row]) -> Table:
    lengths = [row["transformation"].count(" -> ") + 1 for row in data]
    rows = [
        {"transformations": n, **_part(experiment, [row for row, of in zip(data, lengths, strict=True) if of == n])}
        for n in sorted(set(lengths))
    ]
    return Table("rq2-chains", tuple(rows), caption="Spearman's correlation for each length of the chains alone:")


def _part(experiment: Experiment, rows: Sequence[Row]) -> dict[str, Any]:
    """Spearman's correlations for some of the mutants."""
    errors = values(rows, "score")
    correlations = {
        experiment.models[m].name: spearman(values(rows, column(experiment, m, "states")), errors)
        for m in experiment.partitions
    }
    return {"mutants": len(rows), "mean error rate": round(float(errors.mean()), 4), **correlations}


def explained(row: Row) -> str:
    """A sentence that says how much of the correlation the transformation and its strength explain."""
    name, whole = row["configuration"], row["Spearman"]
    kind, both = row["given the transformation"], row["given transformation and strength"]
    if not whole.differs_from_zero:
        return f"{name}: no correlation was found ({whole})."
    if not kind.differs_from_zero:
        return f"{name}: the transformation alone explains the correlation: {whole} before, {kind} after."
    if not both.differs_from_zero:
        return f"{name}: transformation and strength explain the correlation: {whole} before, {both} after."
    if both.value / whole.value < 0.5:
        return f"{name}: transformation and strength explain most of the correlation: {whole} before, {both} after."
    return f"{name}: {both} of {whole} remains after transformation and strength are regressed out."


def medians(errors: Floats, index: Floats, *, least: int = 10) -> tuple[list[float], list[float]]:
    """The median index without errors and in each tenth of the error rate that has at least `least` mutants."""
    tenth = np.ceil(errors * 10 - 1e-9)
    places = [t for t in np.unique(tenth) if (tenth == t).sum() >= least]
    return [float(errors[tenth == t].mean()) for t in places], [float(np.median(index[tenth == t])) for t in places]


def draw(experiment: Experiment, data: Sequence[Row], whole: Sequence[Row]) -> Figure:
    """The paper's figure: the index over the error rate; darker means more mutants."""
    figure, axes = panels(len(experiment.partitions), sharey=True)
    errors = values(data, "score")
    right = max(1.0, float(errors.max()))
    norm = log_norm(0.2, len(data))
    for axis, partitions, row in zip(axes, experiment.partitions, whole, strict=True):
        index = values(data, column(experiment, partitions, "states"))
        axis.hexbin(errors, index, gridsize=(20, 14), cmap="Blues", mincnt=1, extent=(0, right, 0, 1), norm=norm)
        axis.plot(*medians(errors, index), color=COLOURS[1], marker=".", label="medians")
        title = f"{experiment.title(partitions)}\nSpearman {row['Spearman'].value:.2f}"
        axis.set(title=title, xlabel="error rate")
        axis.set(xlim=(-0.03, right + 0.03), ylim=(0, 1.03))
    axes[0].set_ylabel("Jaccard index of the states")
    axes[0].legend(loc="upper right")
    return figure
