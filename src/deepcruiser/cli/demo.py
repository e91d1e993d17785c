"""deepcruiser demo: everything on a network that the package brings."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.export import export
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profiling import profile
from deepcruiser.campaign.campaign import Campaign
from deepcruiser.campaign.fuzzing import fuzz
from deepcruiser.campaign.state import Guide
from deepcruiser.cli.ingredients import COMMAND, Ingredients
from deepcruiser.cli.profile import check_self
from deepcruiser.cli.shown import program, watching
from deepcruiser.cli.summary import summary, told
from deepcruiser.coverage import CoverageReport, cover
from deepcruiser.criteria import FIVE, SBCov
from deepcruiser.report.watching import has_screen, on_screen
from deepcruiser.systems import brackets
from deepcruiser.trace import System

PARTITIONS = 20
RUNS = 3_200
#: The campaign, and the one to compare it with, in which nothing guides.
CAMPAIGNS = {"campaign": Guide((SBCov(2),)), "campaign-without-guide": Guide((SBCov(2),), keep="none")}


@click.command()
@click.option(
    "-o", "--output", default=Path("runs/demo"), show_default=True, type=click.Path(path_type=Path), help="A folder."
)
@click.option("--seed", default=0, show_default=True, help="Of the training and of the data.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def demo(ctx: click.Context, /, output: Path, seed: int, as_json: bool) -> None:
    """Train a small network with a planted weakness, and let coverage and a campaign show the weakness.

    Takes half a minute and needs nothing. The network judges whether brackets are balanced, and was never shown
    brackets nested deeper than three.
    """
    output.mkdir(parents=True, exist_ok=True)
    say = (lambda _: None) if as_json else click.echo
    began = time.monotonic()
    system = brackets.load(seed)
    say(f"1. trained {system} in {time.monotonic() - began:.1f} s")

    with watching() as watch:
        profiled = profile(system, brackets.training_texts(seed=seed), seed=seed, batch_size=256, watch=watch)
    say(f"\n2. {profiled}")
    for configuration in profiled.configurations():
        say(f"   {configuration}")
    check_self(profiled, PARTITIONS)

    model = profiled.abstract(PARTITIONS)
    profiled.save(output / "brackets.profile")
    model.save(output / "brackets.model")
    export(profiled.abstract(3, input_partitions=2), output / "brackets.dot")
    results = {
        name: _measured(system, model, texts)
        for name, texts in (
            ("ordinary", brackets.ordinary_tests(seed=seed)),
            ("deep", brackets.deep_tests(seed=seed)),
        )
    }
    (ordinary, ordinary_wrong), (deep, deep_wrong) = results["ordinary"], results["deep"]
    say(f"\n3. coverage of {model}")
    say(f"   {'':10} {'ordinary tests':>16} {'nested deeper':>16}")
    for criterion in FIVE:
        say(f"   {criterion.name:10} {ordinary[criterion]:16.2%} {deep[criterion]:16.2%}")
    say(f"   {'wrong':10} {ordinary_wrong:16.2%} {deep_wrong:16.2%}")
    say(
        f"\n   Of the ordinary tests {ordinary_wrong:.1%} are answered wrongly, of the deeper ones {deep_wrong:.0%}. "
        "BSCov does not tell them\n   apart; 2-SBCov does: the deeper ones visit "
        f"{deep['2-SBCov'] / max(ordinary['2-SBCov'], 1e-9):.0f} times as many of the cells just outside of\n"
        "   what training visited."
    )
    made_of = Ingredients(system=f"brackets:{seed}", model=str(output / "brackets.model"), disagreement=True).complete()
    campaigns = [
        _campaign(system, model, made_of, guide, output / name, quiet=as_json) for name, guide in CAMPAIGNS.items()
    ]
    guided, unguided = map(summary, campaigns, CAMPAIGNS.values())
    runs, seeds = guided["runs"], guided["seeds"]
    say(f"\n4. two campaigns of {runs:,} runs on {seeds} ordinary tests: pairs and letters are put in, which keeps the")
    say("   right answer")
    for line in _compared(guided, unguided):
        say(f"   {line}")
    for test in guided["worst"][:1]:
        say(f"\n   One of them is {campaigns[0][test['number']].make()}\n   " + "\n   ".join(told(test)))
        say(f"   Run it again: {program(ctx)} replay {output / 'campaign'} {test['number']}")
    say(
        f"\nWritten to {output}: the profile, the model, a picture of a small model (.dot), and both campaigns. The\n"
        f"failing inputs are in {output / 'campaign' / 'failed'}.\n\n"
        f"Your own network next: {program(ctx)} profile --help"
    )
    if as_json:
        measured = {name: _as_json(report, wrong) for name, (report, wrong) in results.items()}
        click.echo(json.dumps({**measured, "guided": guided, "unguided": unguided}, indent=2))


def _campaign(
    system: System, model: AbstractModel, ingredients: Ingredients, guide: Guide, folder: Path, *, quiet: bool
) -> Campaign:
    """A campaign in a new folder, in the place of what an earlier demo left there."""
    if (folder / COMMAND).is_file() and json.loads((folder / COMMAND).read_bytes()).get("command") == "demo":
        shutil.rmtree(folder)
    screen = on_screen(str(folder)) if has_screen() and not quiet else nullcontext(lambda _: None)
    with screen as show:
        campaign = fuzz(
            system,
            model,
            ingredients.load_data(),
            folder=folder,
            guide=guide,
            oracle=ingredients.oracle(),
            mutations=ingredients.load_mutations(),
            runs=RUNS,
            workers=0,
            watch=ingredients.remembered(show, folder, command="demo"),
        )
    if campaign.stopped == "interrupted":
        raise KeyboardInterrupt
    return campaign


def _compared(guided: dict[str, Any], unguided: dict[str, Any]) -> list[str]:
    def row(what: str, one: Any, other: Any) -> str:
        return f"{what:18} {one:>18} {other:>14}"

    return [
        row("", "guided by 2-SBCov", "without guide"),
        row("failing inputs", guided["failing_inputs"], unguided["failing_inputs"]),
        row("made of seeds", guided["failing_seeds"], unguided["failing_seeds"]),
        row("first in run", guided["first_failure"] or "none", unguided["first_failure"] or "none"),
        row("2-SBCov, all runs", *(f"{each['coverage']['2-SBCov']['executed']:.2%}" for each in (guided, unguided))),
    ]


def _measured(system: System, model: AbstractModel, texts: list[str]) -> tuple[CoverageReport, float]:
    """What the texts cover, and the share of them that the network gets wrong."""
    wrong = sum(run.output != brackets.verdict(text) for run, text in zip(system.run(texts), texts, strict=True))
    return cover(model, system, texts), wrong / len(texts)


def _as_json(report: CoverageReport, wrong: float) -> dict[str, Any]:
    return {"wrong": wrong, **{coverage.criterion.name: coverage.value for coverage in report.coverages}}
