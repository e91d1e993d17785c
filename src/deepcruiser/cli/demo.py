"""deepcruiser demo: everything on a network that the package brings."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.export import export
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profiling import profile
from deepcruiser.cli.profile import check_self
from deepcruiser.cli.shown import watching
from deepcruiser.coverage import CoverageReport, cover
from deepcruiser.criteria import FIVE
from deepcruiser.systems import brackets
from deepcruiser.trace import System

PARTITIONS = 20


@click.command()
@click.option(
    "-o", "--output", default=Path("runs/demo"), show_default=True, type=click.Path(path_type=Path), help="A folder."
)
@click.option("--seed", default=0, show_default=True, help="Of the training and of the data.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(output: Path, seed: int, as_json: bool) -> None:
    """Train a small network with a planted weakness, profile it, and let coverage show the weakness.

    Takes a few seconds and needs nothing. The network judges whether brackets are balanced, and was never shown
    brackets nested deeper than three.
    """
    output.mkdir(parents=True, exist_ok=True)
    say = (lambda _: None) if as_json else click.echo
    began = time.monotonic()
    system = brackets.load(seed)
    say(f"1. trained {system} in {time.monotonic() - began:.1f} s")

    with watching() as watch:
        profiled = profile(system, brackets.training_texts(seed=seed), seed=seed, watch=watch)
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
        f"\nThe ordinary tests find {ordinary_wrong:.1%} wrong and leave the boundary of what training visited alone. "
        f"The deeper\nones are wrong {deep_wrong:.0%} of the time, and 2-SBCov says why: "
        f"{deep['2-SBCov'] / max(ordinary['2-SBCov'], 1e-9):.0f} times as much of their way lies where\n"
        f"training never went. Written to {output}: the profile, the model, and a picture of a small model (.dot)."
        f"\n\nYour own network next: deepcruiser profile --help"
    )
    if as_json:
        click.echo(json.dumps({name: _as_json(report, wrong) for name, (report, wrong) in results.items()}, indent=2))


def _measured(system: System, model: AbstractModel, texts: list[str]) -> tuple[CoverageReport, float]:
    """What the texts cover, and the share of them that the network gets wrong."""
    wrong = sum(run.output != brackets.verdict(text) for run, text in zip(system.run(texts), texts, strict=True))
    return cover(model, system, texts), wrong / len(texts)


def _as_json(report: CoverageReport, wrong: float) -> dict[str, Any]:
    return {"wrong": wrong, **{coverage.criterion.name: coverage.value for coverage in report.coverages}}
