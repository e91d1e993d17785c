"""The failing tests, the worst first, each with its input, its recipe and the command that replays it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from deepcruiser.campaign.paths import CellPath, read_paths
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.findings.region import parting_of
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.format import failure_details, failure_text, markdown_table, quoted
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
        if path := paths_of(campaign, test["number"]):
            test["path"] = path
        key = test["campaign"], test.pop("sha256")
        del test["text"]  # its pieces contain them
        test |= {"again": True} if key in inputs else {}
        inputs.add(key)
        room -= len(json.dumps(test))
        if room < 0:
            break
        shown.append(test)
    return shown


def paths_of(campaign: CampaignData, number: int) -> dict[str, Any] | None:
    """The paths of a failing test and its seed through the cells, and where they diverge, if they were kept."""
    record = campaign.record
    if not isinstance(record, CampaignRecord) or record.model is None:
        return None
    model = record.model
    paths = read_paths(record.folder, record[number], model)
    if paths is None:
        return None
    part = parting_of(model, paths.seed.array, paths.test.array)

    def known(path: CellPath) -> str:
        """A digit for each state: whether training visited its cell."""
        return "".join("01"[visited] for visited in np.isin(model.grid.encode(path.array), model.states).tolist())

    sides = [{**asdict(path), "known": known(path)} for path in (paths.seed, paths.test)]
    return {"seed": sides[0], "test": sides[1], "parting": None if part is None else part.step}


def _text(data: Data) -> Iterator[str]:
    if data["failures"]:
        yield "failing tests, the worst first:"
    for test in data["failures"][:_LISTED]:
        score = test["score"] if data["campaigns"][test["campaign"]]["measure"] else None
        summary = failure_text(test["kind"], test["reference"], test["output"], score=score)
        yield f"  {_name(test, data)}{' (new)' if test.get('elsewhere') == 'new' else ''}: {summary}"
        yield from (f"      {line}" for line in failure_details(test))
    if (rest := len(data["failures"]) - _LISTED) > 0:
        yield f"  and {rest:,} more"


def _markdown(data: Data) -> Iterator[str]:
    worst = data["failures"][:_LISTED]
    if worst:
        yield f"<details><summary>The worst {len(worst)} failing tests</summary>"
        yield ""
        texts = any(test["text"] is not None for test in worst)
        heads = ["test", *(["input"] if texts else []), "expected", "unchanged seed", "got", "recipe"]
        yield from markdown_table(heads, [_row(test, data, texts=texts) for test in worst])
        yield "</details>"


def _name(test: Data, data: Data) -> str:
    several = len(data["campaigns"]) > 1
    return f"{data['campaigns'][test['campaign']]['name']} {test['number']}" if several else str(test["number"])


def _row(test: Data, data: Data, *, texts: bool) -> list[str]:
    text = [] if not texts else ["" if test["text"] is None else quoted(test["text"])]
    output = quoted(test["output"])
    got = output if test["kind"] == "wrong" else f"{test['kind']}: {output}"
    recipe = f"{test['seed']}: {' → '.join(test['recipe'])}"
    return [_name(test, data), *text, quoted(test["reference"]), quoted(test["seed_output"]), got, recipe]


FAILURES = Section(
    "failures",
    "Failing tests",
    _data,
    page_data=_page_data,
    scripts=("sounds.js", "inputs.js", "trace.js", "details.js", "failures.js"),
    text=_text,
    markdown=_markdown,
)
