"""Messages that several commands print."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click

from deepcruiser.cli.output import say


def print_skipped(skipped: Mapping[str, str]) -> None:
    """Name the inputs that were left out."""
    if skipped:
        say(f"left out {len(skipped):,} inputs that could not be read:", err=True)
        for name, reason in list(skipped.items())[:10]:
            say(f"  {name}: {reason}", err=True)
        if len(skipped) > 10:
            say(f"  and {len(skipped) - 10:,} more (--json lists all of them)", err=True)


def program(ctx: click.Context) -> str:
    """The name that the program was started by: `deepcruiser` or `python -m deepcruiser`."""
    name = ctx.find_root().info_name or ""
    return name if name.startswith("python") else "deepcruiser"


def typed(ctx: click.Context) -> str:
    """The command line as it was typed."""
    return f"{program(ctx)} {shlex.join(ctx.obj)}"
