"""deepcruiser export: write the model of a profile for `cover --model`, for model checkers, or as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.cli import options
from deepcruiser.export import export as export_model


@click.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("--partitions", required=True, type=int, help="Number of intervals per component of a state.")
@click.option(
    "--input-partitions",
    default=options.INPUT_PARTITIONS,
    show_default=True,
    help="Number of intervals per component of an input.",
)
@options.output("The file to write; its suffix is the format, see above.")
@options.json_output()
def export(profile: Path, partitions: int, input_partitions: int, output: Path, as_json: bool) -> None:
    """Write the abstract model of a profile to a file.

    \b
    .model            for `deepcruiser cover --model` and AbstractModel.load
    .tra              PRISM's explicit files: .tra, .sta and .lab side by side
    .drn              Storm's explicit format
    .dot              a picture by Graphviz, up to 200 states
    .graphml          a graph for networkx, yEd or Gephi
    """
    model = Profile.load(profile).abstract(partitions, input_partitions=input_partitions)
    if output.suffix == ".model":
        model.save(output)
    else:
        export_model(model, output)
    if as_json:
        summary = {"output": str(output), "model": model.name, "states": len(model.states)}
        click.echo(json.dumps({**summary, "transitions": len(model.transitions)}, indent=2))
    else:
        click.echo(f"{model}, written to {output}")
