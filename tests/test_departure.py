"""Where traces leave a model, against loops over sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from tests.conftest import walks
from tests.support.plain import Cells, Plain


def cells(model: dc.AbstractModel, trace: dc.Trace) -> Cells:
    states, inputs = model.cells(trace)
    return [tuple(s) for s in states.tolist()], [tuple(x) for x in inputs.tolist()]


def slow(M: Plain, trace: Cells) -> dc.Departure | None:
    """The same once more, step by step."""
    states, inputs = trace
    if states[0] not in M.initial:
        return dc.Departure(0, states[0])
    for step, (s, x, t) in enumerate(zip(states, inputs, states[1:], strict=False)):
        if x not in M.inputs[s]:
            return dc.Departure(step, s, x)
        if t not in M.states:
            return dc.Departure(step + 1, t)
        if M.probability(s, x, t) == 0:
            return dc.Departure(step, s, x, t)
    return None


@given(st.integers(0, 2**32), st.sampled_from([0.5, 1.0, 1.3]), st.integers(1, 6))
def test_traces_leave_where_the_slow_version_says(seed: int, scale: float, partitions: int) -> None:
    rng = np.random.default_rng(seed)
    profiled = walks(rng, 8, size=2)
    profiled.append(dc.Trace(np.array([[0.0, 0.0], [1.0, -1.0]]), np.ones((1, 2))))
    model = dc.Profile.of(profiled, components=2).abstract(partitions, input_partitions=2)
    M = Plain.of([cells(model, trace) for trace in profiled])
    others = walks(rng, 8, size=2, scale=scale)
    others += [dc.Trace(trace.states + 0.1, trace.inputs) for trace in others]
    for trace in [*profiled, *others]:
        assert model.departure(trace) == slow(M, cells(model, trace))
        assert model.accepts(trace) == (model.departure(trace) is None)


def line(states: list[int], inputs: list[int]) -> dc.Trace:
    return dc.Trace(np.array(states, float)[:, None], np.array(inputs, float)[:, None])


@pytest.mark.parametrize(
    ("states", "inputs", "text"),
    [
        ([1, 3], [0], "state 0 is (1,), where no profiled trace began"),
        ([0, 1, 0], [0, 1], "input 1 is (1,), which no profiled trace read in (1,)"),
        ([0, 2], [0], "state 1 is (2,), where no profiled trace was"),
        ([0, 3], [0], "step 0 leads from (0,) on (0,) to (3,), as no profiled trace did"),
    ],
)
def test_the_four_ways_to_leave(states: list[int], inputs: list[int], text: str) -> None:
    model = dc.Profile.of([line([0, 1, 3], [0, 0]), line([0, 0], [1])], components=1).abstract(4, input_partitions=2)
    departure = model.departure(line(states, inputs))
    assert str(departure) == text
    assert not model.accepts(line(states, inputs))
