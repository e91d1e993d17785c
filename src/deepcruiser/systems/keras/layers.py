"""Keras layers from their descriptions in files; layers of Keras 2 compute the same as in Keras 2.

Keras 3 cannot load many files of Keras 2, and reads functions from files, so this is our own loader. It never calls
Keras's `from_config` and loads no functions: it translates a description to the options of Keras 3 and calls the class.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from deepcruiser.errors import FileError, InputError

#: Layers that contain code, or load it from elsewhere.
CODE: tuple[str, ...] = (
    "Lambda",
    "TFOpLambda",
    "SlicingOpLambda",
    "TensorFlowOpLayer",
    "TFSMLayer",
    "TorchModuleWrapper",
)
CODE += ("JaxLayer", "FlaxLayer", "ClassMethod", "InstanceMethod", "InstanceProperty")
NETWORKS = ("Model", "Functional", "Sequential")

_CLASSES = {"CuDNNLSTM": "LSTM", "CuDNNGRU": "GRU", "BatchNormalizationV1": "BatchNormalization"}
_CLASSES |= {"BatchNormalizationV2": "BatchNormalization", "SyncBatchNormalization": "BatchNormalization"}
_CLASSES |= {"LSTMV1": "LSTM", "LSTMV2": "LSTM", "GRUV1": "GRU", "GRUV2": "GRU", "Convolution1D": "Conv1D"}
_OPTIONS = {"LeakyReLU": {"alpha": "negative_slope"}, "InputLayer": {"batch_input_shape": "batch_shape"}}
#: Options that Keras 3 no longer has, and that do not change what a trained layer computes.
_FORGOTTEN = {"batch_input_shape", "fused", "implementation", "input_dim", "input_dtype", "input_length", "ragged"}
_FORGOTTEN |= {
    "renorm",
    "renorm_clipping",
    "renorm_momentum",
    "sparse",
    "time_major",
    "virtual_batch_size",
    "experimental",
}
_ACTIVATIONS = {"softmax_v2": "softmax", "relu_v2": "relu", "sigmoid_v2": "sigmoid", "selu_v2": "selu"}


def import_keras() -> ModuleType:
    """Import Keras on PyTorch, unless it is already imported or KERAS_BACKEND names another backend."""
    missing = "KerasSystem needs the packages keras and h5py: pip install 'deepcruiser[keras]'"
    chosen = None if "keras" in sys.modules else os.environ.get("KERAS_BACKEND")
    use_torch = "keras" not in sys.modules and chosen is None
    try:
        if use_torch:
            os.environ["KERAS_BACKEND"] = "torch"  # read once, when Keras is imported
        import h5py  # noqa: F401
        import keras
    except (ImportError, ValueError) as error:  # ValueError: an unknown backend
        if chosen not in (None, "torch") and getattr(error, "name", "") not in ("keras", "h5py"):
            raise InputError(
                f"KERAS_BACKEND is {chosen!r}, but that cannot be imported ({error}): install it, or unset "
                "KERAS_BACKEND to run on PyTorch"
            ) from None
        raise InputError(missing) from None
    finally:
        if use_torch:
            del os.environ["KERAS_BACKEND"]
    module: ModuleType = keras
    if int(keras.__version__.split(".")[0]) < 3:
        raise InputError(f"KerasSystem needs Keras 3, not {keras.__version__}: pip install 'deepcruiser[keras]'")
    return module


def hard_sigmoid_of_keras_2(x: Any) -> Any:
    """0.2 x + 0.5, clipped to 0..1; the hard_sigmoid of Keras 3 is x / 6 + 0.5."""
    return import_keras().ops.clip(0.2 * x + 0.5, 0.0, 1.0)


class LayerMaker:
    """Makes the layers of one file, which the given version of Keras wrote."""

    def __init__(self, *, version: str, custom_objects: Mapping[str, Any], trusted: bool) -> None:
        self.keras = import_keras()
        self.old = version.startswith("2")
        self._before_tf = version.startswith(("2.0", "2.1.", "2.2", "2.3")) and not version.endswith("-tf")
        self.custom = custom_objects
        self.trusted = trusted
        # Registered, because Bidirectional copies its layer by a description that names the function.
        self._hard_sigmoid = self.keras.saving.register_keras_serializable("deepcruiser")(hard_sigmoid_of_keras_2)

    def layer(self, described: Mapping[str, Any]) -> Any:
        """The layer of a description."""
        kind, config = str(described["class_name"]), dict(described["config"])
        name = config.get("name", kind)
        if kind == "Lambda":
            return self._function(name, config)
        if kind in CODE:
            raise FileError(f"layer {name!r} is a {kind}, which runs operations of another library by name: {_CUT}")
        cls = self.custom.get(kind) or getattr(self.keras.layers, _CLASSES.get(kind, kind), None)
        if cls is None:
            raise FileError(
                f"layer {name!r} is a {kind}, which Keras {self.keras.__version__} does not have: give its class, "
                f"custom_objects={{{kind!r}: ...}}, or {_CUT}"
            )
        if kind in self.custom and hasattr(cls, "from_config"):
            return cls.from_config(config)
        layer = cls(**self._options(kind, name, cls, config))
        if self._before_tf and isinstance(layer, self.keras.layers.Bidirectional):
            for way in (layer.forward_layer, layer.backward_layer):
                way.zero_output_for_mask = False  # the previous output at masked steps; zeros since tf.keras
        return layer

    def _options(self, kind: str, name: str, cls: Any, config: dict[str, Any]) -> dict[str, Any]:
        if self.old and kind in ("GRU", "GRUCell"):
            config.setdefault("reset_after", False)  # older files leave it out, and the default of Keras 3 is True
        own = [base.__init__ for base in cls.__mro__ if "__init__" in vars(base) and base is not object]
        takes = {name for one in own for name in inspect.signature(one).parameters}
        known = {*takes, "name", "dtype", "trainable", "activity_regularizer"} - {"self", "args", "kwargs"}
        options: dict[str, Any] = {}
        for key, value in config.items():
            key = _OPTIONS.get(kind, {}).get(key, key)
            if key.endswith("_initializer") and key in known:
                options[key] = "zeros"  # the weights come from the file
            elif key.endswith(("_initializer", "_regularizer", "_constraint")):
                continue
            elif key in known:
                options[key] = self._value(name, key, value)
            elif key not in _FORGOTTEN and value not in (None, False, [], {}):
                raise FileError(f"layer {name!r} is a {kind} with {key}={value!r}, which Keras 3 does not have: {_CUT}")
        if kind.startswith("BatchNormalization") and isinstance(options.get("axis"), list):
            options["axis"] = int(options["axis"][0])
        return options

    def _value(self, name: str, key: str, value: Any) -> Any:
        if key in ("activation", "recurrent_activation"):
            return self._activation(name, value)
        if key == "dtype":
            return value["config"]["name"] if isinstance(value, Mapping) else value
        if key in ("layer", "backward_layer", "cell") and isinstance(value, Mapping):
            return self.layer(value)
        if key == "cells":
            return [self.layer(cell) for cell in value]
        return value

    def _activation(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            if value.get("class_name") != "function":
                return self.layer(value)
            value = value["config"]
        if value in self.custom:
            return self.custom[value]
        if value == "hard_sigmoid" and self.old:
            return self._hard_sigmoid
        try:
            return self.keras.activations.get(_ACTIVATIONS.get(value, value))
        except (TypeError, ValueError):
            raise FileError(
                f"layer {name!r} has the activation {value!r}, which Keras does not have: give its function, "
                f"custom_objects={{{value!r}: ...}}"
            ) from None

    def may_run(self, name: str, config: Mapping[str, Any]) -> bool:
        """Whether a layer with code may run: the file is trusted, or the user gives a function to use instead."""
        function = config.get("function")
        return self.trusted or name in self.custom or (isinstance(function, str) and function in self.custom)

    def _function(self, name: str, config: dict[str, Any]) -> Any:
        """A Lambda layer with the user's function or, if the file is trusted, with the code in the file."""
        known = [key for key in (name, config.get("function")) if isinstance(key, str) and key in self.custom]
        if known:
            return self.keras.layers.Lambda(self.custom[known[0]], name=name)
        if not self.trusted:
            raise FileError(
                f"layer {name!r} is a Lambda, and code in a file is not run: {_CUT}, give a function of "
                f"your own, custom_objects={{{name!r}: ...}}, or, if you trust the author of the file, trusted=True"
            )
        if isinstance(config["function"], list):
            code = dict(zip(("code", "defaults", "closure"), config["function"], strict=True))
            config["function"] = {"class_name": "__lambda__", "config": code}
        wanted = {key: config[key] for key in ("name", "function", "arguments") if key in config}
        return self.keras.layers.Lambda.from_config(wanted, custom_objects=dict(self.custom), safe_mode=False)


_CUT = "cut the network before it with output=, the name of an earlier layer"
