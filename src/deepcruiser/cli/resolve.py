"""Turns option values into objects: systems, data, models, mutations and guides."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.cli import builtin
from deepcruiser.cli.options import INPUT_PARTITIONS
from deepcruiser.corpora.samples import samples
from deepcruiser.criteria import BSCov, criterion
from deepcruiser.errors import DeepCruiserError, FileError, InputError, described
from deepcruiser.oracles import Oracle
from deepcruiser.systems import BUILT_IN
from deepcruiser.systems.by_suffix import ADAPTERS, is_model_file, system_from_file
from deepcruiser.trace import System

#: The prefix of a command in --system: "process: ./my-recogniser --json".
PROCESS = "process:"


def system_from(name: str, *, device: str = "cpu") -> System:
    """The system that --system names: `file.py:name`, a model file, `process: command`, or a built-in one."""
    if is_model_file(name):
        system = system_from_file(name, device=device)
        if getattr(system, "device", "") == device:
            return system
    if device != "cpu":
        check_device(device)
    if builtin.is_built_in(name):
        system = builtin.system(name, device=device)
    elif not is_model_file(name):
        system = _system_from(name)
    if device != "cpu":
        net: Any = getattr(system, "net", None)
        if not is_network(net):
            raise InputError(
                f"--device {device} works for PyTorch networks and ONNX files, but {name!r} is neither: leave it "
                "out, or choose the device where the system is made"
            )
        net.to(device)
    return system


def check_device(device: str) -> None:
    """Raise an error unless PyTorch can use the device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        message = str(error).splitlines()[0]
        raise InputError(
            f"--device {device!r} cannot be used ({message}); this machine has: {', '.join(there)}"
        ) from None


def _system_from(name: str) -> System:
    if name.startswith(PROCESS):
        from deepcruiser.systems.process.system import ProcessSystem

        return ProcessSystem(name.removeprefix(PROCESS))
    if name.endswith(".py"):
        raise InputError(f"{name!r} is a Python file: name what it defines, {name}:NAME")
    if ".py:" not in name:
        built_in = ", ".join(BUILT_IN)
        raise InputError(
            f"--system {name!r} is not a system: give file.py:name, a model file ({', '.join(ADAPTERS)}), "
            f"'process: program arguments', or a built-in system ({built_in})"
        )
    value = object_from(name)
    with running(name):
        # The class of a system has `run` too, so it also passes `isinstance(value, System)`.
        if isinstance(value, type) or (callable(value) and not isinstance(value, System) and not is_network(value)):
            value = value()
        if isinstance(value, System):
            return value
    if is_network(value):
        raise InputError(
            f"{name!r} is a bare {type(value).__name__}: wrap it, "
            "system = deepcruiser.TorchSystem(net, state='name of the recurrent layer'), and name that; "
            f"deepcruiser init {name} does it"
        )
    raise InputError(f"{name!r} is a {type(value).__name__}, which has no run(batch) -> list[Run]")


