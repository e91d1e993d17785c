"""The paper's table of configurations: the sizes of the models, and whether more data would enlarge them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import IntArray, ends, find
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Configuration, Profile
from deepcruiser.evaluate.figures import Figure, panels
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.statistics import Floats
from deepcruiser.evaluate.tables import Table, shares

#: The shares of the data at which a growing model is measured, and the number of random orders.
TENTHS = tuple(share / 10 for share in range(1, 11))
ORDERS = 5
ITEMS = ("states", "transitions", "choices")


def configurations(pool: Pool) -> Answer:
    """The sizes of the models, and of the models of growing shares of the profiled data."""
    experiment = pool.experiment
    profile, rows, growth = experiment.narrowed, [], []
    for model in experiment.models.values():
        size, grown = Configuration.of(model), saturation(profile, model, seed=experiment.seed)
        rows.append(
            {
                "configuration": size.name,
                "states": size.states,
                "of the grid": size.states / size.cells,
                "transitions": size.transitions,
                "choices": size.choices,
                **{f"{item} new in the last tenth": float(1 - grown[item][-2]) for item in ITEMS},
            }
        )
        for i, share in enumerate(TENTHS):
            growth.append({"configuration": size.name, "data": share, **{k: float(grown[k][i]) for k in ITEMS}})
    formats = {column: shares for column in rows[0] if "new" in column or column == "of the grid"}
    origin = profile.origin
    return Answer(
        "configurations",
        "Configurations",
        (Table("configurations", tuple(rows), shown=formats),),
        data=Table("growth", tuple(growth)),
        notes=(
            f"The profile has {origin.traces:,} sequences and {origin.steps:,} steps; its {experiment.components} "
            f"components explain {profile.projections.states.explained:.1%} of the variance of the states.",
            f"*New in the last tenth*: the share of all states (transitions, choices) that only the last tenth of the "
            f"sequences visits, averaged over {ORDERS} random orders. If it is near 0 %, more data would hardly "
            "enlarge the model.",
        ),
        draw=lambda: draw(growth),
    )


def saturation(profile: Profile, model: AbstractModel, *, seed: int, orders: int = ORDERS) -> dict[str, Floats]:
    """The share of the model's items that the first 10 %, 20 %, ... of the sequences visit, averaged over orders."""
    lengths = profile.lengths
    states = find(model.states, model.grid.encode(model.grid.cells(profile.states[:])))
    actions = find(model.counts.inputs, model.input_grid.encode(model.input_grid.cells(profile.inputs[:])))
    first, last = ends(lengths)
    source, target = np.delete(states, last), np.delete(states, first)
    of_states, of_steps = np.repeat(np.arange(len(lengths)), lengths + 1), np.repeat(np.arange(len(lengths)), lengths)
    visits = {
        "states": (states, of_states, len(model.states)),
        "transitions": (find(model.transitions, source * len(model.states) + target), of_steps, len(model.transitions)),
        "choices": (find(model.choices, source * len(model.counts.inputs) + actions), of_steps, len(model.choices)),
    }
    visited = {item: np.zeros(len(TENTHS)) for item in ITEMS}
    for order in range(orders):
        turn = np.random.default_rng((seed, order)).permutation(len(lengths))
        for item, (numbers, sequence, count) in visits.items():
            visited[item] += _seen_by(numbers, turn[sequence], count, len(lengths)) / orders
    return visited


def _seen_by(numbers: IntArray, turns: IntArray, count: int, sequences: int) -> Floats:
    """The share of the items first visited within the first tenth, the first two tenths, and so on."""
    earliest = np.full(count, sequences)
    np.minimum.at(earliest, numbers, turns)
    limits = np.ceil(np.array(TENTHS) * sequences - 1e-9)
    return np.asarray(np.searchsorted(np.sort(earliest), limits, side="left") / max(1, count), np.float64)


def draw(growth: Sequence[dict[str, Any]]) -> Figure:
    figure, axes = panels(len(ITEMS), width=3.0)
    for axis, item in zip(axes, ITEMS, strict=True):
        for name in dict.fromkeys(row["configuration"] for row in growth):
            rows = [row for row in growth if row["configuration"] == name]
            axis.plot([100 * row["data"] for row in rows], [100 * row[item] for row in rows], label=name, marker=".")
        axis.set(title=item, xlabel="share of the data, %", ylim=(0, 103))
    axes[0].set_ylabel("share of the items that all data visit, %")
    axes[-1].legend(loc="lower right")
    return figure
