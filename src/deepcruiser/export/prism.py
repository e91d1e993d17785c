"""The explicit files of PRISM: transitions (.tra), states (.sta) and labels (.lab)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.export.mdp import Steps, state_labels
from deepcruiser.files.atomic import atomic_write


def write_prism(model: AbstractModel, path: str | os.PathLike[str]) -> None:
    """Write the three files side by side."""
    steps = Steps.of(model)
    with (
        atomic_write(Path(path).with_suffix(".tra")) as tra,
        atomic_write(Path(path).with_suffix(".sta")) as sta,
        atomic_write(Path(path).with_suffix(".lab")) as lab,
    ):
        tra.write("".join(_tra(len(model.states), steps)).encode())
        sta.write("".join(_sta(model)).encode())
        lab.write("".join(_lab(model)).encode())


def _tra(states: int, steps: Steps) -> Iterator[str]:
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
    # PRISM expects "deadlock"; no state is one, because states without a way out have self-loops.
    names = ["init", "deadlock", "end", "no_way_out", "once"]
    numbers = {name: str(number) for number, name in enumerate(names)}
    yield " ".join(f'{number}="{name}"' for name, number in numbers.items()) + "\n"
    for state, labels in enumerate(state_labels(model)):
        if labels:
            yield f"{state}: {' '.join(numbers[label] for label in labels)}\n"
