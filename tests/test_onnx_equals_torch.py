"""The trace of an exported network is that of the original."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import deepcruiser as dc

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

KINDS = (nn.LSTM, nn.GRU, nn.RNN)
LENGTHS = (9, 5, 9, 1, 5, 12)


class Net(nn.Module):
    """A front, a stack of layers, and an answer at every step."""

    def __init__(self, kind: Any, layers: int, *, both: bool, batch_first: bool = True) -> None:
        super().__init__()
        self.front = nn.Linear(4, 5)
        self.stack = kind(5, 6, layers, bidirectional=both, batch_first=batch_first)
        self.out = nn.Linear(12 if both else 6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(self.stack(torch.tanh(self.front(x)))[0])


class Packing(Net):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:  # type: ignore[override]
        packed = pack_padded_sequence(torch.tanh(self.front(x)), lengths, batch_first=True)
        return self.out(pad_packed_sequence(self.stack(packed)[0], batch_first=True)[0])


class LastState(Net):
    """Reads nothing of the stack but its last state."""

    def forward(self, x: torch.Tensor) -> Any:
        last = self.stack(torch.tanh(self.front(x)))[1]
        return self.out(last[0] if isinstance(last, tuple) else last)[-1]


def export(net: nn.Module, path: Path, inputs: dict[str, Any], axes: dict[str, dict[int, str]], **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter deprecates itself
        torch.onnx.export(
            net.eval(),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            dynamic_axes=axes,
            dynamo=False,
            **options,
        )
    return path


def seeded(make: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


def data(size: int = 4, lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal((length, size)).astype(np.float32) for length in lengths]


def assert_same(result: list[dc.Run], expected: list[dc.Run], *, outputs: bool = True) -> None:
    assert len(result) == len(expected)
    for one, other in zip(result, expected, strict=True):
        assert one.traced.states.shape == other.traced.states.shape
        np.testing.assert_allclose(one.traced.states, np.asarray(other.traced.states), atol=1e-4)
        np.testing.assert_allclose(one.traced.inputs, np.asarray(other.traced.inputs), atol=1e-4)
        if outputs:
            np.testing.assert_allclose(one.output, other.output, atol=1e-4)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_choice_of_state_is_the_same(tmp_path: Path, kind: Any, both: bool, layers: int) -> None:
    net = seeded(lambda: Net(kind, layers, both=both))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    choices: list[dict[str, Any]] = [{}, {"layer": "all"}, {"layer": 0}]
    choices += [{"direction": "forward"}, {"direction": "backward", "layer": "all"}] if both else []
    choices += [{"part": "c", **choice} for choice in choices] if kind is nn.LSTM else []
    for choice in choices:
        original, exported = dc.TorchSystem(net, **choice), dc.OnnxSystem(path, **choice)
        assert exported.state_name == original.state_name
        assert_same(exported.run(data()), original.run(data()))
    assert exported.run([]) == []


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_padded_batches_with_lengths(tmp_path: Path, kind: Any, both: bool) -> None:
    net = seeded(lambda: Packing(kind, 3, both=both))
    inputs = {"x": torch.zeros(1, 7, 4), "lengths": torch.tensor([7])}
    path = export(net, tmp_path / "net.onnx", inputs, {"x": {0: "batch", 1: "time"}, "lengths": {0: "batch"}})
    for choice in ({}, {"direction": "backward", "layer": "all"}) if both else ({}, {"layer": "all"}):
        original = dc.TorchSystem(net, batch="lengths", **choice)  # type: ignore[arg-type]
        exported = dc.OnnxSystem(path, **choice)  # type: ignore[arg-type]
        assert_same(exported.run(data()), original.run(data()))
        alone = [run for value in data() for run in exported.run([value])]
        assert_same(exported.run(data()), alone)
        equal = dc.OnnxSystem(path, batch="equal", **choice)  # type: ignore[arg-type]
        assert_same(equal.run(data()), original.run(data()))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_nothing_in_the_graph_reads(tmp_path: Path, kind: Any) -> None:
    import onnx

    net = seeded(lambda: LastState(kind, 1, both=False))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    model = onnx.load(path)
    (node,) = [node for node in model.graph.node if node.op_type == kind.__name__]
    node.output[0] = ""
    onnx.save(model, path)
    assert_same(dc.OnnxSystem(path).run(data()), dc.TorchSystem(net).run(data()))


def test_time_first(tmp_path: Path) -> None:
    net = seeded(lambda: Net(nn.GRU, 2, both=True, batch_first=False))
    inputs = {"x": torch.zeros(7, 1, 4)}
    named = export(net, tmp_path / "named.onnx", inputs, {"x": {0: "time", 1: "batch"}})
    expected = dc.TorchSystem(net, batch_first=False).run(data())
    assert_same(dc.OnnxSystem(named).run(data()), expected)
    nameless = export(net, tmp_path / "nameless.onnx", inputs, {"x": {0: "a", 1: "z"}})
    with pytest.raises(dc.InputError, match="batch_first=False"):
        dc.OnnxSystem(nameless).run(data())
    assert_same(dc.OnnxSystem(nameless, batch_first=False).run(data()), expected)


def test_a_network_of_one_input_at_a_time(tmp_path: Path) -> None:
    net = seeded(lambda: Net(nn.LSTM, 1, both=True))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {1: "time"}})
    assert_same(dc.OnnxSystem(path).run(data()), dc.TorchSystem(net).run(data()))
    fixed = export(net, tmp_path / "fixed.onnx", {"x": torch.zeros(4, 9, 4)}, {})
    nine = data(lengths=(9, 9, 9, 9, 9))
    assert_same(dc.OnnxSystem(fixed).run(nine), dc.TorchSystem(net).run(nine))
    with pytest.raises(dc.InputError, match=r"\[4, 5, 4\].*takes 'x' \(float32 \[4, 9, 4\]\)"):
        dc.OnnxSystem(fixed).run(data(lengths=(5,)))


def test_the_exporter_of_torch_export(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    net, path = seeded(lambda: Net(nn.LSTM, 3, both=True)), tmp_path / "net.onnx"
    dims = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("time")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net.eval(), (torch.zeros(2, 7, 4),), str(path), dynamic_shapes=dims, dynamo=True, verbose=False
        )
    original, exported = dc.TorchSystem(net), dc.OnnxSystem(path)
    assert exported.state_name == original.state_name == "stack: h of the last of 3 layers, both directions"
    assert_same(exported.run(data()), original.run(data()))
