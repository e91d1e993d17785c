"""deepcruiser export: write the model of a profile to a file, or the tests of a campaign to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.cli import options
from deepcruiser.cli.findings import SHRUNK, shrunk_findings
from deepcruiser.cli.output import output_for, say
from deepcruiser.cli.replay import open_campaign
from deepcruiser.criteria import Criterion, criterion
from deepcruiser.export import export as export_model
from deepcruiser.findings.corpus import MANIFESTS, export_failures, export_queue
from deepcruiser.findings.phrases import count_of
from deepcruiser.findings.suite import write_suite

#: The options of `export` for campaigns.
campaign_options = options.together(
    click.option(
        "--suite",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="Write a regression suite there, one test per finding, or extend an existing suite.",
    ),
    click.option(
        "--queue",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="Write the tests of the queue there, to run again.",
    ),
    click.option(
        "--minimise",
        metavar="CRITERIA",
        help="Write only a few tests that cover as much by these criteria, such as BSCov,BTCov; with --queue.",
    ),
    click.option(
        "--manifest",
        type=click.Choice(sorted(MANIFESTS)),
        help="Write the failing tests and their expected answers in this form, to train on; with -o FOLDER.",
    ),
    options.parts_of_campaign,
)


@click.command()
@click.argument("source", metavar="PROFILE|FOLDER", type=click.Path(path_type=Path))
@click.option("--partitions", type=int, help="Number of intervals per component of a state; for a profile.")
@options.input_partitions("; for a profile")
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    help="The file or folder to write; see above.",
)
@campaign_options
@options.device
@options.json_output()
def export(
    source: Path,
    partitions: int | None,
    input_partitions: int,
    output: Path | None,
    suite: Path | None,
    queue: Path | None,
    minimise: str | None,
    manifest: str | None,
    device: str,
    as_json: bool,
    **sources: str | None,
) -> None:
    """Write the abstract model of a profile to a file, or the tests of a campaign to a folder.

    \b
    deepcruiser export asr.profile --partitions 20 -o asr.model
    .model            for `deepcruiser cover --model` and AbstractModel.load
    .tra              PRISM's explicit files: .tra, .sta and .lab side by side
    .drn              Storm's explicit format
    .dot              a picture for Graphviz, up to 200 states
    .graphml          a graph for networkx, yEd or Gephi

    \b
    deepcruiser export runs/asr --suite tests/asr_regressions     a regression test per finding, for pytest
    deepcruiser export runs/asr --queue tests/more                tests that cover more than the seeds
    deepcruiser export runs/asr --manifest nemo -o train/         failing tests to train on
    """
    chosen = [name for name, value in (("suite", suite), ("queue", queue), ("manifest", manifest)) if value is not None]
    if len(chosen) > 1:
        raise click.UsageError("give one of --suite, --queue and --manifest")
    if minimise is not None and queue is None:
        raise click.UsageError("--minimise needs --queue")
    if suite is not None:
        summary = export_suite(source, suite, device=device, **sources)
    elif queue is not None:
        summary = export_tests(source, queue, manifest=None, minimise=minimise, device=device, **sources)
    elif manifest is not None:
        if output is None:
            raise click.UsageError("--manifest needs -o FOLDER")
        summary = export_tests(source, output, manifest=manifest, minimise=None, device=device, **sources)
    elif source.is_dir():
        raise click.UsageError("for a campaign, give --suite, --queue or --manifest")
    elif partitions is None or output is None:
        raise click.UsageError("for a profile, give --partitions and -o FILE")
    else:
        model = Profile.load(source).abstract(partitions, input_partitions=input_partitions)
        if output.suffix == ".model":
            model.save(output)
        else:
            export_model(model, output)
        summary = {"output": str(output), "model": model.name, "states": len(model.states)}
        summary |= {"transitions": len(model.transitions)}
        if not as_json:
            say(f"{model}, written to {output}")
            return
    text = f"{count_of(summary['tests'], 'test')}, written to {summary['output']}"
    say(json.dumps(summary, indent=2) if as_json else text)


def export_suite(folder: Path, output: Path, *, device: str, **sources: str | None) -> dict[str, Any]:
    """Write the regression suite of a campaign; what was written."""
    with output_for(True):
        opened = open_campaign(folder, device=device, **sources)
        result = shrunk_findings(opened, SHRUNK)
        suite = write_suite(output, opened.record, result.findings, system=opened.source)
    return {"output": str(output), "tests": len(suite.cases), "findings": len(result.findings)}


def export_tests(
    folder: Path, output: Path, *, manifest: str | None, minimise: str | None, device: str, **sources: str | None
) -> dict[str, Any]:
    """Write the queue of a campaign or, with a manifest, its failing tests; what was written."""
    with output_for(True):
        record = open_campaign(folder, device=device, **sources).record
        if manifest is not None:
            return {"output": str(output), "tests": export_failures(output, record, manifest=manifest)}
        count = export_queue(output, record, minimise=_criteria(minimise))
    return {"output": str(output), "tests": count, "of": len(record.tests)}


def _criteria(names: str | None) -> tuple[Criterion, ...]:
    return () if names is None else tuple(criterion(name.strip()) for name in names.split(","))
