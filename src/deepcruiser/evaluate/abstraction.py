"""Help to choose components and partitions: explained variance, saturation and discrimination of each model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from deepcruiser.evaluate.configurations import saturation
from deepcruiser.evaluate.experiment import Experiment, narrowed
from deepcruiser.evaluate.figures import Figure, panels
from deepcruiser.evaluate.mutants import Family, Recipes, choose_seeds, families, run_batches
from deepcruiser.evaluate.pool import Workers
from deepcruiser.evaluate.records import Record
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.similarity import visited
from deepcruiser.evaluate.statistics import superiority
from deepcruiser.evaluate.tables import Table, shares


def abstraction(workers: Workers, *, seeds: int = 50, mutants: int = 18) -> Answer:
    """Measure every number of components of the profile with every number of partitions."""
    experiment = workers.experiment
    chosen = choose_seeds(workers, seeds)
    found = families(workers, chosen, mutants)
    alone: list[Recipes] = [((record.seed, ()),) for record in chosen]
    again = [batch.records[0] for batch in run_batches(workers, alone, stage="running seeds again", inputs=seeds)]
    rows = []
    for components in range(1, experiment.profile.projections.states.components + 1):
        rows += _rows(experiment, found, again, components)
    shown = dict.fromkeys(("explained variance", "new in the last tenth"), shares)
    return Answer(
        "abstraction",
        "Choosing components and partitions",
        (Table("abstraction", tuple(rows), shown=shown),),
        data=Table("abstraction-data", tuple(rows)),
        notes=(
            f"Mean Jaccard index of the states over {seeds:,} seeds: between a seed and the same input run *again* in "
            "another batch, between a seed and its *mutants*, and between a seed and *another* seed. *Told apart* is "
            "the chance that a mutant is more similar to its seed than another seed is: 1 is perfect, 0.5 is no better "
            "than chance. Many states *new in the last tenth* of the data mean that the model is not saturated: more "
            "data would enlarge it, and coverage of it says less.",
            "Choose as many components as add variance, and the finest grid that still tells inputs apart, gives the "
            "same input the same states, and is nearly saturated.",
        ),
        draw=lambda: draw(experiment, rows),
        seconds=sum(family.seconds for family in found),
        runs=2 * seeds + sum(len(family.valid) for family in found),
    )


def _rows(
    experiment: Experiment, found: Sequence[Family], again: Sequence[Record], components: int
) -> list[dict[str, Any]]:
    profile, rows = narrowed(experiment.profile, components), []
    for partitions in experiment.partitions:
        model = profile.abstract(partitions)
        records = [record for family in found for record in (family.seed, *family.valid)]
        every = iter(visited(model, [*records, *again]))
        groups = [[next(every) for _ in range(1 + len(family.valid))] for family in found]
        repeated = [group[0].similarity(next(every))["states"] for group in groups]
        near = [group[0].similarity(mutant)["states"] for group in groups for mutant in group[1:]]
        far = [one[0].similarity(other[0])["states"] for one, other in pairwise([*groups, groups[0]])]
        rows.append(
            {
                "configuration": model.name,
                "components": components,
                "partitions": partitions,
                "explained variance": profile.projections.states.explained,
                "states": len(model.states),
                "new in the last tenth": float(1 - saturation(profile, model, seed=experiment.seed)["states"][-2]),
                "again": _mean(repeated),
                "mutants": _mean(near),
                "another": _mean(far),
                "told apart": superiority(near, far),
            }
        )
    return rows


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def draw(experiment: Experiment, rows: Sequence[dict[str, Any]]) -> Figure:
    figure, axes = panels(3, width=3.0)
    counts = sorted({row["components"] for row in rows})
    explained = [next(100 * row["explained variance"] for row in rows if row["components"] == n) for n in counts]
    axes[0].plot(counts, explained, marker=".")
    axes[0].set(title="explained variance", xlabel="components", ylabel="%", ylim=(0, 103))
    axes[0].set_xticks(counts)
    for axis, name, factor in ((axes[1], "told apart", 1), (axes[2], "new in the last tenth", 100)):
        for partitions in experiment.partitions:
            of = [row for row in rows if row["partitions"] == partitions]
            values = [factor * row[name] for row in of]
            axis.plot([row["components"] for row in of], values, marker=".", label=f"{partitions} partitions")
        axis.set(title=name, xlabel="components")
        axis.set_xticks(counts)
    axes[1].set_ylabel("chance")
    axes[2].set_ylabel("share of the states, %")
    axes[1].legend(loc="lower right")
    return figure
