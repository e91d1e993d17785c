"""How unusual a trace is: the five criteria turned round, each as its formula.

A criterion asks how much of the model M the tests reach; a score asks how much of one trace M does not know. The trace
has the states s_0..s_N and the inputs x_0..x_{N-1}. All scores are means over states or steps, so that they can be
kept up to date step by step; all are 0 or more, and larger is more unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.monitor.steps import FloatArray, Reference, Steps
from deepcruiser.trace import Trace


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


#: BSCov turned round: |{i : s_i not in S_M}| / (N + 1)
OUTSIDE = Score(
    "outside",
    over="states",
    values=lambda T: (T.distance > 0).astype(np.float64),
    text="{:.1%} of the states lie outside those profiled",
)

#: k-SBCov turned round: sum over i of the distance from s_i to the nearest cell of S_M / (N + 1)
DISTANCE = Score(
    "distance",
    over="states",
    values=lambda T: T.distance,
    text="the states lie {:.3g} cells from those profiled on average",
)

#: BTCov turned round: |{i : (s_i, s_{i+1}) not in delta_M}| / N
TRANSITIONS = Score(
    "transitions",
    over="steps",
    values=lambda T: (~T.transition).astype(np.float64),
    text="{:.1%} of the transitions were never profiled",
)

#: ISCov turned round: |{i : x_i not in X_M(s_i)}| / N
CHOICES = Score(
    "choices",
    over="steps",
    values=lambda T: (~T.choice).astype(np.float64),
    text="{:.1%} of the inputs were never profiled in their state",
)

#: WICov turned round: sum over i of -log Pr_x(s_i, s_{i+1}) / N. What was never seen counts as half a step among all
#: that profiling counted, Pr = 1 / (2 count(., ., .)): more surprising than anything that was seen.
SURPRISE = Score(
    "surprise",
    over="steps",
    values=lambda T: -np.log(T.probability),
    text="the average step has a -log probability of {:.3g}",
)

#: One for each of the five criteria.
SCORES = (OUTSIDE, DISTANCE, TRANSITIONS, CHOICES, SURPRISE)

#: The name of the score that comes from the system and not from the trace.
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
    """Of the distinct rows of two arrays; two empty ones are the same."""
    first, second = set(map(tuple, one.tolist())), set(map(tuple, other.tolist()))
    return len(first & second) / len(first | second) if first | second else 1.0
