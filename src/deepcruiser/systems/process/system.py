"""Any program under test: it reads a JSON line for each input and answers with one."""

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
from deepcruiser.errors import InputError
from deepcruiser.systems.process.child import Program, ProgramError, check_command
from deepcruiser.trace import Run, Trace

#: A program that never answered is not started more often than this.
_ATTEMPTS = 3


class ProcessSystem:
    """A program under test: its answer to every input, and the way of its state if it tells that.

        system = ProcessSystem(["./my-recogniser", "--json"], rate=16_000)
        runs = system.run([audio, other])

    The program is started once, without a shell, and then reads a line for each input from its standard input:

        {"id": 0, "wav": "/tmp/.../0.wav", "folder": "/tmp/..."}

    Audio is in a WAV file of 32-bit floats (resampled to `rate`, if that is given), an array in an .npy file under
    "npy"; a text stands in the line itself, under "input". It answers with a line on its standard output, in the order
    of the inputs:

        {"text": "open the door", "states": "/tmp/.../0.states.npy", "inputs": "/tmp/.../0.inputs.npy"}

    or {"output": ...} with any JSON value instead of a text, or {"error": "..."}, which counts as a crash. `states`
    (N+1 of them, the initial one first, [N+1, size]) and `inputs` ([N, size]) are optional .npy files within "folder".
    All lines of a batch are written at once, so the program may run them together.

    A program that gives no answer for `limit_seconds` is ended, and so is one that answers with nonsense; after that,
    and after a crash, it is started again with the next batch. What it last wrote to its standard error is in the
    error.
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
            command = shlex.split(command)
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
        """Which vector is the state: the program says."""
        return f"states of {os.path.basename(self.command[0])}"

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the command, and on what is in the files that it names when first asked."""
        sha = hashlib.sha256()
        for number, word in enumerate(self.command):
            path = Path(self._cwd or "", word)
            if path.is_file() and (
                number or os.path.dirname(word)
            ):  # without a folder, the program is found by the system
                with open(path, "rb") as file:
                    sha.update(hashlib.file_digest(file, "sha256").digest())
            else:
                sha.update(f"{word}\0".encode())
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        if not batch:
            return []
        if not self._answered and len(self._failed) >= _ATTEMPTS:
            raise ProgramError(
                f"after {_ATTEMPTS} attempts without one answer it is not tried again: {self._failed[-1]}"
            )
        folder = Path(tempfile.mkdtemp(prefix="deepcruiser-"))
        try:
            lines = [self._line(value, number, folder) for number, value in enumerate(batch)]
            program = self._started()
            answers = program.ask([json.dumps(line) for line in lines], limit_seconds=self._limit)
            runs = [self._run(answer, number, folder) for number, answer in enumerate(answers)]
        except BaseException as error:  # Ctrl-C and the limit of a campaign too: it may be in the middle of an answer
            if not isinstance(error, InputError | _AnsweredError):
                self.close()
                self._failed.append(str(error))
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._answered = True
        return runs

    def close(self) -> None:
        """End the program; the next run starts it again."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def __enter__(self) -> ProcessSystem:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> Program:
        if self._program is None or not self._program.is_alive():
            self.close()
            self._program = Program(self.command, cwd=self._cwd)
        return self._program

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
            f"input {number} of the batch is a {type(value).__name__}, which cannot be given to a program: Audio, a "
            "numpy array or a text is needed"
        )

    def _run(self, answer: str, number: int, folder: Path) -> Run:
        try:
            told = json.loads(answer)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise ProgramError(
                f"{self!r} answered {answer[:200]!r}, which is no JSON object in one line: what is no answer belongs "
                "on its standard error"
            )
        if told.get("id", number) != number:
            raise ProgramError(f"{self!r} answered input {told['id']!r} where input {number} was next")
        self._answered = True
        if "error" in told:
            raise _AnsweredError(f"{self!r} could not run an input: {told['error']}")
        if not isinstance(told.get("text", ""), str) or ("text" in told) == ("output" in told):
            raise ProgramError(
                f'{self!r} answered {answer[:200]!r}; {{"text": "..."}}, or {{"output": ...}} with any other value, '
                "was needed"
            )
        output = told["text"] if "text" in told else told["output"]
        if told.get("states") is None:
            return Run(output)
        states = self._array(told["states"], "states", folder)
        if told.get("inputs") is None:
            inputs = np.zeros((max(0, len(states) - 1), 1), np.float32)  # all alike: one abstract input
        else:
            inputs = self._array(told["inputs"], "inputs", folder)
        try:
            return Run(output, Trace(states, inputs))
        except InputError as error:
            raise ProgramError(f"{self!r} gave a trace that is none: {error}") from None

    def _array(self, given: Any, name: str, folder: Path) -> Any:
        path = Path(folder, str(given)).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ProgramError(
                f"{self!r} put its {name} into {str(given)!r}, which is not in the folder that it was given"
            )
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ProgramError(
                f"{self!r} named {str(given)!r} as its {name}, which is no .npy file ({error})"
            ) from None
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
            raise ProgramError(f"{self!r} gave {name} in {str(given)!r} that are not numbers")
        return array


class _AnsweredError(ProgramError):
    """The program said itself that it could not run an input; it is well otherwise."""
