"""Files in the format of Keras 2, made without it, and its recurrent layers as loops in numpy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
GATES = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def hard_sigmoid(x: Array) -> Array:
    return np.clip(0.2 * x + 0.5, 0, 1)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "sigmoid": sigmoid,
    "hard_sigmoid": hard_sigmoid,
}


def rnn_weights(
    kind: str, size: int, units: int, rng: np.random.Generator, *, reset_after: bool = False
) -> list[Array]:
    width = GATES[kind] * units
    bias = (2, width) if reset_after else (width,)
    return [rng.normal(0, 0.4, shape).astype(np.float32) for shape in ((size, width), (units, width), bias)]


def states(kind: str, weights: Sequence[Array], x: Array, config: dict[str, Any]) -> tuple[Array, Array]:
    """h_0..h_N and c_0..c_N (of an LSTM) of one sequence [time, size], step by step."""
    W, U, b = (np.asarray(weight, np.float64) for weight in weights)
    units = len(U)
    act, gate = ACTIVATIONS[config["activation"]], ACTIVATIONS[config.get("recurrent_activation", "linear")]
    h, c = np.zeros(units), np.zeros(units)
    hs, cs = [h], [c]
    for x_t in x.astype(np.float64):
        if kind == "SimpleRNN":
            h = act(x_t @ W + b + h @ U)
        elif kind == "LSTM":
            i, f, g, o = np.split(x_t @ W + b + h @ U, 4)
            c = gate(f) * c + gate(i) * act(g)
            h = gate(o) * act(c)
        else:
            z_U, r_U, h_U = np.split(U, 3, axis=1)
            b_in, b_state = (b[0], b[1]) if b.ndim == 2 else (b, np.zeros_like(b))
            z_x, r_x, h_x = np.split(x_t @ W + b_in, 3)
            z_b, r_b, h_b = np.split(b_state, 3)
            z, r = gate(z_x + h @ z_U + z_b), gate(r_x + h @ r_U + r_b)
            new = act(h_x + r * (h @ h_U + h_b)) if b.ndim == 2 else act(h_x + (r * h) @ h_U)
            h = z * h + (1 - z) * new
        hs.append(h)
        cs.append(c)
    return np.array(hs), np.array(cs)


def rnn(kind: str, name: str, units: int, **options: Any) -> dict[str, Any]:
    """A recurrent layer as Keras 2.2 describes it."""
    config: dict[str, Any] = {
        "name": name,
        "trainable": True,
        "return_sequences": True,
        "return_state": False,
        "go_backwards": False,
        "stateful": False,
        "unroll": False,
        "units": units,
        "activation": "tanh",
        "use_bias": True,
        "kernel_initializer": {"class_name": "VarianceScaling", "config": {"scale": 1.0, "mode": "fan_avg"}},
        "recurrent_initializer": {"class_name": "Orthogonal", "config": {"gain": 1.0, "seed": None}},
        "bias_initializer": {"class_name": "Zeros", "config": {}},
        "kernel_regularizer": None,
        "activity_regularizer": None,
        "kernel_constraint": None,
        "dropout": 0.1,
        "recurrent_dropout": 0.0,
    }
    if kind != "SimpleRNN":
        config |= {"recurrent_activation": "hard_sigmoid", "implementation": 1}
    if kind == "LSTM":
        config["unit_forget_bias"] = True
    return {"class_name": kind, "config": {**config, **options}}


def bidirectional(layer: dict[str, Any], name: str, merge_mode: str = "concat", **options: Any) -> dict[str, Any]:
    config = {"name": name, "trainable": True, "layer": layer, "merge_mode": merge_mode, **options}
    return {"class_name": "Bidirectional", "config": config}


def dense(name: str, units: int, activation: str = "linear", **options: Any) -> dict[str, Any]:
    return {"class_name": "Dense", "config": {"name": name, "units": units, "activation": activation, **options}}


def wrapped(layer: dict[str, Any], name: str) -> dict[str, Any]:
    return {"class_name": "TimeDistributed", "config": {"name": name, "trainable": True, "layer": layer}}


def input_layer(name: str, shape: Sequence[int | None]) -> dict[str, Any]:
    config = {"batch_input_shape": list(shape), "dtype": "float32", "sparse": False, "name": name}
    return {"class_name": "InputLayer", "config": config}


def lambda_layer(name: str) -> dict[str, Any]:
    code = ["\u00e3\u0001", None, None]
    config = {"name": name, "function": code, "function_type": "lambda", "output_shape": [1], "arguments": {}}
    return {"class_name": "Lambda", "config": config}


def sequential(layers: Sequence[dict[str, Any]], *, as_list: bool = False) -> dict[str, Any]:
    return {"class_name": "Sequential", "config": list(layers) if as_list else {"name": "seq", "layers": list(layers)}}


def functional(
    layers: Sequence[tuple[dict[str, Any], list[Any]]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    kind: str = "Model",
) -> dict[str, Any]:
    entries = [
        {**layer, "name": layer["config"]["name"], "inbound_nodes": [[[n, 0, 0, {}] for n in above]] if above else []}
        for layer, above in layers
    ]
    ends = {"input_layers": [[n, 0, 0] for n in inputs], "output_layers": [[n, 0, 0] for n in outputs]}
    return {"class_name": kind, "config": {"name": "net", "layers": entries, **ends}}


def write(path: Path, model: dict[str, Any] | None, weights: dict[str, list[Array]], *, version: str = "2.2.4") -> Path:
    """An HDF5 file with the description and the weights, as model.save() made it."""
    import h5py

    with h5py.File(path, "w") as file:
        root = file if model is None else file.create_group("model_weights")
        if model is not None:
            file.attrs["model_config"] = json.dumps(model).encode()
            file.attrs["training_config"] = json.dumps({"loss": {"ctc": "<lambda>"}, "optimizer_config": {}}).encode()
            file.create_group("optimizer_weights").create_dataset("SGD/iterations:0", data=3)
        for attrs in (file.attrs, root.attrs):
            attrs["keras_version"], attrs["backend"] = version.encode(), b"tensorflow"
        root.attrs["layer_names"] = [name.encode() for name in weights]
        for name, arrays in weights.items():
            group = root.create_group(name)
            names = [f"{name}/w_{number}:0" for number in range(len(arrays))]
            group.attrs["weight_names"] = [one.encode() for one in names]
            for one, array in zip(names, arrays, strict=True):
                group.create_dataset(one, data=array)
    return path
