"""deepcruiser replay: make failing tests again, and see whether they still fail."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.atomic import atomic_write
from deepcruiser.audio import Audio
from deepcruiser.campaign.record import Campaign, FailedTest, Replay
from deepcruiser.campaign.serialise import as_json
from deepcruiser.campaign.store import Store
from deepcruiser.cli.ingredients import Ingredients
from deepcruiser.cli.summary import described, told
from deepcruiser.errors import DeepCruiserError, InputError
from deepcruiser.oracles import CharacterErrorRate, Disagreement, SpanDisagreement, WordErrorRate
from deepcruiser.report.format import printable, quoted
from deepcruiser.trace import System
from deepcruiser.transformations import AddBackgroundNoise


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@click.option("--system", metavar="FILE.py:NAME", help="Another system than that of the campaign, such as a newer one.")
@click.option("--data", metavar="PATH", help="Where the seeds are now.")
@click.option("--mutations", metavar="FILE.py:NAME", help="Where the mutations are now, if they are your own.")
@click.option("--noise", metavar="FOLDER", help="Where the recordings of AddBackgroundNoise are now.")
@click.option("--save", metavar="FOLDER", type=click.Path(path_type=Path), help="Write the inputs there.")
@click.option("--json", "as_json_text", is_flag=True, help="Print the result as JSON.")
def replay(
    folder: Path,
    numbers: tuple[int, ...],
    system: str | None,
    data: str | None,
    mutations: str | None,
    noise: str | None,
    save: Path | None,
    as_json_text: bool,
) -> None:
    """Make failing tests of a campaign again, and see whether they still fail.

    \b
    deepcruiser replay runs/asr                     all of them
    deepcruiser replay runs/asr 7 12 --save heard   two of them, as sound files
    deepcruiser replay runs/asr --system new.py:system

    Makes each input from its seed and its recipe, runs the system on it, and compares the input, the answer and the
    states with what was stored. With another system, what no longer fails is fixed.

    Exit status: 0 none of them fails any more, 1 at least one does, 2 wrong use.
    """
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr) if as_json_text else contextlib.nullcontext():  # systems may print
        campaign, network, other, limit = _open(folder, system=system, data=data, mutations=mutations, noise=noise)
        if other and not as_json_text:
            click.echo("another system than the campaign's: states are not compared")
        results = []
        for test in [campaign[number] for number in numbers] or campaign.failed:
            result = _again(test, network, noise, limit)
            results.append((test, replace(result, value=None)))  # which may be large
            if save is not None:
                _write(save, result)
            if not as_json_text:
                click.echo(_told(test, result, other=other, states=campaign.model is not None))
    failing = sum(result.fails for _, result in results)
    if as_json_text:
        report = {
            "folder": os.fspath(folder),
            "other_system": other,
            "tests": len(results),
            "failing": failing,
            "results": [_described(test, result) for test, result in results],
        }
        click.echo(json.dumps(report, indent=2), file=out)
    elif not results:
        click.echo(f"there are no failing tests in {folder}")
    elif len(results) > 1:
        same = sum(not result.differences for _, result in results)
        click.echo(f"{failing:,} of {len(results):,} fail; {same:,} gave the same as before in everything compared")
    sys.exit(1 if failing else 0)


def _open(folder: Path, *, noise: str | None, **given: str | None) -> tuple[Campaign, System, bool, float | None]:
    """The campaign, the system to run, whether that is another one than the campaign's, and the limit for a run."""
    with Store.open(folder, write=False) as store:
        configuration = store.meta("configuration") or {}
    remembered = Ingredients.load(folder)
    if remembered is None:
        if not given["system"] or not given["data"]:
            raise InputError(
                f"{str(folder)!r} does not say what it was made with, as it was begun in Python: "
                "give --system and --data, and --mutations if they were your own"
            )
        remembered = Ingredients(system=given["system"], **_oracle(str(configuration.get("oracle"))))
    changes: dict[str, Any] = {name: value for name, value in {**given, "noise": noise}.items() if value is not None}
    used = replace(remembered, **changes)
    network = used.load_system()
    fingerprint = str(getattr(network, "fingerprint", ""))
    other = fingerprint != configuration.get("system") if fingerprint else given["system"] is not None
    campaign = Campaign.open(
        folder,
        seeds=used.load_data(),
        model=None if other else _model(used, configuration.get("model")),
        oracle=used.oracle(),
        mutations=used.load_mutations(),
    )
    return campaign, network, other, used.limit


def _oracle(name: str) -> dict[str, Any]:
    """The options that stand for an oracle, by the name under which a campaign stores it."""
    name = name.partition(" (against")[0]  # the reference itself is stored
    for option, oracle in (
        ("wer_above", WordErrorRate),
        ("cer_above", CharacterErrorRate),
        ("spans_below", SpanDisagreement),
    ):
        above = name.rpartition(" ")[2]
        with contextlib.suppress(ValueError, InputError):
            if oracle(float(above)).name == name:
                return {option: float(above)}
    if name == Disagreement().name:
        return {"disagreement": True}
    raise InputError(f"the oracle was {name!r}, which is your own: replay in Python, where you can give it")


def _model(used: Ingredients, fingerprint: Any) -> AbstractModel | None:
    """The model of the campaign, to compare states; without it there is still the answer to compare."""
    if fingerprint == "":
        return None
    try:
        model = used.load_model()
        if model is not None and model.fingerprint == fingerprint:
            return model
        why = "the model is not the one of the campaign"
    except (DeepCruiserError, click.UsageError) as error:
        why = str(error)
    click.echo(f"states are not compared: {why}", err=True)
    return None


def _again(test: FailedTest, system: System, noise: str | None, limit_seconds: float | None) -> Replay:
    if noise is not None:
        test = replace(test, recipe=tuple(_moved(step, noise) for step in test.recipe))
    return test.replay(system, limit_seconds=limit_seconds)


def _moved(step: Any, noise: str) -> Any:
    """A transformation whose recording is in another folder now."""
    if not isinstance(step, AddBackgroundNoise):
        return step
    return replace(step, recording=os.path.join(os.path.abspath(noise), os.path.basename(step.recording)))


def _told(test: FailedTest, result: Replay, *, other: bool, states: bool) -> str:
    """What came of a test: the test itself in two lines, and whether it still fails, and what differs."""
    first, second = told(described(test))
    if result.fails and not result.differences:
        came = "fails as before: the same input, the same answer" + (", the same states" if states else "")
    elif result.fails:
        came = "still fails, but " + "; ".join(result.differences)
    else:
        came = (
            f"fixed: {quoted(result.output)}" if other else "does not fail any more: " + "; ".join(result.differences)
        )
    return f"{first}\n{second}\n    {printable(came, width=400)}"


def _described(test: FailedTest, result: Replay) -> dict[str, Any]:
    return {
        **described(test),
        "fails": result.fails,
        "same": not result.differences,
        "differences": list(result.differences),
        "output_now": as_json(result.output),
        "score_now": result.score,
    }


def _write(folder: Path, result: Replay) -> None:
    """Write the input of a test: a sound as FLAC, a text or an array as such."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, value = folder / f"{result.number:06}", result.value
    if isinstance(value, Audio):
        value.write(stem.with_suffix(".flac"))
    elif isinstance(value, np.ndarray):
        with atomic_write(stem.with_suffix(".npy")) as file:
            np.save(file, value, allow_pickle=False)
    else:
        with atomic_write(stem.with_suffix(".txt")) as file:
            file.write(str(value).encode(errors="backslashreplace"))
