"""deepcruiser evaluate: the paper's questions, asked of one's own system."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from deepcruiser.cli.campaign_options import spec_from
from deepcruiser.cli.evaluate_options import Asked, options, partitions_from
from deepcruiser.cli.progress import typed, watching
from deepcruiser.evaluate import figures
from deepcruiser.evaluate.abstraction import abstraction as ask_abstraction
from deepcruiser.evaluate.configurations import configurations as ask_configurations
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.page import put_together
from deepcruiser.evaluate.pool import Workers
from deepcruiser.evaluate.result import Answer, device_of
from deepcruiser.evaluate.rq1 import rq1 as ask_rq1
from deepcruiser.evaluate.rq2 import rq2 as ask_rq2
from deepcruiser.evaluate.rq3 import rq3 as ask_rq3
from deepcruiser.evaluate.rq4 import rq4 as ask_rq4
from deepcruiser.evaluate.tables import as_json as tables_as_json

Command = Callable[..., Any]


def seeds_and_mutants(command: Command) -> Command:
    command = click.option("--mutants", default=100, show_default=True, help="Mutants of each seed.")(command)
    return click.option("--seeds", default=100, show_default=True, help="Seeds, drawn from the data.")(command)


def of_campaigns(command: Command) -> Command:
    base = "The grid of what is not compared on all of them."
    command = click.option("--base", default=20, show_default=True, help=base)(command)
    command = click.option("--campaigns", default=5, show_default=True, help="Campaigns of each kind.")(command)
    command = click.option("--runs", default=256, show_default=True, help="Of every campaign, in batches.")(command)
    return click.option("--seeds", default=100, show_default=True, help="Seeds of every campaign.")(command)


class Questions(click.Group):
    """The questions in the order of the paper."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Questions)
def evaluate() -> None:
    """Ask the paper's questions of a system.

    \b
    deepcruiser evaluate rq1 --system asr.py:system --profile asr.profile --data test/ -o results
    deepcruiser evaluate page results -o results.md

    Every question writes its tables and data (CSV), a figure (SVG, PNG) and a section (Markdown) into the folder, and
    may share it with the others: what was run for one is not run again. After Ctrl-C the same command goes on.
    """


@evaluate.command()
@options
@click.pass_context
def configurations(ctx: click.Context, /, **given: Any) -> None:
    """How large the models are, and whether more data would make them larger. Nothing is run for it."""
    _answer(ctx, lambda workers: ask_configurations(workers.experiment), given)


@evaluate.command()
@options
@click.option("--seeds", default=50, show_default=True, help="Seeds, drawn from the data.")
@click.option("--mutants", default=18, show_default=True, help="Mutants of each seed.")
@click.pass_context
def abstraction(ctx: click.Context, /, seeds: int, mutants: int, **given: Any) -> None:
    """Help for choosing components and partitions; all components of the profile are tried."""
    _answer(ctx, lambda workers: ask_abstraction(workers, seeds=seeds, mutants=mutants), given)


@evaluate.command()
@options
@seeds_and_mutants
@click.pass_context
def rq1(ctx: click.Context, /, seeds: int, mutants: int, **given: Any) -> None:
    """How like their seeds mutants are, by the states that they visit."""
    _answer(ctx, lambda workers: ask_rq1(workers, seeds=seeds, mutants=mutants), given)


@evaluate.command()
@options
@seeds_and_mutants
@click.pass_context
def rq2(ctx: click.Context, /, seeds: int, mutants: int, **given: Any) -> None:
    """Whether mutants that visit other states have more errors. Takes seeds that are answered without one."""
    _answer(ctx, lambda workers: ask_rq2(workers, seeds=seeds, mutants=mutants), given)


@evaluate.command()
@options
@of_campaigns
@click.pass_context
def rq3(ctx: click.Context, /, seeds: int, runs: int, campaigns: int, base: int, **given: Any) -> None:
    """What guided campaigns cover, against others with as many runs."""
    _answer(ctx, lambda workers: ask_rq3(workers, seeds=seeds, runs=runs, campaigns=campaigns, base=base), given)


@evaluate.command()
@options
@of_campaigns
@click.pass_context
def rq4(ctx: click.Context, /, seeds: int, runs: int, campaigns: int, base: int, **given: Any) -> None:
    """What guided campaigns find, against others with as many runs; the campaigns are those of rq3."""
    _answer(ctx, lambda workers: ask_rq4(workers, seeds=seeds, runs=runs, campaigns=campaigns, base=base), given)


@evaluate.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The page, new or to be renewed.")
def page(folders: tuple[Path, ...], output: Path) -> None:
    """Put the sections of all answers on one page; what is written between them there stays."""
    names = put_together(folders, output)
    click.echo(f"{', '.join(names)} on {output}, figures and tables in {output.with_suffix('')}")


def _answer(ctx: click.Context, ask: Callable[[Workers], Answer], given: dict[str, Any]) -> None:
    """Load what was given, ask, write and tell."""
    figures.check_there()
    as_json, jobs, folder = given.pop("as_json"), given.pop("jobs"), Path(given.pop("output"))
    shared = {name: given.pop(name) for name in ("data", "profile", "train", "components", "seed", "batch_size")}
    partitions = partitions_from(given.pop("partitions"))
    asked = Asked(spec=spec_from(**given), folder=str(folder), partitions=partitions, **shared)
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():  # systems may print
        experiment = asked.load()
        experiment.open()
        try:
            answer = _ask(ask, experiment, asked, jobs)
        except KeyboardInterrupt:
            click.echo(f"interrupted: what was run is saved; to go on: {typed(ctx)}", err=True)
            sys.exit(130)
        where = answer.write(
            folder, command=typed(ctx), seed=asked.seed, jobs=jobs, device=device_of(experiment.system)
        )
    if as_json:
        click.echo(json.dumps({"question": answer.name, **tables_as_json(answer.tables)}, indent=2))
        return
    for table in answer.tables:
        click.echo(f"{table.caption}\n{table.markdown()}".lstrip())
    click.echo(f"written to {where}, with the tables (.csv) and the figure (.svg, .png) beside it")


def _ask(ask: Callable[[Workers], Answer], experiment: Experiment, asked: Asked, jobs: int) -> Answer:
    with watching() as watch, Workers(experiment, asked.load, jobs=jobs, watch=watch) as workers:
        return ask(workers)
