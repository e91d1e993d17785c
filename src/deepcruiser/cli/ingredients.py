"""What a campaign is made of, as it was typed, and how its folder remembers it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.atomic import atomic_write
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.cli import builtin
from deepcruiser.cli.resolve import PROCESS, READY_MADE, data_from, model_from, mutations_from, system_from
from deepcruiser.errors import FileError, InputError
from deepcruiser.oracles import CharacterErrorRate, Disagreement, Oracle, SpanDisagreement, WordErrorRate
from deepcruiser.report.terminal import Watch
from deepcruiser.trace import System
from deepcruiser.transformations import EXTRA, PAPER, AddBackgroundNoise

COMMAND = "command.json"
WER_ABOVE = 0.3


@dataclass(frozen=True, kw_only=True)
class Ingredients:
    """What `fuzz` is given. Written to the folder of the campaign, it is what `replay` needs.

    Paths are kept as they were typed, with the working directory that they are relative to. That is noted twice: as
    seen from the campaign's folder, so that both can be moved together, and as such, so that the folder can be moved
    alone.
    """

    system: str
    data: str | None = None
    profile: str | None = None
    partitions: int | None = None
    input_partitions: int = 10
    model: str | None = None
    wer_above: float | None = None
    cer_above: float | None = None
    disagreement: bool = False
    spans_below: float | None = None
    against: Any = None
    mutations: str | None = None
    transformations: str | None = None
    noise: str | None = None
    ranges: tuple[str, ...] = ()
    limit_seconds: float = 60.0

    def complete(self) -> Ingredients:
        """With what a built-in system brings, where nothing else is given."""
        if not builtin.is_built_in(self.system):
            return self
        return replace(
            self, data=self.data or self.system, mutations=self.mutations or builtin.own_mutations(self.system)
        )

    def load_system(self) -> System:
        return system_from(self.system)

    def load_data(self) -> Iterable[Any]:
        if self.data is None:
            raise click.UsageError("give --data: only a built-in system brings seeds of its own")
        return data_from(self.data)

    def load_model(self, *, needed: bool = True) -> AbstractModel | None:
        """The model; None, if it is not needed, where nothing names one."""
        if not needed and self.profile is None and self.partitions is None and self.model is None:
            return None
        return model_from(self.profile, self.partitions, self.input_partitions, self.model)

    def oracle(self) -> Oracle:
        given = (
            self.wer_above is not None,
            self.cer_above is not None,
            self.disagreement,
            self.spans_below is not None,
        )
        if sum(given) > 1:
            raise click.UsageError("give one of --wer-above, --cer-above, --disagreement and --spans-below")
        if self.spans_below is not None:
            if self.against == "text":
                raise click.UsageError("--spans-below compares with the answer to the seed: leave out --against text")
            return SpanDisagreement(self.spans_below)
        if self.disagreement:
            return Disagreement(self.against)
        if self.cer_above is not None:
            return CharacterErrorRate(self.cer_above, self.against)
        return WordErrorRate(WER_ABOVE if self.wer_above is None else self.wer_above, self.against)

    def load_mutations(self) -> Mutations:
        if self.mutations is not None:
            if self.transformations is not None or self.noise is not None or self.ranges:
                raise click.UsageError("--transformations, --noise and --range are for sound, which this is not")
            return mutations_from(self.mutations)
        kinds = _kinds(self.transformations, noise=self.noise is not None)
        ranges: dict[str, dict[str, Any]] = {}
        for given in self.ranges:
            kind, name, values = _range(given)
            ranges.setdefault(kind.__name__, {})[name] = values
        if self.noise is not None:
            ranges.setdefault(AddBackgroundNoise.__name__, {})["folder"] = os.path.abspath(self.noise)
        mutations = Mutations(kinds, ranges=ranges)
        for kind in kinds:  # now, and not in the middle of a campaign
            mutations.draw(kind, np.random.default_rng(0))
        return mutations

    @property
    def limit(self) -> float | None:
        """How long a batch may take; None for ever."""
        return self.limit_seconds or None

    def save(self, folder: str | os.PathLike[str], **more: Any) -> None:
        """Write them to a campaign's folder, and `more` for people to read."""
        here = os.path.abspath(os.curdir)
        try:
            as_seen = os.path.relpath(here, os.path.realpath(folder))
        except ValueError:  # on another drive
            as_seen = here
        notes = {**more, "ingredients": asdict(self), "directory": {"as seen from here": as_seen, "absolute": here}}
        with atomic_write(Path(folder, COMMAND)) as file:
            file.write(json.dumps(notes, indent=2, ensure_ascii=False).encode())

    def remembered(self, show: Watch, folder: str | os.PathLike[str], **more: Any) -> Watch:
        """Shows a campaign, and saves these with its first status: not before it is known that the folder is ours."""
        saved = False

        def watch(status: Status) -> None:
            nonlocal saved
            if not saved:
                self.save(folder, **more)
                saved = True
            show(status)

        return watch

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Ingredients | None:
        """Those of a campaign's folder, with the paths found from where we are; None if it remembers none."""
        path = Path(folder, COMMAND)
        if not path.is_file():
            return None
        try:
            notes = json.loads(path.read_bytes())
            known = {field.name for field in fields(cls)}
            found = cls(**{key: value for key, value in notes["ingredients"].items() if key in known})
            found = replace(found, ranges=tuple(found.ranges))
            bases = [Path(folder, notes["directory"]["as seen from here"]), Path(notes["directory"]["absolute"])]
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise FileError(
                f"{str(path)!r} is not what `deepcruiser fuzz` writes, or it is damaged ({error})"
            ) from None
        names = ["system", "data", "profile", "model", "noise"]
        names += ["mutations"] if found.mutations not in READY_MADE else []
        located: dict[str, Any] = {name: _located(getattr(found, name), bases) for name in names}
        return replace(found, **located)


