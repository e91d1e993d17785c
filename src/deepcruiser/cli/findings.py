"""deepcruiser findings: the failing tests of a campaign, grouped by cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.cli import options
from deepcruiser.cli.gates import exit_status, gate_options, spacing_line
from deepcruiser.cli.output import output_for, say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.replay import Opened, open_campaign
from deepcruiser.cli.shrink import as_dict as shrunk_dict
from deepcruiser.cli.shrink import local_executor, threshold_lines
from deepcruiser.cli.summary import failure_dict, failure_lines
from deepcruiser.errors import InputError, printable
from deepcruiser.findings.cluster import Findings, find
from deepcruiser.findings.finding import Finding
from deepcruiser.findings.groups import GroupOf, group_by
from deepcruiser.findings.phrases import count_of
from deepcruiser.findings.results import explain
from deepcruiser.report.format import counted

#: The worst test of this many findings is shrunk, by default.
SHRUNK = 20
#: This many words, labels or transformations of a finding are listed, the most frequent.
_LISTED = 10


@click.command(cls=ProjectCommand, context_settings={"show_default": True})
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--shrink",
    "count",
    type=click.IntRange(min=0),
    help="Shrink the worst test of this many findings; 0 runs nothing.  [default: 20]",
    show_default=False,
)
@click.option(
    "--group-by",
    "rule",
    metavar="RULE",
    help="Count failing tests per group: label, length, TABLE.csv:COLUMN, or a regular expression over seed ids.",
)
@gate_options
@options.parts_of_campaign
@options.own_oracle
@options.device
@options.json_output()
def findings(
    folder: Path,
    count: int | None,
    rule: str | None,
    max_findings: int | None,
    max_wrong_seeds: float | None,
    device: str,
    as_json: bool,
    **sources: str | None,
) -> None:
    """Group the failing tests of a campaign by cause, the most important first.

    \b
    deepcruiser findings runs/asr
    deepcruiser findings runs/asr --group-by '^([a-z]+)-'     which voice fails how often
    deepcruiser findings runs/asr --max-findings 0            for CI

    Failing tests belong together if the error and the change that causes it are the same, or if they fail where the
    states leave the region that training visited. Findings are ranked by how wrong the answer is, how many seeds have
    them, and how mild a change suffices. The worst test of each finding is shrunk: see `deepcruiser shrink --help`.

    Exit status: 0 no failing tests, or at most --max-findings findings; 1 failing tests; 2 usage error; 3
    unexpected error; 4 the system gets more seeds wrong than --max-wrong-seeds.
    """
    group_of = None if rule is None else group_by(rule)
    with output_for(as_json) as out:
        record, result = _found(folder, count, device, sources)
    if as_json:
        say(json.dumps(as_dict(record, result, group_of), indent=2), file=out)
    else:
        say("\n".join(_lines(record, result, group_of)))
    status, reason = exit_status(
        record, len(result.findings), max_findings=max_findings, max_wrong_seeds=max_wrong_seeds
    )
    if reason:
        say(reason, err=True)
    raise click.exceptions.Exit(status)


def _found(
    folder: Path, count: int | None, device: str, sources: Mapping[str, str | None]
) -> tuple[CampaignRecord, Findings]:
    """The findings of a campaign; the worst test of the first `count` is shrunk if the system can be run."""
    stored = CampaignRecord.open(folder)
    if count == 0 or not stored.failed:
        return stored, find(stored)
    try:
        opened = open_campaign(folder, device=device, **sources)
    except InputError as error:
        if count is not None or any(sources.values()):
            raise
        say(f"nothing is shrunk: {error}", err=True)
        return stored, find(stored)
    return opened.record, shrunk_findings(opened, SHRUNK if count is None else count)


def shrunk_findings(opened: Opened, count: int) -> Findings:
    """The findings of a campaign, the first `count` of them explained."""
    with local_executor(opened) as executor:
        return explain(opened.record, opened.system, executor, count=count)


def as_dict(record: CampaignRecord, result: Findings, group_of: GroupOf | None) -> dict[str, Any]:
    """The result as JSON."""
    return {
        "folder": str(record.folder),
        "failing_tests": result.failing_tests,
        "spacing_only": result.spacing,
        "findings": [_finding_dict(finding, group_of) for finding in result.findings],
        "apart": [{"number": test.number, "status": str(shrunk)} for test, shrunk in result.apart],
    }


def _finding_dict(finding: Finding, group_of: GroupOf | None) -> dict[str, Any]:
    error, cause, worst, part = finding.error, finding.cause, finding.worst, finding.parting
    return {
        "id": finding.id,
        "title": finding.title,
        "explanation": finding.explanation,
        "rank": finding.rank,
        "kind": error.kind,
        "expected": error.expected,
        "got": error.got,
        "change": cause.change,
        "region": cause.region,
        "seeds": list(finding.seeds),
        "tests": [member.test.number for member in finding.members],
        "worst": failure_dict(worst.test),
        "shrunk": None if worst.shrunk is None else shrunk_dict(worst.shrunk),
        "parting": None if part is None else {"step": part.step, "cell": list(part.cell), "known": part.known},
        "counts": finding.counts(group_of),
    }


def _lines(record: CampaignRecord, result: Findings, group_of: GroupOf | None) -> list[str]:
    lines = []
    if not record.failed:
        lines.append(f"there are no failing tests in {record.folder}")
    elif result.findings:
        lines.append(
            f"{count_of(result.failing_tests, 'failing test')}, {count_of(len(result.findings), 'finding')}, "
            "the most important first"
        )
    for number, finding in enumerate(result.findings, 1):
        lines += ["", f"{number}. {printable(finding.title, width=400)}  [{finding.id}]"]
        lines += [f"   {line}" for line in _detail(finding, group_of)]
    lines += ["", "kept apart:"] if result.apart else []
    lines += [f"   {test.number}: {shrunk}" for test, shrunk in result.apart]
    if result.spacing:
        lines.append(spacing_line(result.spacing))
    return lines


def _detail(finding: Finding, group_of: GroupOf | None) -> list[str]:
    worst = finding.worst
    lines = [printable(finding.explanation, width=400), *failure_lines(failure_dict(worst.test))]
    if worst.shrunk is not None:
        lines.append(f"    shrunk: {printable(str(worst.shrunk), width=400)}")
        lines += [f"    {line}" for line in threshold_lines(worst.shrunk)]
    if finding.parting is not None:
        lines.append(f"    {finding.parting}")
    for name, counts in finding.counts(group_of).items():
        if len(counts) > 1 or name == "groups":
            listed = counts if name == "groups" else dict(islice(counts.items(), _LISTED))
            rest = len(counts) - len(listed)
            lines.append(f"{name}: {counted(listed)}{f' and {rest} more' if rest else ''}")
    return lines
