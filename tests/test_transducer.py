from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from tests.conftest import walks


def labelled(rng: np.random.Generator, count: int) -> list[dc.Trace]:
    return [
        dc.Trace(t.states, t.inputs, rng.choice(["a", "b", "blank"], len(t)))
        for t in walks(rng, count, size=2, input_size=2)
    ]


@given(st.integers(0, 2**32), st.booleans())
def test_a_transducer_equals_the_sets(seed: int, abstract: bool) -> None:
    rng = np.random.default_rng(seed)
    traces = labelled(rng, 6)
    traces.append(dc.Trace(np.array([[0.0, 0.0], [1.0, 1.0]]), np.ones((1, 2)), np.array(["a"])))
    model = dc.Profile.of(traces, components=2).abstract(3, input_partitions=2) if abstract else None
    fst = dc.Transducer.of(traces, model)
    transitions, initial, final, everything = set(), set(), set(), set()
    for trace in traces:
        states, inputs = (trace.states, trace.inputs) if model is None else model.cells(trace)
        s, x = [tuple(row) for row in states.tolist()], [tuple(row) for row in inputs.tolist()]
        y = trace.outputs.tolist() if trace.outputs is not None else []
        transitions |= set(zip(s, x, y, s[1:], strict=False))
        initial.add(s[0])
        final.add(s[-1])
        everything |= set(s)
    S, X, Y = [tuple(r) for r in fst.states.tolist()], [tuple(r) for r in fst.inputs.tolist()], fst.outputs.tolist()
    assert set(S) == everything
    assert len(S) == len(everything)
    assert {S[i] for i in fst.initial} == initial
    assert {S[i] for i in fst.final} == final
    assert len(fst.transitions) == len(transitions)
    assert {(S[s], X[x], Y[y], S[t]) for s, x, y, t in fst.transitions.tolist()} == transitions


def test_outputs_may_be_rows_of_numbers_on_any_device() -> None:
    states, inputs = torch.tensor([[0.0], [1.0], [0.0]]), torch.tensor([[5.0], [5.0]])
    fst = dc.Transducer.of([dc.Trace(states, inputs, torch.tensor([[0.1, 0.9], [0.9, 0.1]]))])
    assert fst.outputs.tolist() == np.array([[0.1, 0.9], [0.9, 0.1]], np.float32).tolist()
    assert fst.transitions.tolist() == [[0, 0, 0, 1], [1, 0, 1, 0]]
    assert str(fst) == "Transducer: 2 states (1 initial, 1 final), 1 inputs, 2 outputs, 2 transitions"


def test_a_trace_keeps_outputs_only_where_there_is_a_row_for_each_step() -> None:
    trace = dc.Trace(np.zeros((3, 1)), np.zeros((2, 1)))
    scores = np.ones((2, 4))
    assert trace.with_outputs(scores).outputs is scores
    for other in (np.ones((3, 4)), np.ones(2), "text", None, (scores, 2)):
        assert trace.with_outputs(other) is trace


def test_bad_outputs() -> None:
    with pytest.raises(dc.InputError, match=r"outputs of the shape \(3,\) do not fit 2 steps: give a label or a row"):
        dc.Trace(np.zeros((3, 1)), np.zeros((2, 1)), np.arange(3))
    with pytest.raises(dc.InputError, match="there are no traces to make a transducer of"):
        dc.Transducer.of([])
    one = dc.Trace(np.zeros((2, 1)), np.zeros((1, 1)))
    with pytest.raises(dc.InputError, match=r"trace 1 has no outputs, which a transducer needs: give dc.Trace\(states"):
        dc.Transducer.of([one.with_outputs(np.zeros((1, 2))), one])
    with pytest.raises(dc.InputError, match=r"the outputs of the traces have the shapes \[\(2,\), \(3,\)\]"):
        dc.Transducer.of([one.with_outputs(np.zeros((1, size))) for size in (2, 3)])


class Net(torch.nn.Module):
    def __init__(self, last: bool) -> None:
        super().__init__()
        self.gru, self.out, self.last = torch.nn.GRU(3, 5, batch_first=True), torch.nn.Linear(5, 4), last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = self.gru(x)[0]
        scores: torch.Tensor = self.out(states[:, -1] if self.last else states)
        return scores


def test_systems_add_the_outputs_of_networks_that_give_them_at_each_step() -> None:
    inputs = [np.random.default_rng(n).random((n, 3)).astype(np.float32) for n in (4, 6, 5)]
    net = Net(last=False).eval()
    system = dc.TorchSystem(net, "gru", batch="padded", transcribe=lambda scores: scores.argmax(-1).tolist())
    for run, value in zip(system.run(inputs), inputs, strict=True):
        outputs = run.traced.outputs
        assert outputs is not None
        with torch.no_grad():
            assert torch.allclose(torch.as_tensor(outputs), net(torch.from_numpy(value)[None])[0], atol=1e-6)
        assert np.asarray(outputs).argmax(-1).tolist() == run.output
    assert len(dc.Transducer.of([run.traced for run in system.run(inputs)]).transitions) == 15
    last = dc.TorchSystem(Net(last=True).eval(), "gru", transcribe=lambda scores: int(scores.argmax()))
    assert [run.traced.outputs for run in last.run(inputs)] == [None] * 3
