"""The seeds of a campaign: which of them the system gets right, and their inputs whenever they are needed."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.events import Seeded
from deepcruiser.campaign.executors.local import Problem
from deepcruiser.campaign.serialise import digest_of, from_json, to_json
from deepcruiser.campaign.verdict import verdict
from deepcruiser.coverage import Coverage
from deepcruiser.errors import DeepCruiserError, InputError
from deepcruiser.oracles import Oracle
from deepcruiser.stream import input_of, named, require_sized
from deepcruiser.trace import Run

#: Inputs of so many seeds are held ready; the others are read again.
_READY = 128
_NOTHING = np.empty(0, np.int64)


class Seeds(Mapping[str, Any]):
    """The inputs of the seeds by name; read when asked for."""

    def __init__(self, data: Iterable[Any]) -> None:
        data, size = require_sized(data)
        self._items = dict(named(data))
        if len(self._items) < size:
            twice = next(name for name, count in Counter(name for name, _ in named(data)).items() if count > 1)
            raise InputError(f"two seeds have the id {twice!r}: ids must be unique, so rename or drop one")
        self._ready: OrderedDict[str, Any] = OrderedDict()

    def text(self, name: str) -> str | None:
        """What is said in a seed, or its right label, where that is known."""
        text = getattr(self._items[name], "text", None)
        return text if isinstance(text, str) else None

    def __getitem__(self, name: str) -> Any:
        if name not in self._items:
            raise InputError(f"there is no seed {name!r} among the {len(self):,} given")
        if name not in self._ready:
            self._ready[name] = input_of(self._items[name])
            if len(self._ready) > _READY:
                self._ready.popitem(last=False)
        return self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def sow(
    seeds: Seeds,
    coverages: Sequence[Coverage],
    run: Callable[[list[Any]], Sequence[Run | Problem]],
    oracle: Oracle,
    *,
    batch_size: int,
    watch: Callable[[int], None] = lambda _: None,
    note: Callable[[Visits], None] = lambda _: None,
) -> Iterator[Seeded]:
    """Run every seed. Those that cannot be read, or that the system fails already, are set aside.

    `coverages` are those that the seeds are to be added to; the caller adds each before asking for the next. `note` is
    told what each seed visits that is not set aside.
    """
    names = list(seeds)
    for start in range(0, len(names), batch_size):
        batch = names[start : start + batch_size]
        inputs: dict[str, Any] = {}
        unreadable: dict[str, str] = {}
        for name in batch:
            try:
                inputs[name] = seeds[name]
            except DeepCruiserError as error:
                unreadable[name] = str(error)
        results = dict(zip(inputs, run(list(inputs.values())), strict=True))
        for position, name in enumerate(batch, start):
            if name in unreadable:
                yield _aside(position, name, "unreadable", unreadable[name])
            else:
                yield _judged(position, name, inputs[name], results[name], seeds.text(name), coverages, oracle, note)
        watch(min(start + batch_size, len(names)))


def _judged(
    position: int,
    name: str,
    value: Any,
    result: Run | Problem,
    text: str | None,
    coverages: Sequence[Coverage],
    oracle: Oracle,
    note: Callable[[Visits], None],
) -> Seeded:
    model = coverages[0].model if coverages else None
    found = verdict(result, model, oracle, reference=partial(oracle.reference, text))
    if found.kind not in ("", "wrong"):
        return _aside(position, name, found.kind, found.said or found.output)
    reference, score = from_json(to_json(found.reference)), found.score
    if found.kind:
        return _aside(position, name, "failed already", found.output, reference=reference, score=score)
    said = found.output, reference, score, digest_of(value)
    if found.visits is None:
        return Seeded(position, name, "kept", "", *said, _NOTHING, ())
    note(found.visits)
    news = tuple(coverage.new(found.visits) for coverage in coverages)
    return Seeded(position, name, "kept", "", *said, found.visits.states, news)


def _aside(position: int, name: str, reason: str, output: Any, *, reference: Any = None, score: float = 0.0) -> Seeded:
    return Seeded(position, name, "rejected", reason, output, reference, score, "", _NOTHING, ())
