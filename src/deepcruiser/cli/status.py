"""deepcruiser status: the progress of a campaign."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.store import Store
from deepcruiser.cli import options
from deepcruiser.cli.output import say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.summary import as_text, summary


@click.command(cls=ProjectCommand)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@options.json_output()
def status(folder: Path, as_json: bool) -> None:
    """Show the progress of a campaign, running or not: runs, coverage, failing tests, and what is left of its budget.

    \b
    deepcruiser status runs/asr
    """
    record = CampaignRecord.open(folder)
    with Store.open(folder, write=False) as store:
        running = store.is_at_work()
    result = {"running": running, **summary(record), "runs_planned": record.spec.runs}
    if running:
        result["stopped"] = "no, still running"
    if as_json:
        say(json.dumps(result, indent=2))
        return
    say(as_text(result))
    if record.spec.runs is not None:
        say(f"{len(record.runs):,} of {record.spec.runs:,} runs are done")
