"""Turns option values into objects: systems, data, models, mutations and guides."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
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
from deepcruiser.errors import FileError, InputError
from deepcruiser.oracles import Oracle
from deepcruiser.systems import BUILT_IN
from deepcruiser.systems.load import is_built_in, load_system, object_from, running
from deepcruiser.trace import System


def system_from(name: str, *, device: str = "cpu") -> System:
    """The system that --system names; a built-in one is loaded once."""
    return builtin.system(name, device=device) if is_built_in(name) else load_system(name, device=device)


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
    if is_built_in(name):
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
