"""deepcruiser report: a page of what campaigns found, or the same as text, Markdown, JSON or JUnit XML."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.cli.output import say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.findings.phrases import count_of
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.junit import write_junit
from deepcruiser.report.page import write_page
from deepcruiser.report.sections import as_markdown, as_text, collect


@click.command(cls=ProjectCommand)
@click.argument("folders", metavar="FOLDER...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the page to this file.  [default: report.html in the first folder]",
)
@click.option(
    "--text", "as_lines", is_flag=True, help="Print the report as plain text, for logs, instead of writing a page."
)
@click.option("--markdown", is_flag=True, help="Print the report as Markdown, for pull requests.")
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the failing tests as JUnit XML, for CI systems.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all data of the report as JSON.")
@click.option(
    "--embed",
    default=25,
    metavar="N",
    show_default=True,
    type=click.IntRange(min=0),
    help="Embed the audio of the N worst failures and findings; link the rest.",
)
def report(
    folders: tuple[Path, ...],
    output: Path | None,
    as_lines: bool,
    markdown: bool,
    junit: Path | None,
    as_json: bool,
    embed: int,
) -> None:
    """Show what campaigns found: one page that works from disk, without a network connection.

    \b
    deepcruiser report runs/asr                         writes runs/asr/report.html
    deepcruiser report runs/old runs/new -o both.html   compares the second with the first
    deepcruiser report runs/asr --junit failures.xml    for CI; also --text, --markdown, --json

    Reads the campaign folders only: no system is loaded and none of your files is executed. It also works while a
    campaign is running.

    Exit status: 0 done, even if there are failing tests; 2 usage error.
    """
    if as_lines + markdown + as_json > 1:
        raise click.UsageError("give one of --text, --markdown and --json")
    campaigns = [CampaignData(folder) for folder in folders]
    if output is not None or not (as_lines or markdown or as_json or junit):
        page = output or folders[0] / "report.html"
        write_page(campaigns, page, embed=embed)
        failing = sum(len(campaign.record.failed) for campaign in campaigns)
        say(f"{page}: {page.stat().st_size / 1e6:.1f} MB, {count_of(failing, 'failing test')}", err=as_json)
    result = ReportData.of(campaigns)
    if junit is not None:
        write_junit(result, junit)
        say(f"{junit}: {count_of(len(result.failures), 'failing test')}", err=True)
    if as_json:
        say(json.dumps(collect(result), indent=2))
    elif as_lines:
        say(as_text(collect(result)))
    elif markdown:
        say(as_markdown(collect(result)))
