"""Campaigns side by side: what got better, what got worse, and which failing tests are new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: A campaign as `Gathering.report` tells it, and a failing test.
Told = Mapping[str, Any]


def mark_new(failures: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Note with each failing test of the first campaign whether another one has it too, and the other way round.

    Two are the same if they are made of the same seed, by the same recipe or with the same answer.
    """
    keys = [{key for test in some for key in _keys(test)} for some in failures]
    for number, some in enumerate(failures):
        elsewhere = set[Any]().union(*keys[1:]) if number == 0 else keys[0]
        for test in some:
            known = any(key in elsewhere for key in _keys(test))
            test["elsewhere"] = "both" if known else "new" if number == 0 else "gone"


def compared(campaigns: Sequence[Told], failures: Sequence[Sequence[Told]]) -> list[dict[str, Any]]:
    """Rows of a table: what, a value for each campaign, and how each differs from the first.

    More coverage is better. Whether more failing tests are good news depends on what is compared, two guides or two
    versions of a system, so that is left to the reader.
    """
    return [row for row in _rows(campaigns, failures) if any(value is not None for value in row["values"])]


def verdicts(rows: Sequence[Told], campaigns: Sequence[Told]) -> list[str]:
    """The same in sentences: for each other campaign, in what the first is better and worse."""
    said = []
    for number, other in enumerate(campaigns[1:], 1):
        ways: dict[str, list[str]] = {"worse": [], "better": []}
        for row in rows:
            if way := row["marks"][number]["way"]:
                ways[way].append(row["what"].removesuffix(", all runs"))
        parts = [f"more {' and '.join(_listed(ways['worse']))}"] if ways["worse"] else []
        parts += [f"less {' and '.join(_listed(ways['better']))}"] if ways["better"] else []
        alone = next(row["values"] for row in rows if row["what"] == "found only here")
        parts.append(f"{alone[0]:,} failing tests that are new, without {alone[number]:,} of those there")
        said.append(f"Beside {other['name']}, {campaigns[0]['name']} has {'; '.join(parts)}.")
    return said


def _listed(names: Sequence[str]) -> list[str]:
    return [", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names)


def _rows(campaigns: Sequence[Told], failures: Sequence[Sequence[Told]]) -> Iterator[dict[str, Any]]:
    def row(what: str, values: Sequence[Any], form: str = "", *, more_is_better: bool = False) -> dict[str, Any]:
        marks = [_mark(values[0], value, more_is_better) for value in values]
        return {"what": what, "values": list(values), "form": form, "marks": marks}

    yield row("runs", [told["runs"] for told in campaigns], "count")
    yield row("time", [told["seconds"] for told in campaigns], "clock")
    for what in ("guide", "oracle"):
        yield row(what, [told[what] or None for told in campaigns])
    for what in ("system", "model"):
        prints = [str(told["configuration"].get(what) or "")[:12] or None for told in campaigns]
        yield row(what, prints)
    names = dict.fromkeys(each["name"] for told in campaigns for each in told["coverage"])
    same_model = len({told["configuration"].get("model") for told in campaigns}) == 1
    for name in names:
        values = [next((c["executed"] for c in told["coverage"] if c["name"] == name), None) for told in campaigns]
        yield row(f"{name}, all runs", values, "share", more_is_better=same_model)
    yield row("failing tests", [told["failing_tests"] for told in campaigns], "count")
    yield row("different failing inputs", [told["failing_inputs"] for told in campaigns], "count")
    yield row("made of seeds", [told["failing_seeds"] for told in campaigns], "count")
    yield row("first in run", [told["first_failure"] for told in campaigns], "count")
    alone = [sum(test["elsewhere"] != "both" for test in some) for some in failures]
    yield row("found only here", alone, "count")


def _mark(first: Any, value: Any, more_is_better: bool) -> dict[str, str]:
    """How a value differs from that of the first campaign."""
    if not more_is_better or first is None or value is None or first == value:
        return {"way": "", "text": ""}
    return {"way": "better" if value > first else "worse", "text": f"{(value - first) * 100:+.2f}"}


def _keys(test: Told) -> Iterator[tuple[Any, ...]]:
    yield "recipe", test["seed"], tuple(test["recipe"])
    if test["kind"] == "crash":  # of what is said, numbers and addresses may differ
        yield "crash", test["seed"], str(test["output"]).partition(":")[0]
    elif test["kind"] == "wrong" and isinstance(test["output"], str) and " " in test["output"].strip():
        # An answer of one word, such as a label, says too little to tell failures apart.
        yield "answer", test["seed"], " ".join(test["output"].lower().split())
