"""deepcruiser history: which findings are new, fixed or still failing across versions of a network."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from deepcruiser.cli import options
from deepcruiser.cli.output import say
from deepcruiser.errors import printable
from deepcruiser.findings.history import Difference, History, open_version
from deepcruiser.findings.history import history as compare
from deepcruiser.report.page import write_history


@click.command()
@click.argument("folders", metavar="FOLDER...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE.html", type=click.Path(path_type=Path), help="Write a page as well.")
@click.option(
    "--fail-on", type=click.Choice(["new", "still"]), help="Exit with status 1 if the last version has such findings."
)
@options.json_output()
def history(folders: tuple[Path, ...], output: Path | None, fail_on: str | None, as_json: bool) -> None:
    """Compare the findings of campaigns, or of regression suites, across versions of a network.

    \b
    deepcruiser history runs/1.0 runs/1.1 runs/1.2
    deepcruiser history runs/main runs/branch --fail-on new

    Give the folders in the order of the versions, the oldest first. A finding is the same in two versions if the error
    and the change that causes it are the same. Failures and coverage are compared after the same number of runs. A
    finding counts as fixed if it did not occur again within that number of runs; to be sure, run its regression test.

    Exit status: 0 done, 1 the last version has findings that --fail-on names, 2 usage error.
    """
    result = compare(map(open_version, folders))
    differences = result.differences
    if output is not None:
        write_history(result, output)
        say(f"{output}: {len(result.versions):,} versions", err=as_json)
    if as_json:
        say(json.dumps(as_dict(result), indent=2))
    else:
        say("\n".join(_lines(result)))
    failing = fail_on is not None and bool(differences) and bool(getattr(differences[-1], fail_on))
    raise click.exceptions.Exit(1 if failing else 0)


def as_dict(result: History) -> dict[str, Any]:
    """The result as JSON."""
    versions = []
    for version, difference in zip(result.versions, (None, *result.differences), strict=True):
        entry: dict[str, Any] = {
            "name": version.name,
            "runs": version.runs,
            "failures": version.failures,
            "coverage": dict(version.coverage),
            "findings": [asdict(each) for each in version.findings.values()],
        }
        if difference is not None:
            entry |= {name: [asdict(each) for each in getattr(difference, name)] for name in ("new", "fixed", "still")}
        versions.append(entry)
    return {"runs": result.runs, "versions": versions}


def _lines(result: History) -> list[str]:
    criteria = list(dict.fromkeys(name for version in result.versions for name in version.coverage))
    header = "".join(f"{name:>10}" for name in criteria)
    lines = [
        f"after {result.runs:,} runs",
        f"{'runs':>8} {'findings':>9} {'new':>6} {'fixed':>6} {'still':>6} {'failures':>9}{header}",
    ]
    for version, difference in zip(result.versions, (None, *result.differences), strict=True):
        runs = "suite" if version.runs is None else f"{version.runs:,}"
        coverage = "".join(
            f"{version.coverage[name]:>10.2%}" if name in version.coverage else " " * 10 for name in criteria
        )
        lines.append(
            f"{runs:>8} {len(version.findings):9,} {_counts(difference)} {version.failures:9,}{coverage}  "
            f"{printable(version.name)}"
        )
    for version, difference in zip(result.versions[1:], result.differences, strict=True):
        lines.append(f"{printable(version.name)}:")
        for name in ("new", "fixed", "still"):
            word = "still failing" if name == "still" else name
            lines += [f"  {word}: {printable(seen.title, width=400)}" for seen in getattr(difference, name)]
    return lines


def _counts(difference: Difference | None) -> str:
    if difference is None:
        return f"{'':6} {'':6} {'':6}"
    return f"{len(difference.new):6,} {len(difference.fixed):6,} {len(difference.still):6,}"
