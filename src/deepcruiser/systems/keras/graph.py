"""Keras networks from their descriptions in files, up to a chosen output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deepcruiser.errors import FileError, InputError
from deepcruiser.systems.keras.layers import CODE, NETWORKS, LayerMaker

Reference = tuple[str, int, int]


class Graph:
    """The layers of a described network, and how they are connected.

    Layers and tensors are made when they are first needed, so what the output does not need is never made.
    """

    def __init__(self, described: Mapping[str, Any], maker: LayerMaker) -> None:
        self._maker = maker
        self.name, self.entries, self.inputs, self.outputs = _connected(described)
        self.layers: dict[str, Any] = {}
        self._tensors: dict[tuple[str, int], list[Any]] = {}
        self._open: set[tuple[str, int]] = set()

    def network(self, output: str | None = None) -> Any:
        """A network that ends with the layer `output`, or where the file says."""
        keras = self._maker.keras
        ends = self.outputs if output is None else [(self._named(output), -1, 0)]
        self._refuse_code(ends)
        tensors = [self.tensor(*end) for end in ends]
        inputs = [self._tensors[name, 0][0] for name in self.inputs if (name, 0) in self._tensors]
        if not inputs:
            raise FileError(f"no input is connected to {', '.join(end[0] for end in ends)}, so it cannot be run")
        single = len(inputs) == 1
        return keras.Model(inputs[0] if single else inputs, tensors[0] if len(ends) == 1 else tensors, name=self.name)

    def tensor(self, name: str, node: int, index: int) -> Any:
        """The output number `index` of call number `node` of a layer."""
        calls = self.entries[self._named(name)]["inbound_nodes"] or [None]
        node = len(calls) - 1 if node < 0 else min(node, len(calls) - 1)  # Keras 3 counts the calls of a network from 1
        if (name, node) not in self._tensors:
            if (name, node) in self._open:
                raise FileError(f"layer {name!r} depends on itself: the file is damaged")
            self._open.add((name, node))
            made = self._called(name, calls[node])
            self._tensors[name, node] = list(made) if isinstance(made, list | tuple) else [made]
        return self._tensors[name, node][index]

    def _called(self, name: str, call: Any) -> Any:
        entry, keras = self.entries[name], self._maker.keras
        if entry["class_name"] == "InputLayer":
            config = entry["config"]
            shape = config.get("batch_shape") or config.get("batch_input_shape")
            return keras.Input(batch_shape=tuple(shape), dtype=config.get("dtype"), name=name)
        if name not in self.layers:
            network = entry["class_name"] in NETWORKS
            self.layers[name] = Graph(entry, self._maker).network() if network else self._maker.layer(entry)
        layer = self.layers[name]
        args, kwargs = _arguments(call)
        values = [self._resolved(value) for value in args]
        kwargs = {
            key: self._resolved(value) for key, value in kwargs.items() if value is not None and key != "training"
        }
        recurrent = isinstance(layer, keras.layers.RNN | keras.layers.Bidirectional)
        if recurrent and isinstance(values[0], list):
            values, kwargs = values[0][:1], {"initial_state": values[0][1:], **kwargs}  # Keras 2 has both in one list
        if isinstance(entry["config"], dict) and entry["config"].get("time_major"):
            made = layer(keras.ops.swapaxes(values[0], 0, 1), **kwargs)
            return keras.ops.swapaxes(made, 0, 1) if layer.return_sequences else made
        return layer(*values, **kwargs)

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return self.tensor(*value)
        return [self._resolved(item) for item in value] if isinstance(value, list) else value

    def _named(self, name: str) -> str:
        if name not in self.entries:
            raise InputError(f"no layer {name!r} in the network; its layers are: {', '.join(self.entries)}")
        return name

    def _refuse_code(self, ends: Sequence[Reference]) -> None:
        """Refuse layers with code before anything is made, and say where the network can be cut."""
        needed = self._above([name for name, _, _ in ends])
        if not (held := [name for name in needed if self._holds_code(name)]):
            return
        kinds = {name: self.entries[name]["class_name"] for name in needed}
        layers = (name for name in needed if kinds[name] != "InputLayer")
        whole = (name for name in layers if not any(map(self._holds_code, self._above([name]))))
        before = next(whole, None)
        cut = f"cut the network before it, output={before!r}; or " if before else ""
        raise InputError(
            f"layer {held[0]!r} is a {kinds[held[0]]}, and code in a file is not run: {cut}give a function of your "
            f"own, custom_objects={{{held[0]!r}: ...}}; or, if you trust the author of the file, trusted=True"
        )

    def _holds_code(self, name: str) -> bool:
        entry = self.entries[name]
        return entry["class_name"] in CODE and not self._maker.may_run(name, entry["config"])

    def _above(self, names: Sequence[str]) -> list[str]:
        """The layers that these depend on, including themselves, from the nearest to the farthest."""
        result = list[str]()
        for name in (todo := list(names)):
            if name not in result:
                result.append(self._named(name))
                calls = self.entries[name]["inbound_nodes"]
                todo += [above for call in calls for above, _, _ in _references(_arguments(call))]
        return result


def _connected(described: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str], list[Reference]]:
    """The name of a network, its layers by name, and the names of its inputs and outputs."""
    config = described["config"]
    if described["class_name"] == "Sequential":
        return _chain(config)
    if "input_layers" not in config:
        raise FileError(
            f"the network is a custom {described['class_name']}, which a file does not describe: build it in Python "
            "and give the model"
        )
    entries = {}
    for entry in config["layers"]:
        name = entry.get("name") or entry["config"]["name"]
        entries[name] = {**entry, "inbound_nodes": entry.get("inbound_nodes") or []}
    ends = [[_reference(end) for end in _listed(config[key])] for key in ("input_layers", "output_layers")]
    return config.get("name") or "network", entries, [name for name, _, _ in ends[0]], ends[1]


def _chain(config: Any) -> tuple[str, dict[str, Any], list[str], list[Reference]]:
    """A Sequential network: each layer is connected to the previous one."""
    layers = config if isinstance(config, list) else config["layers"]
    name = "network" if isinstance(config, list) else config.get("name") or "network"
    if not layers:
        raise FileError("the network has no layers")
    entries: dict[str, Any] = {}
    if layers[0]["class_name"] != "InputLayer":
        shape = _input_shape(layers[0]) or (config.get("build_input_shape") if isinstance(config, dict) else None)
        if shape is None:
            raise FileError(
                "the file does not have the shape of the network's input: build the model and save it again"
            )
        dtype = "int32" if layers[0]["class_name"] == "Embedding" else None
        own = {"name": "the_input_of_all", "batch_shape": shape, "dtype": dtype}
        layers = [{"class_name": "InputLayer", "config": own}, *layers]
    before = None
    for entry in layers:
        own_name = entry["config"]["name"] if isinstance(entry["config"], dict) else entry["class_name"]
        entries[own_name] = {**entry, "inbound_nodes": [] if before is None else [[[before, 0, 0, {}]]]}
        before = own_name
    assert before is not None
    return name, entries, [next(iter(entries))], [(before, 0, 0)]


def _input_shape(entry: Mapping[str, Any]) -> Any:
    """The shape of the input, from the first layer of a chain or from a layer within it."""
    config = entry["config"]
    if isinstance(config, list):
        return _input_shape(config[0])
    shape = config.get("batch_input_shape") or config.get("batch_shape")
    if shape is None and isinstance(config.get("layer"), Mapping):
        return _input_shape(config["layer"])
    return _input_shape(config["layers"][0]) if shape is None and config.get("layers") else shape


def _arguments(call: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call of a layer; tensors are tuples (layer, call, number)."""
    if isinstance(call, Mapping):  # Keras 3
        kwargs = {key: _marked(value) for key, value in call["kwargs"].items()}
        kwargs.pop("mask", None)  # layers find it themselves; its description refers to operations that are not layers
        return [_marked(value) for value in call["args"]], kwargs
    items = [call] if call and isinstance(call[0], str) else call
    kwargs = {key: _marked(value) for key, value in (items[0][3] if len(items[0]) > 3 else {}).items()}
    tensors = [_reference(item) for item in items]
    return [tensors[0] if len(tensors) == 1 else tensors], kwargs


def _marked(value: Any) -> Any:
    if isinstance(value, Mapping) and value.get("class_name") == "__keras_tensor__":
        return _reference(value["config"]["keras_history"])
    if isinstance(value, list):
        is_tensor = len(value) in (3, 4) and isinstance(value[0], str) and isinstance(value[1], int)
        return _reference(value) if is_tensor else [_marked(item) for item in value]
    return value


def _references(value: Any) -> Iterator[Reference]:
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _references(item)


def _reference(data: Sequence[Any]) -> Reference:
    name, node, index = data[:3]
    return str(name), int(node), int(index)


def _listed(ends: Any) -> list[Any]:
    if isinstance(ends, Mapping):
        return list(ends.values())
    return [ends] if ends and isinstance(ends[0], str) else list(ends)
