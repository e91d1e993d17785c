"""The examples that found defects in published networks: they compile, and say what to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(path for path in (ROOT / "examples" / "found").glob("*.py") if path.name != "hunt.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_compiles_and_names_its_package(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    compile(text, str(script), "exec")
    package = re.search(r"needs the package ([\w-]+): pip install \1", text)
    assert package, f"{script.name} does not say which package it needs"
    page = (ROOT / "docs" / "found.md").read_text(encoding="utf-8")
    assert f"examples/found/{script.name}" in page
    assert package[1] in page


def test_a_missing_package_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "g2pM.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(ROOT / "examples" / "found" / "chinese.py")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 1
    assert result.stderr.strip() == "this example needs the package g2pM: pip install g2pM"
