"""Model files as systems, by their content and suffix, for `--system model.onnx`."""

from __future__ import annotations

import os
import re
import zipfile
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
    ".pt": ("torch", "TorchScriptSystem"),
    ".tflite": ("tflite", "TfliteSystem"),
    ".ts": ("torch", "TorchScriptSystem"),
}
#: The modules of adapters that are not in the `system` of their folder.
_MODULES = {"TorchScriptSystem": "script"}

#: The adapters that know the features of their networks.
WITH_FEATURES = ("DeepSpeechSystem", "EesenSystem")
#: How files of a kind begin, and the suffix that they should have.
_BEGINNINGS = (
    (re.compile(rb"(\0B)?\s*<Nnet>\s"), ".nnet"),
    (re.compile(rb"\x89HDF\r\n\x1a\n"), ".h5"),
    (re.compile(rb"....TFL3", re.DOTALL), ".tflite"),
    (re.compile(rb"\x08[\x01-\x20](\x12|\x3a|\x42)", re.DOTALL), ".onnx"),  # its version, then who wrote it or what
)


def is_model_file(name: str | os.PathLike[str]) -> bool:
    """Whether this is a model file, by its content if it exists, or else by its suffix."""
    return _suffix(name) is not None


def adapter_of(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The folder and the class of the adapter of a model file that exists."""
    suffix = _suffix(path)
    if suffix is None:
        raise InputError(f"{str(path)!r} is not a model file; their names end in {', '.join(ADAPTERS)}")
    if not Path(path).is_file():
        raise FileError(f"there is no file {str(path)!r}")
    return ADAPTERS[suffix]


def _suffix(path: str | os.PathLike[str]) -> str | None:
    """The suffix that a model file has or, by its content, should have."""
    suffix = Path(path).suffix.lower()
    try:
        if not Path(path).is_file():  # opening a pipe could wait forever
            raise FileNotFoundError
        with open(path, "rb") as file:
            start = file.read(64)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            result = ".keras" if "config.json" in names else ".pt" if _is_script(names) else None
        else:
            result = next((suffix for beginning, suffix in _BEGINNINGS if beginning.match(start)), None)
    except (OSError, ValueError, zipfile.BadZipFile):
        result = None
    return result or (suffix if suffix in ADAPTERS else None)


def _is_script(names: list[str]) -> bool:
    return any("/code/" in name for name in names) and any(name.endswith("/constants.pkl") for name in names)


def system_from_file(path: str | os.PathLike[str], *, device: str = "cpu") -> System:
    """The system of a model file, with the default of every option that is not in the file.

    The `device` is for ONNX; the others run on the CPU.
    """
    folder, name = adapter_of(path)
    adapter = getattr(import_module(f"deepcruiser.systems.{folder}.{_MODULES.get(name, 'system')}"), name)
    try:
        system: System = adapter(path, **({"device": device} if name == "OnnxSystem" else {}))
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
