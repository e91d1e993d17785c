"""What goes wrong: how often each transformation makes each group of seeds fail, which words, and which labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.queue import Test
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.errors import printable
from deepcruiser.findings.cluster import oracle_of
from deepcruiser.findings.kinds import label_of
from deepcruiser.findings.phrases import count_of
from deepcruiser.findings.shrink import failure_of
from deepcruiser.report.data import MEASURES, CampaignData, Fold, ReportData
from deepcruiser.report.format import markdown_table
from deepcruiser.report.salvage import Record
from deepcruiser.report.section import Data, Section, runs_known
from deepcruiser.transformations import to_dict

#: Groups of seeds in the heat map, words, and labels in the confusion matrix that are shown at most.
_GROUPS, _WORDS, _LABELS = 12, 20, 30
#: Words in a reference, for groups by length.
_LENGTHS = (4, 8, 12)


@dataclass
class _Count:
    tried: int = 0
    failed: int = 0


@dataclass
class _Counts:
    """By transformation and group of seeds; and by right and given label."""

    cells: dict[tuple[str, str], _Count] = field(default_factory=dict)
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)


class Mistakes(Fold):
    """Counts over the runs of a campaign."""

    def __init__(self, record: Record) -> None:
        self._counts = _Counts()
        self.rule, self._group_of = _grouping(record)
        super().__init__(record)

    def _add(self, runs: Sequence[Ran]) -> None:
        for run in runs:
            if run.outcome == "rejected":
                continue
            assert isinstance(self._record, CampaignRecord), "the recovered part has no runs"
            parent = self._record.tests[run.parent]
            for name in {to_dict(change)["name"] for change in run.changes}:
                count = self._counts.cells.setdefault((name, self._group_of(parent)), _Count())
                count.tried += 1
                count.failed += run.outcome == "failed"
            right, answer = label_of(parent.reference), label_of(run.output)
            if right and answer and run.reason in ("", "wrong"):
                self._counts.labels[right, answer] += 1

    def heat_map(self) -> dict[str, Any] | None:
        """For each transformation and group [failed, tried, rate, lower, upper]; the most frequent groups first."""
        cells = self._counts.cells
        sizes: Counter[str] = Counter()
        for (_, group), count in cells.items():
            sizes[group] += count.tried
        groups = [group for group, _ in sizes.most_common(_GROUPS)]
        kinds = sorted({kind for kind, _ in cells})
        if not kinds:
            return None
        rows = [{"kind": kind, "cells": [_rate(cells.get((kind, group))) for group in groups]} for kind in kinds]
        return {"rule": self.rule, "groups": groups, "left_out": len(sizes) - len(groups), "rows": rows}

    def labels(self) -> dict[str, Any] | None:
        """How often the system answered inputs of each label with each label; None if answers are not labels, or too
        many."""
        counts = self._counts.labels
        names = sorted({name for pair in counts for name in pair})
        if not 2 <= len(names) <= _LABELS:
            return None
        return {"names": names, "counts": [[counts[right, answer] for answer in names] for right in names]}

    def words(self) -> list[dict[str, Any]]:
        """The words that most failing tests get wrong, what became of them, and in how many tests and seeds."""
        result: dict[str, tuple[Counter[str], set[int], set[str]]] = {}
        record = self._record
        oracle = oracle_of(record) if isinstance(record, CampaignRecord) else None
        for test in record.failed:
            for error in failure_of(oracle, test).words:
                got, tests, seeds = result.setdefault(error.expected, (Counter(), set(), set()))
                got[error.got] += 1
                tests.add(test.number)
                seeds.add(test.seed)
        rows: list[dict[str, Any]] = [
            {"expected": word, "got": got.most_common(3), "tests": len(tests), "seeds": len(seeds)}
            for word, (got, tests, seeds) in result.items()
        ]
        return sorted(rows, key=lambda row: (-row["tests"], row["expected"]))[:_WORDS]


def _rate(count: _Count | None) -> list[float] | None:
    if count is None:
        return None
    return [count.failed, count.tried, count.failed / count.tried, *wilson(count.failed, count.tried)]


def wilson(failed: int, tried: int) -> tuple[float, float]:
    """The 95% confidence interval of a rate, by Wilson's formula."""
    z = 1.959964
    rate, spread = failed / tried, z * sqrt(failed * (tried - failed) / tried + z * z / 4) / tried
    middle, scale = rate + z * z / (2 * tried), 1 + z * z / tried
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _grouping(record: Record) -> tuple[str, Callable[[Test], str]]:
    """How seeds are grouped: by label, else by what their names begin with, else by their number of words."""
    seeds = [event for event in record.seeds if event.outcome == "kept"]
    labels = {label_of(event.reference) for event in seeds} - {""}
    transcripts = record.spec.oracle.type in MEASURES and any(" " in label for label in labels)
    if 2 <= len(labels) <= _GROUPS and not transcripts:
        return "right label", lambda test: label_of(test.reference) or "other"
    beginnings = {_beginning(event.seed) for event in seeds}
    if 2 <= len(beginnings) <= max(2, min(_GROUPS, len(seeds) // 2)):
        return "beginning of the seed's name", lambda test: _beginning(test.seed)
    if any(isinstance(event.reference, str) and " " in event.reference for event in seeds):
        return "number of words", _length
    return "all seeds", lambda test: "all"


def _beginning(seed: str) -> str:
    """The name of a seed without its last number."""
    return re.sub(r"[\W_]*\d+(\.\w+)?$", "", seed) or seed


def _length(test: Test) -> str:
    words = len(str(test.reference).split())
    at = int(np.searchsorted(_LENGTHS, words))
    low = 0 if at == 0 else _LENGTHS[at - 1] + 1
    return f"{low} to {_LENGTHS[at]}" if at < len(_LENGTHS) else f"{low} or more"


def _data(report: ReportData) -> list[dict[str, Any]]:
    return [_of(each) for each in report.campaigns]


def _of(campaign: CampaignData) -> dict[str, Any]:
    mistakes, transcribes = campaign.fold(Mistakes), bool(campaign.measure)
    return {
        "heat_map": mistakes.heat_map(),
        "words": mistakes.words() if transcribes else [],
        "labels": None if transcribes else mistakes.labels(),
    }


def _text(data: Data) -> Iterator[str]:
    for campaign, each in zip(data["campaigns"], data["mistakes"], strict=True):
        name = f"  {campaign['name']}" if len(data["campaigns"]) > 1 else ""
        if each["words"]:
            yield f"{'words that go wrong':20} {'tests':>6} {'seeds':>6}{name}"
        for row in each["words"][:10]:
            counts = f"{count_of(row['tests'], 'test')}, {count_of(row['seeds'], 'seed')}"
            yield f"  {printable(_heard(row), width=60)}: {counts}"


def _markdown(data: Data) -> Iterator[str]:
    for each in data["mistakes"]:
        if each["words"]:
            rows = [[_heard(row), f"{row['tests']:,}", f"{row['seeds']:,}"] for row in each["words"][:10]]
            yield from markdown_table(["words that go wrong", "failing tests", "seeds"], rows)


def _heard(row: Data) -> str:
    got = ", ".join(f"{word or 'nothing'!r} {count}" for word, count in row["got"])
    return f"{row['expected']!r} heard as {got}" if row["expected"] else f"heard where nobody spoke: {got}"


def _shown(data: Data) -> bool:
    return runs_known(data) and any(each["heat_map"] for each in data["mistakes"])


MISTAKES = Section("mistakes", "Mistakes", _data, text=_text, markdown=_markdown, shown=_shown)
