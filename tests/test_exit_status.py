"""How commands end: one line and a separate status for each kind of error, and no control characters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.cli.output import say
from deepcruiser.errors import printable_lines

FILE = """
import sys
import deepcruiser as dc

class System:
    def run(self, batch):
        {run}

class NoTextError(Exception):
    def __str__(self):
        raise ValueError("no text")

class Words:
    def __init__(self, text):
        self.id, self.input, self.text = "seed \\x1b[2J " + text, text, text

def echo(batch):
    return [dc.Run(text) for text in batch]

def nested(depth):
    answer = 0
    for _ in range(depth):
        answer = [answer]
    return answer

{line}
system = System()
data = [Words("open the door"), Words("close the window")]
mutations = dc.Mutations.text()
"""


def fuzz(folder: Path, *, run: str = "return echo(batch)", line: str = "", system: str = "system") -> Result:
    (folder / "own.py").write_text(FILE.format(run=run, line=line))
    own = f"{folder}/own.py"
    options = f"--data {own}:data --mutations {own}:mutations --guide none --disagreement --workers 0 --runs 8 --plain"
    arguments = ["fuzz", "--system", f"{own}:{system}", *options.split(), "-o", str(folder / "run")]
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sys.exit(0)", "could not be run: SystemExit: 0 (line 26)"),
        ("raise NoTextError", "its message cannot be shown, as that raises ValueError (line 26)"),
        ("def system_of(): raise KeyError('weights')", "could not be run: KeyError: 'weights' (line 26)"),
        ("def system_of(): sys.exit(0)", "could not be run: SystemExit: 0 (line 26)"),
        ("system_of = 3", "is a int, which has no run(batch)"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_clear_error(tmp_path: Path, line: str, message: str) -> None:
    result = fuzz(tmp_path, line=line, system="system_of")
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "sys.exit(0)", "the id of item 0 cannot be read: SystemExit: 0"),
        ("input", "sys.exit(0)", "the input cannot be read: SystemExit: 0"),
        ("text", "sys.exit(0)", "cannot be read: SystemExit: 0"),
        ("text", "nested(5000)", "its answer is nested more than 50 deep"),
    ],
)
def test_data_that_misbehave(tmp_path: Path, field: str, value: str, message: str) -> None:
    values = {"id": "str(id(self))", "input": "'open'", "text": "'open'", field: value}
    fields = "".join(f"    {name} = property(lambda self: {value})\n" for name, value in values.items())
    line = f"class Words:\n    def __init__(self, text): pass\n{fields}"
    result = fuzz(tmp_path, line=line)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_sys_exit_anywhere_else_is_unexpected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc.Profile, "load", lambda *_: sys.exit(0))
    result = CliRunner().invoke(main, ["export", "pyproject.toml", "--partitions", "3", "-o", "x.dot"])
    assert result.exit_code == 3
    assert "SystemExit: 0; this is unexpected" in result.output


def test_warnings_are_printable(tmp_path: Path) -> None:
    line = "import warnings; warnings.warn('a\\x1b[2J name')"
    (tmp_path / "own.py").write_text(FILE.format(run="return 3", line=line))
    own = "--system own.py:system --data own.py:nothing --guide none --disagreement -o run"
    command = [sys.executable, "-m", "deepcruiser", "fuzz", *own.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "a\\x1b[2J name" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("run", "status", "message"),
    [
        ("return [dc.Run({10**5000: 1}) for _ in batch]", 2, "its answer holds a whole number of 16,610 bits"),
        ("raise GeneratorExit", 2, "none of the 2 seeds can be used (2 crash)"),
        ("return [text for text in batch]", 2, "returned a str for an input, not a deepcruiser.Run"),
        ("return echo(batch)[1:]", 2, "returned 1 runs for a batch of 2 inputs"),
        ("return None", 2, "returned a NoneType for a batch"),
        ("sys.exit(0)", 2, "none of the 2 seeds can be used (2 crash)"),
        ("raise NoTextError", 2, "its message cannot be shown"),
        ("return [dc.Run(nested(5000)) for _ in batch]", 2, "its answer is nested more than 50 deep"),
        ("return [dc.Run(10**5000) for _ in batch]", 2, "its answer holds a whole number of 16,610 bits"),
        ("return [dc.Run('x' * 10**6) for _ in batch]", 2, "xxx...xxx"),
    ],
)
def test_a_system_that_misbehaves(tmp_path: Path, run: str, status: int, message: str) -> None:
    result = fuzz(tmp_path, run=run)
    assert result.exit_code == status, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_an_unclosed_quotation_in_a_command(tmp_path: Path) -> None:
    arguments = ["fuzz", "--system", "process: 'unclosed", "--data", str(tmp_path), "--guide", "none", "-o", "run"]
    (tmp_path / "a.wav").touch()
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, "no closing quotation" in result.output) == (2, True), result.output


def test_the_unexpected_is_a_line_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("an\x1b[31m error")

    monkeypatch.setattr(dc.Profile, "load", fail)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    result = CliRunner().invoke(main, ["export", "pyproject.toml", "--partitions", "3", "-o", "x.dot"])
    assert result.exit_code == 3
    (details,) = tmp_path.glob("deepcruiser-*.txt")
    expected = rf"error: ZeroDivisionError: an\x1b[31m error; this is unexpected: the details are in {details}"
    assert result.output.splitlines() == [expected]
    assert "Traceback" in details.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_output_that_cannot_be_written() -> None:
    def end(code: str) -> tuple[int, str]:
        done = subprocess.run(["bash", "-c", f"{sys.executable} -m deepcruiser {code}"], capture_output=True, text=True)
        return done.returncode, done.stderr

    assert end("--help > /dev/full") == (2, "error: cannot use a file: no space left on device\n")
    assert end("--help > /dev/full 2> /dev/full") == (2, "")


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_ctrl_c_does_not_go_through_an_import(tmp_path: Path) -> None:
    """A library in C++ that is being imported may end with a crash otherwise."""
    (tmp_path / "own.py").write_text(
        "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    open('reached', 'w')\n"
    )
    command = [sys.executable, "-m", "deepcruiser", "profile", "--system", "own.py:x", "--data", "x", "-o", "x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert not (tmp_path / "reached").exists()


def test_a_reader_that_leaves_is_not_a_failing_test() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "deepcruiser", "--help"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_errors_are_printable_and_quote_at_most_200_characters() -> None:
    long = dc.InputError(f"no {'x' * 10**5!r} in the user's file, {'y' * 10**5}; it's {['z' * 50] * 3!r}\x1b[2J")
    assert len(str(long)) < 700
    assert str(long).startswith("no 'xxx")
    assert str(long).endswith(f"; it's {['z' * 50] * 3!r}\\x1b[2J")
    assert str(dc.FileError("an\nerror\r")) == "an\nerror\\r"


def test_every_command_prints_through_one_function() -> None:
    for file in (Path(dc.__file__).parent / "cli").glob("*.py"):
        if file.name != "output.py":
            assert not re.search(r"click\.echo\(|secho\(|(?<!\w)print\(", file.read_text()), file


def test_say_escapes_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\x1b[2J\x07\n\ttwo\x9b\u202e\udce9\x7f")
    assert capsys.readouterr().out == "one\\x1b[2J\\x07\n\\ttwo\\x9b\\u202e\\udce9\\u007f\n"
    assert printable_lines("é\n") == "é\n"
