"""Abstract models for other programs: the model checkers PRISM and Storm, Graphviz, and viewers of graphs.

    export(model, "asr.tra")        asr.tra, asr.sta and asr.lab:  prism -importmodel asr.tra,sta,lab -mdp -ex
    export(model, "asr.drn")        storm --explicit-drn asr.drn, or stormpy.build_model_from_drn
    export(model, "asr.dot")        dot -Tsvg asr.dot -o asr.svg, for up to 200 states
    export(model, "asr.graphml")    networkx, yEd, Gephi

What checkers get is the Markov decision process of `model`: its states in the same order, one action per abstract
input, and Pr_x(s, s'). An action is named after the input's cell: x_3_0_7, with m for a minus (x_m1_0_7). Where the
profiled traces only ended, the state has one action "end", back to itself. The labels:

    init    traces begin here; where they begin in several states, all are initial, and a checker's answer is a range
    end     traces went no further from here
    once    the traces were here a single time
    c0_3    (Storm) the state's index in component 0 is 3; PRISM has the variables c0, c1, ... instead
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.picture import is_end, times_visited, write_dot, write_graphml
from deepcruiser.atomic import atomic_write
from deepcruiser.errors import InputError

_PathLike = str | os.PathLike[str]


def export(model: AbstractModel, path: _PathLike) -> None:
    """Write the model in the format that the end of the file's name says, whole or not at all."""
    writer = FORMATS.get(Path(path).suffix.lower())
    if writer is None:
        raise InputError(
            f"cannot tell the format from the name {os.fspath(path)!r}: let it end in one of {', '.join(FORMATS)}"
        )
    writer(model, path)


def write_prism(model: AbstractModel, path: _PathLike) -> None:
    """The explicit files of PRISM, side by side: transitions (.tra), states (.sta) and labels (.lab)."""
    steps = _Steps.of(model)
    with (
        atomic_write(Path(path).with_suffix(".tra")) as tra,
        atomic_write(Path(path).with_suffix(".sta")) as sta,
        atomic_write(Path(path).with_suffix(".lab")) as lab,
    ):
        tra.write("".join(_tra(len(model.states), steps)).encode())
        sta.write("".join(_sta(model)).encode())
        lab.write("".join(_lab(model)).encode())


def write_storm(model: AbstractModel, path: _PathLike) -> None:
    """The explicit format of Storm (.drn)."""
    with atomic_write(path) as file:
        file.write("".join(_drn(model, _Steps.of(model))).encode())


@dataclass(frozen=True, eq=False)
class _Steps:
    """The rows of `model.counts` and a self-loop for each state without any, in ascending order of (source, action).

    Traces end somewhere, but a Markov decision process does not: checkers refuse a state without a choice, or mend it
    silently unless a flag forbids that. `choice` counts the choices of each state from 0.
    """

    source: IntArray
    choice: IntArray
    action: IntArray
    target: IntArray
    probability: npt.NDArray[np.float64]
    begins: npt.NDArray[np.bool_]  # whether the row is the first of its choice
    names: list[str]  # of the actions

    @classmethod
    def of(cls, model: AbstractModel) -> _Steps:
        counts, ends = model.counts, np.flatnonzero(is_end(model))
        source = np.concatenate([counts.source, ends])
        order = np.argsort(source, kind="stable")
        source = source[order]
        action = np.concatenate([counts.action, np.full(len(ends), len(counts.inputs))])[order]
        begins = (np.diff(source, prepend=-1) != 0) | (np.diff(action, prepend=-1) != 0)
        number = np.cumsum(begins)
        return cls(
            source=source,
            choice=number - number[np.searchsorted(source, source)],  # less that of the state's first row
            action=action,
            target=np.concatenate([counts.target, ends])[order],
            probability=np.concatenate([model.probabilities, np.ones(len(ends))])[order],
            begins=begins,
            names=[*map(_action, model.input_grid.decode(counts.inputs).tolist()), "end"],
        )


def _action(cell: list[int]) -> str:
    # Both checkers want a letter first, and then letters, digits and underscores.
    return "_".join(["x", *(str(index).replace("-", "m") for index in cell)])


def _tra(states: int, steps: _Steps) -> Iterator[str]:
    yield f"{states} {np.count_nonzero(steps.begins)} {len(steps.source)}\n"
    columns = (steps.source, steps.choice, steps.target, steps.probability, steps.action)
    for source, choice, target, probability, action in zip(*(c.tolist() for c in columns), strict=True):
        yield f"{source} {choice} {target} {probability!r} {steps.names[action]}\n"


def _sta(model: AbstractModel) -> Iterator[str]:
    cells = model.grid.decode(model.states)
    yield f"({','.join(f'c{d}' for d in range(cells.shape[1]))})\n"
    for state, cell in enumerate(cells.tolist()):
        yield f"{state}:({','.join(map(str, cell))})\n"


def _lab(model: AbstractModel) -> Iterator[str]:
    # PRISM expects "deadlock"; with the self-loops of the ends, no state is one.
    names = ["init", "deadlock", "end", "once"]
    numbers = {name: str(number) for number, name in enumerate(names)}
    yield " ".join(f'{number}="{name}"' for name, number in numbers.items()) + "\n"
    for state, labels in enumerate(_labels(model)):
        if labels:
            yield f"{state}: {' '.join(numbers[label] for label in labels)}\n"


def _drn(model: AbstractModel, steps: _Steps) -> Iterator[str]:
    yield "@type: MDP\n@parameters\n\n@reward_models\n\n"
    yield f"@nr_states\n{len(model.states)}\n@nr_choices\n{np.count_nonzero(steps.begins)}\n@model\n"
    labels, cells = _labels(model), model.grid.decode(model.states).tolist()
    last = -1
    columns = (steps.source, steps.action, steps.target, steps.probability, steps.begins)
    for source, action, target, probability, begins in zip(*(c.tolist() for c in columns), strict=True):
        if source != last:
            indices = (f"c{d}_{index}".replace("-", "m") for d, index in enumerate(cells[source]))
            yield f"state {source} {' '.join([*labels[source], *indices])}\n"
            last = source
        if begins:
            yield f"\taction {steps.names[action]}\n"
        yield f"\t\t{target} : {probability!r}\n"


def _labels(model: AbstractModel) -> list[list[str]]:
    """The labels of each state."""
    labels: list[list[str]] = [[] for _ in range(len(model.states))]
    carriers = {
        "init": model.initial,
        "end": np.flatnonzero(is_end(model)),
        "once": np.flatnonzero(times_visited(model) == 1),
    }
    for label, states in carriers.items():
        for state in states.tolist():
            labels[state].append(label)
    return labels


#: Which function writes the files whose names end so; any of PRISM's three stands for all of them.
FORMATS: dict[str, Callable[[AbstractModel, _PathLike], None]] = {
    ".tra": write_prism,
    ".sta": write_prism,
    ".lab": write_prism,
    ".drn": write_storm,
    ".dot": write_dot,
    ".graphml": write_graphml,
}
