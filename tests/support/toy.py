"""The system in most tests of campaigns: a recurrent network in a few lines of numpy, and texts for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.database import checksum
from deepcruiser.campaign.events import Event
from deepcruiser.campaign.spec import Component
from deepcruiser.systems.builtin import bracket_changes

SYMBOLS = "()[]ab"
#: The changes of the brackets network, whose texts this one reads as well.
MUTATIONS = dc.Mutations(
    bracket_changes.KINDS, bracket_changes.FAMILIES, bracket_changes.UNAFFECTED, bracket_changes.too_long
)


class Reader:
    """A recurrent network with random weights that says "high" or "low" of a text; one text at a time, so exactly."""

    state_name = "h"

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.fingerprint = f"reader {seed}"
        self._keep, self._read = rng.normal(0, 0.6, (4, 4)), rng.normal(0, 0.7, (len(SYMBOLS), 4))

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [self._run(text) for text in batch]

    def _run(self, text: str) -> dc.Run:
        inputs = np.eye(len(SYMBOLS))[[SYMBOLS.index(symbol) for symbol in text]]
        states = [np.zeros(4)]
        for symbol in inputs:
            states.append(np.tanh(states[-1] @ self._keep + symbol @ self._read))
        return dc.Run("high" if states[-1][0] > 0 else "low", dc.Trace(np.array(states), inputs))


@dataclass(frozen=True)
class Text:
    """A seed."""

    id: str
    value: str
    text: str | None = None

    @property
    def input(self) -> str:
        return self.value


def texts(count: int, *, seed: int = 0, longest: int = 16) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(SYMBOLS), rng.integers(6, longest))) for _ in range(count)]


def seeds(count: int = 12) -> list[Text]:
    return [Text(f"t{i}", text) for i, text in enumerate(texts(count, seed=1))]


@cache
def model(seed: int = 0) -> dc.AbstractModel:
    return dc.profile(Reader(seed), texts(300, longest=12), exact=True).abstract(12)


def campaign(folder: Path, data: Sequence[Any] | None = None, **options: Any) -> dc.CampaignRecord:
    """A campaign on the reader, made in this process by default."""
    options = {
        "oracle": dc.Disagreement(),
        "mutations": MUTATIONS,
        "workers": 0,
        "runs": 64,
        "severity": "unlimited",
        **options,
    }
    if "select" in options or "pick" in options:
        pick = {"pick": options.pop("pick", "uniform")}
        options["scheduler"] = Component(options.pop("select", "rarity"), pick)
    system = options.pop("system", None) or Reader()
    return dc.fuzz(system, options.pop("model", None) or model(), data or seeds(), folder=folder, **options)


def overwrite(database: Path, table: str, change: str, where: str) -> None:
    """Change rows of a campaign's database, and their checksums with them."""
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(f"UPDATE {table} SET {change} WHERE {where}")
        for number, *row, _ in db.execute(f"SELECT rowid, * FROM {table} WHERE {where}").fetchall():
            db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", (checksum(row), number))


#: What two equal campaigns may differ in: paths, when they were stopped, and the number of rows of `moments`.
LEFT_OUT = ("directory", "stopped", "moments")


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in a campaign's database except the seconds, the budget and the paths."""
    with closing(sqlite3.connect(folder / "campaign.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        columns = {"meta": "*", "seeds": "*", "runs": "*", "moments": "runs"}
        result = {
            table: db.execute(f"SELECT {what} FROM {table} ORDER BY 1").fetchall() for table, what in columns.items()
        }
    meta = {key: json.loads(value) for key, value, _ in result["meta"] if key not in LEFT_OUT}
    for budget in ("minutes", "runs", "until_coverage"):
        meta["spec"].pop(budget, None)
    return {**result, "meta": sorted(meta.items())}


def event_fields(event: Event) -> tuple[Any, ...]:
    """An event as values that can be compared."""
    visits = None if event.visits is None else [array.tolist() for array in event.visits.arrays]
    return (*(getattr(event, each.name) for each in fields(event) if each.name != "visits"), visits)
