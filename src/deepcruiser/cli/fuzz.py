"""deepcruiser fuzz: look for inputs that a system gets wrong."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from deepcruiser.campaign.database import DATABASE
from deepcruiser.campaign.fuzz import fuzz as fuzz_system
from deepcruiser.campaign.guide import KEEP
from deepcruiser.campaign.learned import AIMS
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.scheduler import PICK
from deepcruiser.campaign.spec import SCHEDULERS, CampaignSpec, Component, guide_component
from deepcruiser.cli import options
from deepcruiser.cli.campaign_options import (
    build_oracle,
    judging_options,
    load_against,
    load_data,
    load_model,
    load_mutations,
    moving_options,
    paper_options,
    spec_from,
)
from deepcruiser.cli.campaign_workers import campaign_workers
from deepcruiser.cli.gates import exit_status, gate_options, spacing_line
from deepcruiser.cli.options import Fraction
from deepcruiser.cli.output import INTERRUPTED, output_for, program, say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.resolve import guide_from, system_from
from deepcruiser.cli.summary import as_text, status_dict, summary
from deepcruiser.cli.workers import cluster as cluster_option
from deepcruiser.errors import DeepCruiserError
from deepcruiser.findings.cluster import find, spacing_only
from deepcruiser.report.terminal import Past, Watch, has_screen, lines, on_screen
from deepcruiser.transformations.severity import LEVELS, budget
from deepcruiser.workers import one_thread

#: The headings of the help, with the parameters under each.
GROUPS = {
    "Data": ("system", "data", "leave_out"),
    "Model": ("profile", "partitions", "input_partitions", "model"),
    "Oracle": (
        "wer_above",
        "cer_above",
        "disagreement",
        "spans_below",
        "tolerance",
        "keywords",
        "sdr_below",
        "oracle",
        "against",
        "against_system",
        "normalise",
    ),
    "Mutations": ("transformations", "noise", "ranges", "mutations", "severity", "no_validity"),
    "Search": (
        "guide",
        "keep",
        "scheduler",
        "aim",
        "pick",
        "keep_failing_seeds",
        "paper",
        "seed",
        "batch_size",
        "window",
    ),
    "Budget": ("minutes", "runs", "until_coverage", "limit_seconds", "device", "workers", "cluster"),
    "Output": ("output", "plain", "quiet", "verbose", "serve", "as_json_lines", "max_findings", "max_wrong_seeds"),
}


@click.command(cls=ProjectCommand, groups=GROUPS, context_settings={"show_default": True})
@options.system
@options.data("The seeds: a corpus on disk, or FILE.py:NAME. Built-in systems bring their own.", required=False)
@click.option(
    "--leave-out",
    metavar="FILE",
    help="Seeds not to use: a file with a name per line, or a table that `deepcruiser seeds` wrote.",
)
@options.model_source
@options.output("The campaign's folder; an existing campaign in it is resumed.", metavar="FOLDER")
@click.option("--guide", default="BSCov", help="Keep mutants that increase these criteria.")
@click.option(
    "--keep",
    type=click.Choice(KEEP),
    help="Keep mutants that increase the criteria or come nearer to failing, the same number at random, or none.  "
    f"[default: {KEEP[0]}]",
)
@click.option(
    "--severity",
    default="normal",
    metavar="LEVEL",
    help="Limit of changes to a mutant: mild, normal, hard, unlimited or a number.",
)
@judging_options
@moving_options
@click.option("--minutes", type=click.FloatRange(min=0), help="Stop after this many minutes from now.")
@click.option("--runs", type=click.IntRange(min=0), help="Stop after this many runs, including earlier sessions.")
@click.option(
    "--until-coverage", type=Fraction(), help="Stop when the queue covers this fraction of the first criterion."
)
@click.option("--scheduler", default="learned", type=click.Choice(SCHEDULERS), help="How the next mutant is chosen.")
@click.option("--aim", default="balanced", type=click.Choice(AIMS), help="What the scheduler `learned` looks for.")
@click.option(
    "--pick",
    default="thompson",
    type=click.Choice(list(PICK)),
    help="How the transformation is chosen, with a --scheduler that makes one change at a time.",
)
@click.option("--no-validity", is_flag=True, show_default=False, help="Run invalid mutants too.")
@click.option(
    "--keep-failing-seeds", is_flag=True, show_default=False, help="Also use seeds that the system already gets wrong."
)
@click.option("--paper", is_flag=True, show_default=False, help="Run the paper's Algorithm 1 exactly; see above.")
@click.option("--seed", default=0, type=click.IntRange(min=0), help="Random seed.")
@click.option("--batch-size", default=16, type=click.IntRange(min=1), help="Number of mutants run at a time.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    help="Number of runs by which planning is ahead of the results.  [default: two batches; one run with "
    "--batch-size 1]",
)
@options.device
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Number of processes that make and run mutants; affects only the speed.  [default: as many as have work]",
)
@cluster_option
@gate_options
@click.option("--plain", is_flag=True, help="Print lines instead of the status screen.", show_default=False)
@options.quiet
@click.option("-v", "--verbose", is_flag=True, show_default=False, help="Print a line for every run; with --plain.")
@click.option(
    "--serve",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=0,
    metavar="[PORT]",
    help="Serve the live report to browsers on this machine while the campaign runs.",
)
@click.option(
    "--json",
    "as_json_lines",
    is_flag=True,
    help="Print a JSON object for each batch, then one for the campaign.",
    show_default=False,
)
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    output: Path,
    guide: str,
    keep: str | None,
    scheduler: str,
    aim: str,
    pick: str,
    paper: bool,
    device: str,
    workers: int | None,
    cluster: str | None,
    plain: bool,
    quiet: bool,
    verbose: bool,
    serve: int | None,
    max_findings: int | None,
    max_wrong_seeds: float | None,
    as_json_lines: bool,
    **settings: Any,
) -> None:
    """Look for inputs that a system gets wrong.

    \b
    deepcruiser fuzz --system asr.py:system --profile asr.profile --partitions 20 --data seeds/ \\
                     --guide BSCov --wer-above 0.3 --minutes 30 -o runs/asr

    Transforms the seeds in ways that keep their meaning, keeps the mutants that increase coverage, and saves those that
    fail. Stops after --minutes, after --runs, at --until-coverage, when nothing is left to try, or at Ctrl-C; without
    any of these options it runs until Ctrl-C. The same command resumes where it stopped.

    --guide is a criterion (BSCov, 2-SBCov, BTCov, ISCov, WICov) or several, separated by commas: a mutant that
    increases one of them is kept, and so is one that comes nearer to failing than the test that it was made from.
    --keep coverage keeps only the former. There are two baselines: --keep none keeps nothing, and --keep random keeps
    as many mutants as the guide would, chosen at random. Both only measure the criteria; `--guide none` is short for
    --keep none. Systems without states can use the baselines without --profile or --model, which then measure nothing.

    --scheduler learned draws a few mutants for each run and takes the most promising one, using what it has learned so
    far. Its --aim is distinct failures, seeds with a failure, coverage, or a balance of the three. chains makes one to
    three random changes to a random test. uniform, recent, decay and rarity make one change at a time.

    --system also takes a program, as "process: ./my-recogniser --json": it reads a JSON line for each input,
    {"wav": "path of a WAV file", ...}, and answers with one, {"text": "the transcript"}.

    --paper is exactly the paper's Algorithm 1: --batch-size 1 --window 1 --scheduler uniform --pick uniform
    --keep coverage --severity unlimited --no-validity --keep-failing-seeds --normalise case, and as many
    --input-partitions as --partitions. The paper does not say how tests are selected: --paper --scheduler decay is
    another reading.

    Exit status: 0 no failing tests, or at most --max-findings findings; 1 failing tests; 2 usage error; 3 unexpected
    error; 4 the system gets more seeds wrong than --max-wrong-seeds; 130 interrupted before the campaign began, or
    twice.
    """
    settings |= {"guide": guide, "scheduler": scheduler, "pick": pick, "keep": keep}
    settings = paper_options(ctx, settings) if paper else settings
    settings["severity"] = settings["severity"] if settings["severity"] in LEVELS else budget(settings["severity"])
    chosen = guide_from(settings.pop("guide"), settings.pop("keep"))
    spec = spec_from(scheduler=_scheduler(ctx, settings.pop("scheduler"), aim, settings.pop("pick")), **settings)
    with output_for(as_json_lines) as out:
        oracle, mutations, data = build_oracle(spec), load_mutations(spec), load_data(spec)
        model, system = load_model(spec, needed=chosen.needs_model), system_from(spec.system or "", device=device)
        chosen = chosen if model is not None else chosen.without_model()
        spec = replace(spec, guide=guide_component(chosen))
        if spec.minutes is None and spec.runs is None and spec.until_coverage is None:
            say(
                "no --minutes, --runs or --until-coverage: running until you press Ctrl-C, which saves and stops",
                err=True,
            )
        try:
            campaign_processes = campaign_workers(system, model, mutations, spec, workers, cluster, device=device)
            with (
                one_thread(),
                _serving(output, serve) as url,
                _watching(
                    output, out, url, plain=plain or verbose, quiet=quiet, verbose=verbose, as_json_lines=as_json_lines
                ) as show,
            ):
                record = fuzz_system(
                    system,
                    model,
                    data,
                    folder=output,
                    spec=spec,
                    guide=chosen,
                    oracle=oracle,
                    against=load_against(spec, device=device),
                    mutations=mutations,
                    leave_out=_left_out(spec.leave_out),
                    workers=campaign_processes,
                    watch=show,
                )
        except KeyboardInterrupt:
            command = spec.command_line(str(output), program=program(ctx))
            say(f"Interrupted. Everything reported so far is saved. Resume with: {command}", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
    result = summary(record)
    if as_json_lines:
        say(json.dumps({"type": "summary", **result}), file=out)
    else:
        say(as_text(result))
        say(_next_steps(record, spec, output, program(ctx)))
    if (spacing := spacing_only(record)) and not as_json_lines:
        say(spacing_line(spacing))
    count = 0 if max_findings is None else len(find(record).findings)
    status, reason = exit_status(record, count, max_findings=max_findings, max_wrong_seeds=max_wrong_seeds)
    if reason:
        say(reason, err=True)
    raise click.exceptions.Exit(status)


def _scheduler(ctx: click.Context, name: str, aim: str, pick: str) -> Component:
    """The scheduler; an option that it does not have is refused."""
    own = {"learned": "aim", "chains": ""}.get(name, "pick")
    for option in {"aim", "pick"} - {own}:
        if ctx.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} cannot be combined with --scheduler {name}: leave one out")
    return Component(name, {"aim": {"aim": aim}, "pick": {"pick": pick}}.get(own, {}))


def _next_steps(record: CampaignRecord, spec: CampaignSpec, output: Path, name: str) -> str:
    lines = []
    if record.failed:
        lines.append(f"group them by cause: {name} findings {output}")
        lines.append(f"replay one: {name} replay {output} {record.failed[0].number}")
        lines.append(
            f"see {'and hear ' if any((output / 'failed').glob('*.flac')) else ''}them: {name} report {output}"
        )
    more = " (with more --runs)" if spec.runs is not None and len(record.runs) >= spec.runs else ""
    return "\n".join([*lines, f"resume: {spec.command_line(str(output), program=name)}{more}"])


def _left_out(path: str | None) -> list[str]:
    """The names of the seeds that the file of --leave-out names."""
    if path is None:
        return []
    from deepcruiser.report.seed_listing import read_choice

    return read_choice(path)


def _serving(folder: Path, port: int | None) -> AbstractContextManager[str]:
    """The live page, as its URL; empty without --serve."""
    if port is None:
        return contextlib.nullcontext("")
    from deepcruiser.report.server import serving

    return serving(folder, port)


@contextmanager
def _watching(
    folder: Path, out: Any, url: str, *, plain: bool, quiet: bool, verbose: bool, as_json_lines: bool
) -> Iterator[Watch]:
    if url:
        say(f"live page, for this machine: {url}", err=True)
    past: Past = ()
    if (folder / DATABASE).is_file():
        from deepcruiser.report.coverage_history import CoverageHistory

        with contextlib.suppress(DeepCruiserError):  # resuming will say why
            stored = CampaignRecord.open(folder)
            past = CoverageHistory(stored, stored.spec.build_guide().criteria).moments
    if as_json_lines:
        yield lambda status: say(json.dumps(status_dict(status)), file=out)
    elif quiet:
        yield lambda _: None
    elif plain or not has_screen():
        yield lines(lambda line: say(line, err=True), folder, past, every_run=verbose)
    else:
        with on_screen(url or os.fspath(folder), past) as watch:
            yield watch
