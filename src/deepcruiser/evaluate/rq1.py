"""RQ1: does the abstract model distinguish an input from a slightly changed one?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.figures import COLOURS, Figure, panels
from deepcruiser.evaluate.mutants import Family, choose_seeds, families, score
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.records import Record
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.similarity import ITEMS, seed_similarities
from deepcruiser.evaluate.statistics import Floats
from deepcruiser.evaluate.tables import Row, Table, shares
from deepcruiser.transformations import to_dict

#: The bounds of the tenths of the index; 1.0 belongs to the last tenth.
EDGES = np.arange(11) / 10
WORDS = {"states": "states", "basic": "states of the model", "transitions": "transitions"}


def rq1(pool: Pool, *, seeds: int = 100, mutants: int = 100, changes: int = 1) -> Answer:
    """The Jaccard index of each mutant and its seed for every configuration.

    Each mutant has one transformation, or a chain of up to `changes`.
    """
    experiment = pool.experiment
    seed_families = families(pool, choose_seeds(pool, seeds), mutants, changes=changes)
    data = measured(experiment, seed_families)
    table = Table("rq1", tuple(shares_per_tenth(experiment, data)), shown=dict.fromkeys(tenths(), shares))
    rejected = sum(bool(mutant.invalid) for family in seed_families for mutant in family.mutants)
    return Answer(
        "rq1",
        "RQ1: Jaccard index of seeds and their mutants",
        (table,),
        data=Table("rq1-data", tuple(data)),
        notes=(
            f"{len(data):,} mutants of {seeds:,} seeds, each changed by "
            f"{f'1 to {changes} transformations' if changes > 1 else 'one transformation'}; {rejected:,} more were "
            "rejected by the validity gate and are not in the table. *States* are all cells that a run visits, *states "
            "of the model* are those that profiling visited as well. The last tenth includes 1.0.",
        ),
        draw=lambda: draw(experiment, data),
        seconds=sum(family.seconds for family in seed_families),
        runs=seeds + seeds * mutants - rejected,
    )


def column(experiment: Experiment, partitions: int, kind: str) -> str:
    """The name of an index in the data: `states M{3,10}`."""
    return f"{kind} {experiment.models[partitions].name}"


def measured(experiment: Experiment, seed_families: Sequence[Family]) -> list[dict[str, Any]]:
    """A row for every mutant that ran: its transformation, the oracle's score, and its indices."""
    rows: list[dict[str, Any]] = []
    for family in seed_families:
        new = [_row(experiment, family.seed, mutant) for mutant in family.valid]
        for partitions, model in experiment.models.items():
            for row, indices in zip(new, seed_similarities(model, family.seed, family.valid), strict=True):
                row |= {column(experiment, partitions, kind): indices[kind] for kind in ITEMS}
        rows += new
    return rows


def _row(experiment: Experiment, seed: Record, mutant: Record) -> dict[str, Any]:
    changes = [to_dict(change) for change in mutant.recipe]
    names = [change.pop("name") for change in changes]
    return {
        "seed": mutant.seed,
        "transformation": " -> ".join(names),
        "parameters": json.dumps(changes[0] if len(changes) == 1 else changes),
        "score": score(experiment, seed, mutant),
    }


def values(data: Sequence[Row], name: str) -> Floats:
    return np.array([row[name] for row in data], np.float64)


def tenths() -> list[str]:
    return [f"{low:.1f}-{high:.1f}" for low, high in pairwise(EDGES)]


def histogram(indices: Floats) -> Floats:
    """The share of the indices in each tenth."""
    # Rounding must not move an index such as 0.3, a quotient of whole numbers, into the tenth below.
    place = np.minimum(np.floor(indices * 10 + 1e-9).astype(int), 9)
    return np.bincount(place, minlength=10) / max(1, len(indices))


def shares_per_tenth(experiment: Experiment, data: Sequence[Row]) -> list[dict[str, Any]]:
    rows = []
    for kind in ITEMS:
        for partitions, model in experiment.models.items():
            indices = values(data, column(experiment, partitions, kind))
            share = dict(zip(tenths(), map(float, histogram(indices)), strict=True))
            rows.append({"of": WORDS[kind], "configuration": model.name, **share, "mean": float(indices.mean())})
    return rows


def draw(experiment: Experiment, data: Sequence[Row]) -> Figure:
    figure, axes = panels(len(experiment.partitions), sharey=True)
    for axis, partitions in zip(axes, experiment.partitions, strict=True):
        for kind, colour, shift in (("states", COLOURS[0], -0.02), ("transitions", COLOURS[1], 0.02)):
            share = histogram(values(data, column(experiment, partitions, kind)))
            axis.bar(EDGES[:-1] + 0.05 + shift, 100 * share, 0.038, color=colour, label=kind)
        axis.set(title=experiment.title(partitions), xlabel="Jaccard index", xlim=(0, 1))
        axis.set_xticks(EDGES[::2])
    axes[0].set_ylabel("share of the mutants, %")
    axes[0].legend()
    return figure
