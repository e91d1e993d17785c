"""Options that several commands share, each declared once, as decorators (campaigns: see `campaign_options`).

@click.command()
@options.system
@options.data("Test data: a corpus on disk, or FILE.py:NAME.")
@options.json_output()
def cover(system: str, data: str, as_json: bool) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from deepcruiser.systems import BUILT_IN

#: A command, before and after it is decorated.
Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """One decorator that adds several options; the help lists them in the order given."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


#: `system`: which network to run.
system = click.option(
    "--system",
    required=True,
    metavar="SYSTEM",
    help="The network to run: FILE.py:NAME (an object with `run(batch) -> list[Run]`, such as TorchSystem, or a "
    f"function that returns one), a model file, 'process: COMMAND', or a built-in one: {', '.join(BUILT_IN)}.",
)

#: `device`: where the network runs.
device = click.option(
    "--device", default="cpu", show_default=True, help="Run the network on this device: cpu, cuda, cuda:1 and so on."
)

#: `quiet`: no progress.
quiet = click.option("-q", "--quiet", is_flag=True, show_default=False, help="Print only the result, no progress.")


def data(help_text: str, *, required: bool = True, multiple: bool = False) -> Decorator[Any]:
    """`data`: where the inputs are."""
    return click.option("--data", required=required, multiple=multiple, metavar="PATH", help=help_text)


def output(help_text: str, *, metavar: str = "FILE") -> Decorator[Any]:
    """`output`: where the result is written."""
    return click.option(
        "-o", "--output", required=True, metavar=metavar, type=click.Path(path_type=Path), help=help_text
    )


#: The default of --input-partitions: `abstraction.grid.INPUT_PARTITIONS`, without loading it.
INPUT_PARTITIONS = 10


def input_partitions(help_text: str) -> Decorator[Any]:
    """`input_partitions`: the grid of the inputs."""
    return click.option(
        "--input-partitions",
        default=INPUT_PARTITIONS,
        show_default=True,
        type=click.IntRange(min=1),
        help=f"Number of intervals per component of an input{help_text}.",
    )


#: `profile`, `partitions`, `input_partitions` and `model`: the abstract model, as `resolve.model_from` takes it.
model_source = together(
    click.option("--profile", metavar="FILE", help="The profile of the network; needs --partitions."),
    click.option("--partitions", type=int, help="Number of intervals per component of a state; with --profile."),
    input_partitions("; with --profile"),
    click.option("--model", metavar="FILE", help="A saved model, instead of a profile and partitions."),
)

#: `system`, `data` and `mutations`: what to run a stored campaign with, instead of its own.
parts_of_campaign = together(
    click.option(
        "--system", metavar="FILE.py:NAME", help="Run this system instead of the campaign's own, such as a newer one."
    ),
    click.option("--data", metavar="PATH", help="Read the seeds from here, if they have moved."),
    click.option("--mutations", metavar="FILE.py:NAME", help="Load your own mutations from here, if they have moved."),
)

#: `oracle`: that of a stored campaign
own_oracle = click.option("--oracle", metavar="FILE.py:NAME", help="Load your own oracle from here, if it has moved.")

#: `seed`
seed = click.option("--seed", default=0, show_default=True, help="Random seed.")

#: `batch_size`
batch_size = click.option(
    "--batch-size", default=16, show_default=True, type=click.IntRange(min=1), help="Number of inputs run at a time."
)

#: `batch_size`, of commands that run inputs of similar length together
batch_size_by_length = click.option(
    "--batch-size",
    default=16,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of inputs run at a time; fewer if they are long, more if they are short.",
)


def json_output(help_text: str = "Print the result as JSON.") -> Decorator[Any]:
    """`as_json`: output for programs."""
    return click.option("--json", "as_json", is_flag=True, show_default=False, help=help_text)


class Fraction(click.ParamType[float]):
    """0.6 or 60%."""

    name = "FRACTION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{text!r} is not a fraction; use 0.6 or 60%", param, ctx)
        if not 0 < fraction <= 1:
            self.fail(f"{text!r} must be above 0 and at most 1; use 0.6 or 60%", param, ctx)
        return fraction
