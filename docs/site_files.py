"""The files of the documentation site: those of the repository, and a reference made from the code (for mkdocs.yml)."""

from __future__ import annotations

from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import deepcruiser as dc
from deepcruiser.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "benchmarks/README.md",
    "examples/README.md",
    "examples/*.py",
    "examples/*.ipynb",
    "docs/*.md",
    "docs/*.png",
    "docs/*.svg",
    "docs/*.css",
    "docs/criteria/*.svg",
    "docs/results*/*.svg",
    "docs/results*/*.csv",
    "docs/sounds/*",
)
#: The parts of the package, as headings of the reference, in the order of their use.
PARTS = {
    "corpora": "Data",
    "audio": "Data",
    "systems": "Systems",
    "trace": "Systems",
    "features": "Front ends and decoders",
    "decoding": "Front ends and decoders",
    "abstraction": "Profiles and models",
    "criteria": "Coverage",
    "coverage": "Coverage",
    "oracles": "Campaigns",
    "value_oracles": "Campaigns",
    "campaign": "Campaigns",
    "findings": "Findings and reports",
    "report": "Findings and reports",
    "monitor": "Monitor",
    "export": "Findings and reports",
    "transformations": "Transformations",
    "errors": "Errors",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Those of the theme, the repository's instead of those below docs/ alone, and the reference."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    paths = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
    ours = [File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, False) for path in paths]
    made = {"docs/reference-python.md": python_reference(), "docs/reference-commands.md": commands_reference()}
    return Files([*theme, *ours, *(File.generated(config, name, content=text) for name, text in made.items())])


def python_reference() -> str:
    """Every public name with its docstring, for mkdocstrings to fill in."""
    names: dict[str, list[str]] = {heading: [] for heading in (*PARTS.values(), "Other")}
    homes = {**dc._HOMES, "export": "deepcruiser.export", "report": "deepcruiser.report"}
    for name in sorted(homes, key=str.lower):
        names[PARTS.get(homes[name].split(".")[1], "Other")].append(f"::: {homes[name]}.{name}\n")
    kinds = [*dc.transformations.PAPER, *dc.transformations.EXTRA]
    names["Transformations"] += [f"::: {kind.__module__}.{kind.__name__}\n" for kind in kinds]
    text = (
        "# Python reference\n\nEvery name is in the package itself: `import deepcruiser as dc`, then `dc.profile`.\n\n"
    )
    return text + "\n".join(f"## {heading}\n\n" + "\n".join(each) for heading, each in names.items() if each)


def commands_reference() -> str:
    """The help of every command."""
    text = "# Command reference\n\nThis is what `--help` prints.\n\n"
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        text += f"## deepcruiser {name}\n\n{_help(command, f'deepcruiser {name}')}"
        if isinstance(command, click.Group):
            for inner, each in command.commands.items():
                text += f"### deepcruiser {name} {inner}\n\n{_help(each, f'deepcruiser {name} {inner}')}"
    return text


def _help(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name, terminal_width=80)
    return f"```text\n{command.get_help(context)}\n```\n\n"
