from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.cli import main
from tests.conftest import walks


def profile(*, size: int = 4, input_size: int = 4, input_components: int | None = None) -> dc.Profile:
    traces = walks(np.random.default_rng(0), 20, size=size, input_size=input_size)
    return dc.Profile.of(traces, components=3, input_components=input_components)


@pytest.mark.parametrize(
    ("input_components", "input_partitions", "name"),
    [
        (None, None, "M{3,20}"),
        (3, 10, "M{3,20}"),
        (None, 20, "M{3,20} with inputs {3,20}"),
        (2, 10, "M{3,20} with inputs {2,10}"),
        (4, 1, "M{3,20} with inputs {4,1}"),
    ],
)
def test_an_unusual_grid_of_the_inputs_is_in_the_name(
    input_components: int | None, input_partitions: int | None, name: str, tmp_path: Path
) -> None:
    options = {} if input_partitions is None else {"input_partitions": input_partitions}
    model = profile(input_components=input_components).abstract(20, **options)
    assert model.name == name
    assert repr(model).startswith(f"AbstractModel {name}: ")
    model.save(tmp_path / "m.model")
    assert dc.AbstractModel.load(tmp_path / "m.model").name == name


def commands(group: click.Group) -> Iterator[click.Command]:
    for command in map(partial(group.get_command, click.Context(group)), group.list_commands(click.Context(group))):
        assert command is not None
        yield from commands(command) if isinstance(command, click.Group) else [command]


def test_every_command_with_a_grid_of_the_states_has_one_of_the_inputs() -> None:
    options = [{flag for option in command.params for flag in option.opts} for command in commands(main)]
    with_grid = [flags for flags in options if "--partitions" in flags]
    assert len(with_grid) > 10
    assert all("--input-partitions" in flags for flags in with_grid)


def test_inputs_that_are_smaller_than_the_states_are_usual() -> None:
    assert profile(input_size=2).abstract(20).name == "M{3,20}"
