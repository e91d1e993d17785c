"""DeepSpeech files that are frozen graphs of TensorFlow: plain (.pb) or memory-mapped packages (.pbmm)."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.deepspeech.system import Array, Steps

#: The name of the graph in a package.
GRAPH = "memmapped_package://."

#: Operations with these words in their names use files or run code, which a recogniser does not need.
REFUSED = ("File", "PyFunc", "Save", "Restore", "Dataset", "Reader", "Print", "Summary", "Checkpoint")


class FrozenGraphNetwork:
    """A frozen graph, run by TensorFlow; c and h of every step are outputs of its LSTM operation."""

    def __init__(self, path: Path) -> None:
        tf = tensorflow(path)
        graph = read_package(tf, path) if path.suffix == ".pbmm" else parse_graph(tf, read_bytes(path), path)
        nodes = {node.name: node for node in graph.node}
        for name in ("input_node", "input_lengths", "logits", "previous_state_c", "previous_state_h"):
            if name not in nodes:
                raise InputError(
                    f"{path.name} is not a streaming graph of DeepSpeech (0.3 or later): it has no '{name}'"
                )
        refused = sorted({node.op for node in graph.node if any(word in node.op for word in REFUSED)})
        if refused:
            raise InputError(f"{path.name} is refused, as it would use files or run code ({', '.join(refused)})")
        cells = [node for node in graph.node if node.op in ("BlockLSTM", "BlockLSTMV2")]
        if len(cells) != 1:
            kinds = sorted({node.op for node in graph.node if any(word in node.op for word in ("LSTM", "RNN", "GRU"))})
            raise InputError(f"{path.name} must have one BlockLSTM, but has {', '.join(kinds) or 'nothing recurrent'}")
        _, self.steps, self.window, self.features = dimensions(nodes["input_node"], 4, path)
        _, self.size = dimensions(nodes["previous_state_c"], 2, path)
        self.inputs_name = f"x of {cells[0].op}, the output of the third dense layer"
        self.own_features = "mfccs" in nodes
        self._carried = nodes["previous_state_c"].op == "Placeholder"
        # The outputs of the operation are i, cs, f, o, ci, co, h; its second input is x.
        x = cells[0].input[1]
        self._fetches = ["logits:0", f"{cells[0].name}:1", f"{cells[0].name}:6", x if ":" in x else f"{x}:0"]
        self._session = session(tf, graph, path)
        named = [name for name in nodes if name.startswith("metadata_")]
        values = self._session.run([f"{name}:0" for name in named])
        self.metadata = {name.removeprefix("metadata_"): value[0] for name, value in zip(named, values, strict=True)}

    def start(self) -> None:
        """Start a new utterance."""
        if not self._carried:
            self._session.run("initialize_state")

    def run(self, windows: Array, c: Array, h: Array) -> Steps:
        """Run one step for each window."""
        count = len(windows)
        padded = np.zeros((1, self.steps, self.window, self.features), dtype=np.float32)
        padded[0, :count] = windows
        feeds: dict[str, Any] = {"input_node:0": padded, "input_lengths:0": [count]}
        if self._carried:
            feeds |= {"previous_state_c:0": c[None], "previous_state_h:0": h[None]}
        scores, cs, hs, x = self._session.run(self._fetches, feeds)
        return Steps(scores[:count, 0], cs[:count, 0], hs[:count, 0], x[:count, 0])


def tensorflow(path: Path) -> Any:
    """Import TensorFlow, which takes seconds."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it prints long messages otherwise
    try:
        import tensorflow as tf
    except ImportError:
        raise InputError(
            f"DeepSpeechSystem needs the package tensorflow-cpu (1.4 GB) for {path.name}: "
            "pip install 'deepcruiser[deepspeech-tf]', or use the .tflite file, which needs less"
        ) from None
    return tf


def parse_graph(tf: Any, data: bytes, path: Path) -> Any:
    """The graph in these bytes."""
    from google.protobuf.message import DecodeError

    graph = tf.compat.v1.GraphDef()
    try:
        graph.ParseFromString(data)
    except DecodeError:
        raise FileError(f"{str(path)!r} is not a frozen graph of TensorFlow, or it is damaged or truncated") from None
    return graph


def read_package(tf: Any, path: Path) -> Any:
    """The graph of a memory-mapped package, with its constants put back.

    Python's TensorFlow cannot open such a file. The file ends with the position of a directory, which has the offset
    and the name of each part.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.util import memmapped_file_system_pb2 as packages

    data = read_bytes(path)
    damaged = FileError(f"{str(path)!r} is not a memory-mapped graph of TensorFlow, or it is damaged or truncated")
    directory = packages.MemmappedFileSystemDirectory()
    try:
        (end,) = struct.unpack("<Q", data[-8:])
        directory.ParseFromString(data[end:-8])
    except (struct.error, DecodeError):
        raise damaged from None
    offsets = [element.offset for element in directory.element]
    if not offsets or offsets != sorted(offsets) or offsets[-1] > end:
        raise damaged
    spans = zip(directory.element, offsets, [*offsets[1:], end], strict=True)
    parts = {element.name: data[first:last] for element, first, last in spans}
    if GRAPH not in parts:
        raise damaged
    lengths = {element.name: element.length for element in directory.element}
    graph = parse_graph(tf, parts[GRAPH][: lengths[GRAPH] or None], path)
    for node in graph.node:
        if node.op == "ImmutableConst":
            name, kind = node.attr["memory_region_name"].s.decode(), tf.dtypes.as_dtype(node.attr["dtype"].type)
            shape = [dim.size for dim in node.attr["shape"].shape.dim]
            size = int(np.prod(shape, dtype=np.int64)) * kind.size
            if len(parts.get(name, b"")) < size:
                raise damaged
            array = np.frombuffer(parts[name][:size], dtype=kind.as_numpy_dtype).reshape(shape)
            node.op = "Const"
            node.ClearField("attr")
            node.attr["dtype"].type = kind.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
    return graph


def dimensions(node: Any, rank: int, path: Path) -> list[int]:
    """The shape of a node; all its sizes must be fixed."""
    sizes = [dim.size for dim in node.attr["shape"].shape.dim]
    if len(sizes) != rank or min(sizes) < 1 or sizes[0] != 1:
        raise InputError(
            f"'{node.name}' of {path.name} must have {rank} fixed sizes, the first of them 1, not {sizes}: "
            "export it with a batch size of 1 and a fixed number of steps"
        )
    return sizes


def session(tf: Any, graph: Any, path: Path) -> Any:
    """A session that runs the graph."""
    with tf.Graph().as_default() as default:
        try:
            tf.import_graph_def(graph, name="")
        except (ValueError, tf.errors.OpError) as error:
            raise FileError(f"TensorFlow cannot use {str(path)!r}: {str(error).splitlines()[0]}") from None
        # As in the project's client, because folding the constants of a large graph takes longer than many utterances.
        settings = tf.compat.v1.ConfigProto()
        settings.graph_options.optimizer_options.opt_level = -1  # L0
        settings.graph_options.rewrite_options.disable_meta_optimizer = True
        return tf.compat.v1.Session(graph=default, config=settings)
