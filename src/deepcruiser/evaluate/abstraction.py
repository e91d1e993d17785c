"""Help to choose components and partitions: explained variance, saturation and discrimination of each model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from deepcruiser.abstraction.clusters import require_k_means
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.errors import InputError
from deepcruiser.evaluate.configurations import saturation
from deepcruiser.evaluate.experiment import Experiment, narrowed
from deepcruiser.evaluate.figures import Figure, panels
from deepcruiser.evaluate.mutants import Family, Recipes, choose_seeds, families, run_batches
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.records import Record
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.similarity import Visited, visited
from deepcruiser.evaluate.statistics import superiority
from deepcruiser.evaluate.tables import Table, shares

#: k-means of more clusters takes minutes: the time grows with their square.
MOST_CLUSTERS = 5000


def abstraction(pool: Pool, *, seeds: int = 50, mutants: int = 18, k_means: bool = False) -> Answer:
    """Measure every number of components of the profile with every number of partitions, also beside k-means."""
    if k_means:
        require_k_means()
    experiment = pool.experiment
    chosen = choose_seeds(pool, seeds)
    seed_families = families(pool, chosen, mutants)
    alone: list[Recipes] = [((record.seed, ()),) for record in chosen]
    again = [batch.records[0] for batch in run_batches(pool, alone, stage="running seeds again", inputs=seeds)]
    rows = []
    for components in range(1, experiment.profile.projections.states.components + 1):
        rows += _rows(experiment, seed_families, again, components)
    shown = dict.fromkeys(("explained variance", "new in the last tenth"), shares)
    tables = [Table("abstraction", tuple(rows), shown=shown)]
    if k_means:
        tables.append(beside_k_means(experiment, seed_families, again))
    return Answer(
        "abstraction",
        "Choosing components and partitions",
        tuple(tables),
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
        seconds=sum(family.seconds for family in seed_families),
        runs=2 * seeds + sum(len(family.valid) for family in seed_families),
    )


def _rows(
    experiment: Experiment, seed_families: Sequence[Family], again: Sequence[Record], components: int
) -> list[dict[str, Any]]:
    profile, rows = narrowed(experiment.profile, components), []
    for partitions in experiment.partitions:
        model = experiment.abstract(profile, partitions)
        rows.append(
            {
                "configuration": model.name,
                "components": components,
                "partitions": partitions,
                "explained variance": profile.projections.states.explained,
                "states": len(model.states),
                "new in the last tenth": float(1 - saturation(profile, model, seed=experiment.seed)["states"][-2]),
                **_similarities(model, seed_families, again),
            }
        )
    return rows


def _similarities(model: AbstractModel, seed_families: Sequence[Family], again: Sequence[Record]) -> dict[str, float]:
    """The mean Jaccard indices of seeds and what they are compared with."""
    groups, repeated = _visited(model, seed_families, again)
    same = [group[0].similarity(other)["states"] for group, other in zip(groups, repeated, strict=True)]
    near = [group[0].similarity(mutant)["states"] for group in groups for mutant in group[1:]]
    far = [one[0].similarity(other[0])["states"] for one, other in pairwise([*groups, groups[0]])]
    return {"again": _mean(same), "mutants": _mean(near), "another": _mean(far), "told apart": superiority(near, far)}


def _visited(
    model: AbstractModel, seed_families: Sequence[Family], again: Sequence[Record]
) -> tuple[list[list[Visited]], list[Visited]]:
    """The visits of each seed and its mutants, and those of the seeds run again."""
    records = [record for family in seed_families for record in (family.seed, *family.valid)]
    every = iter(visited(model, [*records, *again]))
    groups = [[next(every) for _ in range(1 + len(family.valid))] for family in seed_families]
    return groups, list(every)


def beside_k_means(experiment: Experiment, seed_families: Sequence[Family], again: Sequence[Record]) -> Table:
    """Each grid beside as many clusters of k-means as it has states."""
    profile, rows = experiment.narrowed, []
    for partitions, grid in experiment.models.items():
        if len(grid.states) > MOST_CLUSTERS:
            continue
        made: list[tuple[str, Callable[[], AbstractModel]]] = [
            ("grid", partial(experiment.abstract, profile, partitions)),
            (
                "k-means",
                partial(
                    profile.cluster,
                    len(grid.states),
                    input_partitions=experiment.inputs_on(partitions),
                    seed=experiment.seed,
                ),
            ),
        ]
        for kind, make in made:
            begin = time.perf_counter()
            model = make()
            seconds = time.perf_counter() - begin
            groups, _ = _visited(model, seed_families, again)
            mutants = [mutant for group in groups for mutant in group[1:]]
            rows.append(
                {
                    "partition": kind,
                    "configuration": model.name,
                    "states": len(model.states),
                    "transitions": len(model.transitions),
                    "seconds to make": round(seconds, 2),
                    **_similarities(model, seed_families, again),
                    "mutants' states outside": _mean([1 - len(m.basic) / len(m.states) for m in mutants]),
                }
            )
    if not rows:
        raise InputError(
            f"every grid has more than {MOST_CLUSTERS:,} states, and k-means with as many clusters takes too long; "
            "use fewer --partitions"
        )
    caption = (
        "The grid compared with k-means on the same projected states, with as many clusters as the grid has states "
        f"(grids of up to {MOST_CLUSTERS:,}). *Mutants' states outside*: of the states that a mutant visits, the share "
        "that profiling never visited, on average; with k-means every vector belongs to some cluster."
    )
    return Table("k-means", tuple(rows), caption=caption, shown={"mutants' states outside": shares})


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
