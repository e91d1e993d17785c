"""deepcruiser shrink: the mildest recipe that still fails, for failing tests of a campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from deepcruiser.campaign.executors.base import Executor
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.cli import options
from deepcruiser.cli.output import output_for, say
from deepcruiser.cli.replay import Opened, open_campaign
from deepcruiser.errors import printable
from deepcruiser.findings.phrases import name_of
from deepcruiser.findings.results import fingerprint, read_shrunk, shrink_tests
from deepcruiser.findings.shrink import Shrunk
from deepcruiser.transformations import to_dict


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Shrink all failing tests.")
@click.option(
    "--worst", type=click.IntRange(min=1), help="Number of failing tests to shrink, the worst first.  [default: 20]"
)
@options.parts_of_campaign
@options.batch_size
@options.device
@options.json_output()
def shrink(
    folder: Path,
    numbers: tuple[int, ...],
    everything: bool,
    worst: int | None,
    batch_size: int,
    device: str,
    as_json: bool,
    **sources: str | None,
) -> None:
    """Find the mildest recipe that still fails in the same way, for failing tests of a campaign.

    \b
    deepcruiser shrink runs/asr              the 20 worst
    deepcruiser shrink runs/asr 7 12
    deepcruiser shrink runs/asr --all

    Drops every step that is not needed, then moves each parameter towards no change while the test fails in the same
    way. Results are stored in the campaign's folder, so the same command resumes, and `findings` and `export
    --suite` use them.
    """
    if sum((bool(numbers), everything, worst is not None)) > 1:
        raise click.UsageError("give numbers, --all or --worst")
    with output_for(as_json) as out:
        opened = open_campaign(folder, device=device, **sources)
        record, name = opened.record, fingerprint(opened.system)
        tests = [record[number] for number in numbers] or record.failed[: None if everything else worst or 20]
        with local_executor(opened) as executor:
            for shrunk in shrink_tests(record, tests, executor, system=name, batch_size=batch_size):
                if not as_json:
                    say("\n".join(lines(record[shrunk.number], shrunk)))
        known = read_shrunk(record, system=name)
    if as_json:
        result = [as_dict(known[test.number]) for test in tests]
        say(json.dumps(result, indent=2), file=out)
    elif not tests:
        say(f"there are no failing tests in {folder}")


def local_executor(opened: Opened) -> Executor:
    """Runs mutants of a campaign in this process."""
    record = opened.record
    return LocalExecutor(
        opened.system, record.model, record.inputs, opened.mutations.invalid, limit_seconds=record.spec.limit_seconds
    )


def lines(test: FailedTest, shrunk: Shrunk) -> list[str]:
    """A shrunk test to read."""
    before = " -> ".join(map(str, test.recipe))
    now = f"shrunk in {shrunk.runs} runs: {shrunk}" if shrunk.status == "shrunk" else str(shrunk)
    return [
        f"{test.number}: {printable(test.seed)}: {printable(before, width=400)}",
        f"    {printable(now, width=400)}",
        *(f"    {printable(line)}" for line in threshold_lines(shrunk)),
    ]


def threshold_lines(shrunk: Shrunk) -> list[str]:
    """Where each parameter of a shrunk recipe begins to fail."""
    lines = []
    for threshold in shrunk.thresholds:
        name = f"{name_of(shrunk.recipe[threshold.step])}.{threshold.name}"
        passes = "fails without it as well" if threshold.passes is None else f"passes at {threshold.passes:g}"
        lines.append(f"{name}: fails at {threshold.fails:g}, {passes}")
    return lines


def as_dict(shrunk: Shrunk) -> dict[str, Any]:
    """A shrunk test as JSON."""
    thresholds = [
        {"step": each.step, "name": each.name, "fails": each.fails, "passes": each.passes} for each in shrunk.thresholds
    ]
    return {
        "number": shrunk.number,
        "status": shrunk.status,
        "failing": shrunk.failing,
        "recipe": [to_dict(change) for change in shrunk.recipe],
        "thresholds": thresholds,
        "runs": shrunk.runs,
        "output": shrunk.output,
        "score": shrunk.score,
        "sha256": shrunk.digest,
    }
