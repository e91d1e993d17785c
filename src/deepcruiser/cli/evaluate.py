"""deepcruiser evaluate: the paper's research questions for the user's own system."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepcruiser.cli import options
from deepcruiser.cli.campaign_options import spec_from
from deepcruiser.cli.evaluate_monitor import monitor
from deepcruiser.cli.evaluate_options import EvaluateOptions, paper_experiment, partitions_from, shared
from deepcruiser.cli.output import INTERRUPTED, say, typed
from deepcruiser.progress import watching

if TYPE_CHECKING:  # what a question needs is imported when it is asked
    from deepcruiser.evaluate.experiment import Experiment
    from deepcruiser.evaluate.pool import Workers
    from deepcruiser.evaluate.result import Answer

seeds_and_mutants = options.together(
    click.option("--seeds", default=100, show_default=True, help="Number of seeds to draw from the data."),
    click.option("--mutants", default=100, show_default=True, help="Number of mutants per seed."),
    click.option(
        "--changes",
        default=1,
        show_default=True,
        help="Maximum number of transformations of a mutant; it has 1 to this many.",
    ),
)

#: The runs of a campaign, by default.
RUNS = 256
#: The arms of `schedulers`, by default.
ARMS = ("learned", "matched", "chains", "one-change", "one-change-kept", "rarity-thompson")

campaign_options = options.together(
    click.option("--seeds", default=100, show_default=True, help="Number of seeds per campaign."),
    click.option(
        "--runs",
        type=int,
        help=f"Stop each campaign after this many runs.  [default: {RUNS}, or no limit with --minutes]",
    ),
    click.option(
        "--minutes", type=float, help="Stop each campaign after this many minutes of making and running mutants."
    ),
    click.option("--campaigns", default=5, show_default=True, help="Number of campaigns of each kind."),
    click.option(
        "--base",
        default=20,
        show_default=True,
        help="Number of partitions of the grid for results that use only one.",
    ),
)


class Questions(click.Group):
    """The questions in the order of the paper."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Questions)
def evaluate() -> None:
    """Answer the paper's research questions for a system.

    \b
    deepcruiser evaluate rq1 --system asr.py:system --profile asr.profile --data test/ -o results
    deepcruiser evaluate page results -o results.md

    Every question writes its tables and data (CSV), a figure (SVG, PNG) and a section (Markdown) into the folder. The
    questions can share a folder: no batch runs twice. After Ctrl-C, the same command resumes.
    """


@evaluate.command()
@shared
@click.pass_context
def configurations(ctx: click.Context, /, **settings: Any) -> None:
    """Measure how large the models are, and whether more data would enlarge them. Does not run the system."""
    from deepcruiser.evaluate.configurations import configurations as question

    _answer(ctx, lambda workers: question(workers.experiment), settings)


@evaluate.command()
@shared
@click.option("--seeds", default=50, show_default=True, help="Number of seeds to draw from the data.")
@click.option("--mutants", default=18, show_default=True, help="Number of mutants per seed.")
@click.option("--k-means", is_flag=True, help="Compare the grids with k-means as well; needs scikit-learn.")
@click.pass_context
def abstraction(ctx: click.Context, /, seeds: int, mutants: int, k_means: bool, **settings: Any) -> None:
    """Compare numbers of components and partitions; tries all components of the profile."""
    from deepcruiser.evaluate.abstraction import abstraction as question

    _answer(ctx, lambda workers: question(workers, seeds=seeds, mutants=mutants, k_means=k_means), settings)


@evaluate.command()
@shared
@seeds_and_mutants
@click.pass_context
def rq1(ctx: click.Context, /, seeds: int, mutants: int, changes: int, **settings: Any) -> None:
    """Measure how similar mutants are to their seeds, by the states they visit."""
    from deepcruiser.evaluate.rq1 import rq1 as question

    _answer(ctx, lambda workers: question(workers, seeds=seeds, mutants=mutants, changes=changes), settings)


@evaluate.command()
@shared
@seeds_and_mutants
@click.pass_context
def rq2(ctx: click.Context, /, seeds: int, mutants: int, changes: int, **settings: Any) -> None:
    """Test whether mutants that visit other states have more errors. Uses seeds answered correctly."""
    from deepcruiser.evaluate.rq2 import rq2 as question

    _answer(ctx, lambda workers: question(workers, seeds=seeds, mutants=mutants, changes=changes), settings)


@evaluate.command()
@shared
@campaign_options
@click.pass_context
def rq3(
    ctx: click.Context,
    /,
    seeds: int,
    runs: int | None,
    minutes: float | None,
    campaigns: int,
    base: int,
    **settings: Any,
) -> None:
    """Compare the coverage of guided and unguided campaigns with the same number of runs."""
    from deepcruiser.evaluate.campaigns import Budget
    from deepcruiser.evaluate.rq3 import rq3 as question

    budget = Budget(RUNS if runs is None and minutes is None else runs, minutes)
    _answer(
        ctx, lambda workers: question(workers, seeds=seeds, budget=budget, campaigns=campaigns, base=base), settings
    )


