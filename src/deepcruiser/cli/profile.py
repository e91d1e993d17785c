"""deepcruiser profile: record the states of a system on its training data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource

from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiler import profile as profile_system
from deepcruiser.cli import options, workers
from deepcruiser.cli.options import Fraction
from deepcruiser.cli.output import INTERRUPTED, print_skipped, say, typed
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.criteria import BSCov, BTCov, ISCov, WICov
from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.progress import watching
from deepcruiser.stream import Progress


@click.command(cls=ProjectCommand)
@options.system
@options.data("Training data: a corpus on disk, or FILE.py:NAME.")
@options.output("The profile to write.")
@click.option("--components", default=3, show_default=True, help="Number of principal components of a state.")
@click.option(
    "--input-components",
    type=int,
    help="Number of principal components of an input.  [default: as for states, at most the input's size]",
)
@click.option(
    "--sample",
    type=Fraction(),
    default=1.0,
    help="Profile only this random share of the data, such as 0.2 or 20%.  [default: all]",
)
@click.option(
    "--pca-share",
    type=Fraction(),
    help="Share of the profiled sequences to fit the principal components on.  [default: 10%, less for large data]",
)
@click.option("--exact", is_flag=True, help="Fit the principal components on all sequences, in an extra pass.")
@options.seed
@options.batch_size_by_length
@options.device
@workers.count
@workers.cluster
@click.option(
    "--partitions",
    default="10,20,50,100",
    show_default=True,
    help="Show the size of the model for these numbers of partitions.",
)
@options.input_partitions(", for these sizes")
@options.quiet
@options.json_output()
@click.pass_context
def profile(
    ctx: click.Context,
    system: str,
    data: str,
    output: Path,
    components: int,
    input_components: int | None,
    sample: float,
    pca_share: float | None,
    exact: bool,
    seed: int,
    batch_size: int,
    device: str,
    count: int,
    cluster: str | None,
    partitions: str,
    input_partitions: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Record the states that a network goes through on its training data.

    \b
    deepcruiser profile --system asr.py:system --data LibriSpeech/train-clean-100 -o asr.profile

    Runs a share of the data to fit the principal components, and then all of the data once. The table shows the size
    of the abstract model for several numbers of partitions; one profile gives them all. If profiling is interrupted,
    the same command resumes from FILE.part.
    """
    if exact and ctx.get_parameter_source("pca_share") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--exact cannot be combined with --pca-share {pca_share}: leave one out")
    if output.is_dir():
        raise FileError(f"cannot write {str(output)!r}: it is a folder")
    if not output.parent.is_dir():  # fail now, not after hours of work
        raise FileError(f"cannot write {str(output)!r}: there is no folder {str(output.parent)!r}; create it first")
    grids = [_partitions(number) for number in partitions.split(",")]
    skipped: dict[str, str] = {}
    part = output.with_name(f"{output.name}.part")
    network = system_from(system, device=device)
    work = workers.of_source(system, network, data, count, cluster, device=device)
    with work as started, watching(quiet=quiet) as show:

        def watch(progress: Progress) -> None:
            skipped.update(progress.skipped)
            show(progress)

        try:
            result = profile_system(
                network,
                data_from(data),
                components=components,
                input_components=input_components,
                sample=sample,
                pca_share=pca_share,
                exact=exact,
                seed=seed,
                batch_size=batch_size,
                workers=started,
                checkpoint=part,
                watch=watch,
            )
        except KeyboardInterrupt:
            if not part.exists():
                raise
            say(f"Interrupted. The progress is saved in {part}. Resume with: {typed(ctx)}", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
    configurations = result.configurations(grids, input_partitions=input_partitions)
    check_self(result, grids[-1])
    result.save(output)
    part.unlink(missing_ok=True)
    if as_json:
        report = {
            "profile": str(output),
            "origin": asdict(result.origin),
            "explained": result.projections.states.explained,
            "input_explained": result.projections.inputs.explained,
            "configurations": [asdict(configuration) for configuration in configurations],
            "skipped": skipped,
        }
        say(json.dumps(report, indent=2))
    else:
        say(result)
        for configuration in configurations:
            say(f"  {configuration}")
        say(f"Saved {output} (self-check passed: the profiled data cover the model completely)")
    print_skipped(skipped)


def check_self(profile: Profile, partitions: int) -> None:
    """Raise an error unless the profiled data score exactly 1.0 on the criteria of their own model."""
    model = profile.abstract(partitions)
    for criterion in (BSCov, BTCov, ISCov, WICov):
        value = criterion.of(model, profile.visits(model))
        if value != 1.0:
            raise DeepCruiserError(
                f"self-check failed: {criterion} of the profiled data is {value} on {model}, but must be 1"
            )


def _partitions(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a whole number", param_hint="--partitions") from None
    if number < 1:
        raise click.BadParameter(f"{number} is less than 1", param_hint="--partitions")
    return number
