"""Model files as systems, by their suffix, for `--system model.onnx`."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path

from deepcruiser.errors import FileError, InputError
from deepcruiser.trace import System

#: The folder and the class of the adapter for each suffix; it is imported when such a file is opened.
ADAPTERS = {
    ".h5": ("keras", "KerasSystem"),
    ".hdf5": ("keras", "KerasSystem"),
    ".keras": ("keras", "KerasSystem"),
    ".nnet": ("kaldi", "EesenSystem"),
    ".onnx": ("onnx", "OnnxSystem"),
    ".pb": ("deepspeech", "DeepSpeechSystem"),
    ".pbmm": ("deepspeech", "DeepSpeechSystem"),
    ".tflite": ("tflite", "TfliteSystem"),
}


#: The adapters that know the features of their networks.
WITH_FEATURES = ("DeepSpeechSystem", "EesenSystem")
#: How the networks of EESEN begin, which may have any name.
_EESEN = re.compile(rb"(\0B)?\s*<Nnet>\s")


def is_model_file(name: str | os.PathLike[str]) -> bool:
    """Whether a name ends with the suffix of a model file, or is that of a network of EESEN."""
    return Path(name).suffix.lower() in ADAPTERS or _is_eesen(name)


def adapter_of(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The folder and the class of the adapter of a model file that exists."""
    if not is_model_file(path):
        raise InputError(f"{str(path)!r} is not a model file; their names end in {', '.join(ADAPTERS)}")
    if not Path(path).is_file():
        raise FileError(f"there is no file {str(path)!r}")
    return ADAPTERS[".nnet" if _is_eesen(path) else Path(path).suffix.lower()]


def _is_eesen(path: str | os.PathLike[str]) -> bool:
    try:
        if not Path(path).is_file():  # opening a pipe could wait forever
            return False
        with open(path, "rb") as file:
            return _EESEN.match(file.read(64)) is not None
    except (OSError, ValueError):
        return False


def system_from_file(path: str | os.PathLike[str]) -> System:
    """The system of a model file, with the default of every option that is not in the file."""
    folder, name = adapter_of(path)
    adapter = getattr(import_module(f"deepcruiser.systems.{folder}.system"), name)
    try:
        system: System = adapter(path)
    except InputError as error:
        if "pip install" in str(error) or name in WITH_FEATURES:
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