@evaluate.command()
@shared
@campaign_options
@click.pass_context
def rq4(
    ctx: click.Context,
    /,
    seeds: int,
    runs: int | None,
    minutes: float | None,
    campaigns: int,
    base: int,
    **settings: Any,
) -> None:
    """Compare the failures that guided and unguided campaigns find; uses the campaigns of rq3."""
    from deepcruiser.evaluate.campaigns import Budget
    from deepcruiser.evaluate.rq4 import rq4 as question

    budget = Budget(RUNS if runs is None and minutes is None else runs, minutes)
    _answer(
        ctx, lambda workers: question(workers, seeds=seeds, budget=budget, campaigns=campaigns, base=base), settings
    )


@evaluate.command()
@shared
@campaign_options
@click.option(
    "--arms",
    default=",".join(ARMS),
    show_default=True,
    help="The arms to compare, separated by commas: the first with each of the others.",
)
@click.option(
    "--severity",
    default="normal",
    show_default=True,
    help="Limit of severity per mutant: mild, normal, hard or a number.",
)
@click.pass_context
def schedulers(
    ctx: click.Context,
    /,
    seeds: int,
    runs: int | None,
    minutes: float | None,
    campaigns: int,
    base: int,
    arms: str,
    severity: str,
    **settings: Any,
) -> None:
    """Compare schedulers and keeping rules at equal severity.

    \b
    learned                        the default of fuzz
    learned-failures, -seeds, -coverage
                                   with another --aim
    learned-keep-coverage, -keep-random, -keep-none
                                   with another --keep
    learned-window-1, -window-16   with another --window
    matched, matched-failures ...  random mutants with the severity and number of
                                   changes of learned, run by run
    chains, chains-kept            one to three random changes at once
    one-change, one-change-kept, one-change-keep-random
                                   one change, uniform choice
    rarity-thompson                --scheduler rarity --pick thompson
    """
    from deepcruiser.evaluate.campaigns import Budget
    from deepcruiser.evaluate.schedulers import schedulers as question

    budget = Budget(RUNS if runs is None and minutes is None else runs, minutes)
    names = [name.strip() for name in arms.split(",")]
    more: dict[str, Any] = {"campaigns": campaigns, "base": base, "arms": names, "severity": severity}
    _answer(ctx, lambda workers: question(workers, seeds=seeds, budget=budget, **more), settings)


@evaluate.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.output("The page to write or update.")
@options.json_output()
def page(folders: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Put the sections of all results on one page; text between the sections is kept."""
    from deepcruiser.evaluate.page import update_page

    names = update_page(folders, output)
    if as_json:
        say(json.dumps({"page": str(output), "sections": names}, indent=2))
    else:
        say(f"Saved {output} ({', '.join(names)}), with figures and tables in {output.with_suffix('')}")


evaluate.add_command(monitor)


def _answer(ctx: click.Context, ask: Callable[[Workers], Answer], values: dict[str, Any]) -> None:
    """Load the experiment, ask the question, and write and print the result."""
    from deepcruiser.evaluate import figures
    from deepcruiser.evaluate.result import device_of
    from deepcruiser.evaluate.tables import as_json as tables_as_json

    figures.check_matplotlib()
    as_json, jobs, cluster = values.pop("as_json"), values.pop("jobs"), values.pop("cluster")
    folder: Path = values.pop("output")
    values |= paper_experiment(ctx) if values["paper"] else {}
    names = ("data", "profile", "train", "input_partitions", "components", "seed", "batch_size", "device", "paper")
    common = {name: values.pop(name) for name in names}
    partitions = partitions_from(values.pop("partitions"))
    settings = EvaluateOptions(spec=spec_from(**values), folder=folder, partitions=partitions, **common)
    # Systems may print, and standard output belongs to the JSON.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        experiment = settings.load()
        experiment.open()
        try:
            answer = _ask(ask, experiment, settings, jobs, cluster)
        except KeyboardInterrupt:
            say(f"Interrupted. Everything run so far is saved. Resume with: {typed(ctx)}", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        device = device_of(experiment.system)
        path = answer.write(folder, command=typed(ctx), seed=settings.seed, jobs=jobs, device=device)
    if as_json:
        say(json.dumps({"question": answer.name, **tables_as_json(answer.tables)}, indent=2))
        return
    for table in answer.tables:
        say(f"{table.caption}\n{table.markdown()}".lstrip())
    say(f"Saved {path}, with the tables (.csv) and the figure (.svg, .png) beside it")


def _ask(
    ask: Callable[[Workers], Answer],
    experiment: Experiment,
    settings: EvaluateOptions,
    jobs: int,
    cluster: str | None,
) -> Answer:
    from deepcruiser.evaluate.pool import Workers

    options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "on_gpus": settings.device != "cpu"}
    with watching() as watch, Workers(experiment, settings.load, watch=watch, **options) as workers:
        return ask(workers)
