"""deepcruiser evaluate monitor: what a monitor of the system detects, compared with simpler detectors."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepcruiser.cli import options
from deepcruiser.cli.evaluate_options import partitions_from, show_answer
from deepcruiser.cli.output import output_for, typed
from deepcruiser.errors import FileError, InputError, reason
from deepcruiser.progress import watching

if TYPE_CHECKING:  # imported when the question is asked
    from deepcruiser.evaluate.attack import Victim
    from deepcruiser.trace import System


@click.command()
@options.system
@click.option("--profile", required=True, metavar="FILE", help="The profile of the network on its training data.")
@click.option(
    "--clean", multiple=True, required=True, metavar="PATH", help="Held-out clean data to calibrate on; repeatable."
)
@options.data("Test data with texts; repeatable.", multiple=True)
@click.option("--far", multiple=True, metavar="NAME=PATH", help="Recordings unlike the profiled ones; repeatable.")
@options.output("Folder for the results and the cached runs.", metavar="FOLDER")
@click.option("--partitions", default="20,10,50,100", show_default=True, help="The grids, the main one first.")
@options.input_partitions(", for all grids")
@click.option("--components", default=3, show_default=True, help="Number of components of the profile to use.")
@click.option(
    "--inputs", default=600, show_default=True, help="Maximum number of inputs per set, and of runs of the campaign."
)
@click.option("--attacks", default=60, show_default=True, help="Number of attacks on the built-in recogniser.")
@click.option(
    "--wer-above", default=0.3, show_default=True, help="Count an answer as wrong if its word error rate exceeds this."
)
@click.option("--alarm-rate", default=0.01, show_default=True, help="The share of clean inputs that raise an alarm.")
@options.seed
@options.device
@options.json_output("Print the tables as JSON.")
@click.pass_context
def monitor(
    ctx: click.Context,
    /,
    system: str,
    profile: str,
    clean: tuple[str, ...],
    data: tuple[str, ...],
    far: tuple[str, ...],
    output: Path,
    partitions: str,
    device: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Measure how well a monitor detects wrong answers, strange recordings, failing mutants and attacks.

    The baselines are the system's doubt, a Gaussian on the states, and chance. Where espeak-ng is installed, it makes
    speech in other languages, and speaks the transcripts of attacked recordings.
    """
    from deepcruiser.abstraction.profile import Profile
    from deepcruiser.cli.resolve import system_from
    from deepcruiser.evaluate import figures
    from deepcruiser.evaluate.monitor import monitor as ask_monitor
    from deepcruiser.evaluate.monitor_sets import Evidence
    from deepcruiser.evaluate.result import device_of

    figures.check_matplotlib()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to the folder {str(output)!r}: {reason(error)}") from None
    with output_for(as_json):
        network = system_from(system, device=device)
        with watching() as watch:
            answer = ask_monitor(
                Evidence(
                    system=network,
                    profile=Profile.load(profile),
                    clean=_all(clean),
                    tests=_all(data),
                    far=dict(map(_named, far)),
                    folder=output,
                    victim=_victim(network),
                    partitions=partitions_from(partitions),
                    watch=watch,
                    **settings,
                )
            )
        path = answer.write(output, command=typed(ctx), seed=settings["seed"], device=device_of(network))
    show_answer(answer, path, as_json=as_json)


def _all(paths: tuple[str, ...]) -> list[Any]:
    from deepcruiser.cli.resolve import data_from

    return list(chain.from_iterable(map(data_from, paths)))


def _named(text: str) -> tuple[str, Any]:
    from deepcruiser.cli.resolve import data_from

    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise InputError(f"--far {text!r} is not a name and a path; use noise=recordings/noise")
    return name, data_from(path)


def _victim(system: System) -> Victim | None:
    """The built-in recogniser with its gradients; no other system is attacked."""
    from deepcruiser.evaluate.attack import Victim
    from deepcruiser.systems.builtin.speech.network import ALPHABET, RATE
    from deepcruiser.systems.builtin.speech.recogniser import English

    return Victim(system.net, ALPHABET, RATE, system.fingerprint) if isinstance(system, English) else None
