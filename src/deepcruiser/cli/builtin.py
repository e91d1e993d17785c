"""Built-in systems by name, with their seeds, right answers and mutations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

from deepcruiser.campaign.mutations import Mutations
from deepcruiser.cli.output import say
from deepcruiser.corpora.corpus import Corpus
from deepcruiser.corpora.samples import Labelled
from deepcruiser.systems.builtin import speech
from deepcruiser.systems.load import is_built_in, load_system
from deepcruiser.trace import System

#: The number of seeds of `brackets`.
SEEDS = 50


def is_data(name: str) -> bool:
    """Whether this names built-in data: the seeds of a system, or the data to profile the recogniser on."""
    return is_built_in(name) or name == "english:profile"


@cache
def system(name: str, *, device: str = "cpu") -> System:
    """The system, trained or loaded once; its warnings are lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_system(name, device=device)
    for warning in caught:
        say(f"note: {warning.message}", err=True)
    return loaded


def data(name: str) -> Corpus | Sequence[Labelled]:
    """New inputs of the kind that the system was trained on; for `english:profile`, some that it was trained on."""
    if name.startswith("english"):
        from deepcruiser.corpora.read import read_corpus

        corpus = read_corpus(speech.PROFILE if name == "english:profile" else speech.SEEDS)
        return Corpus(name, corpus.samples)
    from deepcruiser.systems.builtin import brackets

    texts = brackets.ordinary_tests(SEEDS, seed=int(name.partition(":")[2] or 0))
    return [Labelled(f"{number:02}", text, brackets.verdict(text)) for number, text in enumerate(texts)]


def mutations(name: str) -> Mutations:
    """Mutations that keep the right answer."""
    if name.startswith("english"):
        return Mutations()
    from deepcruiser.systems.builtin import bracket_changes as changes

    return Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)


def own_mutations(name: str) -> str | None:
    """The name of a system's own mutations; None for the recogniser, which uses those for audio."""
    return None if name.startswith("english") else name
