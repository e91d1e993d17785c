"""Reading ONNX files, and running them in ONNX Runtime."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.onnx.graph import nodes
from deepcruiser.systems.tensors.signature import Array, Port

#: The operators that come with ONNX Runtime; no others are loaded.
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental")


def packages() -> tuple[ModuleType, ModuleType]:
    """The packages onnx and onnxruntime, imported when first needed."""
    try:
        import onnx
        import onnx.inliner
        import onnxruntime
    except ImportError:
        raise InputError(
            "OnnxSystem needs the packages onnx and onnxruntime: pip install 'deepcruiser[onnx]'"
        ) from None
    return onnx, onnxruntime


def read_model(path: str | os.PathLike[str]) -> tuple[Any, str]:
    """The model of a file, without weights in other files, and a digest of the file and these weights."""
    onnx, _ = packages()
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    content = read_bytes(file)
    try:
        model = onnx.load_model_from_string(content)
    except Exception:  # protobuf raises exceptions of several kinds
        raise FileError(f"{str(path)!r} is not an ONNX file, or it is damaged") from None
    if not model.graph.node or not model.opset_import:
        raise FileError(f"{str(path)!r} is not an ONNX file: it has no graph")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    foreign = sorted({node.proto.domain for node in nodes(model.graph)} - set(_DOMAINS))
    if foreign:
        kinds = sorted({f.proto.op_type for f in nodes(model.graph) if f.proto.domain in foreign})
        raise FileError(
            f"{str(path)!r} needs the operators {', '.join(kinds)} of {', '.join(map(repr, foreign))}, which ONNX "
            "Runtime does not have; custom operators are not loaded: export the network without them"
        )
    digest = hashlib.sha256(content)
    for name in _external(model.graph):
        beside = file.parent / name
        if "\0" in name or not beside.resolve().is_relative_to(file.parent.resolve()):
            raise FileError(f"{str(path)!r} keeps weights in {name!r}, which is outside its folder: move them into it")
        if not beside.is_file():
            raise FileError(f"{str(path)!r} keeps weights in {name!r}, which is not in the same folder")
        with beside.open("rb") as weights:
            digest.update(hashlib.file_digest(weights, "sha256").digest())
    return model, digest.hexdigest()


def ports(model: Any) -> tuple[list[Port], list[Port]]:
    """The inputs and outputs of a model; old files list weights as inputs too, which are left out."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [_port(port) for port in model.graph.input if port.name not in weights]
    return inputs, [_port(port) for port in model.graph.output]


def _port(port: Any) -> Port:
    onnx, _ = packages()
    tensor = port.type.tensor_type
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except (KeyError, TypeError):
        dtype = np.dtype(object)
    axes = [axis.dim_value or axis.dim_param or None for axis in tensor.shape.dim]
    return Port(port.name, dtype, tuple(None if axis == -1 else axis for axis in axes))


class Session:
    """A model in ONNX Runtime: `call` runs it on arrays by name."""

    def __init__(self, model: Any, path: str | os.PathLike[str], *, device: str) -> None:
        _, runtime = packages()
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # errors are raised anyway
        folder = str(Path(path).resolve().parent)
        providers = _providers(runtime, device)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        try:
            # Without its fallback, which would print errors and try again.
            self._session = runtime.InferenceSession(
                model.SerializeToString(), options, providers=providers, enable_fallback=0
            )
        except Exception as error:  # the exceptions of ONNX Runtime have no common base
            versions = ", ".join(f"{i.domain or 'ai.onnx'} {i.version}" for i in model.opset_import)
            raise FileError(
                f"{str(path)!r} (IR version {model.ir_version}, opset {versions}) cannot be loaded by ONNX Runtime "
                f"{runtime.__version__}: {_message(error)}"
            ) from None
        if providers[0][0] not in self._session.get_providers():  # it would silently continue without them
            raise InputError("ONNX Runtime could not start CUDA: check its libraries and the GPU, or use device='cpu'")
        self.path = str(path)

    def call(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """The outputs of these names."""
        try:
            values = self._session.run(list(names), dict(feeds))
        except Exception as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
            raise InputError(f"{self.path!r} cannot be run on {shapes}: {_message(error)}") from None
        return dict(zip(names, values, strict=True))


def _providers(runtime: Any, device: str) -> list[tuple[str, dict[str, Any]]]:
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and (kind == "cpu" or not number.isdecimal())):
        raise InputError(f"device must be 'cpu' or 'cuda', not {device!r}; 'cuda:1' is the second GPU")
    on_cpu: tuple[str, dict[str, Any]] = ("CPUExecutionProvider", {})
    if kind == "cpu":
        return [on_cpu]
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        raise InputError("this onnxruntime cannot use CUDA: install onnxruntime-gpu instead, or use device='cpu'")
    return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), on_cpu]


def _external(graph: Any) -> list[str]:
    """The files beside the model that contain its weights."""
    tensors = [
        *graph.initializer,
        *(a.t for node in nodes(graph) for a in node.proto.attribute if a.HasField("t")),
        *(t for node in nodes(graph) for a in node.proto.attribute for t in (*a.tensors, *a.g.initializer)),
    ]
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location"})


def _message(error: Exception) -> str:
    """The first line of an error of ONNX Runtime, without its code."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.split(" : ", 3)[-1] if text.startswith("[ONNXRuntimeError]") else text
