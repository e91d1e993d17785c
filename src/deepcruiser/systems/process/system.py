"""Programs under test, which read a line of JSON for each input and answer with one."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError, InputError, reason
from deepcruiser.files.reading import open_regular, read_array
from deepcruiser.systems.process.child import Program, ProgramError, check_command
from deepcruiser.trace import Run, Trace

#: A program that has never answered is started at most this many times.
_ATTEMPTS = 3


class ProcessSystem:
    """A program under test: its answer to every input, and its states if it gives them.

        system = ProcessSystem(["./my-recogniser", "--json"], rate=16_000)
        runs = system.run([audio, other])

    The program is started once, without a shell. It reads a line for each input from its standard input:

        {"id": 0, "wav": "/tmp/.../0.wav", "folder": "/tmp/..."}

    Audio is in a WAV file of 32-bit floats (resampled to `rate`, if given). An array is in an .npy file under "npy",
    and a text is in the line itself under "input". The program answers each input with a line on its standard output,
    in the same order:

        {"text": "open the door", "states": "/tmp/.../0.states.npy", "inputs": "/tmp/.../0.inputs.npy"}

    or with {"output": ...} and any JSON value instead of a text, or with {"error": "..."}, which counts as a crash.
    `states` ([N+1, size], the initial state first) and `inputs` ([N, size]) are optional .npy files in "folder".
    "doubt" is an optional number, higher when the program is less sure of its answer. All lines of a batch are written
    at once, so the program may run them together.

    A program that does not answer within `limit_seconds`, or gives an invalid answer, is killed. After that, and after
    a crash, it is started again for the next batch. The error has the last lines of its standard error.
    """

    def __init__(
        self,
        command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        rate: int | None = None,
        limit_seconds: float = 60.0,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(command, str):
            try:
                command = shlex.split(command)
            except ValueError as error:
                raise InputError(f"cannot read the command {command!r}: {reason(error)}") from None
        words = [command] if isinstance(command, os.PathLike) else list(command)
        if not words:
            raise InputError("the command is empty: give the program and its arguments")
        if not limit_seconds > 0:
            raise InputError(f"limit_seconds must be above 0, not {limit_seconds}")
        self.command = [os.fspath(word) for word in words]
        self._rate = rate
        self._limit = limit_seconds
        self._cwd = None if cwd is None else os.fspath(cwd)
        self._program: Program | None = None
        check_command(self.command, cwd=self._cwd)
        self._answered = False
        self._failed: list[str] = []

    def __repr__(self) -> str:
        return f"ProcessSystem({shlex.join(self.command)})"

    @property
    def state_name(self) -> str:
        """A description of the state; the program chooses which vector it is."""
        return f"states of {os.path.basename(self.command[0])}"

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the command or the contents of the files in it; computed once, when first needed."""
        sha = hashlib.sha256()
        for number, word in enumerate(self.command):
            path = Path(self._cwd or "", word)
            # A program without a folder is found by the operating system, and is not a file in this one.
            if path.is_file() and (number or os.path.dirname(word)):
                with open(path, "rb") as file:
                    sha.update(hashlib.file_digest(file, "sha256").digest())
            else:
                sha.update(os.fsencode(word) + b"\0")
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        if not batch:
            return []
        if not self._answered and len(self._failed) >= _ATTEMPTS:
            raise ProgramError(
                f"{self!r} never answered in {_ATTEMPTS} attempts and is not started again: {self._failed[-1]}"
            )
        folder = Path(tempfile.mkdtemp(prefix="deepcruiser-"))
        try:
            lines = [self._line(value, number, folder) for number, value in enumerate(batch)]
            program = self._started()
            answers = program.ask([json.dumps(line) for line in lines], limit_seconds=self._limit)
            runs = [self._checked_run(answer, number, folder) for number, answer in enumerate(answers)]
        except BaseException as error:  # also Ctrl-C and the time limit of a campaign, in the middle of an answer
            if not isinstance(error, InputError | _AnsweredError):
                self.close()
                self._failed.append(str(error))
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._answered = True
        return runs

    def close(self) -> None:
        """Kill the program; the next run starts it again."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def __enter__(self) -> ProcessSystem:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> Program:
        if self._program is not None and not self._program.is_alive():
            event = self._program.ended()
            self.close()
            if event != "ended with status 0":
                error = ProgramError(f"{self!r} {event} after its last answer")
                error.position = 0
                raise error
        if self._program is None:
            self._program = Program(self.command, cwd=self._cwd)
        return self._program

    def _checked_run(self, answer: str, number: int, folder: Path) -> Run:
        try:
            return self._run(answer, number, folder)
        except ProgramError as error:
            error.position = number
            raise

    def _line(self, value: Any, number: int, folder: Path) -> dict[str, Any]:
        line: dict[str, Any] = {"id": number, "folder": str(folder)}
        if isinstance(value, Audio):
            path = folder / f"{number}.wav"
            (value if self._rate is None else value.resample(self._rate)).write(path)
            return {**line, "wav": str(path)}
        if isinstance(value, np.ndarray):
            path = folder / f"{number}.npy"
            np.save(path, value, allow_pickle=False)
            return {**line, "npy": str(path)}
        if isinstance(value, str):
            return {**line, "input": value}
        raise InputError(
            f"input {number} of the batch is a {type(value).__name__}, which cannot be given to a program: give Audio, "
            "a numpy array or a text"
        )

    def _run(self, answer: str, number: int, folder: Path) -> Run:
        try:
            reply = json.loads(answer)
        except (ValueError, RecursionError):  # the latter where it is nested too deeply
            reply = None
        if not isinstance(reply, dict):
            raise ProgramError(
                f"{self!r} answered {answer[:200]!r}, which is not a JSON object on one line: messages other than "
                "answers belong on its standard error"
            )
        if reply.get("id", number) != number:
            raise ProgramError(f"{self!r} answered input {reply['id']!r}, but input {number} was next")
        self._answered = True
        if "error" in reply:
            raise _AnsweredError(f"{self!r} could not run an input: {reply['error']}")
        if not isinstance(reply.get("text", ""), str) or ("text" in reply) == ("output" in reply):
            raise ProgramError(
                f'{self!r} answered {answer[:200]!r}, but must answer {{"text": "..."}}, or {{"output": ...}} with '
                "any other value"
            )
        output = reply["text"] if "text" in reply else reply["output"]
        doubt = reply.get("doubt")
        if doubt is not None and (isinstance(doubt, bool) or not isinstance(doubt, int | float)):
            raise ProgramError(f"{self!r} returned the doubt {doubt!r}, but it must be a number")
        if reply.get("states") is None:
            return Run(output, doubt=doubt)
        segments = reply.get("segments") or []
        if not isinstance(segments, list) or not all(type(steps) is int for steps in segments):
            raise ProgramError(
                f"{self!r} returned the segments {segments!r}, but they must be a list of numbers of steps"
            )
        states = self._array(reply["states"], "states", folder)
        if reply.get("inputs") is None:
            steps = len(states) - (len(segments) or 1)
            inputs = np.zeros((max(0, steps), 1), np.float32)  # all equal: one abstract input
        else:
            inputs = self._array(reply["inputs"], "inputs", folder)
        try:
            return Run(output, Trace(states, inputs, segments=tuple(segments)), doubt)
        except InputError as error:
            raise ProgramError(f"{self!r} returned an invalid trace: {error}") from None

    def _array(self, file: Any, name: str, folder: Path) -> Any:
        path = Path(folder, str(file)).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ProgramError(f"{self!r} wrote its {name} to {str(file)!r}, which is not in the folder of the batch")
        try:
            with open_regular(path) as opened:
                array = read_array(opened, os.fstat(opened.fileno()).st_size)
        except (OSError, ValueError, FileError) as error:
            raise ProgramError(
                f"{self!r} returned {str(file)!r} as its {name}, which is not a readable .npy file ({error})"
            ) from None
        if array.dtype.kind not in "fiu":
            raise ProgramError(f"the {name} that {self!r} wrote to {str(file)!r} are not numbers")
        return array


class _AnsweredError(ProgramError):
    """The program reported that it could not run an input, and still works."""
