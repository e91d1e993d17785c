"""deepcruiser list: the available transformations, systems, criteria and schedulers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from deepcruiser.campaign.learned import Learned
from deepcruiser.campaign.mutations import READY_MADE
from deepcruiser.campaign.scheduler import PICK, SELECT, Chains
from deepcruiser.cli import options
from deepcruiser.cli.output import say
from deepcruiser.systems import BUILT_IN
from deepcruiser.systems.by_suffix import ADAPTERS
from deepcruiser.transformations import EXTRA, PAPER
from deepcruiser.transformations.families import NOT_FOR

Rows = Iterable[tuple[str, str, str]]


@click.command()
@click.argument("what", type=click.Choice(["transformations", "systems", "criteria", "schedulers"]), required=False)
@options.json_output()
def list(what: str | None, as_json: bool) -> None:  # noqa: A001 (the name of the command)
    """List transformations, systems, criteria and schedulers, with a line about each.

    \b
    deepcruiser list
    deepcruiser list transformations
    """
    rows = [row for name, those in _ROWS.items() if what in (None, name) for row in those()]
    if as_json:
        say(json.dumps([{"name": name, "group": group, "help": text} for name, group, text in rows], indent=2))
        return
    width, before = max(len(name) for name, _, _ in rows), ""
    for name, group, text in rows:
        if group != before:
            say(f"{group}:")
            before = group
        say(f"  {name:{width}}  {text}")


def _transformations() -> Rows:
    groups = {"the paper's (the default)": PAPER, "beyond the paper": EXTRA}
    groups |= {"of texts, --mutations text": READY_MADE["text"].kinds}
    groups |= {"of series, --mutations series": READY_MADE["series"].kinds}
    for group, kinds in groups.items():
        for kind in kinds:
            ranges = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in kind.RANGES.items())
            words = _first(kind) + (f" Drawn: {ranges}." if ranges else "")
            unfit = NOT_FOR.get(kind.__name__)
            yield kind.__name__, group, words + (f" Not for: {', '.join(unfit)}." if unfit else "")


def _systems() -> Rows:
    for name in BUILT_IN:
        yield name, "built in", _BUILT_IN[name]
    for suffix, (_, adapter) in ADAPTERS.items():
        yield f"*{suffix}", "model files", f"run by {adapter}"
    yield "FILE.py:NAME", "your own", "a system, or a function without arguments that returns one"
    yield "process: COMMAND", "your own", "a program that reads and writes lines of JSON"


_BUILT_IN = {
    "brackets": "an LSTM that judges whether brackets are balanced; brackets:7 is trained with random seed 7",
    "english": "a recogniser of English speech that writes known words, with a language model",
    "english-letters": "the same recogniser, letter by letter",
}


def _criteria() -> Rows:
    group = "criteria, for --guide and --criteria"
    yield "BSCov", group, "the share of the model's states that are visited"
    yield "k-SBCov", group, "the share of the cells 1 to k steps outside the model's states, as in 2-SBCov"
    yield "k-SBCov-within", group, "the same, but only cells within the bounds of the grid"
    yield "BTCov", group, "the share of the model's transitions between two states"
    yield "ISCov", group, "the share of the model's pairs of a state and an input in it"
    yield "WICov", group, "like ISCov, weighted by the probabilities of the successors visited"
    for name, text in _KEEP.items():
        yield name, "which mutants are kept, for --keep", text


_KEEP = {
    "coverage+distance": "those that increase the criteria of --guide, and those that come nearer to failing",
    "coverage": "those that increase the criteria",
    "random": "the same number, chosen at random",
    "none": "none",
}


def _schedulers() -> Rows:
    group = "how the next mutant is chosen, --scheduler"
    yield "learned", group, _first(Learned)
    yield "chains", group, _first(Chains)
    for name, select in SELECT.items():
        yield name, group, _first(select)
    for name, pick in PICK.items():
        yield name, "how its transformation is chosen, --pick; not for learned and chains", _first(pick)


def _first(kind: Any) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=\.)\s", " ".join((kind.__doc__ or "").split()), maxsplit=1)[0]


_ROWS: dict[str, Callable[[], Rows]] = {
    "transformations": _transformations,
    "systems": _systems,
    "criteria": _criteria,
    "schedulers": _schedulers,
}
