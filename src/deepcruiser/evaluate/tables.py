"""Tables: the same numbers as CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepcruiser.evaluate.statistics import Estimate, Median
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.csv_cells import cells

Row = Mapping[str, Any]


def percent(value: float) -> str:
    """0.0312 as 3.1 %."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "n/a"


def plain(value: Any) -> str:
    """A value for a page: whole numbers with commas, others with two digits."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}" if math.isfinite(value) else "n/a"
    if isinstance(value, Median):
        return f"{plain(value.value)} ({plain(value.low)} to {plain(value.high)})"
    return str(value).replace("|", "\\|")


def shares(value: Any) -> str:
    """A share for a page, in per cent."""
    if isinstance(value, Median):
        return f"{percent(value.value)} ({100 * value.low:.1f} to {100 * value.high:.1f})"
    return percent(value) if isinstance(value, float) else plain(value)


def counts(value: Any) -> str:
    """A count for a page; medians of counts may have a fraction."""
    if isinstance(value, Median):
        return f"{value.value:,g} ({value.low:,g} to {value.high:,g})"
    return plain(value)


def p_value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) and math.isfinite(value) else "n/a"


@dataclass(frozen=True)
class Table:
    """Rows of named values. `shown` has the format of columns on a page, `plain` by default."""

    name: str
    rows: tuple[Row, ...]
    caption: str = ""
    shown: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for row in self.rows for column in row))

    def markdown(self) -> str:
        columns = self.columns
        written = [[self.shown.get(c, plain)(row.get(c)) for c in columns] for row in self.rows]
        numbers = [all(not isinstance(row.get(c), str) for row in self.rows) for c in columns]
        lines = [columns, ["---:" if number else "---" for number in numbers], *written]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"

    def flat(self) -> list[dict[str, Any]]:
        """The rows with single values only: a value with an interval becomes three columns."""
        rows = []
        for row in self.rows:
            flat: dict[str, Any] = {}
            for column, value in row.items():
                if isinstance(value, Estimate | Median):
                    flat |= {column: value.value, f"{column} low": value.low, f"{column} high": value.high}
                else:
                    flat[column] = value
            rows.append(flat)
        return rows

    def csv(self) -> str:
        rows = self.flat()
        out = io.StringIO()
        columns = list(dict.fromkeys(column for row in rows for column in row))
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(cells, rows))
        return out.getvalue()

    def write(self, path: Path) -> None:
        with atomic_write(path) as file:
            file.write(self.csv().encode())


def as_json(tables: Sequence[Table]) -> dict[str, Any]:
    """The tables for JSON; NaN and infinity become null."""
    return {
        table.name: [{column: _finite(value) for column, value in row.items()} for row in table.flat()]
        for table in tables
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
