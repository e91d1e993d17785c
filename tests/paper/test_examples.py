"""The worked examples of the paper: the transducer of two traces, and the decision process of three."""

from __future__ import annotations

import numpy as np
import pytest

import deepcruiser as dc


def test_two_traces_make_the_transducer_of_the_figure() -> None:
    """s0 s1 s2 s3 on x0 x1 x2, giving y0 y1 y2, and s0 s1 s2' s3 on x0 x1' x2, giving y0 y1' y2.

    They part after s1 and meet again in s3. s0 is the initial state and s3 the final one.
    """
    s0, s1, s2, s2_, s3 = range(5)
    x0, x1, x1_, x2 = range(4)
    first = walk([s0, s1, s2, s3], [x0, x1, x2], outputs=["y0", "y1", "y2"])
    second = walk([s0, s1, s2_, s3], [x0, x1_, x2], outputs=["y0", "y1'", "y2"])
    assert first.outputs is not None
    for transducer in (dc.Transducer.of([first, second]), dc.Transducer.of([first, second], plain_grid(first, second))):
        states, inputs = transducer.states[:, 0].tolist(), transducer.inputs[:, 0].tolist()
        outputs = transducer.outputs.tolist()
        assert states == [s0, s1, s2, s2_, s3]
        assert inputs == [x0, x1, x1_, x2]
        assert set(outputs) == {"y0", "y1", "y1'", "y2"}
        assert [states[state] for state in transducer.initial] == [s0]
        assert [states[state] for state in transducer.final] == [s3]
        assert {(states[s], inputs[x], outputs[y], states[t]) for s, x, y, t in transducer.transitions.tolist()} == {
            (s0, x0, "y0", s1),
            (s1, x1, "y1", s2),
            (s2, x2, "y2", s3),
            (s1, x1_, "y1'", s2_),
            (s2_, x2, "y2", s3),
        }
        assert len(transducer.transitions) == 5


def test_two_traces_make_a_model_with_their_transitions() -> None:
    s0, s1, s2, s2_, s3 = range(5)
    x0, x1, x1_, x2 = range(4)
    first, second = walk([s0, s1, s2, s3], [x0, x1, x2]), walk([s0, s1, s2_, s3], [x0, x1_, x2])
    model = dc.Profile.of([first, second], components=1).abstract(5, input_partitions=4)

    cells = model.cells_of_transitions()
    transitions = set(zip(cells["state"][:, 0].tolist(), cells["successor"][:, 0].tolist(), strict=True))
    assert transitions == {(s0, s1), (s1, s2), (s1, s2_), (s2, s3), (s2_, s3)}
    assert len(model.states) == 5
    assert model.grid.decode(model.states)[model.initial].tolist() == [[s0]]
    assert model.grid.decode(model.states)[model.final].tolist() == [[s3]]

    # The first trace alone sees four states of five and three transitions of five.
    assert dc.BSCov(model, [first]) == 4 / 5
    assert dc.BTCov(model, [first]) == 3 / 5
    # (s0, x0), (s1, x1), (s2, x2) of those and (s1, x1'), (s2', x2).
    assert dc.ISCov(model, [first]) == 3 / 5
    assert dc.WICov(model, [first]) == 3 / 5


@pytest.fixture
def three_traces() -> list[dc.Trace]:
    """Three traces over four grid cells with the abstract transitions and probabilities that the paper names.

    (s0,s1), (s1,s0), (s1,s1), (s1,s2), (s1,s3), (s3,s3); in s1 the input x leads to s2 and s3 half of the time each.
    For x' the paper names no values ("the computation is similar"): here it leads to s0 and s1 half of the time each.
    """
    s0, s1, s2, s3 = range(4)
    x, x_ = 0, 1
    return [
        walk([s0, s1, s2], [x, x]),
        walk([s0, s1, s3, s3], [x, x, x]),
        walk([s0, s1, s1, s0], [x, x_, x_]),
    ]


