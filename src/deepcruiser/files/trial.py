"""Loading a foreign file in a child process first, so that a crash or a hang of the library does no harm.

The child is started once and forks for every file, so that a trial takes milliseconds. It imports nothing of ours.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Literal

from deepcruiser.errors import FileError

#: Seconds for a trial, and more of them for large files.
LIMIT_SECONDS, BYTES_A_SECOND = 10, 2**23

#: The code of the child. Each kind imports its library before it forks and uses the file afterwards.
_CHILD = r"""
import importlib, json, os, random, signal, sys

def tflite(path):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    with open(path, "rb") as file:
        content = file.read()
    for options in ({}, {"experimental_op_resolver_type": plain, "experimental_preserve_all_tensors": True}):
        interpreter = Interpreter(model_content=content, **options)
        interpreter.allocate_tensors()
        interpreter.invoke()

def kenlm(path):
    from flashlight.lib.text.decoder.kenlm import KenLM
    from flashlight.lib.text.dictionary import Dictionary
    with open(path, "rb") as file:
        data = file.read()
    words = [word for word in data[data.rfind(b"<unk>\0"):].decode("utf-8", "replace").split("\0")[:-1] if word]
    model = KenLM(path, Dictionary(words))
    state, drawn = model.start(True), random.Random(0)
    for step in range(100_000):  # KenLM follows whatever stands in the file: this many contexts reach most of it
        model.finish(state)
        state = model.start(step % 2 == 0) if step % 7 == 0 else model.score(state, drawn.randrange(len(words)))[0]

def hdf5(path):
    import h5py, zipfile
    source = zipfile.ZipFile(path).open("model.weights.h5") if zipfile.is_zipfile(path) else path
    with h5py.File(source, "r") as file:
        def look(name, item):
            dict(item.attrs)
            if isinstance(item, h5py.Dataset) and not item.external and not item.is_virtual and item.nbytes < 2**31:
                item[()]
        look("", file)
        file.visititems(look)

LIBRARIES = {"hdf5": "h5py", "tflite": "ai_edge_litert.interpreter", "kenlm": "flashlight.lib.text.decoder.kenlm"}
nowhere = os.open(os.devnull, os.O_WRONLY)
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(nowhere, 1)
os.dup2(nowhere, 2)
for line in sys.stdin:
    kind, path, limit = json.loads(line)
    importlib.import_module(LIBRARIES[kind])
    child = os.fork()
    if not child:
        signal.alarm(limit)
        try:
            globals()[kind](path)
        except Exception:
            pass  # it will be raised again, and said, where the file is loaded in earnest
        os._exit(0)
    answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
"""


class _Child:
    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,  # only the parent handles Ctrl-C
        )
        atexit.register(self._end)

    def _end(self) -> None:
        with self._process:  # closes its input and waits
            self._process.kill()

    def ask(self, kind: str, path: str, limit: int) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps([kind, path, limit]) + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline().strip()


@cache
def _child(process: int) -> _Child:
    return _Child()


def check_loads(kind: Literal["hdf5", "kenlm", "tflite"], path: str | os.PathLike[str], *, name: str) -> None:
    """Refuse a file that crashes the library that reads it, or takes too long."""
    if not hasattr(os, "fork"):  # on Windows
        return
    limit = LIMIT_SECONDS + os.stat(path).st_size // BYTES_A_SECOND
    status = _child(os.getpid()).ask(kind, os.fspath(Path(path).absolute()), limit)
    if status == "-14":
        raise FileError(f"{os.fspath(path)!r} is damaged: {name} did not finish reading it within {limit} s")
    if status.startswith("-"):
        raise FileError(f"{os.fspath(path)!r} is damaged: {name} crashes on it")
