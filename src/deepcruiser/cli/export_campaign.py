"""deepcruiser export of a campaign: its regression suite, its queue, or its failing tests to train on."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import click

from deepcruiser.cli.findings import SHRUNK, shrunk_findings
from deepcruiser.cli.options import together
from deepcruiser.cli.replay import open_campaign
from deepcruiser.criteria import Criterion, criterion
from deepcruiser.findings.corpus import MANIFESTS, export_failures, export_queue
from deepcruiser.findings.suite import write_suite


def export_suite(folder: Path, output: Path, *, device: str, **sources: str | None) -> dict[str, Any]:
    """Write the regression suite of a campaign; what was written."""
    with contextlib.redirect_stdout(sys.stderr):  # systems may print
        opened = open_campaign(folder, device=device, **sources)
        result = shrunk_findings(opened, SHRUNK)
        suite = write_suite(output, opened.record, result.findings, system=opened.source)
    return {"output": str(output), "tests": len(suite.cases), "findings": len(result.findings)}


def export_tests(
    folder: Path, output: Path, *, manifest: str | None, minimise: str | None, device: str, **sources: str | None
) -> dict[str, Any]:
    """Write the queue of a campaign or, with a manifest, its failing tests; what was written."""
    with contextlib.redirect_stdout(sys.stderr):
        record = open_campaign(folder, device=device, **sources).record
        if manifest is not None:
            return {"output": str(output), "tests": export_failures(output, record, manifest=manifest)}
        count = export_queue(output, record, minimise=_criteria(minimise))
    return {"output": str(output), "tests": count, "of": len(record.tests)}


def _criteria(names: str | None) -> tuple[Criterion, ...]:
    return () if names is None else tuple(criterion(name.strip()) for name in names.split(","))


#: The options of `export` for campaigns.
campaign_options = together(
    click.option(
        "--suite",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help="Write a regression suite there, one test per finding, or extend the suite that is there.",
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
    click.option("--system", metavar="FILE.py:NAME", help="Run another system than the campaign's; with --suite."),
    click.option("--data", metavar="PATH", help="Where the seeds of the campaign are now."),
    click.option("--mutations", metavar="FILE.py:NAME", help="Where the mutations are now, if they are your own."),
)
