"""What is attacked besides files: systems and programs that misbehave, clients of the live page, faults, commands."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign import database
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.executors.local import execution, run_all
from deepcruiser.report.server import serving
from tests.quality.assault import Case, LostError, mutated
from tests.quality.assault_crafted import OWN, invoke
from tests.support import toy


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError


class _Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def _nested(depth: int) -> Any:
    answer: Any = {}
    for _ in range(depth):
        answer = [answer]
    return answer


def _raise(error: BaseException) -> Any:
    raise error


#: What a system may give for an input, or do.
ANSWERS: tuple[Callable[[], Any], ...] = (
    lambda: dc.Run(_nested(5000)),
    lambda: dc.Run(_nested(40)),
    lambda: dc.Run(10**5000),
    lambda: dc.Run("x" * 10**6),
    lambda: dc.Run("\x1b[2J\udce9\0"),
    lambda: dc.Run(float("nan")),
    lambda: dc.Run(np.full(5, np.inf)),
    lambda: dc.Run(_Odd()),
    lambda: dc.Run({1: {2: {3: _Odd}}}),
    lambda: dc.Run(np.array([object()], object)),
    lambda: dc.Run(b"bytes"),
    lambda: dc.Run("low", doubt=-1.0),
    lambda: dc.Run("low", doubt=10**400),
    lambda: dc.Run("low", dc.Trace(np.zeros((3, 4)), np.zeros((2, 6)))),
    lambda: dc.Run("low", dc.Trace(np.full((3, 4), np.nan), np.zeros((2, 6)))),
    lambda: dc.Run("low", dc.Trace(np.full((3, 4), 1e300), np.zeros((2, 6)))),
    lambda: dc.Run("low", dc.Trace(np.zeros((3, 9)), np.zeros((2, 6)))),
    lambda: dc.Run("low", dc.Trace(np.zeros((1, 4)), np.zeros((0, 6)))),
    lambda: dc.Run("low", dc.Trace(np.array([["a"] * 4] * 3), np.zeros((2, 6)))),
    lambda: dc.Run("low", dc.Trace(np.zeros((3, 4), complex), np.zeros((2, 6)))),
    lambda: None,
    lambda: "low",
    lambda: [1],
    lambda: _Odd(),
    lambda: _raise(_UnprintableError()),
    lambda: _raise(SystemExit(0)),
    lambda: _raise(MemoryError()),
    lambda: _raise(RecursionError()),
    lambda: _raise(StopIteration()),
    lambda: _raise(TimeoutError()),
    lambda: _raise(KeyError("\x1b[2J" * 100)),
    lambda: _raise(OSError(28, "full")),
    lambda: _raise(AssertionError()),
)


class Misbehaving(toy.Reader):
    """The reader, which misbehaves now and then."""

    def __init__(self, case: Case, *, honest: int) -> None:
        super().__init__()
        self._rng, self._honest = case.rng, honest

    def __repr__(self) -> str:
        return "Misbehaving()"

    def run(self, batch: Any) -> Any:
        self._honest -= 1
        if self._honest > 0:
            return super().run(batch)
        kind = self._rng.integers(8)
        if kind == 0:
            return [None, super().run(batch)[:-1], super().run(batch) * 2, 7, "text", iter(())][self._rng.integers(6)]
        runs: list[Any] = list(super().run(batch))
        for place in range(len(runs)):
            if self._rng.random() < 0.4:
                runs[place] = ANSWERS[self._rng.integers(len(ANSWERS))]()
        return tuple(runs) if kind == 1 else runs


def system(case: Case) -> str:
    """A campaign on a system that misbehaves: its folder can be read, and a correct system resumes it."""
    reported: set[int] = set()

    def watch(status: Any) -> None:
        reported.update(event.number for event in status.events if isinstance(event, Ran) and event.outcome == "failed")

    refused: dc.DeepCruiserError | None = None
    try:
        honest = int(case.rng.integers(0, 4))
        toy.campaign(case.folder / "run", system=Misbehaving(case, honest=honest), runs=48, watch=watch)
    except dc.DeepCruiserError as error:
        refused = error
    with contextlib.suppress(dc.FileError):  # it may have ended before it began
        record = dc.CampaignRecord.open(case.folder / "run", mutations=toy.MUTATIONS)
        if record.problem or not reported <= {test.number for test in record.failed}:
            raise LostError(f"{record.problem} {sorted(reported)}")
    if refused is not None:
        raise refused
    return "right"


def answer(case: Case) -> str:
    """One answer, turned into an execution."""
    chosen = ANSWERS[case.rng.integers(len(ANSWERS))]
    with mock.patch.object(toy.Reader, "run", lambda self, batch: [chosen() for _ in batch]):
        (result,) = run_all(toy.Reader(), ["()"], limit_seconds=5)
        execution("", result, toy.model() if case.rng.random() < 0.5 else None)
    return "right"


ECHO = """
import sys, json
for line in sys.stdin:
    print(json.loads(line)["input"].encode().decode("unicode_escape"), flush=True)
