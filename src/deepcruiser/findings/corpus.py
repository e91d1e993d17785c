"""Tests of a campaign as a corpus: the queue, to run again, and the failing tests, to train on."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.campaign.events import Event
from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.campaign.queue import Test
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.criteria import Criterion
from deepcruiser.errors import FileError, InputError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.csv_cells import cell
from deepcruiser.findings.minimise import minimise_visits
from deepcruiser.serialise import digest_of, encode
from deepcruiser.transformations import to_dict


@dataclass(frozen=True)
class Row:
    """A test whose input is in the file `path`, relative to the corpus."""

    id: str
    seed: str
    recipe: tuple[Any, ...]
    reference: Any
    path: Path
    seconds: float | None
    digest: str

    @property
    def text(self) -> str | int | float | None:
        """The right answer, if a list can hold it."""
        return self.reference if isinstance(self.reference, str | int | float) else None


def export_queue(folder: str | os.PathLike[str], record: CampaignRecord, *, minimise: Sequence[Criterion] = ()) -> int:
    """Write the tests of the queue, seeds included, with `manifest.jsonl`; returns their number.

    With criteria to minimise by, the fewest tests found that cover as much, in the order in which they add coverage.
    """
    numbers = list(record.tests)
    if minimise:
        if record.model is None:
            raise InputError(f"minimising needs the model of the campaign: {record.model_problem or 'none was used'}")
        events: list[Event] = [*record.seeds, *record.runs]
        kept = [event for event in events if event.outcome == "kept"]
        visits = [(str(event.number), event.visits) for event in kept if event.visits is not None]
        numbers = list(map(int, minimise_visits(record.model, visits, criteria=minimise).tests))
    return _write(Path(folder), record, [record.tests[number] for number in numbers], _jsonl)


def export_failures(folder: str | os.PathLike[str], record: CampaignRecord, *, manifest: str) -> int:
    """Write the failing tests and their expected answers in one of the forms `MANIFESTS`; returns their number."""
    if manifest not in MANIFESTS:
        raise InputError(f"no manifest {manifest!r}: choose from {', '.join(sorted(MANIFESTS))}")
    tests = sorted(record.failed, key=lambda test: test.number)
    return _write(Path(folder), record, list({test.digest: test for test in tests}.values()), MANIFESTS[manifest])


def _write(
    folder: Path, record: CampaignRecord, tests: Sequence[Test | FailedTest], lists: Callable[[Sequence[Row]], Lists]
) -> int:
    """Write a new folder, completely or not at all."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"cannot write tests to {str(folder)!r}: it already exists; use a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        temporary.chmod(0o755)
        (temporary / "inputs").mkdir()
        rows = []
        for place, test in enumerate(tests):
            value = record.inputs.make(test.seed, test.recipe)
            path = write_input(temporary / "inputs" / f"{place:06}", value).relative_to(temporary)
            name = f"{test.number:06}-{test.seed}" if test.recipe else test.seed
            seconds = value.seconds if isinstance(value, Audio) else None
            rows.append(Row(name, test.seed, test.recipe, test.reference, path, seconds, digest_of(value)))
        for name, lines in lists(rows).items():
            with atomic_write(temporary / name) as file:
                file.write("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return len(tests)


#: The lines of each list, by its file name.
Lists = Mapping[str, Sequence[str]]


def _entry(row: Row) -> dict[str, Any]:
    entry: dict[str, Any] = {"audio_filepath": row.path.as_posix()}
    if row.seconds is not None:
        entry["duration"] = round(row.seconds, 4)
    return entry if row.text is None else {**entry, "text" if isinstance(row.text, str) else "label": row.text}


def _written(row: Row) -> str:
    return "" if row.text is None else str(row.text)


def _nemo(rows: Sequence[Row]) -> Lists:
    return {"manifest.jsonl": [json.dumps(_entry(row), ensure_ascii=False) for row in rows]}


def _jsonl(rows: Sequence[Row]) -> Lists:
    """NeMo's manifest with everything else that is known of each test."""
    lines = []
    for row in rows:
        more = {"id": row.id, "seed": row.seed, "recipe": [to_dict(change) for change in row.recipe]}
        line = {**_entry(row), **more, "expected": encode(row.reference), "sha256": row.digest}
        lines.append(json.dumps(line, ensure_ascii=False))
    return {"manifest.jsonl": lines}


def _csv(rows: Sequence[Row]) -> Lists:
    lines = []
    for row in [("wav_filename", "transcript"), *((row.path.as_posix(), _written(row)) for row in rows)]:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(map(cell, row))
        lines.append(line.getvalue())
    return {"manifest.csv": lines}


def _kaldi(rows: Sequence[Row]) -> Lists:
    by_name = {re.sub(r"\s+", "_", row.id): row for row in rows}
    names = sorted(by_name)
    return {
        "wav.scp": [f"{name} {by_name[name].path.as_posix()}" for name in names],
        "text": [f"{name} {_written(by_name[name])}".strip() for name in names],
        "utt2spk": [f"{name} {name}" for name in names],
    }


#: The forms of a list of tests with their expected answers.
MANIFESTS: Mapping[str, Callable[[Sequence[Row]], Lists]] = {
    "nemo": _nemo,
    "kaldi": _kaldi,
    "csv": _csv,
    "jsonl": _jsonl,
}


def write_input(stem: Path, value: Any) -> Path:
    """Write a sound as a WAV file of 32-bit floats, a text as UTF-8, an array as .npy; reading gives the same value."""
    if isinstance(value, Audio):
        path = stem.with_name(f"{stem.name}.wav")
        value.write(path)
    elif isinstance(value, str):
        path = stem.with_name(f"{stem.name}.txt")
        with atomic_write(path) as file:
            file.write(value.encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        path = stem.with_name(f"{stem.name}.npy")
        with atomic_write(path) as file:
            np.save(file, value, allow_pickle=False)
    else:
        raise InputError(f"an input of the type {type(value).__name__} cannot be written: a sound, text or array can")
    return path
