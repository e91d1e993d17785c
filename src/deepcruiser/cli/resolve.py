"""What the commands take from the user: systems, data, models and mutations, by file and name."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import torch

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.cli import builtin
from deepcruiser.corpora import read_corpus
from deepcruiser.criteria import BSCov, criterion
from deepcruiser.errors import DeepCruiserError, FileError, InputError
from deepcruiser.systems import BUILT_IN
from deepcruiser.systems.by_suffix import ADAPTERS, is_model_file, system_from_file
from deepcruiser.systems.process.system import ProcessSystem
from deepcruiser.trace import System

#: What stands before a command in --system: "process: ./my-recogniser --json".
PROCESS = "process:"


def system_from(given: str) -> System:
    """The system that --system names: `file.py:name`, a model file, `process: command`, or one that is built in."""
    if builtin.is_built_in(given):
        return builtin.system(given)
    if given.startswith(PROCESS):
        return ProcessSystem(given.removeprefix(PROCESS))
    if is_model_file(given):
        return system_from_file(given)
    if ".py:" not in given:
        built_in = ", ".join(BUILT_IN)
        raise InputError(
            f"--system {given!r} is neither file.py:name nor built in (there is: {built_in}) "
            f"nor a model file ({', '.join(ADAPTERS)}) nor 'process: program arguments'"
        )
    found = _object(given)
    if isinstance(found, torch.nn.Module):
        raise InputError(
            f"{given!r} is a bare {type(found).__name__}: wrap it, "
            "system = deepcruiser.TorchSystem(net, state='name of the recurrent layer'), and name that"
        )
    if isinstance(found, type) or (callable(found) and not isinstance(found, System)):
        found = found()  # a class of systems has a `run` as well, but is none
    if not isinstance(found, System):
        raise InputError(f"{given!r} is a {type(found).__name__}, which has no run(batch) -> list[Run]")
    return found


def data_from(given: str) -> Iterable[Any]:
    """The data that --data names: a corpus on disk, `file.py:name` for a list of inputs, or those of a built-in system.

    A folder that is called as a built-in system is `./brackets`.
    """
    if builtin.is_data(given):
        return builtin.data(given)
    if ".py:" not in given:
        return read_corpus(given)
    found = _object(given)
    found = found() if callable(found) else found
    if not isinstance(found, Iterable):
        raise InputError(f"{given!r} is a {type(found).__name__}: a list of inputs is needed")
    return found


#: What --mutations knows by name, beside those of the built-in systems.
READY_MADE = {"text": Mutations.text, "series": Mutations.series}


def mutations_from(given: str) -> Mutations:
    """The mutations that --mutations names: `text`, `series`, `file.py:name`, or those of a built-in system."""
    if given in READY_MADE:
        return READY_MADE[given]()
    if builtin.is_built_in(given):
        return builtin.mutations(given)
    if ".py:" not in given:
        raise InputError(
            f"--mutations {given!r} is neither file.py:name nor built in "
            f"(there is: {', '.join((*READY_MADE, *BUILT_IN))})"
        )
    found = _object(given)
    if inspect.isroutine(found) or isinstance(found, type):
        found = found()
    if not isinstance(found, Mutations):
        raise InputError(f"{given!r} is a {type(found).__name__}: a deepcruiser.Mutations is needed")
    return found


def model_from(
    profile: str | Path | None, partitions: int | None, input_partitions: int, model: str | Path | None
) -> AbstractModel:
    """The abstract model that --profile and --partitions, or --model, name."""
    if model is not None and profile is None and partitions is None:
        return AbstractModel.load(model)
    if profile is None or partitions is None or model is not None:
        raise click.UsageError("give either --profile and --partitions, or --model")
    return Profile.load(profile).abstract(partitions, input_partitions=input_partitions)


def guide_from(given: str) -> Guide:
    """The guide that --guide names: criteria, or `random` or `none` with those that are only measured."""
    names = [name.strip() for name in given.split(",")]
    keep: Any = next((name for name in names if name in ("random", "none")), "guided")
    criteria = tuple(criterion(name) for name in names if name != keep)
    return Guide(criteria or (BSCov,), keep)


def _object(given: str) -> Any:
    """The object that `file.py:name` names. The file is run, as any Python file that one starts oneself.

    As then, its folder is where it and its neighbours are imported from, also by the processes that make mutants.
    """
    file, _, name = given.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise FileError(f"there is no file {file!r} (given: {given!r})")
    known = sys.modules.get(path.stem)  # a file of the user's may have imported it
    known_here = known is not None and Path(getattr(known, "__file__", None) or "").resolve() == path.resolve()
    module = known if known_here else _modules.get(path.resolve())
    if module is None:
        specification = importlib.util.spec_from_file_location(path.stem, path)
        assert specification is not None  # it is a file that ends in .py
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.path.insert(0, str(path.resolve().parent))
        if known is None or known in _modules.values():
            sys.modules[path.stem] = module  # or what it defines could not be sent to another process
        try:
            specification.loader.exec_module(module)
        except BaseException as error:
            if sys.modules.get(path.stem) is module:
                del sys.modules[path.stem]
            if isinstance(error, DeepCruiserError) or not isinstance(error, Exception):
                raise
            line = _line_in(error, str(path))
            raise FileError(f"{file!r} could not be run: {type(error).__name__}: {error}{line}") from error
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
