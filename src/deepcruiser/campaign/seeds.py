"""The inputs of a campaign: seeds by name, and mutants made again from their recipes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.serialise import not_storable
from deepcruiser.stream import input_of, named, reading, require_sized

#: Inputs of this many seeds are held in memory; the others are read again.
_SEEDS_HELD = 128
#: Inputs of this many tests of the queue are held in memory; the others are made again from their recipes.
_TESTS_HELD = 256

Recipe = tuple[Any, ...]


class Seeds(Mapping[str, Any]):
    """The inputs of the seeds by name, read only when they are needed."""

    def __init__(self, data: Iterable[Any]) -> None:
        data, size = require_sized(data)
        self._items = dict(named(data))
        if len(self._items) < size:
            twice = next(name for name, count in Counter(name for name, _ in named(data)).items() if count > 1)
            raise InputError(f"two seeds have the id {twice!r}: ids must be unique, so rename or drop one")
        self._held: OrderedDict[str, Any] = OrderedDict()

    def text(self, name: str) -> Any:
        """The text of a seed or its right label, if known."""
        with reading(f"the right answer of the seed {name!r}"):
            text = getattr(self._items[name], "text", None)
        if refusal := not_storable(text):
            raise InputError(f"the right answer of the seed {name!r} cannot be stored: {refusal}")
        return text

    def __getitem__(self, name: str) -> Any:
        if name not in self._items:
            raise InputError(f"there is no seed {name!r} among the {len(self):,} given")
        if name not in self._held:
            self._held[name] = input_of(self._items[name])
            if len(self._held) > _SEEDS_HELD:
                self._held.popitem(last=False)
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Inputs:
    """Inputs by seed and recipe: made on demand, and cached while they are likely to be needed again."""

    def __init__(self, seeds: Seeds, *, recent: int = 32) -> None:
        self.seeds = seeds
        #: The first input whose distance to failure is not a number.
        self.without_distance = ""
        self._recent: OrderedDict[tuple[str, Recipe], Any] = OrderedDict()
        self._tests: OrderedDict[tuple[str, Recipe], Any] = OrderedDict()
        self._most_recent = recent

    def make(self, seed: str, recipe: Recipe) -> Any:
        """The seed after the changes of the recipe, in order."""
        key = (seed, recipe)
        if not recipe:
            return self.seeds[seed]
        if key in self._tests:
            self._tests.move_to_end(key)
            return self._tests[key]
        if key in self._recent:
            return self._recent[key]
        return recipe[-1](self.make(seed, recipe[:-1]))  # the parent's input may be in memory

    def parent(self, seed: str, recipe: Recipe) -> Any:
        """The same for a test of the queue; it is kept in memory, because its mutants will be made too."""
        value = self.make(seed, recipe)
        self._hold(seed, recipe, value)
        return value

    def note(self, seed: str, recipe: Recipe, value: Any) -> None:
        """Keep an input in memory until it has been judged."""
        self._recent[seed, recipe] = value
        if len(self._recent) > self._most_recent:
            self._recent.popitem(last=False)

    def keep(self, seed: str, recipe: Recipe) -> None:
        """Keep the input of a new test of the queue in memory, if it is still there."""
        if (seed, recipe) in self._recent:
            self._hold(seed, recipe, self._recent[seed, recipe])

    def _hold(self, seed: str, recipe: Recipe, value: Any) -> None:
        if recipe:
            self._tests[seed, recipe] = value
            self._tests.move_to_end((seed, recipe))
            if len(self._tests) > _TESTS_HELD:
                self._tests.popitem(last=False)
