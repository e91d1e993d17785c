"""Model files as systems, by their suffix: what `--system model.onnx` means."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from deepcruiser.errors import FileError, InputError
from deepcruiser.trace import System

#: The module and the class for a suffix; imported when a file of that kind is asked for.
ADAPTERS = {
    ".h5": ("keras", "KerasSystem"),
    ".hdf5": ("keras", "KerasSystem"),
    ".keras": ("keras", "KerasSystem"),
    ".onnx": ("onnx", "OnnxSystem"),
    ".pb": ("deepspeech", "DeepSpeechSystem"),
    ".pbmm": ("deepspeech", "DeepSpeechSystem"),
    ".tflite": ("tflite", "TfliteSystem"),
}


def is_model_file(given: str) -> bool:
    """Whether this names a file of a kind that there is an adapter for."""
    return Path(given).suffix.lower() in ADAPTERS


def system_from_file(path: str | os.PathLike[str]) -> System:
    """The system of a model file, with everything that the file itself does not tell left as it comes."""
    suffix = Path(path).suffix.lower()
    if suffix not in ADAPTERS:
        raise InputError(f"{str(path)!r} is no model file that is known by its suffix: {', '.join(ADAPTERS)}")
    module, name = ADAPTERS[suffix]
    if not Path(path).is_file():
        raise FileError(f"there is no file {str(path)!r}")
    adapter = getattr(import_module(f"deepcruiser.systems.{module}.system"), name)
    try:
        system: System = adapter(path)
    except InputError as error:
        if "pip install" in str(error) or name == "DeepSpeechSystem":  # which knows its features
            raise
        raise InputError(f"{error}\n{_remedy(str(path), name)}") from None
    return system


def _remedy(path: str, name: str) -> str:
    """How to say in a file of one's own what a command line cannot."""
    return (
        f"What the file does not tell stands in a file of yours, say asr.py, named by --system asr.py:system:\n\n"
        f"  import deepcruiser as dc\n\n\n"
        f"  def features(audio): ...  # from audio.samples to an array [time, size]\n\n\n"
        f"  system = dc.{name}({path!r}, features=features)  # and what is asked for above"
    )