"""
ANSWER = json.dumps({"id": 0, "text": "open the door", "doubt": 0.5, "states": "0.npy"})
PROGRAMS = (
    "import sys; sys.exit(3)",
    "import os; os.kill(os.getpid(), 11)",
    "import os; os.close(1); input(); input()",
    "import time; time.sleep(9)",
    "while True: print('x')",
    "print('{' * 10**7)",
    "import sys; sys.stdout.buffer.write(b'\\xff' * 99 + b'\\n')",
    "print('[' * 10**5)",
    "print('{\"text\": ' + '1' * 10**5 + '}')",
    "print('\"' + 'x' * 3 * 10**6 + '\"')",
    "raise SystemExit",
    "import os, sys; os.fork() and sys.exit(1); import time; time.sleep(3)",
    "import sys; sys.stderr.write('\\x1b[2J' * 10**5); sys.exit(1)",
    'input(); print(\'{"text": "a", "states": "/etc/passwd"}\')',
    'input(); print(\'{"text": "a", "states": "../../x.npy"}\')',
    'input(); print(\'{"text": "a", "states": 3}\')',
    "input(); print('{\"error\": \"' + 'e' * 10**5 + '\"}')",
    'input(); print(\'{"id": [], "text": "a"}\')',
    "input(); print('{\"text\": \"a\", \"doubt\": 1' + '0' * 400 + '}')",
    "input(); print('\\x00')",
)


def program(case: Case) -> str:
    """A program that sends damaged answers, or none."""
    if case.rng.random() < 0.5:
        damaged = (
            mutated(ANSWER.encode(), case.rng).replace(b"\n", b" ").decode("latin-1").encode("unicode_escape").decode()
        )
        code, value = ECHO, damaged
    else:
        code, value = PROGRAMS[case.rng.integers(len(PROGRAMS))], "open"
    with dc.ProcessSystem([sys.executable, "-S", "-c", code], limit_seconds=1.5) as process:
        (result,) = process.run([value])
    return "right" if result.output == "open the door" else "unknowable"


@contextlib.contextmanager
def _page(case: Case) -> Iterator[str]:
    toy.campaign(case.folder / "run", runs=16)
    with serving(case.folder / "run") as url:
        yield url


def client(case: Case) -> str:
    """A few hostile requests at a time; afterwards the page must still work, and nothing may be printed."""
    with _page(case) as url, _nothing_printed(case):
        place = urlsplit(url)
        server = place.hostname or "", place.port or 0
        headers = f"Host: {place.netloc}\r\nRange: bytes=0-3\r\n\r\n"
        good = f"GET {place.path}data.json?runs=1&state=x HTTP/1.1\r\n{headers}".encode()
        for _ in range(12):
            with contextlib.suppress(OSError), socket.create_connection(server, 2) as one:
                one.settimeout(0.05)
                one.sendall(mutated(good, case.rng))
                if case.rng.random() < 0.7:
                    one.recv(1000)
        with socket.create_connection(server, 10) as one:
            one.sendall(f"GET {place.path} HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n".encode())
            one.settimeout(20)
            if not one.recv(100).startswith(b"HTTP/1.0 200"):
                raise LostError("the page no longer answers")
    return "right"


@contextlib.contextmanager
def _nothing_printed(case: Case) -> Iterator[None]:
    with open(case.folder / "printed", "w") as file:
        sys.stderr.flush()
        before, sys.stderr = sys.stderr, file
        try:
            yield
        finally:
            sys.stderr = before
    printed = (case.folder / "printed").read_text()
    if printed:
        raise AssertionError(f"printed: {printed[:1000]}")


class _Full:
    """A disk that is full at the n-th write, of a file or of the database, and has room again afterwards."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def full_disk(at: int) -> Iterator[None]:
    full, write, insert = _Full(at), os.replace, database.insert

    def replace(*names: Any) -> None:
        full()
        write(*names)

    def into_database(connection: Any, table: str, row: Any, **options: Any) -> None:
        try:
            full()
        except OSError:
            # SQLite's own error: the database may not have another page, and the row needs many.
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
            try:
                insert(connection, "meta", ("filler", "x" * 10**6), replace=True)
            finally:
                connection.execute("PRAGMA max_page_count = 1073741823")
        insert(connection, table, row, **options)

    with (
        mock.patch("deepcruiser.files.atomic.os.replace", replace),
        mock.patch("deepcruiser.campaign.store.insert", into_database),
    ):
        yield


