"""deepcruiser cover: measure how much of the abstract model a data set reaches."""

from __future__ import annotations

import json

import click

from deepcruiser.cli import options, workers
from deepcruiser.cli.output import print_skipped, say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.resolve import data_from, model_from, system_from
from deepcruiser.coverage import cover as cover_system
from deepcruiser.criteria import FIVE, criterion
from deepcruiser.errors import printable
from deepcruiser.monitor.monitor import Alarm, Monitor
from deepcruiser.progress import watching
from deepcruiser.trace import Run


@click.command(cls=ProjectCommand)
@options.system
@options.data("Test data: a corpus on disk, or FILE.py:NAME.")
@options.model_source
@click.option(
    "--criteria",
    metavar="NAMES",
    help="Criteria to measure, separated by commas.  [default: BSCov,2-SBCov,BTCov,ISCov,WICov]",
)
@click.option("--monitor", metavar="FILE", help="A calibrated monitor, to mark unusual inputs.")
@options.batch_size_by_length
@options.device
@workers.count
@workers.cluster
@options.quiet
@options.json_output()
def cover(
    system: str,
    data: str,
    profile: str | None,
    partitions: int | None,
    input_partitions: int,
    model: str | None,
    criteria: str | None,
    monitor: str | None,
    batch_size: int,
    device: str,
    count: int,
    cluster: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure how much of the abstract model a data set reaches.

    \b
    deepcruiser cover --system asr.py:system --data LibriSpeech/test-clean --profile asr.profile --partitions 20

    \b
    BSCov    share of the model's states that the data visit
    k-SBCov  share of the cells 1 to k steps outside the model's states
    BTCov    share of the model's transitions between two states
    ISCov    share of the model's pairs of a state and an input in it
    WICov    like ISCov, weighted by the probabilities of the successors visited
    """
    abstract = model_from(profile, partitions, input_partitions, model)
    watch_over = None if monitor is None else Monitor.load(monitor, abstract)
    unusual: dict[str, Alarm] = {}

    def check(name: str, run: Run) -> None:
        alarm = None if watch_over is None else watch_over.check(run)
        if alarm is not None:
            unusual[name] = alarm

    measured = [criterion(name.strip()) for name in criteria.split(",")] if criteria else FIVE
    network = system_from(system, device=device)
    if watch_over is not None and (count or cluster):
        raise click.UsageError("--monitor looks at every run in this process: leave out --workers and --cluster")
    work = workers.of_source(system, network, data, count, cluster, device=device)
    with work as started, watching(quiet=quiet) as watch:
        report = cover_system(
            abstract,
            network,
            data_from(data),
            criteria=measured,
            batch_size=batch_size,
            workers=started,
            watch=watch,
            inspect=check if watch_over is not None else None,
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
            "hint": report.hint,
        }
        if watch_over is not None:
            result["unusual"] = {name: alarm.to_dict() for name, alarm in unusual.items()}
        say(json.dumps(result, indent=2))
    else:
        say(f"{abstract}\n{report.traces:,} inputs, {report.steps:,} steps")
        say(report)
        if watch_over is not None:
            say(f"{len(unusual):,} of {report.traces:,} inputs are unusual")
        for name, alarm in sorted(unusual.items(), key=lambda item: -item[1].score):
            say(f"  {printable(name, width=80)}: {alarm}")
    print_skipped(report.skipped)
