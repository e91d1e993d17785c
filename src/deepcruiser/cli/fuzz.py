"""deepcruiser fuzz: look for inputs that a system gets wrong."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import click

from deepcruiser.campaign.fuzz import fuzz as fuzz_system
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.scheduler import SELECT
from deepcruiser.campaign.store import DATABASE, Store
from deepcruiser.cli.ingredients import WER_ABOVE, Ingredients
from deepcruiser.cli.progress import program, typed
from deepcruiser.cli.resolve import guide_from
from deepcruiser.cli.summary import as_text, batch, summary
from deepcruiser.errors import DeepCruiserError, InputError
from deepcruiser.report.server import serving
from deepcruiser.report.terminal import Past, Watch, has_screen, lines, on_screen


class Share(click.ParamType[float]):
    """0.6 or 60%."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{text!r} is no share: 0.6 or 60% is one", param, ctx)
        if not 0 < share <= 1:
            self.fail(f"{text!r} is not above 0 and up to 1: write 0.6 or 60%", param, ctx)
        return share


@click.command(context_settings={"show_default": True})
@click.option("--system", required=True, metavar="FILE.py:NAME", help="The network under test, or a built-in one.")
@click.option("--data", metavar="PATH", help="Seeds: a corpus on disk, or FILE.py:NAME. A built-in system brings some.")
@click.option("--profile", help="The profile of the network.")
@click.option("--partitions", type=int, help="Intervals per component of the states; with --profile.")
@click.option("--input-partitions", default=10, help="The same of the inputs; with --profile.")
@click.option("--model", help="A saved model, instead of a profile and partitions.")
@click.option("-o", "--output", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The campaign.")
@click.option(
    "--guide", default="BSCov", help="Criteria that keep a mutant, or the baselines random and none; see above."
)
@click.option("--wer-above", type=float, help=f"A word error rate above this is a failure.  [default: {WER_ABOVE}]")
@click.option("--cer-above", type=float, help="A character error rate above this is.")
@click.option("--disagreement", is_flag=True, help="Any other answer is: for classifiers.", show_default=False)
@click.option("--spans-below", type=float, help="Spans that overlap with the seed's by less are: for detectors.")
@click.option(
    "--against",
    type=click.Choice(["text", "output"]),
    help="What is right: the seed's text, or the answer to the seed.  [default: the text where there is one]",
)
@click.option("--minutes", type=click.FloatRange(min=0), help="Stop after so long, counted from now.")
@click.option("--runs", type=click.IntRange(min=0), help="Stop after so many runs, those of earlier times included.")
@click.option("--until-coverage", type=Share(), help="Stop when the queue covers 0.6, or 60%, of the first criterion.")
@click.option("--transformations", metavar="NAMES", help="Which ones, or all.  [default: the nine of the paper]")
@click.option("--noise", metavar="FOLDER", help="Recordings for AddBackgroundNoise, which this turns on.")
@click.option(
    "--range", "ranges", multiple=True, metavar="RANGE", help="Such as AddWhiteNoise.snr_db=25,40; repeatable."
)
@click.option("--mutations", metavar="NAME", help="For inputs that are no sound: text, series, or FILE.py:NAME.")
@click.option("--select", default="rarity", type=click.Choice(list(SELECT)), help="How the test to mutate is chosen.")
@click.option("--pick", default="thompson", type=click.Choice(["uniform", "thompson"]), help="And the transformation.")
@click.option("--seed", default=0, help="Of all that is drawn.")
@click.option("--batch-size", default=16, type=click.IntRange(min=1), help="Mutants run at a time.")
@click.option(
    "--workers", type=click.IntRange(min=0), help="Processes that make mutants.  [default: one for every two cores]"
)
@click.option(
    "--limit-seconds",
    default=60.0,
    type=click.FloatRange(min=0),
    help="For a batch, or else it is a time-out; 0: none.",
)
@click.option("--plain", is_flag=True, help="Lines instead of the screen.", show_default=False)
@click.option(
    "--serve",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=0,
    metavar="[PORT]",
    help="Show the report in a browser of this machine, while it grows.",
)
@click.option(
    "--json", "as_json_lines", is_flag=True, help="A JSON object for each batch, then one for all.", show_default=False
)
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    output: Path,
    guide: str,
    minutes: float | None,
    runs: int | None,
    until_coverage: float | None,
    select: str,
    pick: str,
    seed: int,
    batch_size: int,
    workers: int | None,
    plain: bool,
    serve: int | None,
    as_json_lines: bool,
    **given: Any,
) -> None:
    """Look for inputs that a system gets wrong.

    \b
    deepcruiser fuzz --system asr.py:system --profile asr.profile --partitions 20 --data seeds/ \\
                     --guide BSCov --wer-above 0.3 --minutes 30 -o runs/asr

    Transforms the seeds in ways that keep what is said, keeps what increases coverage, and saves what fails. Stops
    after --minutes, after --runs, at --until-coverage, when nothing is left to try, or at Ctrl-C; without any of these
    options it runs until Ctrl-C. The same command goes on where it stopped.

    --guide is a criterion (BSCov, 2-SBCov, BTCov, ISCov, WICov) or several with commas: what increases one of them is
    kept. Baselines: none keeps nothing, random keeps as many mutants as the guide would, but any. Both measure BSCov,
    or the criteria behind a comma: none,2-SBCov. They need no --profile or --model, for systems that show no states.

    --system takes any program as "process: ./my-recogniser --json": it reads a JSON line for each input,
    {"wav": "path of a WAV file", ...}, and answers with one, {"text": "what it heard"}.

    Exit status: 0 no failing tests, 1 failing tests were found, 2 wrong use, 130 interrupted before it
    began, or twice.
    """
    ingredients, chosen = Ingredients(**given).complete(), guide_from(guide)
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr) if as_json_lines else contextlib.nullcontext():  # systems may print
        oracle, mutations, data = ingredients.oracle(), ingredients.load_mutations(), ingredients.load_data()
        model, system = ingredients.load_model(needed=chosen.keep == "guided"), ingredients.load_system()
        chosen = chosen if model is not None else chosen.unmeasured()
        workers = workers_for(mutations, workers)
        if minutes is None and runs is None and until_coverage is None:
            click.echo(
                "no --minutes, --runs or --until-coverage: running until Ctrl-C, which saves and stops", err=True
            )
        try:
            page = contextlib.nullcontext("") if serve is None else serving(output, serve)
            with page as url, _watching(output, out, url, plain=plain, as_json_lines=as_json_lines) as show:
                campaign = fuzz_system(
                    system,
                    model,
                    data,
                    folder=output,
                    guide=chosen,
                    oracle=oracle,
                    mutations=mutations,
                    select=select,
                    pick=pick,
                    minutes=minutes,
                    runs=runs,
                    until_coverage=until_coverage,
                    seed=seed,
                    batch_size=batch_size,
                    workers=workers,
                    limit_seconds=ingredients.limit,
                    watch=ingredients.remembered(show, output, command=typed(ctx)),
                )
        except KeyboardInterrupt:
            click.echo(f"interrupted within a batch: what was told is saved; to go on: {typed(ctx)}", err=True)
            sys.exit(130)
    found = summary(campaign, chosen)
    if as_json_lines:
        click.echo(json.dumps({"type": "summary", **found}), file=out)
    else:
        click.echo(as_text(found))
        if found["worst"]:
            click.echo(f"to run one again: {program(ctx)} replay {output} {found['worst'][0]['number']}")
            click.echo(f"to see and hear them: {program(ctx)} report {output}")
        click.echo(
            f"to go on: {typed(ctx)}" + (" (with more --runs)" if runs is not None and found["runs"] >= runs else "")
        )
    sys.exit(1 if found["failing_tests"] else 0)


