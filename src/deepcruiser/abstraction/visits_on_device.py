"""Finding what traces visit of a model where their projected states are, such as on a GPU: the same as `Visits.of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from deepcruiser.abstraction.grid import Grid, IntArray
from deepcruiser.abstraction.projection import fetch
from deepcruiser.abstraction.visits import Visits

if TYPE_CHECKING:  # functions import torch, so that models load and compare without it
    import torch

    from deepcruiser.abstraction.model import AbstractModel

#: Means that there is no code; larger than every code.
_NONE = 2**63 - 1
#: Cells further out have no code.
_FAR = 2.0**62


def fits(model: AbstractModel) -> bool:
    """Whether a `DeviceModel` can be made: grids that are small enough for a table, and at least one transition."""
    return type(model.grid) is Grid and all(table is not None for table in model.tables) and len(model.counts.count) > 0


class DeviceModel:
    """The tables and numbers of a model on a device."""

    def __init__(self, model: AbstractModel, device: torch.device) -> None:
        import torch

        self._model = model
        self._states, self._inputs = _DeviceGrid(model.grid, device), _DeviceGrid(model.input_grid, device)
        arrays = *model.tables, model.transitions, model.choices
        self._state_of, self._action_of, self._transitions, self._choices = (
            torch.from_numpy(array).to(device) for array in arrays if array is not None
        )

    def start(self, states: torch.Tensor, inputs: torch.Tensor, lengths: IntArray) -> Callable[[], Visits | None]:
        """Start to find the visits of projected traces, and return a function that waits for them.

        It gives None if some vectors are not finite, or lie so far out that no cell has a number there.

        The device sorts and the CPU drops what is equal: a device would have to wait to learn how many are left.
        """
        import torch

        places, codes, numbered = self._states.places(states)
        input_places, _, inputs_numbered = self._inputs.places(inputs)
        state, action = self._state_of[places], self._action_of[input_places]
        steps = torch.from_numpy(lengths)
        if states.is_cuda:
            steps = steps.pin_memory().to(states.device, non_blocking=True)
        trace = torch.repeat_interleave(steps, output_size=len(inputs))
        before = torch.arange(len(inputs), device=states.device) + trace  # every trace has one more state than inputs
        source, target = state[before], state[before + 1]
        move = torch.where((source >= 0) & (target >= 0), source * len(self._model.states) + target, -1)
        choice = torch.where((source >= 0) & (action >= 0), source * len(self._model.counts.inputs) + action, -1)
        numbers = state, _find(self._transitions, move), _find(self._choices, choice)
        known = [fetch(_sorted(each)) for each in numbers]
        outside = fetch(_sorted(torch.where(state < 0, codes, _NONE)))
        sound = fetch(torch.stack([numbered.all(), inputs_numbered.all()]))

        def wait() -> Visits | None:
            if not sound().all():
                return None
            of_states, of_moves, of_choices = (array()[np.searchsorted(array(), 0) :] for array in known)
            beyond = outside()[: np.searchsorted(outside(), _NONE)]
            return Visits(
                self._model,
                _first_of_equal(of_states),
                _first_of_equal(of_moves),
                _first_of_equal(of_choices),
                _first_of_equal(beyond),
            )

        return wait


class _DeviceGrid:
    """A grid's bounds and strides on a device, a column for each component."""

    def __init__(self, grid: Grid, device: torch.device) -> None:
        import torch

        self._lower, self._upper = (torch.from_numpy(bound).to(device) for bound in (grid.lower, grid.upper))
        self._flat = self._upper <= self._lower
        # A tensor, because a GPU divides by a number by multiplying with its reciprocal, which rounds twice.
        self._width = torch.where(self._flat, 1.0, self._upper - self._lower)
        intervals = [
            1 if upper <= lower else grid.partitions for lower, upper in zip(grid.lower, grid.upper, strict=True)
        ]
        self._intervals = torch.tensor(intervals, device=device)
        self._place_strides = torch.tensor(
            [int(np.prod(intervals[d + 1 :])) for d in range(len(intervals))], device=device
        )
        self._strides, self._margin = torch.from_numpy(grid.strides).to(device), grid.margin
        self._size, self._partitions = grid.size, grid.partitions

    def places(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Each row's place and code, as of `Grid.places` and `Grid.encode`, and whether there is a code for it."""
        import torch

        values = values.double()
        below, above = values < self._lower, values > self._upper
        shift = values - self._lower
        scaled = torch.where(self._flat, shift.sign(), shift / self._width * self._partitions)
        far = scaled.floor()
        far = torch.where(below, far.clamp_max(-1), torch.maximum(far, self._intervals)).clamp(-_FAR, _FAR)
        inside = torch.minimum(scaled.clamp_min(0), self._intervals - 1)
        index = torch.where(below | above, far, inside).nan_to_num().long()
        within = (index >= 0) & (index < self._intervals)
        place = torch.where(within.all(1), (index * self._place_strides * within).sum(1), self._size)
        numbered = (index >= -self._margin) & (index < self._intervals + self._margin)
        codes = ((index + self._margin) * self._strides).sum(1)
        return place, codes, numbered.all(1) & values.isfinite().all(1)


def _find(ascending: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """The position of each code in `ascending`, -1 if it is not there."""
    import torch

    position = torch.searchsorted(ascending, codes).clamp_max(len(ascending) - 1)
    return torch.where(ascending[position] == codes, position, -1)


def _sorted(numbers: torch.Tensor) -> torch.Tensor:
    return numbers.sort().values


def _first_of_equal(ascending: IntArray) -> IntArray:
    first: IntArray = ascending[np.diff(ascending, prepend=ascending[:1] - 1) != 0]
    return first