def fault(case: Case) -> str:
    """A full disk, a folder that is deleted or renamed, Ctrl-C: resumed, the campaign is the undisturbed one."""
    seed, kind, reported = int(case.rng.integers(3)), int(case.rng.integers(4)), set[int]()
    when = int(case.rng.integers(1, 120))
    folder = case.folder / "run"

    def watch(status: Any) -> None:
        reported.update(event.number for event in status.events if isinstance(event, Ran) and event.outcome == "failed")
        if status.state.runs >= when % 80 and folder.exists():
            if kind == 1:
                shutil.rmtree(folder)
            elif kind == 2:
                folder.rename(case.folder / "elsewhere")
            elif kind == 3:
                os.kill(os.getpid(), signal.SIGINT)

    try:
        with full_disk(when if kind == 0 else 10**9):
            toy.campaign(folder, runs=96, seed=seed, watch=watch)
        message = ""
    except dc.DeepCruiserError as error:
        message = str(error)
    if kind == 1:  # what was deleted is gone; it must be said
        if folder.exists() and not message:
            raise LostError("the folder was deleted, and nothing was said")
        return "clear error" if message else "right"
    if kind == 2 and (case.folder / "elsewhere").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (case.folder / "elsewhere").rename(folder)
    toy.campaign(folder, runs=96, seed=seed)
    record = dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS)
    if not reported <= {test.number for test in record.failed}:
        raise LostError(f"reported and not stored: {sorted(reported - {test.number for test in record.failed})}")
    toy.campaign(case.folder / "undisturbed", runs=96, seed=seed)
    if toy.rows(folder) != toy.rows(case.folder / "undisturbed"):
        raise LostError("resumed, it is another campaign")
    return "right"


