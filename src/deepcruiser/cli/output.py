"""How commands print and end: an error is one line, and each kind of error has an exit status of its own."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import IO, Any

import click

from deepcruiser.errors import DeepCruiserError, FileError, described, printable_lines, printable_warnings, reason

#: The exit statuses, besides 0 (done) and 1 (failing tests).
WRONG_USE, UNEXPECTED, WRONG_SEEDS, INTERRUPTED, CLOSED = 2, 3, 4, 130, 141


def say(text: object, *, err: bool = False, file: IO[str] | None = None) -> None:
    """Print lines that are safe on every terminal, whatever files, networks or programs put into them."""
    out = file or (sys.stderr if err else sys.stdout)
    encoding = getattr(out, "encoding", None) or "utf-8"
    line = printable_lines(str(text)).encode(encoding, "backslashreplace").decode(encoding)
    try:
        click.echo(line, file=out)
    except BrokenPipeError:
        raise
    except OSError as error:
        _mute()
        raise FileError(f"cannot write to the standard {'error' if err else 'output'}: {reason(error)}") from None


@contextmanager
def output_for(as_json: bool) -> Iterator[IO[str]]:
    """Standard output; with `as_json` it is for the JSON alone, and what systems print goes to standard error."""
    out = sys.stdout
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        yield out


def end_with_status(command: Callable[[], Any]) -> None:
    """Run a command and end with its exit status; each kind of error becomes one line and a separate status."""
    stdout = sys.stdout
    formatted = printable_warnings()
    try:
        status = command()
    except click.ClickException as error:
        ctx, message = getattr(error, "ctx", None), error.format_message()
        if ctx is not None:
            say(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n", err=True)
        status = _fail(message[:1].lower() + message[1:].removesuffix("."))
    except DeepCruiserError as error:
        status = _fail(str(error))
    except (KeyboardInterrupt, click.Abort):
        status = _fail("interrupted", word="", status=INTERRUPTED)
    except OSError as error:
        names = f"{error.filename!r}" if error.filename else "a file"
        status = _fail(f"cannot use {names}: {reason(error)}")
    except BaseException as error:  # also sys.exit() in a user's code; nothing here calls it
        if isinstance(error, SystemExit) and sys.stdout is not stdout:
            sys.exit(CLOSED)  # as in `deepcruiser report | head`; click replaced the output and would exit with 1
        status = _fail(f"{described(error)}; this is unexpected: {_details()}", status=UNEXPECTED)
    finally:
        warnings.formatwarning = formatted
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, *, word: str = "error: ", status: int = WRONG_USE) -> int:
    try:
        say(word + message, err=True)
    except (OSError, DeepCruiserError):  # only the exit status is left to report it
        _mute()
    return status


def _details() -> str:
    """Write the traceback to a file, and say where."""
    import tempfile  # needed here only
    import traceback

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="deepcruiser-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(traceback.format_exc())
    except Exception as error:
        return f"its details could not be written ({described(error)})"
    return f"the details are in {file.name}"


def _mute() -> None:
    """Stop all further output; otherwise the interpreter would try again at exit, fail and change the status."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError, AttributeError):  # not a file, as in tests
            continue
    os.close(nowhere)


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
