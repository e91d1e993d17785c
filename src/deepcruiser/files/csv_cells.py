"""Texts as cells of CSV files that a spreadsheet may open, and that are read again exactly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: A spreadsheet reads texts that begin with one of these as formulas; an apostrophe in front prevents it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
#: An escaped lone surrogate, as in a name that is not UTF-8.
_SURROGATE = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")


def cell(value: Any) -> Any:
    """A value of a table: a text that looks like a formula gets an apostrophe, what is not UTF-8 is escaped."""
    if not isinstance(value, str):
        return value
    value = value.encode(errors="backslashreplace").decode()
    return f"'{value}" if value.startswith(_FORMULA) else value


def cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row."""
    return {name: cell(value) for name, value in row.items()}


def text_of(written: str) -> str:
    """The text that `cell` wrote."""
    if written.startswith("'") and written[1:].startswith(_FORMULA):
        written = written[1:]
    return _SURROGATE.sub(lambda match: chr(int(match[1], 16)), written)
