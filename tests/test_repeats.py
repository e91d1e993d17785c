"""Equal mutants of a seed are run once, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign import fuzz
from deepcruiser.campaign.executors import repeats
from deepcruiser.campaign.fuzz import Status
from deepcruiser.systems.builtin import bracket_changes
from tests.support import toy

#: Short texts of which two are equal, with changes that give few different mutants.
SEEDS = [toy.Text("a", "()"), toy.Text("b", "()"), toy.Text("c", "[a]b"), toy.Text("d", "ab[]a")]
KINDS = (bracket_changes.InsertRound, bracket_changes.SwapKinds)
OPTIONS: dict[str, Any] = {
    "mutations": dc.Mutations(KINDS, bracket_changes.FAMILIES, (), bracket_changes.too_long),
    "guide": (dc.BSCov, dc.SBCov(2)),
    "batch_size": 4,
    "window": 12,
}


class Counting(toy.Reader):
    """Notes the texts that it runs, batch by batch; `watch` notes when the seeds have run, and where it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.ends: list[int] = []

    def watch(self, status: Status) -> None:
        self.ends.append(len(self.batches))

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        self.batches.append(list(batch))
        return super().run(batch)

    @property
    def of_mutants(self) -> list[list[str]]:
        return self.batches[self.ends[0] : self.ends[-1]]

    @property
    def texts(self) -> Counter[str]:
        return Counter(text for batch in self.of_mutants for text in batch)


def mutants(record: dc.CampaignRecord) -> list[tuple[str, str]]:
    """The seed and the digest of each mutant that was to be run."""
    seeds = {-1 - event.position: event.seed for event in record.seeds}
    for event in record.runs:
        seeds[event.number] = seeds[event.parent]
    return [(seeds[event.parent], event.digest) for event in record.runs if event.outcome != "rejected"]


def test_each_text_is_run_once_for_each_seed(tmp_path: Path) -> None:
    system = Counting()
    record = toy.campaign(tmp_path, SEEDS, system=system, watch=system.watch, runs=160, **OPTIONS)
    made, ran = mutants(record), system.texts
    assert len(set(made)) < 0.5 * len(made), "many mutants are equal"
    seeds_of = Counter(digest for _, digest in set(made))
    assert len(ran) == len(seeds_of)
    assert sum(ran.values()) <= len(set(made))
    assert all(count <= max(seeds_of.values()) == 2 for count in ran.values())


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_events_are_those_of_a_campaign_that_runs_every_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    toy.campaign(tmp_path / "once", SEEDS, workers=workers, runs=160, **OPTIONS)
    monkeypatch.setattr(fuzz, "are_shared", lambda seeds, mutations, oracle: False)
    system = Counting()
    record = toy.campaign(tmp_path / "each", SEEDS, system=system, watch=system.watch, runs=160, **OPTIONS)
    assert sum(system.texts.values()) > len(set(mutants(record)))
    assert toy.rows(tmp_path / "once") == toy.rows(tmp_path / "each")
    files = [{p.name: p.read_bytes() for p in (tmp_path / name / "failed").iterdir()} for name in ("once", "each")]
    assert files[0] == files[1] != {}


@pytest.mark.parametrize("remembered", [repeats._REMEMBERED, 5])
def test_a_resumed_campaign_runs_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(repeats, "_REMEMBERED", remembered)

    def batches(folder: Path, *ends: int) -> list[list[str]]:
        """The batches of mutants of a campaign that was stopped after some numbers of runs."""
        result: list[list[str]] = []
        for end in ends:
            system = Counting()
            toy.campaign(folder, SEEDS, system=system, watch=system.watch, runs=end, **OPTIONS)
            result += system.of_mutants
        return result

    whole, parts = batches(tmp_path / "whole", 160), batches(tmp_path / "parts", 40, 44, 100, 160)
    assert parts == whole
    assert toy.rows(tmp_path / "parts")["runs"] == toy.rows(tmp_path / "whole")["runs"]


def test_failures_of_all_kinds_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Weak(Counting):
        def run(self, batch: Sequence[str]) -> list[dc.Run]:
            runs = super().run(batch)
            if any("()()" in text for text in batch):
                raise ValueError("no brackets like these")
            return [
                dc.Run(np.array([np.nan]), run.trace) if "(a)" in text else run
                for text, run in zip(batch, runs, strict=True)
            ]

    toy.campaign(tmp_path / "once", SEEDS, system=Weak(), runs=160, **OPTIONS)
    monkeypatch.setattr(fuzz, "are_shared", lambda seeds, mutations, oracle: False)
    record = toy.campaign(tmp_path / "each", SEEDS, system=Weak(), runs=160, **OPTIONS)
    assert {event.reason for event in record.runs} >= {"crash", "not finite"}
    assert toy.rows(tmp_path / "once") == toy.rows(tmp_path / "each")


def test_where_answers_follow_the_changes_nothing_is_shared(tmp_path: Path) -> None:
    system = Counting()
    options = {"watch": system.watch, "against": toy.Reader(1), "keep_failing_seeds": True, "runs": 160, **OPTIONS}
    record = toy.campaign(tmp_path, SEEDS, system=system, **options)
    assert sum(system.texts.values()) > len(set(mutants(record)))
