"""deepcruiser export: a profile as a model file, for model checkers, or as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.export import export as export_model


@click.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("--partitions", required=True, type=int, help="Intervals per component of the states.")
@click.option("--input-partitions", default=10, show_default=True, help="The same of the inputs.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="What to write; see above.")
def export(profile: Path, partitions: int, input_partitions: int, output: Path) -> None:
    """Write the abstract model of a profile to a file.

    \b
    .model            for `deepcruiser cover --model` and AbstractModel.load
    .tra              PRISM's explicit files: .tra, .sta and .lab beside one another
    .drn              Storm's explicit format
    .dot, .graphml    a picture of a small model: Graphviz, yEd, networkx
    """
    model = Profile.load(profile).abstract(partitions, input_partitions=input_partitions)
    if output.suffix == ".model":
        model.save(output)
    else:
        export_model(model, output)
    click.echo(f"{model}, written to {output}")
