"""What comes with a system in the box, by its name: seeds with their right answers, and what may be done to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from deepcruiser.campaign.mutations import Mutations
from deepcruiser.systems import BUILT_IN, bracket_changes, brackets, load_system
from deepcruiser.trace import System

#: How many seeds there are.
SEEDS = 50


@dataclass(frozen=True, slots=True)
class Text:
    """A text as a seed: its name, itself, and its right label."""

    id: str
    input: str
    text: str


def is_built_in(given: str) -> bool:
    """Whether this names a system in the box: `brackets`, or `brackets:7` for one trained with another random seed."""
    name, _, seed = given.partition(":")
    return name in BUILT_IN and (seed.isdecimal() or given == name)


@cache
def system(given: str) -> System:
    """The system itself, which is trained once."""
    return load_system(given.partition(":")[0], seed=_seed(given))


def seeds(given: str) -> Sequence[Text]:
    """New texts of the kind that it was trained on."""
    texts = brackets.ordinary_tests(SEEDS, seed=_seed(given))
    return [Text(f"{number:02}", text, brackets.verdict(text)) for number, text in enumerate(texts)]


def mutations(given: str) -> Mutations:
    """Changes that keep the right answer."""
    changes = bracket_changes
    return Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)


def _seed(given: str) -> int:
    return int(given.partition(":")[2] or 0)
