"""deepcruiser demo: profile, cover and fuzz the built-in recogniser, and write a report with sounds."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import jiwer

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profiler import profile
from deepcruiser.campaign.fuzz import fuzz
from deepcruiser.campaign.guide import Guide
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.spec import CampaignSpec, Component, guide_component
from deepcruiser.cli import builtin
from deepcruiser.cli.campaign_options import load_mutations, spec_from
from deepcruiser.cli.output import program, say
from deepcruiser.cli.profile import check_self
from deepcruiser.cli.summary import failure_lines, summary
from deepcruiser.coverage import CoverageReport, cover
from deepcruiser.criteria import FIVE, BSCov
from deepcruiser.progress import watching
from deepcruiser.report.data import CampaignData
from deepcruiser.report.page import write_page
from deepcruiser.report.terminal import has_screen, on_screen
from deepcruiser.trace import System

SYSTEM, PARTITIONS, BATCH = "english", 20, 16
RUNS = 480
#: A file that marks folders made by the demo, which it may remove.
MARK = "made-by-the-demo"
#: The campaign, and one without a guide to compare it with: random changes of the seeds, within the same severity.
CAMPAIGNS = {
    "campaign": (Guide((BSCov,)), CampaignSpec().scheduler),
    "campaign-without-guide": (Guide((BSCov,), keep="none"), Component("chains")),
}


@click.command()
@click.option(
    "-o",
    "--output",
    default=Path("runs/demo"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder to write to.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed of the profile and the campaigns.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def demo(ctx: click.Context, /, output: Path, seed: int, as_json: bool) -> None:
    """Profile, cover and fuzz a speech recogniser, and write a report with the sounds that it gets wrong.

    Takes a minute or two. The recogniser, a recurrent network for English, and recordings of synthetic voices come with
    the package.
    """
    output.mkdir(parents=True, exist_ok=True)
    tell = (lambda _: None) if as_json else say
    began = time.monotonic()
    system = builtin.system(SYSTEM)
    tell(f"1. {system}, ready in {time.monotonic() - began:.1f} s")

    with watching() as watch:
        profiled = profile(system, builtin.data(f"{SYSTEM}:profile"), seed=seed, batch_size=BATCH, watch=watch)
    tell(f"\n2. {profiled}")
    for configuration in profiled.configurations():
        tell(f"   {configuration}")
    check_self(profiled, PARTITIONS)
    model = profiled.abstract(PARTITIONS)
    profiled.save(output / "english.profile")
    model.save(output / "english.model")

    report, words_wrong, seeds = _measured(system, model)
    count = len(builtin.data(SYSTEM))
    tell(f"\n3. Coverage of {model.name} by {count} new recordings (word error rate {words_wrong:.1%}):")
    for criterion in FIVE:
        tell(f"   {criterion.name:8} {report[criterion]:8.2%}")

    spec = spec_from(system=SYSTEM, model=str(output / "english.model"), runs=RUNS, seed=seed, wer_above=0.0)
    campaigns = [
        _campaign(
            system,
            model,
            seeds,
            replace(spec, guide=guide_component(guide), scheduler=scheduler),
            output / name,
            quiet=as_json,
        )
        for name, (guide, scheduler) in CAMPAIGNS.items()
    ]
    guided, unguided = map(summary, campaigns)
    runs, count = guided["runs"], len(seeds)
    tell(f"\n4. Two campaigns of {runs:,} runs on the {count} that are recognised without any error, with changes")
    tell("   that a listener would barely notice; a test fails if any word is wrong")
    for line in _compared(guided, unguided):
        tell(f"   {line}")
    for test in guided["worst"][:1]:
        tell("\n   The worst of them:\n   " + "\n   ".join(failure_lines(test)))
        tell(f"   Replay it: {program(ctx)} replay {output / 'campaign'} {test['number']}")
    page = output / "report.html"
    write_page([CampaignData(output / name) for name in reversed(CAMPAIGNS)], page, embed=25)
    tell(f"\n5. The report with pictures and sounds: {page}")
    tell(f"\nNext, profile your own network: {program(ctx)} profile --help")
    if as_json:
        new = {"words_wrong": words_wrong, **{each.criterion.name: each.value for each in report.coverages}}
        result = {"new": new, "guided": guided, "unguided": unguided, "report": str(page)}
        say(json.dumps(result, indent=2))


def _measured(system: System, model: AbstractModel) -> tuple[CoverageReport, float, list[Any]]:
    """The coverage of new recordings, their word error rate, and the recordings without any error."""
    samples: Sequence[Any] = builtin.data(SYSTEM)
    runs = [
        run for at in range(0, len(samples), BATCH) for run in system.run([s.input for s in samples[at : at + BATCH]])
    ]
    report = cover(model, system, samples, batch_size=BATCH)
    words_wrong = jiwer.wer([str(sample.text) for sample in samples], [run.output for run in runs])
    return report, words_wrong, [s for s, run in zip(samples, runs, strict=True) if run.output == s.text]


def _campaign(
    system: System, model: AbstractModel, seeds: list[Any], spec: CampaignSpec, folder: Path, *, quiet: bool
) -> CampaignRecord:
    """A campaign in a new folder, which replaces that of an earlier demo."""
    if (folder / MARK).is_file():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        (folder / MARK).touch()
    screen = on_screen(str(folder)) if has_screen() and not quiet else nullcontext(lambda _: None)
    with screen as show:
        record = fuzz(system, model, seeds, folder=folder, spec=spec, mutations=load_mutations(spec), watch=show)
    if record.stopped == "interrupted":
        raise KeyboardInterrupt
    return record


def _compared(guided: dict[str, Any], unguided: dict[str, Any]) -> list[str]:
    def row(what: str, one: Any, other: Any) -> str:
        return f"{what:20} {one:>16} {other:>14}"

    coverage = [each["coverage"][BSCov.name] for each in (guided, unguided)]
    severities = [f"{each['severity']:.2f}" for each in (guided, unguided)]
    return [
        row("", "guided", "without guide"),
        row("failing inputs", guided["failing_inputs"], unguided["failing_inputs"]),
        row("different failures", guided["different_failures"], unguided["different_failures"]),
        row("seeds with a failure", guided["failing_seeds"], unguided["failing_seeds"]),
        row("mean severity", *severities),
        row("BSCov of the seeds", *(f"{each['start']:.2%}" for each in coverage)),
        row("BSCov of all runs", *(f"{each['executed']:.2%}" for each in coverage)),
    ]
