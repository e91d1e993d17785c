"""KerasSystem against numpy: files as Keras 2 wrote them, with every kind and option of recurrent layers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.systems.keras.network import KerasNetwork
from tests.support.keras2 import (
    Array,
    bidirectional,
    dense,
    functional,
    input_layer,
    rnn,
    rnn_weights,
    sequential,
    states,
    wrapped,
    write,
)

pytestmark = pytest.mark.skipif(
    not find_spec("keras") or not find_spec("h5py"), reason="pip install 'deepcruiser[keras]'"
)

SIZE, UNITS = 3, 4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def sequences(rng: np.random.Generator, *lengths: int) -> list[Array]:
    return [rng.normal(0, 1, (length, SIZE)).astype(np.float32) for length in lengths]


def close(result: Any, wanted: Array, at_most: float = 2e-6) -> bool:
    result = np.asarray(result)
    return result.shape == wanted.shape and float(np.abs(result - wanted).max(initial=0)) <= at_most


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "SimpleRNN": ("SimpleRNN", {}),
    "SimpleRNN relu": ("SimpleRNN", {"activation": "relu"}),
    "LSTM": ("LSTM", {}),
    "LSTM sigmoid": ("LSTM", {"recurrent_activation": "sigmoid", "implementation": 2}),
    "LSTM of tf.keras": (
        "LSTM",
        {"time_major": False, "dtype": {"class_name": "Policy", "config": {"name": "float32"}}},
    ),
    "GRU that does not say": ("GRU", {}),
    "GRU before": ("GRU", {"reset_after": False, "activation": "relu"}),
    "GRU after": ("GRU", {"reset_after": True, "recurrent_activation": "sigmoid"}),
    "unrolled": ("LSTM", {"unroll": True, "implementation": 0}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("all_steps", [True, False], ids=["sequences", "last"])
def test_every_kind_as_its_formula(
    kind: str, backwards: bool, all_steps: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    name, options = KINDS[kind]
    layer = rnn(name, "core", UNITS, return_sequences=all_steps, go_backwards=backwards, **options)
    layer["config"]["batch_input_shape"] = [None, 6 if kind == "unrolled" else None, SIZE]
    weights = rnn_weights(name, SIZE, UNITS, rng, reset_after=options.get("reset_after", False))
    path = write(tmp_path / "net.h5", sequential([layer], as_list=True), {"core": weights})
    inputs = sequences(rng, 6, 6) if kind == "unrolled" else sequences(rng, 5, 9, 1)

    system = dc.KerasSystem(path)
    for run, x in zip(system.run(inputs), inputs, strict=True):
        x = x[::-1] if backwards else x
        h, _ = states(name, weights, x, layer["config"])
        assert close(run.traced.states, h)
        assert close(run.traced.inputs, x)
        assert close(run.output, h[1:] if all_steps else h[-1])
    assert system.state_name == "core: h"
    if name == "LSTM":
        for run, x in zip(dc.KerasSystem(path, part="c").run(inputs), inputs, strict=True):
            assert close(run.traced.states, states(name, weights, x[::-1] if backwards else x, layer["config"])[1])


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["both", "forward", "backward"])
def test_both_directions(kind: str, direction: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    layer = rnn(kind, "one", UNITS)
    both = bidirectional(layer, "bi", batch_input_shape=[None, None, SIZE])
    fore, back = (rnn_weights(kind, SIZE, UNITS, rng) for _ in range(2))
    top = [rng.normal(0, 1, (2 * UNITS, 2)).astype(np.float32), np.zeros(2, np.float32)]
    model = sequential([both, wrapped(dense("dense_1", 2), "top")])
    path = write(tmp_path / "net.h5", model, {"bi": [*fore, *back], "top": top})
    system = dc.KerasSystem(path, direction=direction)
    inputs = sequences(rng, 7, 7, 3)
    for run, x in zip(system.run(inputs), inputs, strict=True):
        one, _ = states(kind, fore, x, layer["config"])
        other, _ = states(kind, back, x[::-1], layer["config"])
        in_time = np.concatenate((other[:1], other[:0:-1]))
        wanted = {"forward": one, "backward": other, "both": np.concatenate((one, in_time), 1)}[direction]
        assert close(run.traced.states, wanted)
        assert close(run.traced.inputs, x[::-1] if direction == "backward" else x)
        assert close(run.output, np.concatenate((one, in_time), 1)[1:] @ top[0] + top[1], 1e-5)
    assert system.state_name == f"bi: h, {'both directions' if direction == 'both' else direction}"


def stacked(tmp_path: Path, rng: np.random.Generator) -> tuple[Path, dict[str, list[Array]], list[dict[str, Any]]]:
    layers = [rnn("GRU", "rnn-0", UNITS), rnn("LSTM", "rnn-1", UNITS + 1)]
    weights = {
        "rnn-0": rnn_weights("GRU", SIZE, UNITS, rng),
        "norm": [np.abs(rng.normal(1, 0.1, UNITS)).astype(np.float32) for _ in range(4)],
        "rnn-1": rnn_weights("LSTM", UNITS, UNITS + 1, rng),
    }
    norm = {
        "class_name": "BatchNormalization",
        "config": {"name": "norm", "axis": -1, "epsilon": 0.001, "momentum": 0.99},
    }
    model = functional(
        [
            (input_layer("the_input", [None, None, SIZE]), []),
            (layers[0], ["the_input"]),
            (norm, ["rnn-0"]),
            (layers[1], ["norm"]),
        ],
        ["the_input"],
        ["rnn-1"],
    )
    return write(tmp_path / "net.h5", model, weights), weights, layers


def through(weights: dict[str, list[Array]], layers: list[dict[str, Any]], x: Array) -> tuple[Array, Array, Array]:
    """h of both layers, and what the second one receives."""
    first, _ = states("GRU", weights["rnn-0"], x, layers[0]["config"])
    gamma, beta, mean, variance = weights["norm"]
    between = (first[1:] - mean) / np.sqrt(variance + 0.001) * gamma + beta
    return first, states("LSTM", weights["rnn-1"], between, layers[1]["config"])[0], between


def test_which_layer(tmp_path: Path, rng: np.random.Generator) -> None:
    path, weights, layers = stacked(tmp_path, rng)
    (x,) = sequences(rng, 8)
    first, last, between = through(weights, layers, x)
    systems = [dc.KerasSystem(path), dc.KerasSystem(path, "rnn-0"), dc.KerasSystem(path, layer="all")]
    runs = [system.run([x])[0] for system in systems]
    assert close(runs[0].traced.states, last, 1e-5)
    assert close(runs[0].traced.inputs, between, 1e-5)
    assert close(runs[1].traced.states, first)
    assert close(runs[1].traced.inputs, x)
    assert close(runs[2].traced.states, np.concatenate((first, last), 1), 1e-5)
    assert close(runs[2].traced.inputs, x)
    assert [system.state_name for system in systems] == ["rnn-1: h", "rnn-0: h", "rnn-0, rnn-1: h side by side"]
    assert len({system.fingerprint for system in systems}) == 3
    assert dc.KerasSystem(path).fingerprint == systems[0].fingerprint


def test_padded_runs_are_those_of_one_alone(tmp_path: Path, rng: np.random.Generator) -> None:
    path, _, _ = stacked(tmp_path, rng)
    inputs = sequences(rng, 4, 9, 6)
    alone, together = dc.KerasSystem(path).run(inputs), dc.KerasSystem(path, batch="padded").run(inputs)
    for one, other, x in zip(alone, together, inputs, strict=True):
        assert len(one.traced) == len(other.traced) == len(other.output) == len(x)
        assert close(other.traced.states, np.asarray(one.traced.states))
        assert close(other.output, one.output)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_masked_steps_are_not_part_of_a_trace(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    masking = {
        "class_name": "Masking",
        "config": {"name": "mask", "mask_value": -9.0, "batch_input_shape": [None, 8, SIZE]},
    }
    layer = rnn(kind, "one", UNITS, return_sequences=False)
    fore, back = (rnn_weights(kind, SIZE, UNITS, rng) for _ in range(2))
    model = sequential([masking, bidirectional(layer, "bi")])
    path = write(tmp_path / "net.h5", model, {"mask": [], "bi": [*fore, *back]})
    inputs = sequences(rng, 5, 8, 3)
    inputs[1][2] = -9.0  # a gap in the middle
    for run, x in zip(dc.KerasSystem(path, batch="padded").run(inputs), inputs, strict=True):
        kept = x[x[:, 0] != -9.0]
        one, _ = states(kind, fore, kept, layer["config"])
        other, _ = states(kind, back, kept[::-1], layer["config"])
        assert close(run.traced.states, np.concatenate((one, np.concatenate((other[:1], other[:0:-1]))), 1))
        assert close(run.traced.inputs, kept)
        assert close(run.output, np.concatenate((one[-1], other[-1])))


@pytest.mark.parametrize("steps", [1, 4, None])
def test_a_stateful_network_starts_afresh_and_reads_on(
    steps: int | None, tmp_path: Path, rng: np.random.Generator
) -> None:
    layer = rnn("GRU", "one", UNITS, stateful=True, batch_input_shape=[2, steps, SIZE])
    weights = rnn_weights("GRU", SIZE, UNITS, rng)
    path = write(tmp_path / "net.h5", sequential([layer]), {"one": weights})
    inputs = sequences(rng, 8, 8, 6)
    system = dc.KerasSystem(path)
    for _ in range(2):  # what it stored the first time must not matter
        for run, x in zip(system.run(inputs), inputs, strict=True):
            h, _ = states("GRU", weights, x, layer["config"])
            assert close(run.traced.states, h)
            assert close(run.output, h[1:])


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3)])
@pytest.mark.parametrize("two_ways", [False, True])
def test_layers_of_cudnn(kind: str, gates: int, two_ways: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    """cuDNN computes W x for a W that is stored row by row, [units, size]; and has two biases."""

    def drawn() -> tuple[list[Array], list[Array]]:
        W, U = (rng.normal(0, 0.5, (gates, UNITS, size)).astype(np.float32) for size in (SIZE, UNITS))
        b = rng.normal(0, 0.5, (2, gates * UNITS)).astype(np.float32)
        stored = [np.concatenate([gate.reshape(gate.shape[::-1]) for gate in matrix], 1) for matrix in (W, U)]
        plain = [np.concatenate([gate.T for gate in matrix], 1) for matrix in (W, U)]
        return [*stored, b.reshape(-1)], [*plain, b.sum(0) if kind == "LSTM" else b]

    (stored, plain), (stored_back, _) = drawn(), drawn()
    config = {"name": "one", "units": UNITS, "return_sequences": True, "stateful": False}
    layer = {"class_name": f"CuDNN{kind}", "config": config}
    first = bidirectional(layer, "bi", batch_input_shape=[None, None, SIZE]) if two_ways else layer
    first["config"]["batch_input_shape"] = [None, None, SIZE]  # type: ignore[index]
    weights = {"bi": [*stored, *stored_back]} if two_ways else {"one": stored}
    path = write(tmp_path / "net.h5", sequential([first]), weights)
    (x,) = sequences(rng, 7)
    (run,) = dc.KerasSystem(path, direction="forward").run([x])
    activations = {"activation": "tanh", "recurrent_activation": "sigmoid"}
    assert close(run.traced.states, states(kind, plain, x, activations)[0])


def test_an_embedding_masks_and_a_network_within_a_network(tmp_path: Path, rng: np.random.Generator) -> None:
    layer = rnn("LSTM", "lstm", UNITS, return_sequences=False)
    table = rng.normal(0, 1, (11, SIZE)).astype(np.float32)
    weights = rnn_weights("LSTM", SIZE, UNITS, rng)
    top = [rng.normal(0, 1, (UNITS, 2)).astype(np.float32), rng.normal(0, 1, 2).astype(np.float32)]
    words = {
        "class_name": "Embedding",
        "config": {"name": "words", "input_dim": 11, "output_dim": SIZE, "mask_zero": True, "input_length": None},
    }
    words["config"]["batch_input_shape"] = [None, None]  # type: ignore[index]
    inner = sequential([words, layer])
    inner["config"]["name"] = "encoder"
    model = sequential([{**inner}, dense("top", 2)])
    path = write(tmp_path / "net.h5", model, {"encoder": [table, *weights], "top": top})
    system = dc.KerasSystem(path, "encoder.lstm", batch="padded", features=np.array)
    texts = [[3, 1, 10], [5, 5, 2, 8, 9]]
    for run, text in zip(system.run(texts), texts, strict=True):
        h, _ = states("LSTM", weights, table[text], layer["config"])
        assert close(run.traced.states, h)
        assert close(run.output, h[-1] @ top[0] + top[1], 1e-5)


def test_the_state_of_one_layer_starts_another(tmp_path: Path, rng: np.random.Generator) -> None:
    """An encoder and a decoder, with what came in as one list in Keras 2, and as an option in tf.keras."""
    first, second = rnn("GRU", "encoder", UNITS, return_state=True), rnn("GRU", "decoder", UNITS)
    weights = {name: rnn_weights("GRU", SIZE, UNITS, rng) for name in ("encoder", "decoder")}
    inputs: list[Any] = [(input_layer("a", [None, None, SIZE]), []), (input_layer("b", [None, None, SIZE]), [])]
    model = functional([*inputs, (first, ["a"]), (second, ["b"])], ["a", "b"], ["decoder"])
    for node in ([["b", 0, 0, {}], ["encoder", 0, 1, {}]], [["b", 0, 0, {"initial_state": [["encoder", 0, 1]]}]]):
        model["config"]["layers"][3]["inbound_nodes"] = [node]
        path = write(tmp_path / "net.h5", model, weights)
        x, y = sequences(rng, 4, 6)
        for pair in ((x, y), {"b": y, "a": x}):
            (run,) = dc.KerasSystem(path, features=lambda value: value).run([pair])
            before, _ = states("GRU", weights["encoder"], x, first["config"])
            assert close(np.asarray(run.traced.states)[0], before[-1])
            assert close(run.traced.inputs, y)
        with pytest.raises(dc.InputError, match=r"makes 1 arrays, but the network takes 2: a, b"):
            dc.KerasSystem(path).run([x])


def test_time_first(tmp_path: Path, rng: np.random.Generator) -> None:
    layer = rnn("LSTM", "one", UNITS, time_major=True, batch_input_shape=[None, None, SIZE])
    weights = rnn_weights("LSTM", SIZE, UNITS, rng)
    path = write(tmp_path / "net.h5", sequential([layer]), {"one": weights})
    inputs = sequences(rng, 5, 5)
    for run, x in zip(dc.KerasSystem(path, batch_first=False).run(inputs), inputs, strict=True):
        h, _ = states("LSTM", weights, x, layer["config"])
        assert close(run.traced.states, h)
        assert close(run.output, h[1:])


@pytest.mark.parametrize("return_sequences", [True, False])
def test_a_padded_batch_of_a_bidirectional_network_is_one_call(
    return_sequences: bool, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [rnn("LSTM", "one", UNITS), rnn("GRU", "two", UNITS, return_sequences=return_sequences)]
    both = [bidirectional(layers[0], "low", batch_input_shape=[None, None, SIZE]), bidirectional(layers[1], "high")]
    weights = {
        "low": [*rnn_weights("LSTM", SIZE, UNITS, rng), *rnn_weights("LSTM", SIZE, UNITS, rng)],
        "high": [*rnn_weights("GRU", 2 * UNITS, UNITS, rng), *rnn_weights("GRU", 2 * UNITS, UNITS, rng)],
    }
    path = write(tmp_path / "net.h5", sequential(both), weights)
    inputs = sequences(rng, 3, 7, 5)
    alone, system = dc.KerasSystem(path).run(inputs), dc.KerasSystem(path, batch="padded")
    calls, call = [], KerasNetwork._call

    def counted(network: KerasNetwork, piece: Any) -> Any:
        calls.append(len(piece[0]))
        return call(network, piece)

    monkeypatch.setattr(KerasNetwork, "_call", counted)
    for one, other in zip(alone, system.run(inputs), strict=True):
        assert close(other.traced.states, np.asarray(one.traced.states))
        assert close(other.traced.inputs, np.asarray(one.traced.inputs))
        assert close(other.output, one.output)
    assert calls == [3]


def test_padding_to_a_fixed_length_never_flows_backwards(tmp_path: Path, rng: np.random.Generator) -> None:
    both = bidirectional(rnn("LSTM", "one", UNITS), "bi", batch_input_shape=[None, 6, SIZE])
    weights = [*rnn_weights("LSTM", SIZE, UNITS, rng), *rnn_weights("LSTM", SIZE, UNITS, rng)]
    path = write(tmp_path / "net.h5", sequential([both]), {"bi": weights})
    with pytest.raises(dc.InputError, match=r"reads backwards received inputs padded to a fixed length without a mask"):
        dc.KerasSystem(path, batch="padded").run(sequences(rng, 3, 5))
    assert [len(run.traced) for run in dc.KerasSystem(path).run(sequences(rng, 6, 6))] == [6, 6]
