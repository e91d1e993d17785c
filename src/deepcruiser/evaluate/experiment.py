"""The experiment that all questions share: a system, its profile, seeds, and a folder for the work."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.abstraction.grid import INPUT_PARTITIONS
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.projection import Projection
from deepcruiser.abstraction.projections import Projections
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.spec import mutations_component
from deepcruiser.errors import DeepCruiserError, FileError, InputError, MismatchError, reason
from deepcruiser.evaluate.run_cache import RunCache
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.reading import parse_json, read_bytes
from deepcruiser.files.spooled_rows import Rows
from deepcruiser.oracles import Oracle
from deepcruiser.serialise import digest_of
from deepcruiser.trace import System

#: The paper's configurations.
PARTITIONS = (10, 20, 50, 100)
COMPONENTS = 3
ABOUT = "experiment.json"
WORK = "work"


@dataclass(frozen=True, eq=False)
class Experiment:
    """One system with its profile and seeds. Every question about it can use the same folder."""

    system: System
    profile: Profile
    seeds: Seeds
    mutations: Mutations
    oracle: Oracle
    folder: Path
    partitions: tuple[int, ...] = PARTITIONS
    #: None: as many as the states have, in every configuration.
    input_partitions: int | None = INPUT_PARTITIONS
    components: int = COMPONENTS
    seed: int = 0
    batch_size: int = 16
    limit_seconds: float | None = None

    def __post_init__(self) -> None:
        self.profile.check(self.system)
        there = self.profile.projections.states.components
        if not 1 <= self.components <= there:
            raise InputError(
                f"components={self.components} is more than the {there} of the profile: "
                f"profile with --components {self.components}, or give --components {there}"
            )
        if not self.partitions or len(set(self.partitions)) < len(self.partitions):
            raise InputError(f"partitions must be different numbers, at least one, not {list(self.partitions)}")
        if hasattr(self.oracle, "follow"):
            raise InputError(
                f"evaluate compares answers with texts or labels, which the oracle {self.oracle.name!r} does not"
            )
        for name, number, least in (("seed", self.seed, 0), ("batch_size", self.batch_size, 1)):
            if number < least:
                raise InputError(f"{name} must be at least {least}, not {number}")

    @cached_property
    def cache(self) -> RunCache:
        return RunCache(
            self.system,
            self.seeds,
            projections=self.profile.projections,
            mutations=self.mutations,
            folder=self.folder / WORK,
            limit_seconds=self.limit_seconds,
        )

    @cached_property
    def narrowed(self) -> Profile:
        """The profile cut to `components`, for vectors that are projected already."""
        return narrowed(self.profile, self.components)

    @cached_property
    def models(self) -> dict[int, AbstractModel]:
        """The model for each number of partitions, for traces that are projected already."""
        return {m: self.abstract(self.narrowed, m) for m in self.partitions}

    def title(self, partitions: int) -> str:
        """The name of a model above a figure, with the grid of the inputs on a line of its own."""
        return self.models[partitions].name.replace(" with ", "\nwith ")

    def abstract(self, profile: Profile, partitions: int) -> AbstractModel:
        """The model of a profile for one of the numbers of partitions, with the input partitions of the experiment."""
        return profile.abstract(partitions, input_partitions=self.inputs_on(partitions))

    def inputs_on(self, partitions: int) -> int:
        """The number of input partitions where the states have this many."""
        return partitions if self.input_partitions is None else self.input_partitions

    def open(self) -> None:
        """Make the folder, or check that it belongs to this experiment."""
        try:
            (self.folder / WORK).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write to the folder {os.fspath(self.folder)!r}: {reason(error)}") from None
        about, path = json.loads(json.dumps(self._about())), self.folder / ABOUT
        known = _read(path) if path.exists() else None
        if known is None:
            with atomic_write(path) as file:
                file.write(json.dumps(about, indent=2).encode())
        elif known != about:
            differ = [f"{key} (was {known.get(key)}, is {about[key]})" for key in about if known.get(key) != about[key]]
            raise MismatchError(
                f"{os.fspath(self.folder)!r} was started with different settings: {'; '.join(differ)}. "
                "Use the original settings, or another folder"
            )

    def _about(self) -> dict[str, Any]:
        return {
            "system": str(getattr(self.system, "fingerprint", "")),
            "profile": self.cache.fingerprint[:16] + self.profile.origin.data,
            "data": digest_of([[name, self.seeds.text(name)] for name in self.seeds]),
            "oracle": self.oracle.name,
            "mutations": mutations_component(self.mutations).to_dict(),
            "seed": int(self.seed),
            "batch_size": int(self.batch_size),
        }


def narrowed(profile: Profile, components: int) -> Profile:
    """The first components of a profile, as a profile of vectors that are projected already."""
    states, inputs = _first(profile.states, components), _first(profile.inputs, components)
    projections = Projections(
        _identity(profile.projections.states, components), _identity(profile.projections.inputs, components)
    )
    return Profile(projections, states, inputs, profile.lengths, profile.origin)


def _first(rows: Rows, components: int) -> Rows:
    first = Rows(min(components, rows.width))
    for block in rows.blocks():
        first.append(block[:, :components])
    return first


def _identity(projection: Projection, components: int) -> Projection:
    variances = projection.variances[:components]
    return Projection(np.zeros(len(variances)), np.eye(len(variances)), variances, projection.total_variance)


def _read(path: Path) -> dict[str, Any]:
    try:
        known = parse_json(read_bytes(path))
    except (DeepCruiserError, ValueError) as error:
        raise FileError(f"{os.fspath(path)!r} cannot be read ({error}): give another folder") from None
    return known if isinstance(known, dict) else {}
