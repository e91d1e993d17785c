"""Files of the signature of Mozilla DeepSpeech and Coqui STT: `python -m tests.deepspeech_files FOLDER [HIDDEN]`.

The weights are random; names, ranks and operations are those that the projects' export makes: version 0.3 to 0.5 (the
state in variables, `initialize_state`), from 0.6 on (the state goes in and comes out, features and metadata in the
graph), the same as memory-mapped packages, and TensorFlow Lite (steps unrolled).
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, CONTEXT, STEPS, CLASSES = 26, 9, 16, 29
ALPHABET = " abcdefghijklmnopqrstuvwxyz'"
CELL = "cudnn_lstm/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell"


def weights(hidden: int, seed: int = 0) -> dict[str, Any]:
    """Weights large enough that the answers vary."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, gain: float) -> Any:
        return rng.normal(0, gain / np.sqrt(rows), (rows, columns)).astype(np.float32)

    made: dict[str, Any] = {}
    sizes = {
        "layer_1": (FEATURES * (2 * CONTEXT + 1), hidden),
        "layer_2": (hidden, hidden),
        "layer_3": (hidden, hidden),
    }
    sizes |= {"layer_5": (hidden, hidden), "layer_6": (hidden, CLASSES)}
    for name, (rows, columns) in sizes.items():
        made[f"{name}/weights"] = matrix(rows, columns, 6.0 if name in ("layer_5", "layer_6") else 1.0)
        made[f"{name}/bias"] = rng.normal(0, 0.1, columns).astype(np.float32)
    made["kernel"] = matrix(2 * hidden, 4 * hidden, 1.5)
    made["bias"] = rng.normal(0, 0.1, 4 * hidden).astype(np.float32)
    return made


