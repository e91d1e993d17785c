"""What the commands take from the user: systems and data, by file and name."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from deepcruiser.datasets import read_corpus
from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.systems import BUILT_IN, load_system
from deepcruiser.trace import System


def system_from(given: str) -> System:
    """The system that --system names: `file.py:name`, or one that is built in."""
    if given in BUILT_IN:
        return load_system(given)
    if ".py:" not in given:
        built_in = ", ".join(BUILT_IN)
        raise InputError(f"--system {given!r} is neither file.py:name nor built in (there is: {built_in})")
    found = _object(given)
    if isinstance(found, torch.nn.Module):
        raise InputError(
            f"{given!r} is a bare {type(found).__name__}: wrap it, "
            "system = deepcruiser.TorchSystem(net, state='name of the recurrent layer'), and name that"
        )
    if callable(found) and not isinstance(found, System):
        found = found()
    if not isinstance(found, System):
        raise InputError(f"{given!r} is a {type(found).__name__}, which has no run(batch) -> list[Run]")
    return found


def data_from(given: str) -> Iterable[Any]:
    """The data that --data names: a corpus on disk, or `file.py:name` for a list of inputs."""
    if ".py:" not in given:
        return read_corpus(given)
    found = _object(given)
    found = found() if callable(found) else found
    if not isinstance(found, Iterable):
        raise InputError(f"{given!r} is a {type(found).__name__}: a list of inputs is needed")
    return found


def _object(given: str) -> Any:
    """The object that `file.py:name` names. The file is run, as any Python file that one starts oneself."""
    file, _, name = given.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise FileError(f"there is no file {file!r} (given: {given!r})")
    module = _modules.get(path.resolve())
    if module is None:
        specification = importlib.util.spec_from_file_location(path.stem, path)
        assert specification is not None  # it is a file that ends in .py
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours
        try:
            specification.loader.exec_module(module)
        except DeepCruiserError:
            raise
        except Exception as error:
            line = _line_in(error, str(path))
            raise FileError(f"{file!r} could not be run: {type(error).__name__}: {error}{line}") from error
        finally:
            sys.path.pop(0)
        _modules[path.resolve()] = module
    if not hasattr(module, name):
        names = ", ".join(n for n in vars(module) if not n.startswith("_")) or "nothing"
        raise InputError(f"no {name!r} in {file!r}, which defines: {names}")
    return getattr(module, name)


#: Files that were run already: --system and --data may name the same one, and a network is built once.
_modules: dict[Path, Any] = {}


def _line_in(error: BaseException, file: str) -> str:
    """Where in the user's file it went wrong."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""
