"""Which group a seed belongs to: a voice, a label, a length."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.errors import FileError, InputError
from deepcruiser.files.reading import read_text

GroupOf = Callable[[FailedTest], str]


def group_by(rule: str) -> GroupOf:
    """A rule that names the group of a failing test.

    "label" takes what was expected, "length" the number of expected words, `table.csv:column` a column of a table whose
    first column has the ids of the seeds, and anything else is a regular expression over these ids: its first group, or
    all that it matches.
    """
    if rule == "label":
        return lambda test: str(test.reference)[:40]
    if rule == "length":
        return lambda test: f"{len(str(test.reference).split())} words"
    path, colon, column = rule.rpartition(":")
    if colon and path.endswith(".csv"):
        groups = _column(Path(path), column)
        return lambda test: groups.get(test.seed, "")
    try:
        pattern = re.compile(rule)
    except re.error as error:
        raise InputError(
            f"{rule!r} is neither label, length, FILE.csv:COLUMN nor a regular expression: {error}"
        ) from None

    def group_of(test: FailedTest) -> str:
        match = pattern.search(test.seed)
        return "" if match is None else match[1 if pattern.groups else 0] or ""

    return group_of


def _column(path: Path, column: str) -> dict[str, str]:
    try:
        rows = list(csv.reader(io.StringIO(read_text(path), newline="")))
    except csv.Error as error:
        raise FileError(f"cannot read {str(path)!r}: {error}") from None
    header = rows[0] if rows else []
    if column not in header[1:]:
        raise FileError(
            f"no column {column!r} in {str(path)!r}; after the ids it has: {', '.join(header[1:]) or 'none'}"
        )
    place = header.index(column)
    return {row[0]: row[place] for row in rows[1:] if len(row) > place}
