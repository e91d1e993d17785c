"""deepcruiser minimise: the smallest part of a test set that covers as much as the whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.cli import options
from deepcruiser.cli.output import print_skipped, say
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.corpora.corpus import Sample
from deepcruiser.criteria import criterion
from deepcruiser.errors import InputError, printable
from deepcruiser.files.atomic import atomic_write
from deepcruiser.findings.minimise import Minimised
from deepcruiser.findings.minimise import minimise as minimise_data
from deepcruiser.progress import watching
from deepcruiser.stream import named, require_sized


@click.command()
@options.system
@options.data("The test set: a corpus on disk, or FILE.py:NAME.")
@click.option(
    "--model", required=True, type=click.Path(path_type=Path), help="The model of the network; `export` makes one."
)
@click.option(
    "--criterion",
    "criteria",
    default="BSCov",
    show_default=True,
    help="Criteria whose coverage to keep, separated by commas.",
)
@options.batch_size_by_length
@options.device
@click.option(
    "-o",
    "--output",
    metavar="FILE.jsonl",
    type=click.Path(path_type=Path),
    help="Write the chosen tests as a list that --data reads.",
)
@options.json_output()
def minimise(
    system: str, data: str, model: Path, criteria: str, batch_size: int, device: str, output: Path | None, as_json: bool
) -> None:
    """Find a small part of a test set that covers as much as the whole.

    \b
    deepcruiser minimise --system asr.py:system --data tests/ --model asr.model --criterion BSCov,BTCov -o few.jsonl

    Lists the tests in the order in which they add coverage, with the coverage up to each of them. The selection is
    greedy; tests that later ones make redundant are removed.
    """
    samples, _ = require_sized(data_from(data))
    if output is not None and not all(isinstance(sample, Sample) for sample in samples):
        raise InputError(f"only a corpus of files can be written as a list, not {data!r}: leave out -o")
    with watching() as watch:
        result = minimise_data(
            AbstractModel.load(model),
            system_from(system, device=device),
            samples,
            criteria=[criterion(name.strip()) for name in criteria.split(",")],
            batch_size=batch_size,
            watch=watch,
        )
    if output is not None:
        _write_list(output, samples, result)
    if as_json:
        say(json.dumps(as_dict(result), indent=2))
    else:
        say("\n".join(as_lines(result)))
    print_skipped(result.skipped)


def as_dict(result: Minimised) -> dict[str, Any]:
    """The result as JSON."""
    names = [each.name for each in result.criteria]
    tests = [
        {"id": name, "coverage": dict(zip(names, values, strict=True))}
        for name, values in zip(result.tests, result.coverage, strict=True)
    ]
    return {"of": result.of, "tests": tests, "skipped": result.skipped}


def as_lines(result: Minimised) -> list[str]:
    """A line for each test, with the coverage up to it."""
    width = max(7, *(len(each.name) for each in result.criteria))
    header = " ".join(f"{each.name:>{width}}" for each in result.criteria)
    lines = [f"{'':>6} {header}  test"] if result.tests else []
    for number, (name, values) in enumerate(zip(result.tests, result.coverage, strict=True), 1):
        covered = " ".join(f"{value:>{width}.2%}" for value in values)
        lines.append(f"{number:6,} {covered}  {printable(name)}")
    return [*lines, str(result)]


def _write_list(path: Path, data: Iterable[Any], result: Minimised) -> None:
    """A list in NeMo's form; paths are relative to it, so that it can be moved together with what it lists."""
    samples = dict(named(data))
    folder = Path(os.path.abspath(path)).parent
    lines = []
    for name in result.tests:
        sample = samples[name]
        if sample.value is not None:
            entry = {"id": name, "text": sample.value} | ({} if sample.text is None else {"label": sample.text})
            lines.append(json.dumps(entry, ensure_ascii=False))
            continue
        entry = {"audio_filepath": os.path.relpath(sample.path, folder)}
        for key in ("text", "offset", "duration"):
            if getattr(sample, key) is not None:
                entry[key] = getattr(sample, key)
        lines.append(json.dumps(entry, ensure_ascii=False))
    with atomic_write(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
