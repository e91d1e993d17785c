"""`load_system` takes what --system takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import deepcruiser as dc
from deepcruiser.systems.builtin import brackets

OWN = """
import deepcruiser as dc

class Echo:
    def run(self, batch):
        return [dc.Run(each, None) for each in batch]

echo, bare = Echo(), 3
"""
PROGRAM = """
import sys
for line in sys.stdin:
    print('{"output": "heard"}', flush=True)
"""


@pytest.mark.parametrize("name", ["echo", "Echo"])
def test_an_object_or_a_class_of_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (run,) = dc.load_system(f"{tmp_path / 'own.py'}:{name}").run(["a"])
    assert run.output == "a"


def test_a_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (run,) = dc.load_system(f"process: {sys.executable} {tmp_path / 'program.py'}").run(["a"])
    assert run.output == "heard"


def test_a_built_in_system_with_another_seed() -> None:
    texts = brackets.ordinary_tests(5, seed=7)
    weights = [getattr(dc.load_system(name), "fingerprint", "") for name in ("brackets", "brackets:0", "brackets:7")]
    assert weights[0] == weights[1] != weights[2]
    assert [run.output for run in dc.load_system("brackets").run(texts)] == list(map(brackets.verdict, texts))


def test_what_is_not_a_system(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(dc.InputError, match=r"'nothing' is not a system: give file.py:name, a model file \(.*built-in"):
        dc.load_system("nothing")
    with pytest.raises(dc.InputError, match=r"own.py:bare' is a int, which has no run\(batch\)"):
        dc.load_system(f"{tmp_path / 'own.py'}:bare")
    with pytest.raises(dc.InputError, match="the device 'meta' can be chosen for PyTorch networks and ONNX files, but"):
        dc.load_system(f"{tmp_path / 'own.py'}:echo", device="meta")
