"""Campaigns side by side: what is better, what is worse, and which failing tests are new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deepcruiser.report.data import ReportData
from deepcruiser.report.format import clock, markdown_table, markdown_text, percent
from deepcruiser.report.section import Data, Section


def _data(report: ReportData) -> dict[str, Any]:
    """Rows of a table, each with a value per campaign and how it differs from the first, and the same in sentences."""
    if len(report.campaigns) < 2:
        return {"rows": [], "sentences": []}
    rows = [row for row in _rows(report) if any(value is not None for value in row["values"])]
    return {"rows": rows, "sentences": list(_sentences(rows, [each["name"] for each in report.facts]))}


def _rows(report: ReportData) -> Iterator[dict[str, Any]]:
    """More coverage is better.

    Whether more failing tests are good news depends on what is compared, two guides or two versions of a system, so
    that is left to the reader.
    """
    campaigns = report.facts

    def row(label: str, values: Sequence[Any], form: str = "", *, criterion: str = "") -> dict[str, Any]:
        differences = [_difference(values[0], value) if criterion else _SAME for value in values]
        return {
            "label": label,
            "values": list(values),
            "form": form,
            "criterion": criterion,
            "differences": differences,
        }

    yield row("runs", [_if_known(each, "runs") for each in campaigns], "count")
    yield row("time", [_if_known(each, "seconds") for each in campaigns], "clock")
    for fact in ("guide", "oracle"):
        yield row(fact, [each[fact] or None for each in campaigns])
    for fact in ("system", "model"):
        yield row(fact, [each[f"{fact}_fingerprint"][:12] or None for each in campaigns])
    same_model = len({each["model_fingerprint"] for each in campaigns}) == 1
    for name in dict.fromkeys(each["name"] for campaign in campaigns for each in campaign["coverage"]):
        values = [next((c["executed"] for c in each["coverage"] if c["name"] == name), None) for each in campaigns]
        yield row(f"{name}, all runs", values, "share", criterion=name if same_model else "")
    yield row("failing tests", [each["failing_tests"] for each in campaigns], "count")
    yield row("different failing inputs", [each["failing_inputs"] for each in campaigns], "count")
    yield row("seeds with a failure", [each["failing_seeds"] for each in campaigns], "count")
    yield row("first failure in run", [each["first_failure"] for each in campaigns], "count")
    alone = [0] * len(campaigns)
    for test in report.failures:
        alone[test["campaign"]] += test["elsewhere"] != "both"
    yield row("failing tests only here", alone, "count")


def _if_known(campaign: Data, fact: str) -> Any:
    return None if campaign["state"] == "damaged" else campaign[fact]


_SAME = {"better": None, "text": ""}


def _difference(first: Any, value: Any) -> dict[str, Any]:
    """How a coverage differs from that of the first campaign, in percentage points."""
    if first is None or value is None or first == value:
        return _SAME
    return {"better": value > first, "text": f"{(value - first) * 100:+.2f}"}


def _sentences(rows: Sequence[Data], names: Sequence[str]) -> Iterator[str]:
    """For each other campaign, in what the first is better and worse."""
    alone = rows[-1]["values"]
    for number, other in enumerate(names[1:], 1):
        higher = [row["criterion"] for row in rows if row["differences"][number]["better"] is False]
        lower = [row["criterion"] for row in rows if row["differences"][number]["better"] is True]
        parts = [f"higher {_joined(higher)}"] if higher else []
        parts += [f"lower {_joined(lower)}"] if lower else []
        if parts:
            yield f"Compared with {other}, {names[0]} has {' and '.join(parts)}."
        yield (
            f"{names[0]} has {alone[0]:,} failing tests that {other} lacks; "
            f"{other} has {alone[number]:,} that {names[0]} lacks."
        )


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _cells(data: Data) -> tuple[list[str], list[list[str]]]:
    rows = [[row["label"], *_values(row)] for row in data["comparison"]["rows"]]
    return ["", *(each["name"] for each in data["campaigns"])], rows


def _values(row: Data) -> Iterator[str]:
    forms: dict[str, Callable[[Any], str]] = {"share": percent, "clock": clock, "count": lambda count: f"{count:,}"}
    for value, difference in zip(row["values"], row["differences"], strict=True):
        text = "-" if value is None else forms.get(row["form"], str)(value)
        yield f"{text} ({difference['text']})" if difference["text"] else text


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