#: Commands on a campaign and on files that are damaged; {x} is something damaged, {run} a campaign, {odd} an odd text.
COMMANDS = (
    "report {run} --text",
    "report {x}",
    "report {run} --json",
    "replay {run} 1 {odd}",
    "replay {x}",
    "findings {run}",
    "findings {x}",
    "history {run} {x}",
    "shrink {run} 1",
    "export {x} --partitions 3 -o out.dot",
    "export {run} --suite out",
    "export {x} --queue q",
    "cover --system own.py:system --data own.py:seeds --model {x}",
    "cover --system {odd} --data own.py:seeds --model {x}",
    "fuzz --system own.py:system --data {x} --guide none --disagreement --runs 4 --workers 0 -o new",
    "fuzz --system own.py:{odd} --data own.py:seeds --guide none --runs 4 --workers 0 -o new",
    "fuzz --system own.py:system --data own.py:seeds --mutations own.py:mutations --guide none --disagreement --runs 4 "
    "--workers 0 -o {x}",
    "fuzz --system own.py:system --data own.py:seeds --guide {odd} --disagreement --runs 4 --workers 0 -o new",
    "profile --system own.py:system --data {x} -o new.profile",
    "profile --system own.py:system --data own.py:seeds -o {odd}",
    "seeds --system own.py:system --data {x} -o s.html",
    "minimise --system own.py:system --data {x} --model {x}",
    "prioritise --system own.py:system --data {x} --model {x}",
    "monitor --system own.py:system --data {x} --model {x}",
    "{odd} {x}",
    "report {odd}",
    "history {x} --fail-on {odd}",
)
ODD = (
    "",
    "\x1b[2J",
    "caf\udce9",
    "x" * 5000,
    "-1",
    "'",
    "\n",
    "/dev/fd/99",
    "process: 'x",
    "..",
    "\u202e",
    "a:b:c",
    "{}",
    "--help",
)


def command(case: Case) -> str:
    """A command with damaged or odd arguments: a documented exit status, and no control characters."""
    os.chdir(case.folder)
    Path("own.py").write_text(OWN)
    toy.campaign(Path("run"), runs=16)
    names = [path for path in Path("run").rglob("*") if path.is_file()]
    chosen = names[case.rng.integers(len(names))]
    damaged = Path("caf\udce9" if case.rng.random() < 0.3 else "damaged")
    damaged = damaged.with_suffix(
        ["", ".wav", ".csv", ".jsonl", ".model", ".onnx", ".scp", ".npy"][case.rng.integers(8)]
    )
    damaged.write_bytes(mutated(chosen.read_bytes(), case.rng))
    if case.rng.random() < 0.2:
        chosen.write_bytes(damaged.read_bytes())
    odd = ODD[case.rng.integers(len(ODD))]
    words = shlex.split(COMMANDS[case.rng.integers(len(COMMANDS))])
    arguments = [word.replace("{x}", str(damaged)).replace("{run}", "run").replace("{odd}", odd) for word in words]
    try:
        status = invoke(*arguments)
    finally:
        sys.modules.pop("own", None)
    return "clear error" if status == 2 else "right"


def killed(case: Case) -> str:
    """A campaign that is killed at a random moment, resumed, and compared with the undisturbed one."""
    from tests.quality.kills import check, kill

    folder, reported = case.folder / "run", set[int]()
    number = int(case.rng.integers(15))
    for _ in range(3):
        kill(number, folder, reported, seconds=float(case.rng.exponential(0.15)), workers=0)
    from tests.quality.kills import options

    toy.campaign(folder, **{**options(number), "runs": 200})
    check(folder, reported)
    return "right"


def threads(case: Case) -> str:
    """A reader that reads a campaign all the time while it runs."""
    stop, problems = threading.Event(), list[str]()

    def look() -> None:
        while not stop.is_set():
            with contextlib.suppress(dc.FileError):
                record = dc.CampaignRecord.open(case.folder / "run", mutations=toy.MUTATIONS)
                if record.problem:
                    problems.append(record.problem)
            time.sleep(0.002)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        toy.campaign(case.folder / "run", runs=96, seed=int(case.rng.integers(5)))
    finally:
        stop.set()
        looking.join()
    if problems:
        raise LostError(problems[0])
    return "right"


BEHAVIOUR: dict[str, tuple[Callable[[Case], str], float]] = {
    "systems: answers": (answer, 6),
    "systems: campaigns": (system, 4),
    "programs": (program, 0.5),
    "clients of the page": (client, 0.5),
    "faults: full disk, folder gone, Ctrl-C": (fault, 1),
    "faults: kill": (killed, 0.1),
    "faults: read while it runs": (threads, 0.2),
    "commands": (command, 2),
}