def is_network(value: Any) -> bool:
    """Whether this is a PyTorch module. It cannot be one if torch has not been imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def data_from(name: str) -> Iterable[Any]:
    """The data that --data names: a corpus on disk, `file.py:name` for other data, or those of a built-in system.

    A folder with the name of a built-in system is written as `./brackets`.
    """
    if builtin.is_data(name):
        return builtin.data(name)
    if ".py:" not in name:
        if name.endswith(".py"):
            raise InputError(f"--data {name!r} is a Python file: name what it defines, {name}:NAME")
        from deepcruiser.corpora.read import read_corpus

        return read_corpus(name)
    value = object_from(name)
    if callable(value):
        with running(name):
            value = value()
    try:
        with running(name):
            return samples(value)
    except InputError as error:
        raise InputError(f"{name!r}: {error}") from None


#: The names that --mutations accepts besides the built-in systems.
NAMED_MUTATIONS = ("text", "series")


def mutations_from(name: str) -> Mutations:
    """The mutations that --mutations names: `text`, `series`, `file.py:name`, or those of a built-in system."""
    if name in NAMED_MUTATIONS:
        return Mutations.of(name)
    if builtin.is_built_in(name):
        return builtin.mutations(name)
    if ".py:" not in name:
        names = ", ".join((*NAMED_MUTATIONS, *BUILT_IN))
        raise InputError(f"--mutations {name!r} is neither file.py:name nor a built-in name ({names})")
    value = object_from(name)
    if inspect.isroutine(value) or isinstance(value, type):
        with running(name):
            value = value()
    if not isinstance(value, Mutations):
        raise InputError(f"{name!r} is a {type(value).__name__}: a deepcruiser.Mutations is needed")
    return value


def oracle_from(name: str) -> Oracle:
    """The oracle that --oracle names: an object, a class, or a function that makes one."""
    if ".py:" not in name:
        raise InputError(f"--oracle {name!r} is not of the form FILE.py:NAME")
    value = object_from(name)
    if inspect.isroutine(value) or isinstance(value, type):
        with running(name):
            value = value()
    missing = [each for each in ("name", "reference", "score", "fails") if not hasattr(value, each)]
    if missing:
        raise InputError(
            f"{name!r} is a {type(value).__name__} without {' and '.join(missing)}: an oracle has name, "
            "reference(text, output), score(reference, output) and fails(score)"
        )
    oracle: Oracle = value
    return oracle


def model_from(
    profile: str | Path | None, partitions: int | None, input_partitions: int, model: str | Path | None
) -> AbstractModel:
    """The abstract model that --profile and --partitions, or --model, name."""
    if model is not None and profile is None and partitions is None:
        if input_partitions != INPUT_PARTITIONS:
            raise click.UsageError("--input-partitions needs --profile: the model in --model already has its grids")
        return AbstractModel.load(model)
    if profile is None or partitions is None or model is not None:
        raise click.UsageError("give either --profile and --partitions, or --model")
    if not Path(profile).exists():
        raise FileError(f"there is no file {str(profile)!r}: write it with deepcruiser profile")
    return Profile.load(profile).abstract(partitions, input_partitions=input_partitions)


def guide_from(text: str, keep: str | None = None) -> Guide:
    """The guide that --guide and --keep name; `random` or `none` among the criteria is short for that --keep."""
    names = [name.strip() for name in text.split(",")]
    baseline = next((name for name in names if name in ("random", "none")), None)
    if baseline is not None and keep is not None and keep != baseline:
        raise click.UsageError(f"--guide {text} cannot be combined with --keep {keep}: leave one out")
    criteria = tuple(criterion(name) for name in names if name != baseline)
    rule: Any = baseline or keep or Guide().keep
    return Guide(criteria or (BSCov,), rule)


def object_from(reference: str) -> Any:
    """The object that `file.py:name` names. The file is run like any Python script.

    Its folder is added to the import path, so that it can import its neighbours, in worker processes too.
    """
    file, _, name = reference.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise FileError(f"there is no file {file!r} (given: {reference!r})")
    known = sys.modules.get(path.stem)  # another file of the user's may have imported it
    known_here = known is not None and Path(getattr(known, "__file__", None) or "").resolve() == path.resolve()
    module = known if known_here else _modules.get(path.resolve())
    if module is None:
        specification = importlib.util.spec_from_file_location(path.stem, path)
        assert specification is not None  # always true for a path that ends in .py
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.path.insert(0, str(path.resolve().parent))
        if known is None or known in _modules.values():
            sys.modules[path.stem] = module  # so that its definitions can be sent to other processes
        try:
            with running(file):
                specification.loader.exec_module(module)
        except BaseException:
            if sys.modules.get(path.stem) is module:
                del sys.modules[path.stem]
            raise
        _modules[path.resolve()] = module
    with running(reference):
        value = getattr(module, name, None)
    if value is None:
        names = ", ".join(n for n in vars(module) if not n.startswith("_")) or "nothing"
        raise InputError(f"no {name!r} in {file!r}, which defines: {names}")
    return value


@contextmanager
def running(source: str) -> Iterator[None]:
    """Run code of the user's file; any exception, `sys.exit` included, becomes a clear error with its line."""
    try:
        yield
    except DeepCruiserError:
        raise
    except (Exception, SystemExit) as error:
        line = _line_in(error, source.rpartition(":")[0] or source)
        raise FileError(f"{source!r} could not be run: {described(error)}{line}") from error


#: Files that were run already. --system and --data may name the same file, and its network is built once.
_modules: dict[Path, Any] = {}


def _line_in(error: BaseException, file: str) -> str:
    """The line of the user's file where the error was raised, for a message."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""
