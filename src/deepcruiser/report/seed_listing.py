"""A listing of seeds for a person to choose from: a page to see and hear, and a table.

A recording that is quiet, noisy or clipped may be misheard whatever the transformations do. The listing has what can be
measured of each seed, the system's answer, and how far that is from a failure; whoever listens marks what to leave out.
"""

from __future__ import annotations

import base64
import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.csv_cells import cells, text_of
from deepcruiser.files.reading import read_text
from deepcruiser.report.inputs import compressed
from deepcruiser.report.templates import asset, content_policy, template
from deepcruiser.transformations.quality import Quality, QualityLimits

COLUMNS = (
    "seed",
    "leave out",
    "doubtful",
    "seconds",
    "level dB",
    "noise dB",
    "SNR dB",
    "clipped",
    "result",
    "score",
    "doubt",
    "distance",
    "expected",
    "answer",
)
NUMBERS = ("seconds", "level dB", "noise dB", "SNR dB", "clipped", "score", "doubt", "distance")


@dataclass(frozen=True, eq=False)
class ListedSeed:
    """A seed with the system's answer: `result` is "passes" or the kind of failure, `quality` is known for sound.

    `distance` is how near the answer is to failing, the greater the nearer.
    """

    name: str
    result: str
    expected: str
    answer: str
    score: float | None
    doubt: float | None
    distance: float | None
    quality: Quality | None
    doubtful: tuple[str, ...]

    def row(self) -> dict[str, str]:
        """The seed as a row of the table, numbers rounded and "" where something is not known."""
        quality = self.quality
        measured = (
            ("", "", "", "", "")
            if quality is None
            else (
                f"{quality.seconds:.2f}",
                _decibels(quality.level_db),
                _decibels(quality.noise_db),
                _decibels(quality.snr_db),
                f"{quality.clipped:.4f}",
            )
        )
        numbers = ("" if number is None else f"{number:.4f}" for number in (self.score, self.doubt, self.distance))
        leave_out = "yes" if self.doubtful else ""
        texts = (self.expected, self.answer)
        return dict(
            zip(
                COLUMNS,
                (self.name, leave_out, " ".join(self.doubtful), *measured, self.result, *numbers, *texts),
                strict=True,
            )
        )


def quality_of(value: Any, limits: QualityLimits) -> tuple[Quality | None, tuple[str, ...]]:
    """What can be measured of an input, and why it is doubtful; nothing of what is not sound."""
    if not isinstance(value, Audio):
        return None, ()
    quality = Quality.of(value)
    return quality, tuple(limits.reasons(quality))


def order(seeds: Sequence[ListedSeed]) -> list[ListedSeed]:
    """Doubtful recordings first, then failures, then what is nearest to one: by distance, score and doubt."""

    def key(seed: ListedSeed) -> tuple[int, bool, *tuple[float, ...]]:
        nearness = (-(number or 0.0) for number in (seed.distance, seed.score, seed.doubt))
        return -len(seed.doubtful), seed.result == "passes", *nearness

    return sorted(seeds, key=key)


def write_table(seeds: Sequence[ListedSeed], path: str | os.PathLike[str]) -> None:
    """Write the listing as CSV; the column "leave out" says "yes" for doubtful recordings."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for seed in seeds:
        row = seed.row()
        writer.writerow(cells(row) | {name: row[name] for name in NUMBERS})
    with atomic_write(path) as file:
        file.write(out.getvalue().encode())


def write_page(
    seeds: Sequence[ListedSeed], path: str | os.PathLike[str], *, read: Callable[[str], Any], sounds: int
) -> None:
    """Write the listing as a page that needs nothing else; the first `sounds` recordings can be played in it."""
    styles, script = [asset("page.css"), asset("seeds.css")], asset("seeds.js")
    html = template("seeds.html").render(
        policy=content_policy([script], styles, media="data:"),
        styles=styles,
        script=script,
        columns=COLUMNS,
        numbers=NUMBERS,
        rows=[seed.row() for seed in seeds],
        players=list(_players(seeds, read, sounds)),
    )
    with atomic_write(path) as file:
        file.write(html.encode(errors="backslashreplace"))


def read_choice(path: str | os.PathLike[str]) -> list[str]:
    """The names of the seeds to leave out: a name a line, or a table whose column "leave out" is not empty for them."""
    text = read_text(path)
    rows = csv.DictReader(io.StringIO(text))
    try:
        if {"seed", "leave out"} <= set(rows.fieldnames or ()):
            return [text_of(row["seed"]) for row in rows if (row["leave out"] or "").strip()]
    except csv.Error as error:
        raise FileError(f"cannot read the list of seeds {os.fspath(path)!r}: {error}") from None
    return [line for line in text.splitlines() if line.strip()]


def _players(seeds: Sequence[ListedSeed], read: Callable[[str], Any], most: int) -> Iterator[str]:
    """The sound of each seed as the address of a player, "" where there is none."""
    for number, seed in enumerate(seeds):
        if seed.quality is not None and seed.quality.seconds and number < most:
            data, kind = compressed(read(seed.name))
            yield f"data:{kind};base64,{base64.b64encode(data).decode()}"
        else:
            yield ""


def _decibels(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else ""
