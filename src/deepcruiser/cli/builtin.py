"""Built-in systems by name, with their seeds, right answers and mutations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

from deepcruiser.campaign.mutations import Mutations
from deepcruiser.cli.output import say
from deepcruiser.corpora import Corpus, Labelled, read_corpus
from deepcruiser.systems import BUILT_IN, load_system
from deepcruiser.systems.builtin.speech import PROFILE
from deepcruiser.systems.builtin.speech import SEEDS as SEEDS_OF_SPEECH
from deepcruiser.trace import System

#: The number of seeds of `brackets`.
SEEDS = 50


def is_built_in(given: str) -> bool:
    """Whether this names a built-in system; `brackets:7` is `brackets` trained with another random seed."""
    name, _, seed = given.partition(":")
    return given in BUILT_IN or (name == "brackets" and seed.isdecimal())


def is_data(given: str) -> bool:
    """Whether this names built-in data: the seeds of a system, or the data to profile the recogniser on."""
    return is_built_in(given) or given == "english:profile"


@cache
def system(given: str, *, device: str = "cpu") -> System:
    """The system, trained or loaded once; its warnings are lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_system(given.partition(":")[0], seed=_seed(given), device=device)
    for warning in caught:
        say(f"note: {warning.message}", err=True)
    return loaded


def data(given: str) -> Corpus | Sequence[Labelled]:
    """New inputs of the kind that the system was trained on; for `english:profile`, some that it was trained on."""
    if given.startswith("english"):
        corpus = read_corpus(PROFILE if given == "english:profile" else SEEDS_OF_SPEECH)
        return Corpus(given, corpus.samples)
    from deepcruiser.systems.builtin import brackets

    texts = brackets.ordinary_tests(SEEDS, seed=_seed(given))
    return [Labelled(f"{number:02}", text, brackets.verdict(text)) for number, text in enumerate(texts)]


def mutations(given: str) -> Mutations:
    """Mutations that keep the right answer."""
    if given.startswith("english"):
        return Mutations()
    from deepcruiser.systems.builtin import bracket_changes as changes

    return Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)


def own_mutations(given: str) -> str | None:
    """The name of a system's own mutations; None for the recogniser, which uses those for audio."""
    return None if given.startswith("english") else given


def _seed(given: str) -> int:
    return int(given.partition(":")[2] or 0)
