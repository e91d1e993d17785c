"""deepcruiser evaluate: the paper's research questions for the user's own system."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepcruiser.cli import options
from deepcruiser.cli.evaluate_monitor import monitor
from deepcruiser.cli.evaluate_options import SHARED, EvaluateOptions, shared, show_answer
from deepcruiser.cli.output import INTERRUPTED, output_for, say, typed
from deepcruiser.progress import watching

if TYPE_CHECKING:  # imported when a question is asked
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
        "--base", default=20, show_default=True, help="Number of partitions of the grid for results that use only one."
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
    _answer(ctx, settings)


@evaluate.command()
@shared
@click.option("--seeds", default=50, show_default=True, help="Number of seeds to draw from the data.")
@click.option("--mutants", default=18, show_default=True, help="Number of mutants per seed.")
@click.option("--k-means", is_flag=True, help="Compare the grids with k-means as well; needs scikit-learn.")
@click.pass_context
def abstraction(ctx: click.Context, /, **settings: Any) -> None:
    """Compare numbers of components and partitions; tries all components of the profile."""
    _answer(ctx, settings)


@evaluate.command()
@shared
@seeds_and_mutants
@click.pass_context
def rq1(ctx: click.Context, /, **settings: Any) -> None:
    """Measure how similar mutants are to their seeds, by the states they visit."""
    _answer(ctx, settings)


@evaluate.command()
@shared
@seeds_and_mutants
@click.pass_context
def rq2(ctx: click.Context, /, **settings: Any) -> None:
    """Test whether mutants that visit other states have more errors. Uses seeds answered correctly."""
    _answer(ctx, settings)


@evaluate.command()
@shared
@campaign_options
@click.pass_context
def rq3(ctx: click.Context, /, **settings: Any) -> None:
    """Compare the coverage of guided and unguided campaigns with the same number of runs."""
    _answer(ctx, settings)


@evaluate.command()
@shared
@campaign_options
@click.pass_context
def rq4(ctx: click.Context, /, **settings: Any) -> None:
    """Compare the failures that guided and unguided campaigns find; uses the campaigns of rq3."""
    _answer(ctx, settings)


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
def schedulers(ctx: click.Context, /, arms: str, **settings: Any) -> None:
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
    _answer(ctx, {**settings, "arms": [name.strip() for name in arms.split(",")]})


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


def _answer(ctx: click.Context, values: dict[str, Any]) -> None:
    """Ask the question that has the name of the command, in the module of that name; write and print the answer."""
    from deepcruiser.evaluate import figures
    from deepcruiser.evaluate.campaigns import Budget
    from deepcruiser.evaluate.pool import Pool
    from deepcruiser.evaluate.result import device_of

    name = str(ctx.command.name)
    question = getattr(import_module(f"deepcruiser.evaluate.{name}"), name)
    own = {option: values.pop(option) for option in {*values} - SHARED}
    if "minutes" in own:
        runs, minutes = own.pop("runs"), own.pop("minutes")
        own["budget"] = Budget(RUNS if runs is None and minutes is None else runs, minutes)
    figures.check_matplotlib()
    as_json, jobs, cluster = values.pop("as_json"), values.pop("jobs"), values.pop("cluster")
    settings = EvaluateOptions.of(ctx, values)
    with output_for(as_json):
        experiment = settings.load()
        experiment.open()
        try:
            where = {"jobs": jobs, "cluster": cluster, "on_gpus": settings.device != "cpu"}
            with watching() as watch, Pool(experiment, settings.load, watch=watch, **where) as pool:
                answer: Answer = question(pool, **own)
        except KeyboardInterrupt:
            say(f"Interrupted. Everything run so far is saved. Resume with: {typed(ctx)}", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        device = device_of(experiment.system)
        path = answer.write(settings.folder, command=typed(ctx), seed=settings.seed, jobs=jobs, device=device)
    show_answer(answer, path, as_json=as_json)
