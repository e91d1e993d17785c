"""deepcruiser report: what a campaign found, to see and to hear."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deepcruiser.report.data import Gathering
from deepcruiser.report.junit import write_junit
from deepcruiser.report.page import gathered, write_page
from deepcruiser.report.text import as_markdown, as_text


@click.command()
@click.argument("folders", metavar="FOLDER...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The page.  [default: report.html in the first folder]"
)
@click.option("--text", "as_lines", is_flag=True, help="Print it, for logs, instead of writing a page.")
@click.option("--markdown", is_flag=True, help="Print it as Markdown, for pull requests.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML, for CI systems.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--embed",
    default=25,
    show_default=True,
    type=click.IntRange(min=0),
    help="The sounds of so many failing tests are inside the page; the others are beside it.",
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
    """Show what campaigns found: one page that works from disk, without a network.

    \b
    deepcruiser report runs/asr                         writes runs/asr/report.html
    deepcruiser report runs/new runs/old -o both.html   the first compared with the others
    deepcruiser report runs/asr --junit found.xml       for CI; also --text, --markdown, --json

    Reads the folders only: no network is run, and no file of yours. It works while a campaign goes on.

    Exit status: 0 done, also if there are failing tests; 2 wrong use.
    """
    if as_lines + markdown + as_json > 1:
        raise click.UsageError("give one of --text, --markdown and --json")
    campaigns = [Gathering(folder) for folder in folders]
    data = None
    if output is not None or not (as_lines or markdown or as_json or junit):
        page = output or folders[0] / "report.html"
        data = write_page(campaigns, page, embed=embed)
        click.echo(f"{page}: {page.stat().st_size / 1e6:.1f} MB, {len(data['failures']):,} failing tests", err=as_json)
    data = data or gathered(campaigns)
    if junit is not None:
        write_junit(data, junit)
        click.echo(f"{junit}: {len(data['failures']):,} failing tests", err=True)
    if as_json:
        click.echo(json.dumps(data, indent=2))
    elif as_lines:
        click.echo(as_text(data))
    elif markdown:
        click.echo(as_markdown(data))