def workers_for(mutations: Mutations, workers: int | None) -> int | None:
    """As many as asked for, or none if what makes the mutants cannot be sent to other processes."""
    try:
        ForkingPickler.dumps((mutations.kinds, mutations.invalid))
    except Exception as error:  # whatever the user's objects raise
        if workers:
            raise InputError(
                f"the mutations cannot be sent to other processes ({error}): define them at the top level of a file "
                "whose name is not that of another module, or give --workers 0"
            ) from None
        click.echo(f"mutants are made in this process, since they cannot be sent to others ({error})", err=True)
        return 0
    return workers


@contextmanager
def _watching(folder: Path, out: Any, url: str, *, plain: bool, as_json_lines: bool) -> Iterator[Watch]:
    if url:
        click.echo(f"live page, for this machine: {url}", err=True)
    past: Past = ()
    if (folder / DATABASE).is_file():
        with contextlib.suppress(DeepCruiserError), Store.open(folder, write=False) as store:  # going on will say why
            past = store.history()
    if as_json_lines:
        yield lambda status: click.echo(json.dumps(batch(status)), file=out)
    elif plain or not has_screen():
        yield lines(lambda line: click.echo(line, err=True), past)
    else:
        with on_screen(url or os.fspath(folder), past) as watch:
            yield watch
