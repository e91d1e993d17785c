"""Loading Keras files: `.keras` archives, and HDF5 files of Keras 2 and 3."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.files.reading import check_bytes
from deepcruiser.files.trial import check_loads
from deepcruiser.systems.keras.graph import Graph
from deepcruiser.systems.keras.layers import CODE, LayerMaker, import_keras

Array = npt.NDArray[Any]

_HDF5 = b"\x89HDF\r\n\x1a\n"
_WEIGHTS = "model.weights.h5"


def load(
    path: str | os.PathLike[str], *, output: str | None, custom_objects: Mapping[str, Any], trusted: bool
) -> tuple[Any, bool]:
    """The network of a file, up to the layer `output`, and whether it was cut there. Code in the file is not run."""
    keras, file = import_keras(), Path(path)
    if file.is_dir():
        raise FileError(f"{str(path)!r} is a folder, but must be a .keras or .h5 file: save the model as one")
    if not file.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    check_bytes(file.stat().st_size, f"the file {str(path)!r}")
    with open(file, "rb") as opened:
        start = opened.read(8)
    check_loads("hdf5", file, name="the library of HDF5")
    try:
        if start == _HDF5:
            return _from_hdf5(file, output, custom_objects, trusted)
        if zipfile.is_zipfile(file):
            return _from_archive(file, output, custom_objects, trusted)
    except DeepCruiserError as error:
        raise type(error)(f"{str(path)!r}: {error}") from None
    except Exception as error:  # h5py, zipfile and Keras raise exceptions of many kinds
        message = re.sub(r"\s+", " ", str(error))[:300]
        raise FileError(
            f"{str(path)!r} cannot be loaded with Keras {keras.__version__}: {type(error).__name__}: {message}"
        ) from error
    raise FileError(f"{str(path)!r} is neither a .keras archive nor an HDF5 file, or it is damaged")


def _from_hdf5(file: Path, output: str | None, custom: Mapping[str, Any], trusted: bool) -> tuple[Any, bool]:
    import h5py

    with h5py.File(file, "r") as opened:
        _refuse_other_files(opened, set())
        described = opened.attrs.get("model_config")
        if described is None:
            names = _names(opened, "layer_names") or list(opened.get("layers", opened))
            listed = ", ".join([*names[:6], "..."] if len(names) > 6 else names)
            raise FileError(
                f"it contains weights only (of {listed}) and no description of the network: build it in Keras, and "
                "give both, KerasSystem(model, weights=path)"
            )
        groups = opened["model_weights"]
        version = _text(opened.attrs.get("keras_version", groups.attrs.get("keras_version", "1")))
        if version.startswith(("0", "1")):
            raise FileError(
                f"it was written by Keras {version}, which is too old: open it with Keras 2, and save it again"
            )
        graph = Graph(json.loads(_text(described)), LayerMaker(version=version, custom_objects=custom, trusted=trusted))
        network = graph.network(output)
        for layer in network.layers:
            if not layer.weights:
                continue
            if layer.name not in groups:
                raise FileError(f"it has no weights for layer {layer.name!r}")
            entry, group = graph.entries[layer.name], groups[layer.name]
            inner = entry["config"].get("layer", {}) if isinstance(entry["config"], dict) else {}
            kind = entry["class_name"] + inner.get("class_name", "")
            stored = [group[name] for name in _names(group, "weight_names")]
            check_bytes(sum(each.size * each.dtype.itemsize for each in stored), f"layer {layer.name!r}")
            _set(layer, kind, [np.asarray(each) for each in stored])
    return network, output is not None


def _refuse_other_files(group: Any, seen: set[Any]) -> None:
    """Refuse a file that reads parts of itself from other files, which may be any file of this machine."""
    import h5py

    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise FileError(f"it takes {name!r} from another file, {link.filename!r}: save it as one file")
        if not isinstance(link, h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise FileError(f"it keeps the numbers of {name!r} in another file: save it as one file")
        if isinstance(item, h5py.Group) and item.id not in seen:
            seen.add(item.id)
            _refuse_other_files(item, seen)


def with_weights(model: Any, path: str | os.PathLike[str], *, custom_objects: Mapping[str, Any]) -> Any:
    """A copy of a model with the weights of a file of Keras 2, whose layers compute what they did there.

    Layers are matched by name, or in order where the names differ.
    """
    import h5py

    if not Path(path).is_file():
        raise FileError(f"there is no file {str(path)!r}")
    try:
        with h5py.File(path, "r") as opened:
            groups = opened.get("model_weights", opened)
            names = _names(groups, "layer_names")
            if not names:
                raise FileError(
                    "it holds no weights as Keras 2 wrote them: load those of Keras 3 with model.load_weights"
                )
            version = _text(groups.attrs.get("keras_version", "2"))
            maker = LayerMaker(version=version, custom_objects=custom_objects, trusted=False)
            network = Graph(json.loads(model.to_json()), maker).network()
            weights = {
                name: [np.asarray(groups[name][one]) for one in _names(groups[name], "weight_names")] for name in names
            }
            weights = {name: arrays for name, arrays in weights.items() if arrays}
            layers = [layer for layer in network.layers if layer.weights]
            if len(layers) != len(weights):
                raise FileError(
                    f"it has weights for {len(weights)} layers ({', '.join(weights)}), but the model has "
                    f"{len(layers)} with weights ({', '.join(layer.name for layer in layers)})"
                )
            by_name = {layer.name for layer in layers} == {*weights}
            for layer, arrays in zip(layers, weights.values(), strict=True):
                arrays = weights[layer.name] if by_name else arrays
                _set(layer, _kind_of(layer, arrays), arrays)
    except DeepCruiserError as error:
        raise type(error)(f"{str(path)!r}: {error}") from None
    except (OSError, KeyError, ValueError) as error:  # of h5py
        raise FileError(f"{str(path)!r} cannot be read as weights of Keras 2: {str(error)[:200]}") from None
    return network


def _kind_of(layer: Any, arrays: Sequence[Array]) -> str:
    """The class of the layer in the file; that of cuDNN has two biases, one after the other."""
    inner = getattr(layer, "forward_layer", layer)
    gates = {"LSTM": 4, "GRU": 3}.get(type(inner).__name__)
    if gates is None or len(arrays) < 3 or arrays[2].shape != (2 * gates * inner.units,):
        return type(layer).__name__
    return f"{'Bidirectional' if inner is not layer else ''}CuDNN{type(inner).__name__}"


def _set(layer: Any, kind: str, arrays: list[Array]) -> None:
    weights = [*layer.trainable_weights, *layer.non_trainable_weights]
    if kind.startswith("CuDNN"):
        arrays = _from_cudnn(kind.removeprefix("CuDNN"), arrays)
    elif "CuDNN" in kind:  # within a Bidirectional
        inner = kind.partition("CuDNN")[2]
        arrays = [*_from_cudnn(inner, arrays[:3]), *_from_cudnn(inner, arrays[3:])]
    has, needs = [array.shape for array in arrays], [tuple(weight.shape) for weight in weights]
    if has != needs:
        raise FileError(f"layer {layer.name!r} needs weights of the shapes {needs}, but the file has {has}")
    for weight, array in zip(weights, arrays, strict=True):
        weight.assign(array)


def _from_cudnn(kind: str, arrays: list[Array]) -> list[Array]:
    """The weights of a CuDNNLSTM or CuDNNGRU in the order of an LSTM or GRU.

    A gate's kernel is stored as [size, units], but cuDNN reads it row by row as [units, size] and multiplies from the
    left. It also has one bias for the inputs and one for the state.
    """
    kernel, recurrent, bias = arrays
    gates = 4 if kind == "LSTM" else 3

    def transposed(joined: Array) -> Array:
        parts = np.split(joined, gates, axis=1)
        return np.concatenate([part.reshape(part.shape[::-1]).T for part in parts], axis=1)

    both = bias.reshape(2, -1)
    return [transposed(kernel), transposed(recurrent), both.sum(0) if kind == "LSTM" else both]


def _from_archive(file: Path, output: str | None, custom: Mapping[str, Any], trusted: bool) -> tuple[Any, bool]:
    keras = import_keras()
    with zipfile.ZipFile(file) as archive:
        check_bytes(sum(member.file_size for member in archive.infolist()), "its unpacked parts")
        if "config.json" not in archive.namelist():
            raise FileError("it is a ZIP archive without a config.json, so it was not written by Keras")
        described = json.loads(archive.read("config.json"))
        notes = json.loads(archive.read("metadata.json")) if "metadata.json" in archive.namelist() else {}
        version = str(notes.get("keras_version", "3"))
        old = version.startswith("2")
        foreign = sorted(set(_foreign(described)) - {*custom})
        if foreign and not trusted:
            raise FileError(
                f"it uses {', '.join(foreign)}, which Keras does not have: give custom_objects={{{foreign[0]!r}: ...}}"
            )
        if old or (not trusted and set(_classes(described)) & {*CODE, "__lambda__"}):
            graph = Graph(described, LayerMaker(version=version, custom_objects=custom, trusted=trusted))
            network = graph.network(output)
            with _weights_of(archive, graph, network) as weights:
                network.load_weights(weights)
            return network, output is not None
    with tempfile.TemporaryDirectory(prefix="deepcruiser-") as folder:
        if file.suffix != ".keras":  # without which Keras does not open it
            file = Path(shutil.copy(file, Path(folder, "network.keras")))
        network = keras.saving.load_model(file, custom_objects=dict(custom), compile=False, safe_mode=not trusted)
    return network, False


@contextmanager
def _weights_of(archive: zipfile.ZipFile, graph: Graph, network: Any) -> Iterator[Path]:
    """The weights of a network that was cut, in a temporary file.

    In the archive they are named by class and number (gru, gru_1), counted over the layers of the whole network.
    """
    import h5py

    all_layers = _numbered((name, entry["class_name"]) for name, entry in graph.entries.items())
    kept = _numbered((layer.name, type(layer).__name__) for layer in network.layers)
    with tempfile.TemporaryDirectory(prefix="deepcruiser-") as folder, archive.open(_WEIGHTS) as raw:
        with h5py.File(raw, "r") as source, h5py.File(Path(folder, _WEIGHTS), "w") as target:
            layers = next(
                (source[key] for key in ("layers", "_layer_checkpoint_dependencies") if key in source), source
            )
            for name, own in kept.items():
                if all_layers.get(name) in layers:
                    layers.copy(layers[all_layers[name]], target.require_group("layers"), own)
        yield Path(folder, _WEIGHTS)


def _numbered(layers: Any) -> dict[str, str]:
    count: dict[str, int] = {}
    names = {}
    for name, kind in layers:
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", re.sub(r"\W+", "", kind)))
        words = words.lower()
        names[name] = f"{words}_{count[words]}" if words in count else words
        count[words] = count.get(words, 0) + 1
    return names


def _classes(described: Any) -> Iterator[str]:
    if isinstance(described, Mapping):
        if isinstance(described.get("class_name"), str):
            yield described["class_name"]
        described = list(described.values())
    for item in described if isinstance(described, list) else ():
        yield from _classes(item)


def _foreign(described: Any) -> Iterator[str]:
    """The classes and functions in a description that are not part of Keras."""
    if isinstance(described, Mapping):
        module = described.get("module")
        registered = described.get("registered_name")
        named = isinstance(described.get("class_name"), str)
        if named and described["class_name"] not in CODE and "config" in described:
            own = module is None and (registered is None or described["class_name"] == "function")
            if not own and str(module or "").split(".")[0] not in ("keras", "builtins"):
                is_function = described["class_name"] == "function"
                yield str(described["config"] if is_function else described["class_name"])
        described = list(described.values())
    for item in described if isinstance(described, list) else ():
        yield from _foreign(item)


def _names(group: Any, key: str) -> list[str]:
    """A list of names among the attributes; long lists are stored in pieces."""
    if key in group.attrs:
        names = list(group.attrs[key])
    else:
        pieces = sorted(
            (name for name in group.attrs if re.fullmatch(rf"{key}\d+", name)), key=lambda n: int(n[len(key) :])
        )
        names = [name for piece in pieces for name in group.attrs[piece]]
    return [_text(name) for name in names]


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
