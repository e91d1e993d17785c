"""The result of profiling a network, before a grid is chosen."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.clusters import Clusters
from deepcruiser.abstraction.grid import INPUT_PARTITIONS, Grid, IntArray
from deepcruiser.abstraction.model import AbstractModel, projection_arrays, projection_from
from deepcruiser.abstraction.origin import Origin
from deepcruiser.abstraction.probes import Probe, check_system
from deepcruiser.abstraction.projections import Fit, Projected, Projections
from deepcruiser.abstraction.transition_counts import Counts
from deepcruiser.abstraction.visits import Visits
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.files import archive
from deepcruiser.files.spooled_rows import Rows
from deepcruiser.notebook import card
from deepcruiser.trace import System, Trace

#: Number of steps whose cells are counted at a time.
_BLOCK_STEPS = 2**18

Bounds = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Profile:
    """The projections and the projected traces, from which a model for any number of partitions can be made.

    `states` and `inputs` hold the projected vectors of all traces, one after the other, and `lengths` the number of
    steps of each trace: N inputs, and N+1 states. The segments of a trace count as traces. Large profiles are kept in a
    temporary file. `names` are the names of the traces, by which `nearest` finds training data, and `probes` a few
    inputs with the system's answers; profiles made before version 0.2 have neither.
    """

    projections: Projections
    states: Rows
    inputs: Rows
    lengths: IntArray
    origin: Origin
    names: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()

    @classmethod
    def of(
        cls,
        traces: Sequence[Trace],
        *,
        components: int = 3,
        input_components: int | None = None,
        projections: Projections | None = None,
    ) -> Profile:
        """Profile traces that already exist; the projections are fitted on all of them, unless some are given."""
        traces = list(traces)
        if not traces:
            raise InputError("there are no traces to profile: at least one is needed")
        if projections is None:
            projections = Fit.of(traces).projections(components, input_components=input_components)
        recorder = Recorder(projections)
        for position, trace in enumerate(traces):
            (states,), (inputs,) = projections.project([trace], [str(position)])
            recorder.add(str(position), states, inputs, trace.segments)
        return recorder.profile(fitted_on=len(traces))

    @cached_property
    def bounds(self) -> Bounds:
        """The least and the greatest projected value of each component of the states."""
        return _bounds(self.states)

    @cached_property
    def input_bounds(self) -> Bounds:
        """The least and the greatest projected value of each component of the inputs."""
        return _bounds(self.inputs)

    def abstract(self, partitions: int, *, input_partitions: int = INPUT_PARTITIONS) -> AbstractModel:
        """The abstract model M{components, partitions}."""
        return self._model(Grid(*self.bounds, partitions), input_partitions)

    def cluster(self, clusters: int, *, input_partitions: int = INPUT_PARTITIONS, seed: int = 0) -> AbstractModel:
        """A model whose states are clusters of k-means instead of cells of a grid, to compare the grid with."""
        return self._model(Clusters.fit(self.states[:], clusters, seed=seed), input_partitions)

    def _model(self, grid: Grid, input_partitions: int) -> AbstractModel:
        input_grid = Grid(*self.input_bounds, input_partitions)

        def count(block: tuple[Projected, Projected, IntArray]) -> Counts:
            states, inputs, lengths = block
            return Counts.of(grid, states, input_grid, inputs, lengths)

        counts, counting = list[Counts](), deque[Future[Counts]]()
        workers = os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as pool:  # numpy releases the interpreter lock while it sorts
            for block in self._blocks():
                counting.append(pool.submit(count, block))
                if len(counting) > 2 * workers:
                    counts.append(counting.popleft().result())
            counts += [each.result() for each in counting]
        return AbstractModel(self.projections, grid, input_grid, Counts.merge(counts), self.origin, self.probes)

    def check(self, system: System) -> None:
        """Refuse a system with another network or other features than the one that was profiled."""
        check_system(system, self.origin, self.probes)

    def visits(self, model: AbstractModel) -> Iterator[Visits]:
        """The visits of the profiled traces themselves to a model."""
        for states, inputs, lengths in self._blocks():
            yield Visits.of(model, states, inputs, lengths)

    def configurations(
        self, partitions: Sequence[int] = (10, 20, 50, 100), *, input_partitions: int = INPUT_PARTITIONS
    ) -> list[Configuration]:
        """The sizes of the models for several partitions, as in the paper's table of configurations."""
        return [Configuration.of(self.abstract(m, input_partitions=input_partitions)) for m in partitions]

    def merge(self, other: Profile) -> Profile:
        """The profile of both parts together; they must have been made with the same projections."""
        if self.projections != other.projections:
            raise MismatchError(
                "profiles with different projections cannot be merged: fit the parts first (dc.fit on each, then "
                "merge), and profile each with projections= of the whole"
            )
        states, inputs = Rows(self.states.width), Rows(self.inputs.width)
        for part in (self, other):
            states.extend(part.states)
            inputs.extend(part.inputs)
        lengths = np.concatenate([self.lengths, other.lengths])
        names = self.names + other.names if self.names and other.names else ()  # of all traces, or of none
        return Profile(self.projections, states, inputs, lengths, self.origin.merge(other.origin), names, self.probes)

    def _blocks(self) -> Iterator[tuple[Projected, Projected, IntArray]]:
        """Whole traces, about `_BLOCK_STEPS` steps at a time."""
        steps = np.concatenate([[0], np.cumsum(self.lengths)])
        start = 0
        while start < len(self.lengths):
            stop = max(start + 1, int(np.searchsorted(steps, steps[start] + _BLOCK_STEPS, side="right")) - 1)
            states = self.states[int(steps[start]) + start : int(steps[stop]) + stop]
            yield states, self.inputs[int(steps[start]) : int(steps[stop])], self.lengths[start:stop]
            start = stop

    def __repr__(self) -> str:
        of_states, of_inputs = self.projections.states, self.projections.inputs
        return (
            f"Profile of {self.origin.traces:,} traces, {self.origin.steps:,} steps: {of_states.components} of "
            f"{of_states.size:,} components explain {of_states.explained:.1%} of the states' variance "
            f"({of_inputs.components} of {of_inputs.size:,}, {of_inputs.explained:.1%} of the inputs')"
        )

    def _repr_html_(self) -> str:
        sizes = [(c.name, c.states, f"{c.states / c.cells:.1%}", c.transitions) for c in self.configurations()]
        return card(repr(self), [("model", "states", "of the grid", "transitions"), *sizes])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Profile)
            and self.projections == other.projections
            and np.array_equal(self.lengths, other.lengths)
            and self.states == other.states
            and self.inputs == other.inputs
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile to one file, completely or not at all."""
        arrays: dict[str, npt.NDArray[Any] | Rows] = {
            **projection_arrays("states", self.projections.states),
            **projection_arrays("inputs", self.projections.inputs),
            "lengths": self.lengths,
            "states": self.states,
            "inputs": self.inputs,
        }
        about = {"origin": asdict(self.origin), "names": self.names, "probes": [each.to_dict() for each in self.probes]}
        archive.save(path, "profile", about, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Read a profile that `save` wrote."""
        about, arrays = archive.load(path, "profile", rows=("states", "inputs"))
        with archive.contents_of(path, "profile"):
            states, inputs, lengths = arrays["states"], arrays["inputs"], arrays["lengths"]
            if lengths.dtype != np.int64 or lengths.ndim != 1 or (len(lengths) and lengths.min() < 0):
                raise ValueError("the lengths of the traces are not whole numbers of at least 0")
            if (len(states), len(inputs)) != (int(lengths.sum()) + len(lengths), int(lengths.sum())):
                raise ValueError(f"{len(states)} states and {len(inputs)} inputs for {len(lengths)} traces")
            names = tuple(map(str, about.get("names", ())))
            if names and len(names) != len(lengths):
                raise ValueError(f"{len(names)} names for {len(lengths)} traces")
            projections = Projections(projection_from("states", arrays), projection_from("inputs", arrays))
            if (states.width, inputs.width) != (projections.states.components, projections.inputs.components):
                raise ValueError(f"{states.width} and {inputs.width} components do not fit the projections")
            origin = Origin.from_dict(about["origin"])
            if (origin.traces, origin.steps) != (len(lengths), int(lengths.sum())):
                raise ValueError(f"{len(lengths):,} traces, but it comes from {origin.traces:,}")
            probes = tuple(map(Probe.from_dict, about.get("probes", ())))
            return cls(projections, states, inputs, lengths, origin, names, probes)


