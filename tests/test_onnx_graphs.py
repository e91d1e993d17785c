"""Recurrent nodes wherever they are in a graph: branches, loops, several cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.systems.tensors.layout import InputLayout
from deepcruiser.systems.tensors.signature import Port

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def info(name: str, shape: Any = None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def weights(name: str, gates: int, size: int, input_size: int, *, seed: int, ways: int = 1) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = {"W": (ways, gates * size, input_size), "R": (ways, gates * size, size), "B": (ways, 2 * gates * size)}
    return [
        numpy_helper.from_array(rng.uniform(-0.8, 0.8, shape).astype(np.float32), f"{name}{letter}")
        for letter, shape in shapes.items()
    ]


def node(kind: str, name: str, x: str, outputs: list[str], *, size: int, h: str = "", c: str = "", **more: Any) -> Any:
    inputs = [x, f"{name}W", f"{name}R", f"{name}B", "", h] + ([c] if kind == "LSTM" else [])
    return helper.make_node(kind, inputs, outputs, name=name, hidden_size=size, **more)


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: list[Any]) -> Path:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.save(model, path)
    return path


def data(size: int = 3) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, size)).astype(np.float32) for n in (6, 4, 6, 1)]


def gru(path: Path) -> Path:
    """[time, batch, 3] -> the last state, with nothing around the node."""
    initializers = weights("gru", 3, 4, 3, seed=1)
    return save(
        path,
        [node("GRU", "gru", "x", ["", "last"], size=4)],
        [info("x", ["time", "batch", 3])],
        [info("last", [1, "batch", 4])],
        initializers,
    )


def in_a_branch(path: Path) -> Path:
    """A GRU in one branch, an RNN in the other, chosen by `which`; and a branch within a branch."""
    gru_branch = helper.make_graph(
        [node("GRU", "gru", "x", ["", "g_last"], size=4)], "then", [], [info("g_last")], weights("gru", 3, 4, 3, seed=1)
    )
    rnn_branch = helper.make_graph(
        [node("RNN", "rnn", "x", ["", "r_last"], size=4)], "else", [], [info("r_last")], weights("rnn", 1, 4, 3, seed=2)
    )
    inner = helper.make_node("If", ["which"], ["i_last"], then_branch=gru_branch, else_branch=rnn_branch)
    nothing = helper.make_graph(
        [helper.make_node("ReduceSum", ["x"], ["n_last"], keepdims=1)], "never", [], [info("n_last")]
    )
    always = helper.make_graph([inner], "always", [], [info("i_last")])
    true = numpy_helper.from_array(np.array(True), "true")
    outer = helper.make_node("If", ["true"], ["last"], then_branch=always, else_branch=nothing)
    return save(path, [outer], [info("x", ["time", "batch", 3]), info("which", [], BOOL)], [info("last")], [true])


def test_a_node_in_a_branch(tmp_path: Path) -> None:
    flat = dc.OnnxSystem(gru(tmp_path / "flat.onnx")).run(data())
    path = in_a_branch(tmp_path / "branches.onnx")
    before = path.read_bytes()
    for system in (
        dc.OnnxSystem(path, constants={"which": True}),
        dc.OnnxSystem(path, "gru", constants={"which": True}),
    ):
        for one, other in zip(system.run(data()), flat, strict=True):
            np.testing.assert_allclose(one.traced.states, other.traced.states, atol=1e-6)
            assert np.array_equal(one.traced.inputs, other.traced.inputs)
            np.testing.assert_allclose(one.output, other.output, atol=1e-6)
    other_branch = dc.OnnxSystem(path, constants={"which": False}).run(data())
    assert not np.allclose(other_branch[0].traced.states, flat[0].traced.states)
    with pytest.raises(dc.InputError, match=r"'rnn' is in a branch of .* that was not taken"):
        dc.OnnxSystem(path, "rnn", constants={"which": True}).run(data())
    assert path.read_bytes() == before


def in_a_loop(path: Path, kind: str, *, handed_on: bool = True) -> Path:
    """A node that is called for every step, with the state of the step before; `kind` is Loop or Scan."""
    initializers = weights("gru", 3, 4, 3, seed=1)
    zeros = numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "zeros")
    step = [node("GRU", "gru", "x_t", ["y", "h_after"], size=4, h="h" if handed_on else "zeros")]
    axis = numpy_helper.from_array(np.array([0]), "axis")
    if kind == "Scan":
        body = helper.make_graph(
            [helper.make_node("Unsqueeze", ["x_one", "axis"], ["x_t"]), *step],
            "body",
            [info("h", [1, 1, 4]), info("x_one", [1, 3])],
            [info("h_after", [1, 1, 4])],
        )
        loop = helper.make_node("Scan", ["zeros", "x"], ["last"], body=body, num_scan_inputs=1)
        return save(path, [loop], [info("x", ["time", 1, 3])], [info("last")], [*initializers, zeros, axis])
    take = helper.make_node("Gather", ["x", "number"], ["x_one"], axis=0)
    body = helper.make_graph(
        [
            take,
            helper.make_node("Unsqueeze", ["x_one", "axis"], ["x_t"]),
            *step,
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [info("number", [], INT64), info("go", [], BOOL), info("h", [1, 1, 4])],
        [info("on", [], BOOL), info("h_after", [1, 1, 4])],
    )
    true = numpy_helper.from_array(np.array(True), "true")
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rounds"], axis=0),
        helper.make_node("Loop", ["rounds", "true", "zeros"], ["last"], body=body),
    ]
    zero = numpy_helper.from_array(np.array(0), "zero")
    return save(path, nodes, [info("x", ["time", 1, 3])], [info("last")], [*initializers, zeros, axis, true, zero])


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_a_node_in_a_loop(tmp_path: Path, kind: str) -> None:
    flat = dc.OnnxSystem(gru(tmp_path / "flat.onnx")).run(data())
    system = dc.OnnxSystem(in_a_loop(tmp_path / "loop.onnx", kind), batch_first=False)
    for one, other in zip(system.run(data()), flat, strict=True):
        np.testing.assert_allclose(one.traced.states, other.traced.states, atol=1e-6)
        np.testing.assert_allclose(one.traced.inputs, other.traced.inputs, atol=1e-6)
    broken = dc.OnnxSystem(in_a_loop(tmp_path / "apart.onnx", kind, handed_on=False), batch_first=False)
    with pytest.raises(dc.InputError, match="iteration 2 of the loop around 'gru' does not start from the state"):
        broken.run(data())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"activations": ["Sigmoid", "Sigmoid", "Tanh"]}, "other activations"),
        ({"clip": 0.5}, "clip"),
        ({"input_forget": 1}, "input_forget"),
    ],
)
def test_c_is_computed_for_the_usual_lstm_only(tmp_path: Path, option: dict[str, Any], message: str) -> None:
    def written(**options: Any) -> Path:
        lstm = node("LSTM", "", "x", ["", "last", "memory"], size=4, **options)
        ends = [info("last", [1, "batch", 4]), info("memory", [1, "batch", 4])]
        return save(
            tmp_path / "net.onnx", [lstm], [info("x", ["time", "batch", 3])], ends, weights("", 4, 4, 3, seed=1)
        )

    usual = dc.OnnxSystem(written(activations=["Sigmoid", "Tanh", "Tanh"]), part="c", batch_first=False)
    for run in usual.run(data()):
        np.testing.assert_allclose(run.traced.states[-1], np.ravel(run.output["memory"]), atol=1e-5)
    path = written(**option)
    with pytest.raises(dc.InputError, match=f"c of 'last' cannot be computed, as it has {message}; use part='h'"):
        dc.OnnxSystem(path, part="c", batch_first=False)


def two_cores(path: Path) -> Path:
    """An LSTM that reads backward, a linear map, and a GRU of another size."""
    matrix = numpy_helper.from_array(np.random.default_rng(3).standard_normal((5, 2)).astype(np.float32), "matrix")
    nodes = [
        node("LSTM", "encoder", "x", ["e"], size=5, direction="reverse"),
        helper.make_node("Squeeze", ["e", "one"], ["s"]),
        helper.make_node("MatMul", ["s", "matrix"], ["m"]),
        node("GRU", "decoder", "m", ["d"], size=4),
        helper.make_node("Squeeze", ["d", "one"], ["y"]),
    ]
    one = numpy_helper.from_array(np.array([1]), "one")
    initializers = [*weights("encoder", 4, 5, 3, seed=1), *weights("decoder", 3, 4, 2, seed=2), matrix, one]
    return save(path, nodes, [info("x", ["time", "batch", 3])], [info("y", ["time", "batch", 4])], initializers)


def test_several_cores(tmp_path: Path) -> None:
    path = two_cores(tmp_path / "two.onnx")
    last, first = dc.OnnxSystem(path), dc.OnnxSystem(path, "encoder")
    assert last.state_name == "decoder: h"
    assert first.state_name == "encoder: h"
    assert last.fingerprint != first.fingerprint
    for one, other, sequence in zip(last.run(data()), first.run(data()), data(), strict=True):
        assert one.traced.states.shape == (len(sequence) + 1, 4)
        np.testing.assert_allclose(one.output, one.traced.states[1:], atol=1e-6)
        assert other.traced.states.shape == (len(sequence) + 1, 5)
        assert np.array_equal(other.traced.inputs, sequence[::-1]), "a node that reads backward, in its own order"
    message = (
        r"no recurrent node 'lstm' .*; its recurrent nodes are: encoder \(LSTM, reverse\); decoder \(GRU, forward\)"
    )
    with pytest.raises(dc.InputError, match=message):
        dc.OnnxSystem(path, "lstm")
    with pytest.raises(dc.InputError, match="'decoder' is a GRU, and only an LSTM has c"):
        dc.OnnxSystem(path, part="c")
    with pytest.raises(dc.InputError, match="reads backward only"):
        dc.OnnxSystem(path, "encoder", direction="forward")


def test_weights_in_a_file_beside_it(tmp_path: Path) -> None:
    path = gru(tmp_path / "net.onnx")
    model = onnx.load(path)
    apart = tmp_path / "apart" / "net.onnx"
    apart.parent.mkdir()
    onnx.save(model, apart, save_as_external_data=True, location="weights.bin", size_threshold=0)
    for one, other in zip(dc.OnnxSystem(apart).run(data()), dc.OnnxSystem(path).run(data()), strict=True):
        assert np.array_equal(one.traced.states, other.traced.states)
    before = dc.OnnxSystem(apart).fingerprint
    beside = apart.parent / "weights.bin"
    beside.write_bytes(bytes(reversed(beside.read_bytes())))
    assert dc.OnnxSystem(apart).fingerprint != before
    beside.unlink()
    with pytest.raises(dc.FileError, match=r"keeps weights in 'weights\.bin', which is not in the same folder"):
        dc.OnnxSystem(apart)


def test_weights_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"0" * 1000)
    folder = tmp_path / "inner"
    folder.mkdir()
    model = onnx.load(gru(folder / "net.onnx"))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(dc.FileError, match=r"'\.\./secret', which is outside its folder"):
        dc.OnnxSystem(folder / "net.onnx")


def test_a_fixed_batch_that_is_too_large_is_refused() -> None:
    layout = InputLayout(Port("x", np.dtype("float32"), (2**40, "time", 4)), batch=0, time=1)
    with pytest.raises(dc.FileError, match=r"a batch of 1,099,511,627,776 inputs would take .* bytes, more than the"):
        layout.arrange([np.zeros((5, 4), np.float32)])
