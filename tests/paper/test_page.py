"""docs/paper.md: every row has a verdict, and the files, tests, commands, options and names in it exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import deepcruiser as dc
from deepcruiser import transformations
from deepcruiser.abstraction.visits import Visits
from deepcruiser.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| the paper ")]
QUOTED = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row)})
VERDICTS = {"faithful", "choice", "addition", "slip", "measured", "not here"}


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        yield (whole := f"{name} {each}".strip()), command
        if isinstance(command, click.Group):
            yield from commands(command, whole)


COMMANDS = dict(commands(main))
OPTIONS = {name: {flag for option in one.params for flag in option.opts} for name, one in COMMANDS.items()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:40])
def test_a_row_has_a_verdict_and_names_its_test(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert len(cells) == 3
    verdict = re.match(r"not here|\w+", cells[2])
    assert verdict
    assert verdict[0] in VERDICTS
    if verdict[0] in ("faithful", "choice", "addition"):
        tests = re.findall(r"`(tests/[\w/]+\.py)`", row)
        assert tests, "what is implemented is tested"
        assert all("def test_" in (ROOT / name).read_text(encoding="utf-8") for name in tests)


def test_the_files_exist() -> None:
    named = [name for name in QUOTED if re.fullmatch(r"[\w/-]+(\.py|/)", name)]
    assert len(named) > 80
    for name in named:
        top = name.startswith(("tests/", "benchmarks/", "examples/"))
        assert (ROOT / name if top else ROOT / "src" / "deepcruiser" / name).exists(), name


def test_the_commands_and_options_exist() -> None:
    named = [name for name in QUOTED if re.search(r"(^| )--", name) or name.removeprefix("deepcruiser ") in COMMANDS]
    assert len(named) > 30
    for name in named:
        flags = set(re.findall(r"--[\w-]+", name))
        command = name.removeprefix("deepcruiser ").split(" --")[0]
        if command in COMMANDS:
            within = [flags_of for other, flags_of in OPTIONS.items() if f"{other} ".startswith(f"{command} ")]
        else:
            assert name.startswith("--"), name
            within = list(OPTIONS.values())
        assert any(flags <= flags_of for flags_of in within), name


def test_the_names_exist() -> None:
    named = [match for name in QUOTED if (match := re.fullmatch(r"([A-Z]\w+)(\.\w+)?(\(.*\))?", name))]
    assert len(named) > 15
    for match in named:
        places = [place for place in (dc, transformations) if hasattr(place, match[1])]
        owner = Visits if match[1] == "Visits" else getattr(places[0], match[1]) if places else None
        assert owner is not None, match[1]
        member = (match[2] or "").removeprefix(".")
        assert not member or hasattr(owner, member) or member in getattr(owner, "__annotations__", ()), match[0]
