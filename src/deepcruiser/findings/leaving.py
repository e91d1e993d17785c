"""Where the states of a finding's tests leave the region that training visited, in words for its title."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.audio import Audio
from deepcruiser.campaign.executors.local import run_all
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.findings.finding import Finding, Member
from deepcruiser.findings.region import new_cells
from deepcruiser.trace import Run, System

#: A test of this many seeds is looked at where the input is a text.
_SEEDS = 5


def leaving(record: CampaignRecord, system: System, finding: Finding) -> str:
    """For texts, the shortest beginning, such as "after '[[['"; else the step of the worst test."""
    worst_of_seeds = {member.test.seed: member for member in reversed(finding.members)}
    places = []
    for member in list(reversed(worst_of_seeds.values()))[:_SEEDS]:
        place = _place(record, system, member)
        if place.startswith("after"):
            places.append(place)
        elif place:
            return place
    return min(places, key=lambda place: (len(place), -places.count(place), place), default="")


def _place(record: CampaignRecord, system: System, member: Member) -> str:
    """Where the states of one test leave; empty if they do not on this system."""
    model, test = record.model, member.test
    seed = next(seed.visits for seed in record.seeds if seed.position == test.position)
    assert model is not None
    assert seed is not None
    assert test.visits is not None
    value = record.inputs.make(test.seed, test.recipe)
    (run,) = run_all(system, [value], limit_seconds=record.spec.limit_seconds)
    if not isinstance(run, Run):
        return ""
    trace = run.traced
    left = np.isin(model.grid.encode(model.cells(trace)[0]), new_cells(seed, test.visits))
    step = int(np.argmax(left))
    if not left[step]:
        return ""
    if isinstance(value, str):
        for symbols, space in ((list(value), ""), (value.split(), " ")):
            if len(symbols) == len(trace):
                leaves = _leaves(record, model, system, space)
                return f"after {space.join(_shortest(symbols[:step], leaves))!r}"
    if isinstance(value, Audio):
        return f"{value.seconds * step / len(trace):.2f} s into the sound"
    return f"at step {step} of {len(trace)}"


#: Whether no seed has these symbols or words, and reading them ends in a state that training never visited.
Leaves = Callable[[Sequence[str]], bool]


def _leaves(record: CampaignRecord, model: AbstractModel, system: System, space: str) -> Leaves:
    seeds = [record.inputs.make(seed.seed, ()) for seed in record.seeds if seed.outcome == "kept"]

    def leaves(symbols: Sequence[str]) -> bool:
        text = space.join(symbols)
        if any(text in seed for seed in seeds):
            return False
        (run,) = run_all(system, [text], limit_seconds=record.spec.limit_seconds)
        if not isinstance(run, Run) or len(run.traced) != len(symbols):
            return False
        (code,) = model.grid.encode(model.cells(run.traced)[0][-1:])
        return code not in model.states

    return leaves


def _shortest(symbols: list[str], leaves: Leaves) -> list[str]:
    """The symbols without those that can be left out; none of the remaining ones can."""
    size = len(symbols) // 2
    while size:
        shorter = next((each for each in _without(symbols, size) if leaves(each)), None)
        if shorter is not None:
            symbols = shorter
        size = size // 2 if shorter is None else min(size, len(symbols) // 2)
    return symbols


def _without(symbols: list[str], size: int) -> Iterator[list[str]]:
    return (symbols[:at] + symbols[at + size :] for at in range(0, len(symbols) - size + 1, size))