def plain(w: dict[str, Any], windows: Any) -> tuple[Any, Any, Any, Any]:
    """Probabilities, c, h and the LSTM's inputs for [steps, window], one step after the other."""

    def dense(name: str, x: Any) -> Any:
        return np.minimum(np.maximum(x @ w[f"{name}/weights"] + w[f"{name}/bias"], 0), 20)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    w = {name: value.astype(np.float64) for name, value in w.items()}
    size = len(w["bias"]) // 4
    c = h = np.zeros(size)
    rows = []
    for window in windows.astype(np.float64):
        x = dense("layer_3", dense("layer_2", dense("layer_1", window.ravel())))
        i, j, f, o = np.split(np.concatenate([x, h]) @ w["kernel"] + w["bias"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
        h = sigmoid(o) * np.tanh(c)
        logits = dense("layer_5", h) @ w["layer_6/weights"] + w["layer_6/bias"]
        rows.append((np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum(), c, h, x))
    return tuple(np.stack(part) for part in zip(*rows, strict=True))  # type: ignore[return-value]


def serialised(alphabet: str) -> bytes:
    """The alphabet as the graph carries it."""
    data = struct.pack("<H", len(alphabet))
    for number, symbol in enumerate(alphabet):
        data += struct.pack("<HH", number, len(symbol.encode())) + symbol.encode()
    return data


def network(w: dict[str, Any], kind: str) -> tuple[list[Any], list[Any], list[str]]:
    """Build the inference graph in the default graph; its inputs, outputs and the nodes to keep."""
    import tensorflow as tf

    v1 = tf.compat.v1
    size = len(w["bias"]) // 4
    window = 2 * CONTEXT + 1

    def dense(name: str, x: Any, *, relu: bool = True) -> Any:
        with v1.name_scope(name):
            bias, matrix = (
                tf.constant(w[f"{name}/bias"], name="bias"),
                tf.constant(w[f"{name}/weights"], name="weights"),
            )
        result = tf.nn.bias_add(v1.matmul(x, matrix), bias)
        return tf.minimum(tf.nn.relu(result), 20.0) if relu else result

    samples = v1.placeholder(tf.float32, [512], "input_samples")
    spectrogram = tf.raw_ops.AudioSpectrogram(
        input=tf.expand_dims(samples, -1), window_size=512, stride=320, magnitude_squared=True
    )
    features = tf.raw_ops.Mfcc(
        spectrogram=spectrogram, sample_rate=16000, dct_coefficient_count=FEATURES, upper_frequency_limit=8000
    )
    mfccs = tf.identity(tf.reshape(features, [-1, FEATURES]), name="mfccs")
    fed = v1.placeholder(tf.float32, [1, STEPS, window, FEATURES], "input_node")
    lengths = v1.placeholder(tf.int32, [1], "input_lengths")
    if kind == "old":
        before_c, before_h = (
            tf.raw_ops.VariableV2(shape=[1, size], dtype=tf.float32, name=f"previous_state_{part}") for part in "ch"
        )
    else:
        before_c, before_h = (v1.placeholder(tf.float32, [1, size], f"previous_state_{part}") for part in "ch")
    x = tf.reshape(tf.transpose(fed, [1, 0, 2, 3]), [-1, window * FEATURES])
    x = tf.reshape(dense("layer_3", dense("layer_2", dense("layer_1", x))), [-1, 1, size])
    if kind == "lite":
        outputs, c, h = [], before_c, before_h
        kernel, bias = tf.constant(w["kernel"]), tf.constant(w["bias"])
        for step in range(STEPS):
            with v1.name_scope(CELL):
                gates = tf.nn.bias_add(v1.matmul(tf.concat([x[step], h], 1), kernel), bias)
                i, j, f, o = tf.split(gates, 4, axis=1)
                c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
                h = tf.tanh(c) * tf.sigmoid(o)
            outputs.append(h)
        output = tf.concat(outputs, 0)
    else:
        zeros = tf.zeros([size])
        block = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(tf.reduce_max(lengths), tf.int64),
            x=x,
            cs_prev=tf.identity(before_c),
            h_prev=tf.identity(before_h),
            w=tf.constant(w["kernel"]),
            wci=zeros,
            wcf=zeros,
            wco=zeros,
            b=tf.constant(w["bias"]),
            forget_bias=0.0,
            cell_clip=-1.0,
            name=f"{CELL}/BlockLSTM",
        )
        last = tf.reduce_max(lengths) - 1
        c, h = block.cs[last], block.h[last]
        output = tf.reshape(block.h, [-1, size])
    logits = tf.reshape(dense("layer_6", dense("layer_5", output), relu=False), [-1, 1, CLASSES], name="raw_logits")
    if kind == "lite":
        logits = tf.squeeze(logits, [1])
    if kind == "old":
        probabilities = tf.nn.softmax(logits)
        zero = tf.zeros([1, size])
        tf.group(v1.assign(before_c, zero), v1.assign(before_h, zero), name="initialize_state")
        with tf.control_dependencies([v1.assign(before_c, c), v1.assign(before_h, h)]):
            tf.identity(probabilities, name="logits")
        return [], [], ["logits", "initialize_state"]
    outputs = [
        tf.nn.softmax(logits, name="logits"),
        tf.identity(c, name="new_state_c"),
        tf.identity(h, name="new_state_h"),
    ]
    outputs.append(mfccs)
    for name, value in (("version", 6), ("sample_rate", 16000), ("feature_win_len", 32), ("feature_win_step", 20)):
        outputs.append(tf.constant([value], name=f"metadata_{name}"))
    outputs.append(tf.constant([serialised(ALPHABET)], name="metadata_alphabet"))
    return [fed, before_c, before_h, samples], outputs, [tensor.op.name for tensor in outputs]


def frozen(w: dict[str, Any], kind: str) -> Any:
    """The graph as it is exported."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        keep = network(w, kind)[2]
        return tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), keep)


def write_pb(path: Path, w: dict[str, Any], kind: str = "new") -> None:
    path.write_bytes(frozen(w, kind).SerializeToString())


def write_pbmm(path: Path, w: dict[str, Any], kind: str = "new", *, least_bytes: int = 1000) -> None:
    """As TensorFlow's convert_graphdef_memmapped_format: large constants beside the graph, a directory behind."""
    from tensorflow.core.util import memmapped_file_system_pb2 as packages
    from tensorflow.python.framework import tensor_util

    graph = frozen(w, kind)
    data, directory = bytearray(), packages.MemmappedFileSystemDirectory()

    def add(name: str, content: bytes) -> None:
        data.extend(bytes(-len(data) % 64))
        directory.element.add(offset=len(data), name=name, length=len(content))
        data.extend(content)

    for number, node in enumerate(graph.node):
        if node.op == "Const" and len(node.attr["value"].tensor.tensor_content) >= least_bytes:
            value = tensor_util.MakeNdarray(node.attr["value"].tensor)
            shape, kept = node.attr["value"].tensor.tensor_shape, node.attr["dtype"].type
            name = f"memmapped_package://{number}"
            node.op = "ImmutableConst"
            node.ClearField("attr")
            node.attr["dtype"].type = kept
            node.attr["shape"].shape.CopyFrom(shape)
            node.attr["memory_region_name"].s = name.encode()
            add(name, value.tobytes())
    add("memmapped_package://.", graph.SerializeToString())
    path.write_bytes(bytes(data) + directory.SerializeToString() + struct.pack("<Q", len(data)))


def write_tflite(path: Path, w: dict[str, Any], *, quantised: bool = False) -> None:
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs, outputs, _ = network(w, "lite")
        converter = tf.compat.v1.lite.TFLiteConverter.from_session(session, inputs, outputs)
        converter.allow_custom_ops = True
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if quantised else []
        path.write_bytes(converter.convert())


def write_alphabet(path: Path) -> None:
    lines = "\n".join(ALPHABET)
    path.write_text(
        f"# Each line is one symbol.\n{lines}\n# The last (non-comment) line needs to end with a newline.\n"
    )


def write_all(folder: Path, hidden: int = 32, seed: int = 0) -> dict[str, Any]:
    """All five files and the alphabet; the weights."""
    w = weights(hidden, seed)
    write_pb(folder / "old.pb", w, "old")
    write_pb(folder / "new.pb", w)
    write_pbmm(folder / "old.pbmm", w, "old")
    write_pbmm(folder / "new.pbmm", w)
    write_tflite(folder / "new.tflite", w)
    write_alphabet(folder / "alphabet.txt")
    return w


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), hidden=int(sys.argv[2]) if len(sys.argv) > 2 else 32)