def _located(given: str | None, bases: list[Path]) -> str | None:
    """A path, or `file.py:name`, that was typed in another folder: where it is there."""
    if given is None or builtin.is_data(given):
        return given
    if given.startswith(PROCESS):
        words = shlex.split(given.removeprefix(PROCESS))
        return f"{PROCESS} {shlex.join(_file_or_word(word, bases) for word in words)}"
    file, colon, name = given.rpartition(":") if ".py:" in given else (given, "", "")
    places = [base / file for base in bases]
    found = Path(os.path.realpath(next((place for place in places if place.exists()), places[-1])))
    here = Path.cwd()
    return f"{found.relative_to(here) if found.is_relative_to(here) else found}{colon}{name}"


def _file_or_word(word: str, bases: list[Path]) -> str:
    return next((str((base / word).resolve()) for base in bases if (base / word).is_file()), word)


def _kinds(given: str | None, *, noise: bool) -> tuple[Any, ...]:
    """The transformations that --transformations names, and AddBackgroundNoise where there is --noise for it."""
    by_name = {kind.__name__.lower(): kind for kind in PAPER + EXTRA}
    if given is None:
        chosen = list(PAPER)
    elif given == "all":
        chosen = [kind for kind in PAPER + EXTRA if kind is not AddBackgroundNoise]
    else:
        names = [name.strip().lower() for name in given.split(",")]
        for name in names:
            if name not in by_name:
                known = ", ".join(kind.__name__ for kind in by_name.values())
                raise InputError(f"no transformation {name!r}; there are: {known}; or say: all")
        chosen = [kind for name, kind in by_name.items() if name in names]
    if noise and AddBackgroundNoise not in chosen:
        chosen.append(AddBackgroundNoise)
    if AddBackgroundNoise in chosen and not noise:
        raise click.UsageError("AddBackgroundNoise needs recordings: --noise FOLDER")
    return tuple(chosen)


def _range(given: str) -> tuple[Any, str, tuple[float, float]]:
    """A kind, its parameter and the range, from `AddWhiteNoise.snr_db=25,40`."""
    by_name = {kind.__name__.lower(): kind for kind in PAPER + EXTRA}
    where, _, ends = given.partition("=")
    kind, _, name = where.strip().partition(".")
    try:
        low, high = map(float, ends.split(","))
        return by_name[kind.lower()], name, (low, high)
    except (KeyError, ValueError):
        raise InputError(f"--range {given!r} is not of the form AddWhiteNoise.snr_db=25,40") from None
