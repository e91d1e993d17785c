"""`import deepcruiser` and the help of every command load neither torch nor scipy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser import cli
from deepcruiser.cli import COMMANDS, main

HEAVY = ("torch", "scipy")
QUESTIONS = ("configurations", "abstraction", "rq1", "rq2", "rq3", "rq4", "schedulers", "monitor", "page")


def loaded_after(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after it ran some code."""
    watched = f"import sys\ntry:\n    {code}\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    watched += "print('MODULES', *sys.modules)"
    run = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("code", ["import deepcruiser", "from deepcruiser.cli import main; main(['--help'])"])
def test_the_package_and_the_list_of_commands_load_no_numpy_either(code: str) -> None:
    assert not loaded_after(code) & {*HEAVY, "numpy", "rich"}


@pytest.mark.parametrize(
    "words", [["--version"], *([name] for name in COMMANDS), *(["evaluate", question] for question in QUESTIONS)]
)
def test_help_loads_neither_torch_nor_scipy(words: list[str]) -> None:
    words = words if words == ["--version"] else [*words, "--help"]
    loaded = loaded_after(f"from deepcruiser.cli import main; main({words!r})")
    assert "click" in loaded
    assert not loaded & set(HEAVY)


def test_coverage_of_arrays_loads_no_torch() -> None:
    code = "import deepcruiser as dc; dc.BSCov; dc.AbstractModel; dc.Coverage; dc.fuzz; dc.WordErrorRate"
    assert not loaded_after(code) & set(HEAVY)


def test_every_listed_command_exists_under_its_name() -> None:
    help_text = CliRunner().invoke(main, ["--help"]).output
    for name in COMMANDS:
        command = getattr(import_module(f"deepcruiser.cli.{name.replace('-', '_')}"), name.replace("-", "_"))
        assert command.name == name
        assert f"\n  {name} " in help_text
    others = {"__init__", "options", "evaluate_monitor"}  # the last is a command of `evaluate`
    modules = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - others
    decorated = {name for name in modules if re.search(r"^@click\.(command|group)\(", source(name), re.MULTILINE)}
    assert {name.replace("_", "-") for name in decorated} == set(COMMANDS)


def source(name: str) -> str:
    return (Path(cli.__file__).parent / f"{name}.py").read_text(encoding="utf-8")


def test_every_public_name_is_listed_where_type_checkers_and_python_look() -> None:
    tree = ast.parse(Path(dc.__file__).read_text(encoding="utf-8"))
    imported: dict[str, str | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deepcruiser."):
            imported |= {alias.name: node.module for alias in node.names}
    del imported["export"], imported["report"]  # which are imported at once
    assert imported == dc._HOMES
    assert set(dc.__all__) == {*dc._HOMES, *dc._MODULES, "export", "report"}


def test_a_module_never_hides_a_public_name() -> None:
    """Python puts a submodule into its package when it is first imported, whatever the package holds there."""
    folder = Path(dc.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert modules & set(dc.__all__) == {"export", "report", *dc._MODULES}
    code = "import deepcruiser.export.prism, deepcruiser.report.page, deepcruiser as dc; assert callable(dc.export)"
    code += "; assert callable(dc.report)"
    loaded_after(code)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Covfefe'"):
        _ = dc.Covfefe
    assert set(dc.__all__) <= set(dir(dc))


def test_python_m_deepcruiser_and_the_version() -> None:
    run = subprocess.run([sys.executable, "-m", "deepcruiser", "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"deepcruiser, version {dc.__version__}\n")
