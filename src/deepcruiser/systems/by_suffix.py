"""Model files as systems, by their suffix, for `--system model.onnx`."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from deepcruiser.errors import FileError, InputError
from deepcruiser.trace import System

#: The folder and the class of the adapter for each suffix; it is imported when such a file is opened.
ADAPTERS = {
    ".h5": ("keras", "KerasSystem"),
    ".hdf5": ("keras", "KerasSystem"),
    ".keras": ("keras", "KerasSystem"),
    ".onnx": ("onnx", "OnnxSystem"),
    ".pb": ("deepspeech", "DeepSpeechSystem"),
    ".pbmm": ("deepspeech", "DeepSpeechSystem"),
    ".tflite": ("tflite", "TfliteSystem"),
}


def is_model_file(name: str) -> bool:
    """Whether a name ends with the suffix of a model file."""
    return Path(name).suffix.lower() in ADAPTERS


def system_from_file(path: str | os.PathLike[str]) -> System:
    """The system of a model file, with the default of every option that is not in the file."""
    suffix = Path(path).suffix.lower()
    if suffix not in ADAPTERS:
        raise InputError(f"{str(path)!r} is not a model file; their names end in {', '.join(ADAPTERS)}")
    folder, name = ADAPTERS[suffix]
    if not Path(path).is_file():
        raise FileError(f"there is no file {str(path)!r}")
    adapter = getattr(import_module(f"deepcruiser.systems.{folder}.system"), name)
    try:
        system: System = adapter(path)
    except InputError as error:
        if "pip install" in str(error) or name == "DeepSpeechSystem":  # whose features are known
            raise
        raise InputError(f"{error}\n{_remedy(str(path), name)}") from None
    return system


def _remedy(path: str, name: str) -> str:
    """How to give the options in a Python file."""
    return (
        f"Put what the model file does not say into a Python file, asr.py, and use --system asr.py:system:\n\n"
        f"  import deepcruiser as dc\n\n\n"
        f"  def features(audio): ...  # from audio.samples to an array [time, size]\n\n\n"
        f"  system = dc.{name}({path!r}, features=features)  # and the options named above"
    )
