"""deepcruiser profile: from a system and its training data to a profile."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiler import profile as profile_system
from deepcruiser.cli.progress import tell_skipped, watching
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.criteria import BSCov, BTCov, ISCov, WICov
from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.stream import Progress


@click.command()
@click.option("--system", required=True, metavar="FILE.py:NAME", help="The network under test, or a built-in one.")
@click.option("--data", required=True, metavar="PATH", help="Training data: a corpus on disk, or FILE.py:NAME.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The profile to write.")
@click.option("--components", default=3, show_default=True, help="Principal components kept of a state.")
@click.option("--input-components", type=int, help="The same of an input.  [default: as many, or the input's size]")
@click.option("--share", default=0.1, show_default=True, help="Share of the sequences that the PCA is fitted on.")
@click.option("--exact", is_flag=True, help="Fit the PCA on all sequences: two passes instead of one.")
@click.option("--seed", default=0, show_default=True, help="Chooses the sequences of the share.")
@click.option("--batch-size", default=16, show_default=True, help="Inputs run at a time.")
@click.option("--partitions", default="10,20,50,100", show_default=True, help="Grids to show the sizes of.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def profile(
    system: str,
    data: str,
    output: Path,
    components: int,
    input_components: int | None,
    share: float,
    exact: bool,
    seed: int,
    batch_size: int,
    partitions: str,
    as_json: bool,
) -> None:
    """Record where the states of a network go on its training data.

    \b
    deepcruiser profile --system asr.py:system --data LibriSpeech/train-clean-100 -o asr.profile

    The data are run once, and a share of them before that to fix the projections. The table shows how large the
    abstract model becomes for several grids; one profile serves them all.
    """
    if not output.parent.is_dir():  # before the hours of work, not after
        raise FileError(f"cannot write {str(output)!r}: there is no folder {str(output.parent)!r}")
    grids = [_partitions(number) for number in partitions.split(",")]
    skipped: dict[str, str] = {}
    with watching() as show:

        def watch(progress: Progress) -> None:
            skipped.update(progress.skipped)
            show(progress)

        made = profile_system(
            system_from(system),
            data_from(data),
            components=components,
            input_components=input_components,
            share=share,
            exact=exact,
            seed=seed,
            batch_size=batch_size,
            watch=watch,
        )
    configurations = made.configurations(grids)
    check_self(made, grids[-1])
    made.save(output)
    if as_json:
        report = {
            "profile": str(output),
            "origin": asdict(made.origin),
            "explained": made.projections.states.explained,
            "input_explained": made.projections.inputs.explained,
            "configurations": [asdict(configuration) for configuration in configurations],
            "skipped": skipped,
        }
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(made)
        for configuration in configurations:
            click.echo(f"  {configuration}")
        click.echo(f"the profiled data cover themselves exactly; written to {output}")
    tell_skipped(skipped)


def check_self(profile: Profile, partitions: int) -> None:
    """The profiled data score exactly 1.0 against their own model, or something is badly wrong."""
    model = profile.abstract(partitions)
    for criterion in (BSCov, BTCov, ISCov, WICov):
        value = criterion.of(model, profile.visits(model))
        if value != 1.0:
            raise DeepCruiserError(f"self-check failed: the profiled data have {criterion} {value}, not 1, of {model}")


def _partitions(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a whole number", param_hint="--partitions") from None
    if number < 1:
        raise click.BadParameter(f"{number} is less than 1", param_hint="--partitions")
    return number
