"""deepcruiser evaluate monitor: what a monitor of the system detects, and what simpler detectors do."""

from __future__ import annotations

import contextlib
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.cli.evaluate_options import partitions_from
from deepcruiser.cli.progress import typed, watching
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import FileError, InputError
from deepcruiser.evaluate import figures
from deepcruiser.evaluate.attack import Victim
from deepcruiser.evaluate.monitor import monitor as ask_monitor
from deepcruiser.evaluate.monitor_sets import Evidence
from deepcruiser.evaluate.result import device_of
from deepcruiser.evaluate.tables import as_json as tables_as_json
from deepcruiser.systems.builtin.speech.network import ALPHABET, RATE
from deepcruiser.systems.builtin.speech.recogniser import English
from deepcruiser.trace import System


@click.command()
@click.option("--system", required=True, metavar="FILE.py:NAME", help="The network, or a built-in one.")
@click.option("--profile", required=True, metavar="FILE", help="The profile of the network on its training data.")
@click.option(
    "--clean", multiple=True, required=True, metavar="PATH", help="Held-out clean data to calibrate on; repeatable."
)
@click.option("--data", multiple=True, required=True, metavar="PATH", help="Test data with texts; repeatable.")
@click.option("--far", multiple=True, metavar="NAME=PATH", help="Recordings unlike the profiled ones; repeatable.")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Where the answer and the work go.")
@click.option("--partitions", default="20,10,50,100", show_default=True, help="The grids, the main one first.")
@click.option("--components", default=3, show_default=True, help="Components of the profile that are used.")
@click.option("--inputs", default=600, show_default=True, help="The most inputs of a set of recordings.")
@click.option("--attacks", default=60, show_default=True, help="Attacked recordings; the recogniser in the box only.")
@click.option("--wer-above", default=0.3, show_default=True, help="A larger word error rate is a wrong answer.")
@click.option("--alarm-rate", default=0.01, show_default=True, help="The alarm rate to calibrate.")
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@click.pass_context
def monitor(
    ctx: click.Context,
    /,
    system: str,
    profile: str,
    clean: tuple[str, ...],
    data: tuple[str, ...],
    far: tuple[str, ...],
    output: str,
    partitions: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how well a monitor detects wrong answers, strange recordings, failing mutants and attacks.

    The baselines are the system's doubt, a Gaussian on the states, and chance. Where espeak-ng is installed, it makes
    speech in other languages, and speaks the transcripts of attacked recordings.
    """
    figures.check_matplotlib()
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to the folder {output!r}: {(error.strerror or str(error)).lower()}") from None
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():  # systems may print
        network = system_from(system)
        with watching() as watch:
            answer = ask_monitor(
                Evidence(
                    system=network,
                    profile=Profile.load(profile),
                    clean=_all(clean),
                    tests=_all(data),
                    far=dict(map(_named, far)),
                    folder=Path(output),
                    victim=_victim(network),
                    partitions=partitions_from(partitions),
                    watch=watch,
                    **options,
                )
            )
        where = answer.write(Path(output), command=typed(ctx), seed=options["seed"], device=device_of(network))
    if as_json:
        click.echo(json.dumps({"question": answer.name, **tables_as_json(answer.tables)}, indent=2))
        return
    for table in answer.tables:
        click.echo(f"{table.caption}\n{table.markdown()}".lstrip())
    click.echo(f"written to {where}, with the tables (.csv) and the figure (.svg, .png) beside it")


def _all(paths: tuple[str, ...]) -> list[Any]:
    return list(chain.from_iterable(map(data_from, paths)))


def _named(given: str) -> tuple[str, Any]:
    name, equals, path = given.partition("=")
    if not (name and equals and path):
        raise InputError(f"--far {given!r} is not a name and a path; use noise=recordings/noise")
    return name, data_from(path)


def _victim(system: System) -> Victim | None:
    """The recogniser in the box with its gradients; no other system is attacked."""
    return Victim(system.net, ALPHABET, RATE, system.fingerprint) if isinstance(system, English) else None
