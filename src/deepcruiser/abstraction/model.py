"""The abstract model of a trained network: a Markov decision process over cells."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.clusters import Clusters
from deepcruiser.abstraction.departure import Departure
from deepcruiser.abstraction.grid import INPUT_PARTITIONS, Grid, IntArray, rings
from deepcruiser.abstraction.origin import Origin
from deepcruiser.abstraction.probes import Probe, check_system
from deepcruiser.abstraction.projection import Projection
from deepcruiser.abstraction.projections import Projections, beside_traces
from deepcruiser.abstraction.transition_counts import Counts, final_states
from deepcruiser.abstraction.visits import Visits
from deepcruiser.abstraction.visits_on_device import DeviceModel, fits
from deepcruiser.errors import FileError, InputError
from deepcruiser.files import archive
from deepcruiser.notebook import axes, card
from deepcruiser.trace import System, Trace, is_tensor

#: Approximate number of rows of transitions that are numbered together.
_ROWS = 2**18
#: Batches with at least this many steps find their visits on the GPU; for fewer, the calls would take longer.
_FOR_DEVICE = 2**14


@dataclass(frozen=True, eq=False)
class AbstractModel:
    """The states and transitions that profiling visited, as a Markov decision process; made by `profile.abstract(...)`.

    Items are numbered: state i is the cell `states[i]`, choice j an abstract input that was seen in a state,
    transition t a pair of states that followed one another. `counts` holds them all.
    """

    projections: Projections
    grid: Grid
    input_grid: Grid
    counts: Counts
    origin: Origin
    probes: tuple[Probe, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields, for other processes; cached values are computed again there."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def states(self) -> IntArray:
        """The codes of S_M, ascending; `grid.decode` gives their cells."""
        return self.counts.states

    @property
    def initial(self) -> IntArray:
        """The numbers of the states that traces begin in."""
        return self.counts.initial

    @property
    def final(self) -> IntArray:
        """The numbers of the states that traces end in."""
        return self.counts.final

    @cached_property
    def _choice_index(self) -> tuple[IntArray, IntArray]:
        # The rows are sorted by source and action, so equal choices are neighbours.
        key = self.counts.source * len(self.counts.inputs) + self.counts.action
        begins = np.diff(key, prepend=-1) != 0
        return key[begins], np.cumsum(begins) - 1

    @property
    def choices(self) -> IntArray:
        """One number for each (s, x) with x in X_M(s), ascending: s * inputs + x."""
        return self._choice_index[0]

    @property
    def choice_of(self) -> IntArray:
        """The choice of each row of `counts`."""
        return self._choice_index[1]

    @cached_property
    def _transition_index(self) -> tuple[IntArray, IntArray]:
        # The rows are sorted by source, so the rows of some sources can be numbered separately.
        source, target = self.counts.source, self.counts.target
        cuts = [0, *np.unique(np.searchsorted(source, source[::_ROWS]))[1:], len(source)]

        def number(start: int, stop: int) -> tuple[IntArray, IntArray]:
            key = source[start:stop] * len(self.states) + target[start:stop]
            return np.unique(key, return_inverse=True)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(number, cuts[:-1], cuts[1:]))
        before = np.cumsum([0, *(len(transitions) for transitions, _ in parts)])
        return (
            np.concatenate([transitions for transitions, _ in parts]),
            np.concatenate([row + first for (_, row), first in zip(parts, before[:-1], strict=True)]),
        )

    @property
    def transitions(self) -> IntArray:
        """One number for each (s, s') of delta_M, ascending: s * states + s'."""
        return self._transition_index[0]

    @property
    def transition_of(self) -> IntArray:
        """The transition of each row of `counts`."""
        return self._transition_index[1]

    @cached_property
    def tables(self) -> tuple[IntArray | None, IntArray | None]:
        """By the place of a cell, the number of its state and of its abstract input; None for a grid too large."""
        return self.grid.table(self.states), self.input_grid.table(self.counts.inputs)

    @cached_property
    def rows(self) -> IntArray:
        """One number for each row of `counts`, ascending: (s * inputs + x) * states + s'."""
        counts = self.counts
        return (counts.source * len(counts.inputs) + counts.action) * len(self.states) + counts.target

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Pr_x(s, s') = count(s, x, s') / count(s, x, .) of each row of `counts`."""
        of_choice = np.bincount(self.choice_of, weights=self.counts.count, minlength=len(self.choices))
        shares: npt.NDArray[np.float64] = self.counts.count / of_choice[self.choice_of]
        return shares

    def probability(self, state: Sequence[int], on: Sequence[int], to: Sequence[int]) -> float:
        """Pr_x(s, s') for the cells s = `state`, x = `on` and s' = `to`; 0 if the step was never seen."""
        cells = self.cells_of_rows()
        asked = {"state": state, "input": on, "successor": to}
        rows = np.logical_and.reduce([(cells[name] == np.asarray(cell)).all(1) for name, cell in asked.items()])
        return float(self.probabilities[rows].sum())

    def cells_of_states(self) -> dict[str, IntArray]:
        """The cell of each state."""
        return {"state": self.grid.decode(self.states)}

    def cells_of_transitions(self) -> dict[str, IntArray]:
        """The two cells of each transition."""
        source, target = np.divmod(self.transitions, len(self.states))
        cells = self.grid.decode(self.states)
        return {"state": cells[source], "successor": cells[target]}

    def cells_of_choices(self) -> dict[str, IntArray]:
        """The cells of state and input of each choice."""
        source, action = np.divmod(self.choices, len(self.counts.inputs))
        return {
            "state": self.grid.decode(self.states)[source],
            "input": self.input_grid.decode(self.counts.inputs)[action],
        }

    def cells_of_rows(self) -> dict[str, IntArray]:
        """The cells of state, input and successor of each row of `counts`."""
        cells = self.grid.decode(self.states)
        return {
            "state": cells[self.counts.source],
            "input": self.input_grid.decode(self.counts.inputs)[self.counts.action],
            "successor": cells[self.counts.target],
        }

    @cached_property
    def _boundaries(self) -> list[IntArray]:
        """The boundaries of 0, 1, 2, ... steps that have been computed so far."""
        return [np.empty(0, np.int64)]

    @cached_property
    def _inner_boundaries(self) -> dict[int, IntArray]:
        """By steps, the part of a boundary that lies within the bounds."""
        return {}

    @cached_property
    def _rings(self) -> Iterator[IntArray]:
        return rings(self.states, self.grid)

    def boundary(self, steps: int, *, within: bool = False) -> IntArray:
        """The codes of the cells at a distance of 1 to `steps` from the nearest state, ascending.

        With `within`, only those inside the bounds of the grid. Clusters have no boundary, as every vector is in one.
        """
        if isinstance(self.grid, Clusters):
            return np.empty(0, np.int64)
        if steps > self.grid.margin:
            raise InputError(
                f"{steps} steps from the states cannot be told apart on {self.name}, only {self.grid.margin}: "
                "use a grid of fewer partitions or components"
            )
        while len(self._boundaries) <= steps:
            self._boundaries.append(np.sort(np.concatenate([self._boundaries[-1], next(self._rings)])))
        if not within:
            return self._boundaries[steps]
        if steps not in self._inner_boundaries:
            codes = self._boundaries[steps]
            self._inner_boundaries[steps] = codes[self.grid.within(self.grid.decode(codes))]
        return self._inner_boundaries[steps]

    def cells(self, trace: Trace) -> tuple[IntArray, IntArray]:
        """The cells of a trace: (N+1, components) of its states and (N, input components) of its inputs."""
        (states,), (inputs,) = self.projections.project([trace], ["the trace"])
        return self.grid.cells(states), self.input_grid.cells(inputs)

    def visits(self, traces: Trace | Sequence[Trace], *, names: Sequence[str] | None = None) -> Visits:
        """Which states, choices, transitions and boundary cells the traces visit."""
        traces = [traces] if isinstance(traces, Trace) else traces
        return self.start_visits(traces, [f"trace {i}" for i in range(len(traces))] if names is None else names)()

    def start_visits(self, traces: Sequence[Trace], names: Sequence[str]) -> Callable[[], Visits]:
        """Start computing the visits on the device of the traces, and return a function that waits for them."""
        lengths = np.array([steps for trace in traces for steps in trace.segments], np.int64)
        on_device = traces and all(is_tensor(a) and a.is_cuda for a in (traces[0].states, traces[0].inputs))
        if on_device and lengths.sum() >= _FOR_DEVICE and fits(self):
            return self._start_on_device(traces, names, lengths)
        projected = self.projections.start(traces, names)

        def wait() -> Visits:
            states, inputs = projected()
            return Visits.of(self, np.concatenate(states), np.concatenate(inputs), lengths)

        return wait

    def _start_on_device(
        self, traces: Sequence[Trace], names: Sequence[str], lengths: IntArray
    ) -> Callable[[], Visits]:
        split = self.projections.splitter(traces, names)
        with beside_traces(traces):
            states, inputs = self.projections.on_device(traces)
            if states.device not in self._on_device:
                self._on_device[states.device] = DeviceModel(self, states.device)
            pending = self._on_device[states.device].start(states, inputs, lengths)

        def wait() -> Visits:
            visits = pending()
            if visits is None:  # some of them have no cell; the error says why
                projected = states.cpu().numpy(), inputs.cpu().numpy()
                split(*projected)
                return Visits.of(self, *projected, lengths)
            return visits

        return wait

    @cached_property
    def _on_device(self) -> dict[Any, DeviceModel]:
        """The model on each device where visits were found."""
        return {}

    def check(self, system: System) -> None:
        """Refuse a system with another network or other features than the one that was profiled."""
        check_system(system, self.origin, self.probes)

    def departure(self, trace: Trace) -> Departure | None:
        """Where a trace leaves the model, if it does."""
        return Departure.of(self, trace)

    def accepts(self, trace: Trace) -> bool:
        """Whether the trace is a path of the model: from an initial state, each step with Pr_x(s, s') > 0."""
        return self.departure(trace) is None

    @property
    def name(self) -> str:
        """The paper's name of the configuration, such as M{3,20}, with the grid of the inputs if it is unusual.

        By default, inputs have as many components as states, or the input's size if that is smaller, and 10 partitions.
        """
        states, inputs = self.projections.states, self.projections.inputs
        name = f"M{{{states.components},{self.grid.label}}}"
        if (inputs.components, self.input_grid.partitions) == (min(states.components, inputs.size), INPUT_PARTITIONS):
            return name
        return f"{name} with inputs {{{inputs.components},{self.input_grid.partitions}}}"

    def __repr__(self) -> str:
        return (
            f"AbstractModel {self.name}: {len(self.states):,} states, {len(self.transitions):,} transitions, "
            f"from {self.origin.traces:,} traces"
        )

    def _repr_html_(self) -> str:
        sizes = {"states": self.states, "transitions": self.transitions, "choices": self.choices}
        rows = [(name, f"{len(items):,}") for name, items in sizes.items()]
        return card(repr(self), [*rows, ("state", self.origin.state_name), ("steps", f"{self.origin.steps:,}")])

    def plot(self, ax: Any = None) -> Any:
        """How often training visited each patch of the first two components, with matplotlib; returns the axes."""
        if isinstance(self.grid, Clusters):
            raise InputError("clusters have no axes to plot: make the model with abstract(partitions=...)")
        cells = self.grid.decode(self.states)
        cells = np.column_stack([cells, np.zeros(len(cells), np.int64)])[:, :2]
        visits = np.bincount(self.counts.source, weights=self.counts.count, minlength=len(self.states))
        patches = np.zeros(cells.max(0) + 1)
        np.add.at(patches, tuple(cells.T), visits)
        ax = axes(ax)
        shown = ax.imshow(
            np.log10(np.where(patches > 0, patches, np.nan)).T, origin="lower", cmap="viridis", aspect="auto"
        )
        ax.figure.colorbar(shown, ax=ax, label="log10 of the steps that left a state here")
        ax.set(xlabel="first component, cells", ylabel="second component, cells", title=self.name)
        return ax

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractModel) and self.fingerprint == other.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the abstraction and the counts; equal models have equal fingerprints."""
        digest = hashlib.sha256()
        for name, array in sorted(self._arrays().items()):
            if name == "final":  # files of earlier versions lack it
                continue
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            **projection_arrays("states", self.projections.states),
            **projection_arrays("inputs", self.projections.inputs),
            "grid": np.stack([self.grid.lower, self.grid.upper]),
            **({"centres": self.grid.centres} if isinstance(self.grid, Clusters) else {}),
            "input_grid": np.stack([self.input_grid.lower, self.input_grid.upper]),
            "partitions": np.array([self.grid.partitions, self.input_grid.partitions], np.int64),
            **{field.name: getattr(self.counts, field.name) for field in fields(Counts)},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, completely or not at all."""
        about = {"origin": asdict(self.origin), "probes": [each.to_dict() for each in self.probes]}
        archive.save(path, "model", about, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AbstractModel:
        """Read a model that `save` wrote."""
        about, arrays = archive.load(path, "model")
        with archive.contents_of(path, "model"):
            origin = Origin.from_dict(about["origin"])
            projections = Projections(projection_from("states", arrays), projection_from("inputs", arrays))
            partitions, input_partitions = arrays["partitions"].tolist()
            if "final" not in arrays:
                arrays["final"] = final_states(arrays, origin.traces)
            counts = Counts(**{field.name: arrays[field.name] for field in fields(Counts)})
            counts.check(steps=origin.steps)
            input_grid = _grid_from(arrays["input_grid"], partitions=input_partitions, of=projections.inputs)
            if "centres" in arrays:
                grid: Grid = Clusters.at(_checked_centres(arrays["centres"], of=projections.states))
            else:
                grid = _grid_from(arrays["grid"], partitions=partitions, of=projections.states)
            grid.check(counts.states)
            input_grid.check(counts.inputs)
            probes = tuple(map(Probe.from_dict, about.get("probes", ())))
            return cls(projections, grid, input_grid, counts, origin, probes)


def projection_arrays(name: str, projection: Projection) -> dict[str, npt.NDArray[Any]]:
    """A projection as the arrays that a file holds of it."""
    return {
        f"{name}_mean": projection.mean,
        f"{name}_axes": projection.axes,
        f"{name}_variances": np.append(projection.variances, projection.total_variance),
    }


def _checked_centres(centres: npt.NDArray[Any], *, of: Projection) -> npt.NDArray[np.float64]:
    if centres.dtype != np.float64 or centres.shape[1:] != (of.components,) or not np.isfinite(centres).all():
        raise ValueError(f"the centres have the shape {centres.shape} and the type {centres.dtype}, or are not finite")
    return centres


def _grid_from(bounds: npt.NDArray[Any], *, partitions: Any, of: Projection) -> Grid:
    if bounds.dtype != np.float64 or bounds.shape != (2, of.components):
        raise ValueError(f"the bounds of a grid have the shape {bounds.shape} and the type {bounds.dtype}")
    return Grid(bounds[0], bounds[1], int(partitions))


def projection_from(name: str, arrays: dict[str, npt.NDArray[Any]]) -> Projection:
    """The projection whose arrays a file holds."""
    mean, axes, variances = (arrays[f"{name}_{part}"] for part in ("mean", "axes", "variances"))
    if axes.shape != (len(variances) - 1, len(mean)) or not len(axes):
        raise FileError(f"the axes of the {name} have the shape {axes.shape} for vectors of {len(mean)} numbers")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in (mean, axes, variances)):
        raise FileError(f"the projection of the {name} contains values that are not finite numbers")
    angles = axes @ axes.T
    if (np.abs(angles - np.diag(np.round(np.diag(angles)).clip(0, 1))) > 1e-6).any():
        raise FileError(f"the axes of the {name} are not of length 1 and at right angles")
    *each, total = variances
    if min(variances) < 0 or each != sorted(each, reverse=True) or sum(each) > total * (1 + 1e-6):
        raise FileError(f"the variances of the {name} do not add up")
    return Projection(mean, axes, variances[:-1], float(variances[-1]))
