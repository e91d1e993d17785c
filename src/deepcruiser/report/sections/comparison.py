"""Campaigns side by side at equal runs: each is compared with the first, and new failing tests are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

from deepcruiser.campaign.failed_test import different_failures
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.format import duration, markdown_table, markdown_text, percent
from deepcruiser.report.section import Data, Section
from deepcruiser.transformations.severity import severity


def _data(report: ReportData) -> dict[str, Any]:
    """Rows of a table, each with a value per campaign and how it differs from the first, and the same in sentences."""
    if len(report.campaigns) < 2:
        return {"runs": 0, "rows": [], "sentences": []}
    known = [len(each.record.runs) for each in report.campaigns if each.record.state != "damaged"]
    runs = min(known, default=0)
    rows = [row for row in _rows(report, runs) if any(value is not None for value in row["values"])]
    return {"runs": runs, "rows": rows, "sentences": list(_sentences(report, rows, runs))}


def _rows(report: ReportData, runs: int) -> Iterator[dict[str, Any]]:
    """The results of the first `runs` runs of each campaign.

    More coverage of the same model is better. With the same system, the campaign is judged, and finding more is better;
    with another version of the system, that is, and failing less is better.
    """
    campaigns, names = report.facts, ("system", "model", "oracle")
    same = {fact: len({each.get(f"{fact}_fingerprint", each[fact]) for each in campaigns}) == 1 for fact in names}
    known = all(each["system_fingerprint"] for each in campaigns) and same["oracle"]
    more = None if not known else same["system"]

    def row(label: str, values: Sequence[Any], form: str = "", *, better: bool | None = None) -> dict[str, Any]:
        """`better` says whether more is better; None if unknown."""
        differences = [_difference(values[0], value, form, better) for value in values]
        return {"label": label, "values": list(values), "form": form, "differences": differences}

    yield row("runs", [_if_known(each, "runs") for each in campaigns], "count")
    yield row("time for these runs", [_seconds(each, runs) for each in report.campaigns], "duration")
    for fact in ("guide", "oracle"):
        yield row(fact, [each[fact] or None for each in campaigns])
    yield row("scheduler", [each.record.spec.scheduler.type for each in report.campaigns])
    yield row("mean severity of a mutant", [_severity(each, runs) for each in report.campaigns])
    for fact in ("system", "model"):
        yield row(fact, [each[f"{fact}_fingerprint"][:12] or None for each in campaigns])
    right = [each["right"] and each["right"]["right"] / max(1, each["right"]["of"]) for each in campaigns]
    yield row("seeds right", right, "share", better=True)
    coverage = [each.coverage.after(runs) for each in report.campaigns]
    for name in dict.fromkeys(name for some in coverage for name in some):
        values = [some.get(name) for some in coverage]
        yield row(name, values, "share", better=True if same["model"] else None)
    failed = [[test for test in each.record.failed if test.number <= runs or not runs] for each in report.campaigns]
    yield row("failing tests", [len(some) for some in failed], "count", better=more)
    yield row("different failures", [different_failures(some) for some in failed], "count", better=more)
    seeds = [len({test.seed for test in some}) for some in failed]
    yield row("seeds with a failure", seeds, "count", better=more)
    first = [min((test.number for test in some), default=None) for some in failed]
    yield row("first failure in run", first, "count", better=None if more is None else not more)
    alone = [0] * len(campaigns)
    for test in report.failures:
        alone[test["campaign"]] += test["elsewhere"] != "both" and (test["number"] <= runs or not runs)
    yield row("failing tests only here", alone, "count")


def _if_known(campaign: Data, fact: str) -> Any:
    return None if campaign["state"] == "damaged" else campaign[fact]


def _seconds(campaign: CampaignData, runs: int) -> float | None:
    """The time of the first runs; None if the campaign is damaged."""
    return next((seconds for number, seconds in campaign.record.moments if number >= runs), None)


def _severity(campaign: CampaignData, runs: int) -> str | None:
    """The mean severity of the mutants of the first runs: failures of milder changes are worth more."""
    record = campaign.record
    if not isinstance(record, CampaignRecord) or not runs:
        return None
    mutants = ((*record.tests[event.parent].recipe, *event.changes) for event in record.runs[:runs])
    return f"{fmean(map(severity, mutants)):.2f}"


def _difference(first: Any, value: Any, form: str, better: bool | None) -> dict[str, Any]:
    """How a value differs from that of the first campaign, and whether that is better; None if unknown."""
    if first is None or value is None or first == value or form not in ("share", "count"):
        return {"better": None, "text": ""}
    text = f"{(value - first) * 100:+.2f} points" if form == "share" else f"{value - first:+,}"
    return {"better": None if better is None else (value > first) == better, "text": text}


def _sentences(report: ReportData, rows: Sequence[Data], runs: int) -> Iterator[str]:
    """For each campaign but the first, where it is better and worse; then what had to be left out."""
    names, alone = [each["name"] for each in report.facts], rows[-1]["values"]
    for number, name in enumerate(names[1:], 1):
        parts = []
        for word, is_better in (("better", True), ("worse", False)):
            labels = [row["label"] for row in rows if row["differences"][number]["better"] is is_better]
            parts += [f"{word} in {_joined(labels)}"] if labels else []
        result = " and ".join(parts) or "neither better nor worse"
        yield f"Compared with {names[0]}, {name} is {result}, after {runs:,} runs of each."
        yield (
            f"{name} has {alone[number]:,} failing tests that {names[0]} lacks; "
            f"{names[0]} has {alone[0]:,} that {name} lacks."
        )
    longer = [each["name"] for each in report.facts if each["runs"] > runs and each["state"] != "damaged"]
    if longer:
        yield f"Budgets differ: of {_joined(longer)}, only the first {runs:,} runs are compared."


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _cells(data: Data) -> tuple[list[str], list[list[str]]]:
    rows = [[row["label"], *_values(row)] for row in data["comparison"]["rows"]]
    return ["", *(each["name"] for each in data["campaigns"])], rows


def _values(row: Data) -> Iterator[str]:
    forms: dict[str, Callable[[Any], str]] = {
        "share": percent,
        "duration": duration,
        "count": lambda count: f"{count:,}",
    }
    for value, difference in zip(row["values"], row["differences"], strict=True):
        text = "-" if value is None else forms.get(row["form"], str)(value)
        word = {True: ", better", False: ", worse", None: ""}[difference["better"]]
        yield f"{text} ({difference['text']}{word})" if difference["text"] else text


def _text(data: Data) -> Iterator[str]:
    heads, rows = _cells(data)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for cells in (heads, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    yield ""
    yield from data["comparison"]["sentences"]


def _markdown(data: Data) -> Iterator[str]:
    yield from markdown_table(*_cells(data))
    yield from map(markdown_text, data["comparison"]["sentences"])


def _shown(data: Data) -> bool:
    return bool(data["comparison"]["rows"])


COMPARISON = Section("comparison", "Comparison", _data, text=_text, markdown=_markdown, shown=_shown)
