"""The five coverage criteria, each as its formula.

All have one shape: the weight of what the tests T visited and the model M requires, over the weight of what M
requires. S are abstract states, delta pairs of states that follow one another, X(s) the abstract inputs seen in s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray, find, known
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.errors import InputError
from deepcruiser.trace import Trace

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Seen = tuple[BoolArray, ...]


@dataclass(frozen=True)
class Criterion:
    """A coverage criterion: `criterion(model, traces)` is the share of the model that the traces cover, 0 to 1.

    `required` is the weight of each item of M, and `visited` says which of them T visited. If an item needs more than
    one visit, as in WICov, `visited` has an array for each kind of visit and `takes` says which visit of each kind the
    items need; an item is covered once T has made them all. `cells` are the cells that make up the items.
    """

    name: str
    required: Callable[[AbstractModel], FloatArray] = field(compare=False)
    visited: Callable[[Visits], tuple[IntArray, ...]] = field(compare=False)
    cells: Callable[[AbstractModel], dict[str, IntArray]] = field(compare=False)
    takes: Callable[[AbstractModel], tuple[IntArray, ...]] | None = field(default=None, compare=False)

    def __call__(self, model: AbstractModel, traces: Iterable[Trace]) -> float:
        return self.of(model, map(model.visits, [traces] if isinstance(traces, Trace) else traces))

    def of(self, model: AbstractModel, visits: Iterable[Visits]) -> float:
        """The share that is covered by visits of the model."""
        seen = self.nothing(model)
        for visit in visits:
            for mask, visited in zip(seen, self.visited(visit), strict=True):
                mask[visited] = True
        return self.value(model, seen)

    def nothing(self, model: AbstractModel) -> Seen:
        """The empty visits of T before the first test: a mask for each kind of visit."""
        if self.takes is None:
            return (np.zeros(len(self.required(model)), bool),)
        return tuple(np.zeros(visit.max(initial=-1) + 1, bool) for visit in self.takes(model))

    def covered(self, model: AbstractModel, seen: Seen) -> BoolArray:
        """Which items of M are covered."""
        if self.takes is None:
            return seen[0]
        kinds = zip(seen, self.takes(model), strict=True)
        complete: BoolArray = np.logical_and.reduce([mask[visit] for mask, visit in kinds])
        return complete

    def value(self, model: AbstractModel, seen: Seen) -> float:
        """The weight of the covered items over the weight of all; 0 if M requires nothing."""
        weights = self.required(model)
        covered = float(weights[self.covered(model, seen)].sum())
        return covered / float(weights.sum()) if covered else 0.0

    def __repr__(self) -> str:
        return self.name


def ones(items: IntArray) -> FloatArray:
    return np.ones(len(items))


#: Basic state coverage: |S_T n S_M| / |S_M|
BSCov = Criterion(
    "BSCov",
    required=lambda M: ones(M.states),
    visited=lambda T: (T.states,),
    cells=lambda M: M.cells_of_states(),
)

#: Basic transition coverage: |delta_T n delta_M| / |delta_M|
BTCov = Criterion(
    "BTCov",
    required=lambda M: ones(M.transitions),
    visited=lambda T: (T.transitions,),
    cells=lambda M: M.cells_of_transitions(),
)

#: Input space coverage: sum over s of |X_T(s) n X_M(s)|  /  sum over s of |X_M(s)|
ISCov = Criterion(
    "ISCov",
    required=lambda M: ones(M.choices),
    visited=lambda T: (T.choices,),
    cells=lambda M: M.cells_of_choices(),
)

#: Weighted input coverage: sum of Pr_x(s, s') over s in S_T n S_M, x in X_T(s) n X_M(s) and the successors s' of s in
#: T, whatever input led to them  /  sum over s of |X_M(s)|, which is the sum of all Pr_x(s, s')
WICov = Criterion(
    "WICov",
    required=lambda M: M.probabilities,
    visited=lambda T: (T.choices, T.transitions),
    takes=lambda M: (M.choice_of, M.transition_of),
    cells=lambda M: M.cells_of_rows(),
)


def SBCov(steps: int, *, within: bool = False) -> Criterion:  # noqa: N802
    """k-step state boundary coverage: of the cells at distance 1 to `steps` from S_M, the share that T visits.

    Cells beyond the bounds of the grid count as well, unless `within` leaves them out.
    """
    if not isinstance(steps, Integral) or steps < 1:
        raise InputError(f"a boundary must have 1 step or more, a whole number, not {steps!r}")
    return Criterion(
        f"{steps}-SBCov-within" if within else f"{steps}-SBCov",
        required=lambda M: ones(M.boundary(steps, within=within)),
        visited=lambda T: (T.boundary(steps, within=within),),
        cells=lambda M: {"state": M.grid.decode(M.boundary(steps, within=within))},
    )


#: One criterion of each kind; the boundary is two steps deep.
FIVE = (BSCov, SBCov(2), BTCov, ISCov, WICov)


def literal_iscov(model: AbstractModel, traces: Iterable[Trace]) -> float:
    """Input space coverage as the paper prints it: sum over s in S_T n S_M of |X_T(s)|  /  sum over s of |X_M(s)|.

    X_T(s) is not cut with X_M(s) there, so inputs that training never saw in s count as well, and the value can exceed
    1. `ISCov` is the criterion with the cut.
    """
    pairs = [np.empty((0, 2), np.int64)]
    for trace in traces:
        states, inputs = model.cells(trace)
        source = find(model.states, model.grid.encode(states[:-1]))
        pairs.append(np.stack([source, model.input_grid.encode(inputs)], axis=1)[source >= 0])
    return len(np.unique(np.concatenate(pairs), axis=0)) / max(1, len(model.choices))


def same_input_wicov(model: AbstractModel, traces: Iterable[Trace]) -> float:
    """Weighted input coverage with the successors that T reached on x itself.

    It is the sum of Pr_x(s, s') over the steps (s, x, s') of T  /  sum over s of |X_M(s)|. `WICov` takes the successors
    of s on any input.
    """
    rows = [np.empty(0, np.int64)]
    for trace in traces:
        states, inputs = model.cells(trace)
        state = find(model.states, model.grid.encode(states))
        source, target = state[:-1], state[1:]
        action = find(model.counts.inputs, model.input_grid.encode(inputs))
        row = (source * len(model.counts.inputs) + action) * len(model.states) + target
        rows.append(find(model.rows, row[(source >= 0) & (action >= 0) & (target >= 0)]))
    covered = float(model.probabilities[known(np.concatenate(rows))].sum())
    return covered / float(model.probabilities.sum()) if covered else 0.0


def criterion(name: str) -> Criterion:
    """The criterion of that name, in any case: BSCov, 2-SBCov (any number of steps), BTCov, ISCov or WICov.

    2-SBCov-within is `SBCov(2, within=True)`.
    """
    boundary = re.fullmatch(r"(\d+)-sbcov(-within)?", name.lower())
    if boundary and int(boundary[1]):
        return SBCov(int(boundary[1]), within=boundary[2] is not None)
    for each in (BSCov, BTCov, ISCov, WICov):
        if each.name.lower() == name.lower():
            return each
    raise InputError(
        f"unknown criterion {name!r}; choose BSCov, 1-SBCov, 2-SBCov and so on (or 1-SBCov-within), BTCov, ISCov or "
        "WICov"
    )
