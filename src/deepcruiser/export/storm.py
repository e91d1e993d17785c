"""The explicit format of Storm (.drn)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.export.mdp import Steps, state_labels
from deepcruiser.files.atomic import atomic_write


def write_storm(model: AbstractModel, path: str | os.PathLike[str]) -> None:
    """Write the model as one .drn file."""
    with atomic_write(path) as file:
        file.write("".join(_drn(model, Steps.of(model))).encode())


def _drn(model: AbstractModel, steps: Steps) -> Iterator[str]:
    yield "@type: MDP\n@parameters\n\n@reward_models\n\n"
    yield f"@nr_states\n{len(model.states)}\n@nr_choices\n{np.count_nonzero(steps.begins)}\n@model\n"
    labels, cells = state_labels(model), model.grid.decode(model.states).tolist()
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
