"""The command line: one file per command, imported when the command is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from deepcruiser import __version__
from deepcruiser.cli.output import INTERRUPTED, end_with_status, say

#: The commands in the order of their use, with the short help that the list of commands shows. The command `x-y` is
#: the object `x_y` in the module `cli/x_y.py`.
COMMANDS = {
    "init": "Write a project file for a network, so that commands need no options.",
    "demo": "Profile, cover and fuzz a speech recogniser, and write a report.",
    "profile": "Record the states that a network goes through on its training data.",
    "cover": "Measure how much of the abstract model a data set reaches.",
    "monitor": "Find inputs whose states leave the region that training visited.",
    "seeds": "List seeds to choose from, by quality and by how near they are to a failure.",
    "fuzz": "Look for inputs that a system gets wrong.",
    "replay": "Run failing tests of a campaign again.",
    "findings": "Group the failing tests of a campaign by cause.",
    "shrink": "Find the mildest recipes that still fail.",
    "history": "Compare the findings of versions of a network.",
    "report": "Show what campaigns found, on one page.",
    "export": "Write an abstract model to a file, or tests of a campaign.",
    "minimise": "Find a small part of a test set that covers as much as the whole.",
    "prioritise": "Order a pool of inputs so that failures come first.",
    "evaluate": "Answer the paper's research questions for a system.",
    "status": "Show the progress of a campaign.",
    "list": "List transformations, systems, criteria or schedulers.",
    "doctor": "Check the installation.",
    "transcribe": "Transcribe recordings with the built-in recogniser.",
}
#: Commands that write their only file at the end.
_WRITE_AT_THE_END = ("profile", "cover")


class Commands(click.Group):
    """A group that imports a command when it is called, and whose errors are one line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]  # `list` is a command here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"deepcruiser.cli.{name}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no such command {args[0]!r}{hint}", error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        # The command line as it was typed, for messages that say how to resume.
        options.setdefault("obj", [*(sys.argv[1:] if args is None else args)])
        options["standalone_mode"] = False
        end_with_status(lambda: super(Commands, self).main(args, *rest, **options))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            untouched = ctx.invoked_subcommand in _WRITE_AT_THE_END
            say("interrupted: nothing was written" if untouched else "interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="deepcruiser")
def main() -> None:
    """Coverage criteria and coverage-guided testing for recurrent neural networks.

    \b
    deepcruiser demo                                   try everything on a built-in recogniser
    deepcruiser profile --system asr.py:system --data train/ -o asr.profile
    deepcruiser cover   --system asr.py:system --data test/ --profile asr.profile --partitions 20
    deepcruiser monitor --system asr.py:system --data live/ --model asr.model --calibrate dev/
    deepcruiser seeds   --system asr.py:system --data seeds/ -o seeds.html
    deepcruiser fuzz    --system asr.py:system --data seeds/ --profile asr.profile --partitions 20 -o runs/asr
    deepcruiser replay  runs/asr 7
    deepcruiser report  runs/asr
    deepcruiser evaluate rq3 --system asr.py:system --data seeds/ --profile asr.profile -o results

    A profile records the states that a trained network goes through on (part of) its training data. Divided into cells,
    it becomes an abstract model; coverage is how much of that model a test set reaches. A campaign transforms tests in
    ways that keep their meaning, keeps those that reach more of the model, and saves those that the network gets wrong.

    Exit status: 0 done, 1 failing tests were found (fuzz, replay), 2 usage error or unusable input, 3 unexpected error,
    such as a network that raises one (the message says where the details are), 4 the system gets too many seeds wrong
    (fuzz, findings), 130 interrupted.
    """