class Recorder:
    """Takes projected traces one by one and makes a profile of them; each segment becomes a trace of the profile."""

    def __init__(self, projections: Projections) -> None:
        self.projections = projections
        self.states = Rows(projections.states.components)
        self.inputs = Rows(projections.inputs.components)
        #: The name and the number of steps of each trace.
        self.sequences: list[tuple[str, int]] = []

    def add(self, name: str, states: Projected, inputs: Projected, segments: Sequence[int]) -> None:
        self.states.append(states)
        self.inputs.append(inputs)
        self.sequences += [(name, steps) for steps in segments]

    def profile(self, *, fitted_on: int, system: System | None = None, probes: tuple[Probe, ...] = ()) -> Profile:
        lengths = np.array([length for _, length in self.sequences], np.int64)
        origin = Origin.of(self.sequences, fitted_on=fitted_on, system=system)
        names = tuple(name for name, _ in self.sequences)
        return Profile(self.projections, self.states, self.inputs, lengths, origin, names, probes)


@dataclass(frozen=True)
class Configuration:
    """The size of one abstract model."""

    name: str
    states: int
    cells: int
    transitions: int
    choices: int

    @classmethod
    def of(cls, model: AbstractModel) -> Configuration:
        return cls(model.name, len(model.states), model.grid.size, len(model.transitions), len(model.choices))

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.states:,} states ({self.states / self.cells:.1%} of the grid), "
            f"{self.transitions:,} transitions, {self.choices:,} choices"
        )


def _bounds(rows: Rows) -> Bounds:
    if not len(rows):
        return np.zeros(rows.width), np.zeros(rows.width)
    blocks = [(block.min(0), block.max(0)) for block in rows.blocks()]
    lower = np.min([block[0] for block in blocks], axis=0)
    upper = np.max([block[1] for block in blocks], axis=0)
    return lower.astype(np.float64), upper.astype(np.float64)
