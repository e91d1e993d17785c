"""The failing tests, the worst first, each with its input, its recipe and the command that replays it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from deepcruiser.report.data import ReportData
from deepcruiser.report.format import failure_text, markdown_table, printable, quoted
from deepcruiser.report.section import Data, Section

#: Failing tests listed as text; the page lists the others too.
_LISTED = 10
#: Bytes of the page for failing tests; the least bad ones that do not fit are left out.
_ROOM = 2_200_000


def _data(report: ReportData) -> list[dict[str, Any]]:
    return report.failures


def _page_data(report: ReportData) -> list[dict[str, Any]]:
    """The same with their inputs, as many as there is room for.

    A failing test whose input was already made by another recipe is marked with `again`.
    """
    shown: list[dict[str, Any]] = []
    room, inputs = _ROOM, set[tuple[int, str]]()
    for test in report.failures:
        campaign = report.campaigns[test["campaign"]]
        test = {**test, "input": campaign.inputs.of(test["number"], test["position"])}
        key = test["campaign"], test.pop("sha256")
        test |= {"again": True} if key in inputs else {}
        inputs.add(key)
        room -= len(json.dumps(test))
        if room < 0:
            break
        shown.append(test)
    return shown


def _text(data: Data) -> Iterator[str]:
    if data["failures"]:
        yield "failing tests, the worst first:"
    for test in data["failures"][:_LISTED]:
        score = test["score"] if data["campaigns"][test["campaign"]]["measure"] else None
        summary = failure_text(test["kind"], test["reference"], test["output"], score=score)
        yield f"  {_name(test, data)}{' (new)' if test.get('elsewhere') == 'new' else ''}: {summary}"
        yield f"      {printable(test['seed'] + ': ' + ' -> '.join(test['recipe']))}"
    if (rest := len(data["failures"]) - _LISTED) > 0:
        yield f"  and {rest:,} more"


def _markdown(data: Data) -> Iterator[str]:
    worst = data["failures"][:_LISTED]
    if worst:
        yield f"<details><summary>The worst {len(worst)} failing tests</summary>"
        yield ""
        rows = [[_name(test, data), *_sides(test), f"{test['seed']}: {' → '.join(test['recipe'])}"] for test in worst]
        yield from markdown_table(["test", "expected", "got", "recipe"], rows)
        yield "</details>"


def _name(test: Data, data: Data) -> str:
    several = len(data["campaigns"]) > 1
    return f"{data['campaigns'][test['campaign']]['name']} {test['number']}" if several else str(test["number"])


def _sides(test: Data) -> tuple[str, str]:
    output = quoted(test["output"])
    return quoted(test["reference"]), output if test["kind"] == "wrong" else f"{test['kind']}: {output}"


FAILURES = Section(
    "failures",
    "Failing tests",
    _data,
    page_data=_page_data,
    scripts=("inputs.js", "details.js", "failures.js"),
    text=_text,
    markdown=_markdown,
)
