"""The command line: one file per command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from deepcruiser.cli.cover import cover
from deepcruiser.cli.demo import demo
from deepcruiser.cli.evaluate import evaluate
from deepcruiser.cli.export import export
from deepcruiser.cli.fuzz import fuzz
from deepcruiser.cli.language_model import language_model
from deepcruiser.cli.profile import profile
from deepcruiser.cli.replay import replay
from deepcruiser.cli.report import report
from deepcruiser.cli.transcribe import transcribe
from deepcruiser.errors import DeepCruiserError


class Commands(click.Group):
    """The commands in the order of their use, and every error of ours in one line with exit status 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        options.setdefault("obj", list(sys.argv[1:] if args is None else args))  # to be told how to go on
        try:
            return super().main(args, *rest, **options)
        except DeepCruiserError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            untouched = ctx.invoked_subcommand in ("profile", "cover", "export", "language-model")
            click.echo("interrupted: nothing was written" if untouched else "interrupted", err=True)
            sys.exit(130)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="deepcruiser")
def main() -> None:
    """Coverage and guided testing for recurrent neural networks: what did the state go through?

    \b
    deepcruiser demo                                   see it at work, nothing needed
    deepcruiser profile --system asr.py:system --data train/ -o asr.profile
    deepcruiser cover   --system asr.py:system --data test/ --profile asr.profile --partitions 20
    deepcruiser fuzz    --system asr.py:system --data seeds/ --profile asr.profile --partitions 20 -o runs/asr
    deepcruiser replay  runs/asr 7
    deepcruiser report  runs/asr
    deepcruiser evaluate rq3 --system asr.py:system --data seeds/ --profile asr.profile -o results

    A profile records where the state of a trained network goes on (part of) its training data. Cut into cells,
    it is an abstract model; coverage is how much of that model a test set reaches. A campaign transforms tests in ways
    that keep their meaning, keeps those that reach more, and saves those that the network gets wrong.

    Exit status: 0 done, 1 failing tests were found (fuzz, replay), 2 wrong use or unusable input, 130 interrupted.
    """


for command in (demo, profile, cover, fuzz, replay, report, export, evaluate, transcribe, language_model):
    main.add_command(command)
