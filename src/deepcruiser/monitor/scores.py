"""How unusual a trace is: the five criteria reversed, each as its formula.

A criterion asks how much of the model M the tests reach; a score asks how much of one trace M does not know. The trace
has the states s_0..s_N and the inputs x_0..x_{N-1}. All scores are means over states or steps, so that they can be
kept up to date step by step; all are 0 or more, and larger is more unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import Grid, IntArray, find
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.trace import Trace

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Steps:
    """The states and the steps of a trace, or of a piece of one, as the model knows them.

    `distance` is that of each state's cell to the nearest of S_M, 0 for those in it. `transition` and `choice` say of
    each step whether (s, s') is in delta_M and x in X_M(s); `probability` is Pr_x(s, s'), and
    `Reference.least` for what was never seen.
    """

    distance: FloatArray
    transition: BoolArray
    choice: BoolArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class Reference:
    """A model with tables to look up single steps."""

    model: AbstractModel

    def locate(self, states: Vectors) -> tuple[IntArray, FloatArray]:
        """Of projected states, the number in the model (-1: none) and the distance to its nearest state."""
        grid = self.model.grid
        cells = grid.cells(states)
        number = _numbers(grid, self.model.states, cells)
        distance = np.zeros(len(cells))
        outside = np.flatnonzero(number < 0)
        if len(outside):
            distance[outside] = self._nearest.query(cells[outside].astype(np.float64), p=1)[0]
        return number, distance

    def steps(self, number: IntArray, inputs: Vectors, distance: FloatArray) -> Steps:
        """The steps from each state to the next, on projected inputs: one fewer than there are numbers of states."""
        model = self.model
        source, target = number[:-1], number[1:]
        action = _numbers(model.input_grid, model.counts.inputs, model.input_grid.cells(inputs))
        inside, fed = (source >= 0) & (target >= 0), (source >= 0) & (action >= 0)
        transition = _member(model.transitions, source * len(model.states) + target, inside)
        choice = _member(model.choices, source * len(model.counts.inputs) + action, fed)
        key = (source * len(model.counts.inputs) + action) * len(model.states) + target
        row = np.where(inside & fed, find(self._rows, key), -1)
        probability = np.full(len(row), self.least)
        probability[row >= 0] = model.probabilities[row[row >= 0]]
        return Steps(distance, transition, choice, probability)

    @cached_property
    def _rows(self) -> IntArray:
        """One number for each row of the model's counts, ascending as they are."""
        counts = self.model.counts
        rows: IntArray = (counts.source * len(counts.inputs) + counts.action) * len(counts.states) + counts.target
        return rows

    @cached_property
    def _nearest(self) -> Any:
        from scipy.spatial import KDTree  # imported here, because it loads slowly

        return KDTree(self.model.grid.decode(self.model.states).astype(np.float64))

    @cached_property
    def least(self) -> float:
        """The probability of a step that was never seen: half a step among all that profiling counted."""
        return 0.5 / max(1, int(self.model.counts.count.sum()))


def _member(ascending: IntArray, codes: IntArray, possible: BoolArray) -> BoolArray:
    member: BoolArray = possible & (find(ascending, codes) >= 0)
    return member


def _numbers(grid: Grid, codes: IntArray, cells: IntArray) -> IntArray:
    """The position of each cell in `codes`, -1 where it is not there; what is beyond the bounds needs no code."""
    intervals = np.where(grid.upper > grid.lower, grid.partitions, 1)
    within = ((cells >= 0) & (cells < intervals)).all(1)
    number = np.full(len(cells), -1, np.int64)
    number[within] = find(codes, grid.encode(cells[within]))
    return number


@dataclass(frozen=True)
class Score:
    """A score: the mean of `values`, of which each state (`over` "states") or step ("steps") has one.

    `text` says of a value what it means: "41.0 % of the states lie outside".
    """

    name: str
    over: str
    values: Callable[[Steps], FloatArray] = field(compare=False)
    text: str

    def of(self, model: AbstractModel, trace: Trace) -> float:
        """The score of one whole trace; 0 for one without steps where it is about steps."""
        values = self.values(steps_of(model, trace))
        return float(values.mean()) if len(values) else 0.0


#: BSCov reversed: |{i : s_i not in S_M}| / (N + 1)
OUTSIDE = Score(
    "outside",
    over="states",
    values=lambda T: (T.distance > 0).astype(np.float64),
    text="{:.1%} of the states are outside the profiled ones",
)

#: k-SBCov reversed: sum over i of the distance from s_i to the nearest cell of S_M / (N + 1)
DISTANCE = Score(
    "distance",
    over="states",
    values=lambda T: T.distance,
    text="the states are {:.3g} cells away from the profiled ones on average",
)

#: BTCov reversed: |{i : (s_i, s_{i+1}) not in delta_M}| / N
TRANSITIONS = Score(
    "transitions",
    over="steps",
    values=lambda T: (~T.transition).astype(np.float64),
    text="{:.1%} of the transitions did not occur in profiling",
)

#: ISCov reversed: |{i : x_i not in X_M(s_i)}| / N
CHOICES = Score(
    "choices",
    over="steps",
    values=lambda T: (~T.choice).astype(np.float64),
    text="{:.1%} of the inputs did not occur in their state in profiling",
)

#: WICov reversed: sum over i of -log Pr_x(s_i, s_{i+1}) / N. What was never seen counts as half a step among all
#: that profiling counted, Pr = 1 / (2 count(., ., .)), which is less likely than any step that was seen.
SURPRISE = Score(
    "surprise",
    over="steps",
    values=lambda T: -np.log(T.probability),
    text="the average step has a -log probability of {:.3g}",
)

#: One for each of the five criteria.
SCORES = (OUTSIDE, DISTANCE, TRANSITIONS, CHOICES, SURPRISE)

#: The name of the score that the system reports; the others come from the trace.
DOUBT = "doubt"


def outside_share(visits: Visits) -> float:
    """|S_T - S_M| / |S_T|: `OUTSIDE` of a set of cells, which is what a campaign keeps of a run."""
    cells = len(visits.states) + len(visits.outside)
    return len(visits.outside) / cells if cells else 0.0


def steps_of(model: AbstractModel, trace: Trace) -> Steps:
    """All steps of one trace."""
    (states,), (inputs,) = model.projections.project([trace], ["the trace"])
    reference = Reference(model)
    number, distance = reference.locate(states)
    return reference.steps(number, inputs, distance)


def state_similarity(model: AbstractModel, one: Trace, other: Trace) -> float:
    """|S_1 n S_2| / |S_1 u S_2|, the Jaccard index of the cells of two traces, those outside of S_M as well."""
    return _jaccard(_cells(model, one), _cells(model, other))


def transition_similarity(model: AbstractModel, one: Trace, other: Trace) -> float:
    """|delta_1 n delta_2| / |delta_1 u delta_2|, the same of the pairs of cells that follow one another."""
    cells = [_cells(model, trace) for trace in (one, other)]
    first, second = (np.concatenate([each[:-1], each[1:]], axis=1) for each in cells)
    return _jaccard(first, second)


def _cells(model: AbstractModel, trace: Trace) -> IntArray:
    return model.cells(trace)[0]


def _jaccard(one: IntArray, other: IntArray) -> float:
    """The Jaccard index of the distinct rows of two arrays; 1 for two empty ones."""
    first, second = set(map(tuple, one.tolist())), set(map(tuple, other.tolist()))
    return len(first & second) / len(first | second) if first | second else 1.0
