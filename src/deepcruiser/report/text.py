"""The report as text: for the log of a CI job, and in Markdown for a pull request."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from deepcruiser.report.format import clock, counted, printable, quoted, rate

#: So many failing tests are told; the page has the others.
_TOLD = 10
Data = Mapping[str, Any]


def as_text(data: Data) -> str:
    """The report in lines, without colours, for logs."""
    lines: list[str] = []
    for told in data["campaigns"]:
        lines += [*_campaign(told), ""]
    cells = [[row["what"], *(_cell(row, i) for i in range(len(row["values"])))] for row in data["compared"]]
    if cells:
        cells.insert(0, ["", *(told["name"] for told in data["campaigns"])])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        lines += ["", *data["verdicts"], ""]
    lines += [f"  {line}" for test in data["failures"][:_TOLD] for line in _told(test, data)]
    if (rest := len(data["failures"]) - _TOLD) > 0:
        lines.append(f"  and {rest:,} more")
    return "\n".join(lines).rstrip()


def as_markdown(data: Data) -> str:
    """The report as a pull request shows it: two tables, and the worst failing tests folded away."""
    campaigns = data["campaigns"]
    first = campaigns[0]
    many = len(campaigns) > 1
    lines = [f"### DeepCruiser: {_md(_verdict(first))}", ""]
    if many:
        rows = [[row["what"], *(_cell(row, i) for i in range(len(campaigns)))] for row in data["compared"]]
        lines += [*_table(["", *(told["name"] for told in campaigns)], rows), *map(_md, data["verdicts"]), ""]
    else:
        lines += [_md(f"{_course(first)}; guide: {first['guide'] or 'none'}; fails if: {first['oracle']}"), ""]
        rows = [[each["name"], _share(each["start"]), _share(each["executed"])] for each in first["coverage"]]
        lines += _table(["coverage", "seeds", "all runs"], rows) if rows else []
    if data["failures"]:
        worst = data["failures"][:_TOLD]
        lines += [f"<details><summary>The worst {len(worst)} failing tests</summary>", ""]
        heads = ["test", "expected", "came", "recipe"]
        cells = [[_name(test, data), *_what(test), f"{test['seed']}: {' → '.join(test['recipe'])}"] for test in worst]
        lines += [*_table(heads, cells), "</details>", ""]
        folder = _code(shlex.quote(campaigns[worst[0]["campaign"]]["folder"]))
        lines.append(f"Run one again: `deepcruiser replay {folder} {worst[0]['number']}`")
    return "\n".join(lines)


def _campaign(told: Data) -> list[str]:
    stopped = f"; stopped: {told['stopped']}" if told["stopped"] else f"; {told['state']}"
    lines = [f"{told['folder']}: {_verdict(told)}", f"{_course(told)}, guide: {told['guide'] or 'none'}{stopped}"]
    if told["coverage"]:
        lines.append(f"{'coverage':14} {'seeds':>8} {'all runs':>8}")
    lines += [f"  {each['name']:12} {each['start']:8.2%} {each['executed']:8.2%}" for each in told["coverage"]]
    if told["set_aside"]:
        lines.append(f"seeds set aside: {counted(told['set_aside'])}, of {told['seeds']:,}")
    if told["rejected"]:
        lines.append(f"mutants rejected: {counted(told['rejected'])}")
    return [printable(line) for line in lines]


def _verdict(told: Data) -> str:
    if not told["failing_tests"]:
        return "no failing tests"
    return (
        f"{told['failing_tests']:,} failing tests ({counted(told['failed'])}), {told['failing_inputs']:,} different "
        f"inputs, from {told['failing_seeds']:,} seeds"
    )


def _course(told: Data) -> str:
    return f"{told['runs']:,} runs in {clock(told['seconds'])} ({rate(told['runs'], told['seconds'])})"


def _told(test: Data, data: Data) -> list[str]:
    if test["kind"] == "wrong":
        score = f" ({test['score']:.0%})" if data["campaigns"][test["campaign"]]["measure"] else ""
        what = f"{quoted(test['reference'])} became {quoted(test['output'])}{score}"
    else:
        what = f"{test['kind']}: {printable(test['output'], width=100)}"
    new = " (new)" if test.get("elsewhere") == "new" else ""
    return [
        f"{_name(test, data)}{new}: {what}",
        f"    {printable(test['seed'] + ': ' + ' -> '.join(test['recipe']))}",
    ]


def _name(test: Data, data: Data) -> str:
    several = len(data["campaigns"]) > 1
    return f"{data['campaigns'][test['campaign']]['name']} {test['number']}" if several else str(test["number"])


def _what(test: Data) -> tuple[str, str]:
    if test["kind"] == "wrong":
        return quoted(test["reference"]), quoted(test["output"])
    return quoted(test["reference"]), f"{test['kind']}: {quoted(test['output'])}"


def _cell(row: Data, number: int) -> str:
    value, mark = row["values"][number], row["marks"][number]["text"]
    if value is None:
        return "-"
    forms: dict[str, Callable[[Any], str]] = {"share": _share, "clock": clock, "count": lambda count: f"{count:,}"}
    text = forms.get(row["form"], str)(value)
    return f"{text} ({mark})" if mark else text


def _share(value: float) -> str:
    return f"{value:.2%}"


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [
        *("| " + " | ".join(_md(cell) if row is not lines[1] else cell for cell in row) + " |" for row in lines),
        "",
    ]


def _md(text: str) -> str:
    """A text of which Markdown and HTML make nothing else: no markup, no link, and nobody is mentioned."""
    return re.sub(
        r"[\\`*_{}\[\]<>&#!|~@]|://", lambda found: "".join(f"&#{ord(c)};" for c in found[0]), printable(text)
    )


def _code(text: str) -> str:
    return printable(text).replace("`", "'")
