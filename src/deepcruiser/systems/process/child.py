"""A program that runs beside us, asked by lines and answering by lines."""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import IO, Any

from deepcruiser.errors import DeepCruiserError, FileError

#: No answer is longer, nor does what comes unasked pile up beyond this many lines.
_LONGEST = 2**20
_WAITING = 4096
#: So many lines of its standard error are kept.
_KEPT = 20


class ProgramError(DeepCruiserError):
    """A program crashed, or answered what is no answer."""


class ProgramTimeoutError(ProgramError, TimeoutError):
    """A program gave no answer in time."""


def check_command(command: Sequence[str], *, cwd: str | None) -> None:
    """Refuse a program that is not there, before anything is given to it."""
    name = command[0]
    path = os.path.join(cwd or "", name) if os.path.dirname(name) else name
    if shutil.which(path) is None:
        why = "it is no program that can be run" if os.path.exists(path) else f"there is no program {name!r}"
        raise FileError(f"cannot start {shlex.join(command)!r}: {why}; give the program's path and its arguments")


class Program:
    """A running program. It is ended with this object, with the interpreter, and when it does not answer."""

    def __init__(self, command: Sequence[str], *, cwd: str | None) -> None:
        self._named = shlex.join(command)
        try:
            # A session of its own: Ctrl-C is for us, who end it and all that it started, when it is time.
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError) as error:
            said = (getattr(error, "strerror", None) or str(error)).lower()
            raise FileError(
                f"cannot start {self._named!r}: {said}; give the program's path and its arguments"
            ) from None
        self._process = process
        self._answers: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._said: deque[str] = deque(maxlen=_KEPT)
        self._end = weakref.finalize(self, _end, process)
        assert process.stdout is not None
        assert process.stderr is not None
        self._threads = [
            threading.Thread(target=_listen, args=(process.stdout, self._answers), daemon=True),
            threading.Thread(target=_keep, args=(process.stderr, self._said), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, lines: Sequence[str], *, limit_seconds: float) -> list[str]:
        """One answer to each line, in their order; so long is waited for each."""
        if not self._answers.empty():
            raise ProgramError(f"{self._named!r} wrote {self._next(0)[:200]!r} without being asked")
        # In a thread: a program that does not read would block us beyond all limits.
        threading.Thread(
            target=_write, args=(self._process.stdin, "".join(f"{line}\n" for line in lines)), daemon=True
        ).start()
        return [self._next(limit_seconds) for _ in lines]

    def end(self) -> None:
        """End it and all that it started, at once."""
        self._end()

    def _next(self, limit_seconds: float) -> str:
        try:
            answer = self._answers.get(timeout=limit_seconds) if limit_seconds else self._answers.get_nowait()
        except queue.Empty:
            raise ProgramTimeoutError(
                f"{self._named!r} gave no answer within {limit_seconds:g} s{self._told()}"
            ) from None
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._threads[1].join(1)  # its last words may still be on their way
            status = self._process.returncode
            how = "closed its output" if status is None else _ended(status)
            raise ProgramError(f"{self._named!r} {how} instead of an answer{self._told()}")
        if len(answer) >= _LONGEST:
            raise ProgramError(f"{self._named!r} answered with more than {_LONGEST:,} bytes in one line")
        return answer.decode("utf-8", "replace").rstrip("\r\n")

    def _told(self) -> str:
        """What it last said on its standard error."""
        said = [line for line in self._said if line.strip()][-5:]
        return f"; it last said: {' / '.join(said)}" if said else ", and said nothing on its standard error"


def _listen(stream: IO[bytes], answers: queue.Queue[bytes | None]) -> None:
    line: bytes | None = b"..."
    while line:
        try:
            line = stream.readline(_LONGEST) or None
        except (OSError, ValueError):  # closed while we read
            line = None
        # Full: it talks without being asked and is about to be ended; what more it says is of no interest.
        with contextlib.suppress(queue.Full):
            answers.put(line, timeout=None if line is None else 1)
    stream.close()


def _keep(stream: IO[bytes], said: deque[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in iter(lambda: stream.readline(1000), b""):
            said.append(line.decode("utf-8", "replace").strip())
    stream.close()


def _write(stream: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # it has ended, which its silence will tell
        stream.write(text.encode())
        stream.flush()


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started. It may have ended before what it started did."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with contextlib.suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.close()  # the others are closed by those who read them
