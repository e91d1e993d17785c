"""A child process that reads lines and answers each with a line."""

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

from deepcruiser.errors import DeepCruiserError, FileError, reason

#: The greatest length of an answer in bytes, and the greatest number of unread lines.
_LONGEST = 2**20
_WAITING = 4096
#: The number of lines of its standard error that are kept.
_KEPT = 20


class ProgramError(DeepCruiserError):
    """A program crashed, or gave an invalid answer; `position` is that of the input in its batch, where it is known."""

    position: int | None = None


class ProgramTimeoutError(ProgramError, TimeoutError):
    """A program did not answer in time."""


def check_command(command: Sequence[str], *, cwd: str | None) -> None:
    """Refuse a program that does not exist or cannot be run."""
    name = command[0]
    path = os.path.join(cwd or "", name) if os.path.dirname(name) else name
    if shutil.which(path) is None:
        why = "it is not executable" if os.path.exists(path) else f"there is no program {name!r}"
        raise FileError(f"cannot start {shlex.join(command)!r}: {why}; give the program's path and its arguments")


class Program:
    """A running program. It is killed together with this object, at the interpreter's exit, and by `end`."""

    def __init__(self, command: Sequence[str], *, cwd: str | None) -> None:
        self._words = shlex.join(command)
        try:
            # In its own session, so that Ctrl-C reaches only us and we can kill the program with everything it started.
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError) as error:
            message = f"cannot start {self._words!r}: {reason(error)}; give the program's path and its arguments"
            raise FileError(message) from None
        self._process = process
        self._answers: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._stderr: deque[str] = deque(maxlen=_KEPT)
        self._end = weakref.finalize(self, _end, process)
        assert process.stdout is not None
        assert process.stderr is not None
        self._threads = [
            threading.Thread(target=_read_answers, args=(process.stdout, self._answers), daemon=True),
            threading.Thread(target=_read_stderr, args=(process.stderr, self._stderr), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, lines: Sequence[str], *, limit_seconds: float) -> list[str]:
        """One answer for each line, in order; each must come within the limit."""
        if not self._answers.empty():
            raise ProgramError(f"{self._words!r} wrote {self._next(0)[:200]!r} before it was asked")
        # In a thread, because writing to a program that does not read would block for ever.
        threading.Thread(
            target=_write, args=(self._process.stdin, "".join(f"{line}\n" for line in lines)), daemon=True
        ).start()
        answers: list[str] = []
        try:
            for _ in lines:
                answers.append(self._next(limit_seconds))
        except ProgramError as error:
            error.position = len(answers)
            raise
        return answers

    def ended(self) -> str:
        """How the program has ended by itself: "ended with status 1", "was killed by SIGSEGV"."""
        return _exit_text(self._process.wait())

    def end(self) -> None:
        """Kill the program and all that it started."""
        self._end()

    def _next(self, limit_seconds: float) -> str:
        try:
            answer = self._answers.get(timeout=limit_seconds) if limit_seconds else self._answers.get_nowait()
        except queue.Empty:
            raise ProgramTimeoutError(
                f"{self._words!r} gave no answer within {limit_seconds:g} s{self._last_words()}"
            ) from None
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._threads[1].join(1)  # its last lines may not have arrived yet
            status = self._process.returncode
            event = "closed its output" if status is None else _exit_text(status)
            raise ProgramError(f"{self._words!r} {event} instead of answering{self._last_words()}")
        if len(answer) >= _LONGEST:
            raise ProgramError(f"{self._words!r} answered with more than {_LONGEST:,} bytes in one line")
        return answer.decode("utf-8", "replace").rstrip("\r\n")

    def _last_words(self) -> str:
        """The last lines of its standard error, as the end of a message."""
        lines = [line for line in self._stderr if line.strip()][-5:]
        return f"; its standard error ends with: {' / '.join(lines)}" if lines else ", and its standard error is empty"


def _read_answers(stream: IO[bytes], answers: queue.Queue[bytes | None]) -> None:
    line: bytes | None = b"..."
    while line:
        try:
            line = stream.readline(_LONGEST) or None
        except (OSError, ValueError):  # closed while reading
            line = None
        # If the queue is full, the program writes without being asked and is about to be killed.
        with contextlib.suppress(queue.Full):
            answers.put(line, timeout=None if line is None else 1)
    stream.close()


def _read_stderr(stream: IO[bytes], lines: deque[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in iter(lambda: stream.readline(1000), b""):
            lines.append(line.decode("utf-8", "replace").strip())
    stream.close()


def _write(stream: Any, text: str) -> None:
    # Not through the stream's buffer, whose lock would keep `_end` waiting if nobody reads the other end.
    data = memoryview(text.encode(errors="surrogatepass"))
    with contextlib.suppress(OSError, ValueError):  # it has ended; reading its answer will show that
        while data:
            data = data[os.write(stream.fileno(), data) :]


def _exit_text(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all that it started, even if the program itself has ended already."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with contextlib.suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.close()  # the reading threads close the others
