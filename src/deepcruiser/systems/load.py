"""Loading a system by its name, as `--system` takes it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepcruiser.errors import DeepCruiserError, FileError, InputError, described
from deepcruiser.systems import BUILT_IN
from deepcruiser.systems.by_suffix import ADAPTERS, is_model_file, system_from_file
from deepcruiser.trace import System

#: The prefix of a command in --system: "process: ./my-recogniser --json".
PROCESS = "process:"


def load_system(name: str, *, device: str = "cpu") -> System:
    """Load a system: a built-in one, a model file, `FILE.py:NAME`, or `process: COMMAND`.

    * "english" recognises English speech as known words, with a language model; "english-letters" letter by letter.
    * "brackets" decides whether brackets are balanced; "brackets:7" is trained anew with the random seed 7.
    """
    if is_model_file(name):
        system = system_from_file(name, device=device)
        if getattr(system, "device", "") == device:
            return system
    if device != "cpu":
        check_device(device)
    if is_built_in(name):
        system = _built_in(name, device)
    elif not is_model_file(name):
        system = _system_from(name)
    if device != "cpu":
        net: Any = getattr(system, "net", None)
        if not is_network(net):
            raise InputError(
                f"the device {device!r} can be chosen for PyTorch networks and ONNX files, but {name!r} is neither: "
                "leave it out, or choose the device where the system is made"
            )
        net.to(device)
    return system


def is_built_in(name: str) -> bool:
    """Whether this names a built-in system; `brackets:7` is `brackets` trained with another random seed."""
    kind, _, seed = name.partition(":")
    return name in BUILT_IN or (kind == "brackets" and seed.isdecimal())


def _built_in(name: str, device: str) -> System:
    kind, _, seed = name.partition(":")
    if kind == "brackets":
        from deepcruiser.systems.builtin import brackets

        return brackets.load(int(seed or 0))
    from deepcruiser.systems.builtin.speech import recogniser

    return recogniser.load(device=device, with_language_model=name == "english")


def check_device(device: str) -> None:
    """Raise an error unless PyTorch can use the device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        message = str(error).splitlines()[0]
        raise InputError(
            f"the device {device!r} cannot be used ({message}); this machine has: {', '.join(there)}"
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
            f"{name!r} is not a system: give file.py:name, a model file ({', '.join(ADAPTERS)}), "
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
