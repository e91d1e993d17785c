"""deepcruiser cover: how much of the abstract model a data set reaches."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.cli.progress import tell_skipped, watching
from deepcruiser.cli.resolve import data_from, model_from, system_from
from deepcruiser.coverage import cover as cover_system
from deepcruiser.criteria import FIVE, criterion


@click.command()
@click.option("--system", required=True, metavar="FILE.py:NAME", help="The network under test, or a built-in one.")
@click.option("--data", required=True, metavar="PATH", help="Test data: a corpus on disk, or FILE.py:NAME.")
@click.option("--profile", type=click.Path(path_type=Path), help="The profile of the network.")
@click.option("--partitions", type=int, help="Intervals per component of the states; with --profile.")
@click.option("--input-partitions", default=10, show_default=True, help="The same of the inputs; with --profile.")
@click.option("--model", type=click.Path(path_type=Path), help="A saved model, instead of a profile and partitions.")
@click.option("--criteria", help="Criteria to measure.  [default: BSCov,2-SBCov,BTCov,ISCov,WICov]")
@click.option("--batch-size", default=16, show_default=True, help="Inputs run at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def cover(
    system: str,
    data: str,
    profile: Path | None,
    partitions: int | None,
    input_partitions: int,
    model: Path | None,
    criteria: str | None,
    batch_size: int,
    as_json: bool,
) -> None:
    """Measure how much of the abstract model a data set reaches.

    \b
    deepcruiser cover --system asr.py:system --data LibriSpeech/test-clean --profile asr.profile --partitions 20

    \b
    BSCov    visited states, of those that profiling visited
    k-SBCov  visited cells, of those 1 to k steps outside of them
    BTCov    pairs of states that follow one another
    ISCov    pairs of a state and an input seen in it
    WICov    the same, weighted by how likely the successors are that were seen
    """
    abstract = model_from(profile, partitions, input_partitions, model)
    measured = [criterion(name.strip()) for name in criteria.split(",")] if criteria else FIVE
    with watching() as watch:
        report = cover_system(
            abstract, system_from(system), data_from(data), criteria=measured, batch_size=batch_size, watch=watch
        )
    if as_json:
        result = {
            "model": abstract.name,
            "traces": report.traces,
            "steps": report.steps,
            "coverage": {coverage.criterion.name: coverage.value for coverage in report.coverages},
            "items": {coverage.criterion.name: len(coverage.covered) for coverage in report.coverages},
            "covered": {coverage.criterion.name: int(coverage.covered.sum()) for coverage in report.coverages},
            "skipped": report.skipped,
        }
        click.echo(json.dumps(result, indent=2))
    else:
        click.echo(f"{abstract}\n{report.traces:,} inputs, {report.steps:,} steps")
        click.echo(report)
    tell_skipped(report.skipped)
