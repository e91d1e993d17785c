"""The Markov decision process that the model checkers PRISM and Storm read.

It has the states of the model in the same order, one action per abstract input, and the probabilities Pr_x(s, s'). An
action is named after the cell of its input: x_3_0_7, with m for a minus sign (x_m1_0_7). A state where profiled traces
only ended has one action "end", a self-loop. The labels of the states:

    init          traces begin here; if they begin in several states, all are initial, and checkers answer a range
    end           traces end here
    no_way_out    all traces that came here ended here
    once          the traces were here exactly once
    c0_3          (Storm) the state's index in component 0 is 3; PRISM has the variables c0, c1, ... instead
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel


def mask(model: AbstractModel, states: IntArray) -> npt.NDArray[np.bool_]:
    """For each state of the model, whether it is one of `states`."""
    chosen = np.zeros(len(model.states), bool)
    chosen[states] = True
    return chosen


def no_way_out(model: AbstractModel) -> IntArray:
    """The states without outgoing transitions, because every trace that reached them ended there."""
    return np.flatnonzero(np.bincount(model.counts.source, minlength=len(model.states)) == 0)


def times_visited(model: AbstractModel) -> IntArray:
    """How often the traces were in each state.

    If traces begin in several states, the counts do not say how many begin in which; those states then get the least
    number that fits.
    """
    counts, size = model.counts, len(model.states)
    arrivals, departures = (
        np.bincount(column, weights=counts.count, minlength=size).astype(np.int64)
        for column in (counts.target, counts.source)
    )
    visits = arrivals.copy()
    if len(model.initial) == 1:
        visits[model.initial] += model.origin.traces
    else:
        visits[model.initial] = np.maximum(arrivals + 1, departures)[model.initial]
    return visits


@dataclass(frozen=True, eq=False)
class Steps:
    """The rows of `model.counts` and a self-loop for each state without any, in ascending order of (source, action).

    A Markov decision process never ends, but traces do. Checkers refuse a state without a choice, or silently repair
    it; the self-loop avoids both. `choice` counts the choices of each state from 0.
    """

    source: IntArray
    choice: IntArray
    action: IntArray
    target: IntArray
    probability: npt.NDArray[np.float64]
    begins: npt.NDArray[np.bool_]  # whether the row is the first of its choice
    names: list[str]  # of the actions

    @classmethod
    def of(cls, model: AbstractModel) -> Steps:
        counts, ends = model.counts, no_way_out(model)
        source = np.concatenate([counts.source, ends])
        order = np.argsort(source, kind="stable")
        source = source[order]
        action = np.concatenate([counts.action, np.full(len(ends), len(counts.inputs))])[order]
        begins = (np.diff(source, prepend=-1) != 0) | (np.diff(action, prepend=-1) != 0)
        number = np.cumsum(begins)
        return cls(
            source=source,
            choice=number - number[np.searchsorted(source, source)],  # relative to the state's first row
            action=action,
            target=np.concatenate([counts.target, ends])[order],
            probability=np.concatenate([model.probabilities, np.ones(len(ends))])[order],
            begins=begins,
            names=[*map(_action_name, model.input_grid.decode(counts.inputs).tolist()), "end"],
        )


def _action_name(cell: list[int]) -> str:
    # Both checkers require a letter first, then letters, digits and underscores.
    return "_".join(["x", *(str(index).replace("-", "m") for index in cell)])


def state_labels(model: AbstractModel) -> list[list[str]]:
    """The labels of each state."""
    labels: list[list[str]] = [[] for _ in range(len(model.states))]
    carriers = {
        "init": model.initial,
        "end": model.final,
        "no_way_out": no_way_out(model),
        "once": np.flatnonzero(times_visited(model) == 1),
    }
    for label, states in carriers.items():
        for state in states.tolist():
            labels[state].append(label)
    return labels


def cell_texts(cells: IntArray) -> list[str]:
    """Cells as they are written on nodes and edges."""
    return [f"({', '.join(map(str, cell))})" for cell in cells.tolist()]