def test_three_traces_make_the_decision_process_of_the_figure(three_traces: list[dc.Trace]) -> None:
    s0, s1, s2, s3 = range(4)
    x, x_ = 0, 1
    model = dc.Profile.of(three_traces, components=1).abstract(4, input_partitions=2)
    cells = model.cells_of_transitions()
    transitions = set(zip(cells["state"][:, 0].tolist(), cells["successor"][:, 0].tolist(), strict=True))
    assert transitions == {(s0, s1), (s1, s0), (s1, s1), (s1, s2), (s1, s3), (s3, s3)}

    assert model.probability([s0], on=[x], to=[s1]) == 1.0
    assert model.probability([s1], on=[x], to=[s2]) == 1 / 2
    assert model.probability([s1], on=[x], to=[s3]) == 1 / 2
    assert model.probability([s1], on=[x_], to=[s0]) == 1 / 2
    assert model.probability([s1], on=[x_], to=[s1]) == 1 / 2
    assert model.probability([s3], on=[x], to=[s3]) == 1.0
    assert model.probability([s2], on=[x], to=[s3]) == 0.0

    choices = model.cells_of_choices()
    of_s1 = {c for s, c in zip(choices["state"][:, 0], choices["input"][:, 0].tolist(), strict=True) if s == s1}
    assert of_s1 == {x, x_}, "there are two choices of inputs at s1"


def test_probabilities_of_a_choice_add_up_to_one(three_traces: list[dc.Trace]) -> None:
    model = dc.Profile.of(three_traces, components=1).abstract(4)
    sums = np.bincount(model.choice_of, weights=model.probabilities)
    assert sums == pytest.approx(np.ones(len(model.choices)))


def test_weighted_input_coverage_counts_successors_under_any_input(three_traces: list[dc.Trace]) -> None:
    """A test that takes s1 -> s1 on x alone has seen the choice (s1, x) and the pair (s1, s1), but not x' in s1."""
    s0, s1 = 0, 1
    x, x_ = 0, 1
    model = dc.Profile.of(three_traces, components=1).abstract(4, input_partitions=2)
    choices = 4  # (s0, x), (s1, x), (s1, x'), (s3, x)
    assert len(model.choices) == choices
    assert dc.WICov(model, [walk([s1, s1], [x])]) == 0.0  # Pr_x(s1, s1) = 0
    assert dc.WICov(model, [walk([s1, s1], [x_])]) == (1 / 2) / choices
    # x' led to s0 and x to s1, and the sum for x' runs over both successors: 1/2 + 1/2; for x over neither.
    crossed = [walk([s1, s0], [x_]), walk([s1, s1], [x])]
    assert dc.WICov(model, crossed) == (1 / 2 + 1 / 2) / choices
    # With the successors on the input itself, x' has s0 alone, and x has s1, where it never led in training.
    assert dc.same_input_wicov(model, crossed) == (1 / 2) / choices


def test_distance_is_the_sum_of_differences_of_indices() -> None:
    """Around a single cell of a plane there are 4 cells at distance 1 and 8 more at distance 2."""
    corners = [walk2([(0, 0), (9, 9), (0, 0)])]
    model = dc.Profile.of(corners, components=2).abstract(10)
    assert len(model.states) == 2
    assert len(model.boundary(1)) < len(model.boundary(2))
    lone = dc.Profile.of([walk2([(0, 0), (1, 0), (0, 1), (1, 1)])], components=2).abstract(1)
    assert len(lone.states) == 1
    assert len(lone.boundary(1)) == 4
    assert len(lone.boundary(2)) == 12


def walk(states: list[int], inputs: list[int], *, outputs: list[str] | None = None) -> dc.Trace:
    """A trace through numbered places on a line."""
    array = None if outputs is None else np.array(outputs)
    return dc.Trace(np.array(states, float)[:, None], np.array(inputs, float)[:, None], array)


def plain_grid(*traces: dc.Trace) -> dc.AbstractModel:
    """A model whose cells are the places themselves."""
    return dc.Profile.of(traces, components=1).abstract(5, input_partitions=4)


def walk2(states: list[tuple[int, int]]) -> dc.Trace:
    return dc.Trace(np.array(states, float), np.ones((len(states) - 1, 1)))
