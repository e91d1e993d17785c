"""deepcruiser replay: make failing tests again and check whether they still fail."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.probes import Change
from deepcruiser.campaign.failed_test import FailedTest, InputFile
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.paths import WORST, keep_paths
from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.campaign.replay import Replay
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.campaign.verdict import Verdict
from deepcruiser.cli import options
from deepcruiser.cli.campaign_options import build_mutations, judging_oracle, load_data, load_model, located
from deepcruiser.cli.output import output_for, say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.resolve import system_from
from deepcruiser.cli.summary import failure_dict, failure_lines
from deepcruiser.errors import DeepCruiserError, InputError, printable
from deepcruiser.findings.suite import SUITE, Case, Suite, located_system, run_case
from deepcruiser.report.format import quoted
from deepcruiser.serialise import summarise
from deepcruiser.trace import System
from deepcruiser.transformations import AddBackgroundNoise


@click.command(cls=ProjectCommand)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@options.parts_of_campaign
@options.own_oracle
@click.option("--noise", metavar="FOLDER", help="Find the recordings of AddBackgroundNoise here, if they have moved.")
@click.option("--save", metavar="FOLDER", type=click.Path(path_type=Path), help="Write the inputs to this folder.")
@options.device
@click.option("--json", "as_json_text", is_flag=True, help="Print the result as JSON.")
def replay(
    folder: Path,
    numbers: tuple[int, ...],
    system: str | None,
    data: str | None,
    mutations: str | None,
    oracle: str | None,
    noise: str | None,
    save: Path | None,
    device: str,
    as_json_text: bool,
) -> None:
    """Make failing tests of a campaign again and check whether they still fail.

    \b
    deepcruiser replay runs/asr                     all of them
    deepcruiser replay runs/asr 7 12 --save heard   two of them, as sound files
    deepcruiser replay runs/asr --system new.py:system
    deepcruiser replay tests/asr_regressions        a regression suite

    Makes each input from its seed and its recipe, runs the system on it, and compares the input, the answer and the
    states with the stored ones. With another system, tests that no longer fail are reported as fixed. Also stores the
    paths through the states of the named tests, or of the worst ten, for `deepcruiser report`.

    Exit status: 0 no test still fails, 1 at least one does, 2 usage error.
    """
    if (folder / SUITE).is_file():
        if numbers or data or mutations or oracle or noise or save:
            raise click.UsageError("a suite is always replayed as a whole; give no other option than --system")
        raise click.exceptions.Exit(1 if replay_suite(folder, system, device=device, as_json=as_json_text) else 0)
    with output_for(as_json_text) as out:
        sources = {"system": system, "data": data, "mutations": mutations, "oracle": oracle}
        opened = open_campaign(folder, device=device, **sources)
        record, network, other = opened.record, opened.system, opened.other
        if other and not as_json_text:
            change = f" ({opened.change})" if opened.change else ""
            say(f"this is not the campaign's system{change}: states are not compared")
        results: list[tuple[FailedTest, Replay]] = []
        for test in [record[number] for number in numbers] or record.failed:
            moved = replace(test, recipe=tuple(_moved(step, noise) for step in test.recipe))
            result = moved.replay(network, limit_seconds=record.spec.limit_seconds)
            if numbers or len(results) < WORST:
                with contextlib.suppress(OSError):  # the folder may be read-only
                    keep_paths(record, network, [moved])
            results.append((test, replace(result, value=None)))  # it may be large
            if save is not None:
                _write(save, result)
            if not as_json_text:
                say(_lines(test, result, other=other, states=record.model is not None))
    failing = sum(result.fails for _, result in results)
    if as_json_text:
        report = {
            "folder": os.fspath(folder),
            "other_system": other,
            "tests": len(results),
            "failing": failing,
            "results": [_dict(test, result) for test, result in results],
        }
        say(json.dumps(report, indent=2), file=out)
    elif not results:
        say(f"there are no failing tests in {folder}")
    elif len(results) > 1:
        same = sum(not result.differences for _, result in results)
        say(f"{failing:,} of {len(results):,} fail; {same:,} exactly as before")
    raise click.exceptions.Exit(1 if failing else 0)


@dataclass(frozen=True, eq=False)
class Opened:
    """A campaign that can be run again, and whether the system is another one than the campaign's."""

    record: CampaignRecord
    system: System
    mutations: Mutations
    other: bool
    #: The system as it is typed on this machine.
    source: str
    #: What differs if the network is the same: its features or its decoder.
    change: Change | None = None


def open_campaign(folder: Path, *, device: str = "cpu", **sources: str | None) -> Opened:
    """Open a campaign with its system and data; `sources` says where system, data or mutations are now."""
    stored = CampaignRecord.open(folder)
    changes = {name: value for name, value in sources.items() if value is not None}
    if "mutations" in changes:
        changes["mutations_source"] = changes.pop("mutations")
    if "oracle" in changes:
        changes["oracle_source"] = changes.pop("oracle")
    if stored.spec.system is None and not {"system", "data"} <= set(changes):
        raise InputError(
            f"{str(folder)!r} was started in Python, so it does not name its system and data: give --system and "
            "--data, and --mutations if they were your own"
        )
    spec = located(stored.spec, folder, stored.directory) if stored.spec.system is not None else stored.spec
    spec = replace(spec, **changes)  # type: ignore[arg-type]
    network = system_from(spec.system or "", device=device)
    fingerprint = str(getattr(network, "fingerprint", ""))
    other = fingerprint != stored.identity.get("system") if fingerprint else "system" in changes
    mutations = build_mutations(spec)
    model = None if other else _model(spec, stored)
    record = CampaignRecord.open(
        folder, seeds=load_data(spec), model=model, oracle=judging_oracle(spec, device=device), mutations=mutations
    )
    change = None if other else record.change(network)
    if other or change is not None:
        record.model = None
    return Opened(record, network, mutations, other or change is not None, spec.system or "", change)


def _model(spec: CampaignSpec, stored: CampaignRecord) -> AbstractModel | None:
    """The model of the campaign, to compare states; without it, only answers are compared."""
    if stored.model is not None or not stored.identity.get("model"):
        return stored.model
    why = stored.model_problem
    try:
        model = load_model(spec, needed=False)
        if model is not None and model.fingerprint == stored.identity["model"]:
            return model
    except (DeepCruiserError, click.UsageError) as error:
        why = str(error)
    say(f"states are not compared: {why}", err=True)
    return None


def _moved(step: Any, noise: str | None) -> Any:
    """A transformation whose recording is in another folder now."""
    if noise is None or not isinstance(step, AddBackgroundNoise):
        return step
    return replace(step, recording=os.path.join(os.path.abspath(noise), os.path.basename(step.recording)))


def _lines(test: FailedTest, result: Replay, *, other: bool, states: bool) -> str:
    """A test in a few lines, then whether it still fails and what differs."""
    if result.fails and not result.differences:
        outcome = "fails as before: the same input, the same answer" + (", the same states" if states else "")
    elif result.fails:
        outcome = "still fails, but " + "; ".join(result.differences)
    elif other:
        outcome = f"fixed: {quoted(result.output)}"
    else:
        outcome = "no longer fails: " + "; ".join(result.differences)
    return "\n".join([*failure_lines(failure_dict(test)), f"    {printable(outcome, width=400)}"])


def _dict(test: FailedTest, result: Replay) -> dict[str, Any]:
    return {
        **failure_dict(test),
        "fails": result.fails,
        "same": not result.differences,
        "differences": list(result.differences),
        "output_now": summarise(result.output),
        "score_now": result.score,
    }


def _write(folder: Path, result: Replay) -> None:
    """Write the input of a test: a sound as FLAC, a text or an array as such."""
    folder.mkdir(parents=True, exist_ok=True)
    file = InputFile.of(result.value) or InputFile.of(str(result.value))
    assert file is not None  # every text has one
    file.write(folder / f"{result.number:06}")


def replay_suite(folder: Path, system: str | None, *, device: str = "cpu", as_json: bool) -> int:
    """Run a suite and print the result of each test; returns the number of unexpected failures."""
    with output_for(as_json) as out:
        suite = Suite.read(folder)
        network = system_from(system or located_system(suite), device=device)
        results = []
        for case in suite.cases:
            judged = run_case(case, network, suite.oracle, limit_seconds=suite.limit_seconds)
            results.append((case, judged))
            if not as_json:
                say(_case_line(case, judged))
    failing = sum(bool(judged.kind) for _, judged in results)
    known = sum(bool(judged.kind and case.known) for case, judged in results)
    if as_json:
        report = {
            "folder": os.fspath(folder),
            "tests": len(results),
            "failing": failing,
            "known": known,
            "results": [_case_dict(case, judged) for case, judged in results],
        }
        say(json.dumps(report, indent=2), file=out)
    else:
        say(f"{failing:,} of {len(results):,} fail" + (f", {known:,} of them known to" if known else ""))
    return failing - known


def _case_line(case: Case, judged: Verdict) -> str:
    title = printable(case.title, width=400)
    if not judged.kind:
        return f"{case.id}: passes: {title}"
    got = quoted(judged.output) if judged.kind == "wrong" else f"{judged.kind} ({printable(judged.output)})"
    known = f"\n    known: {printable(case.known)}" if case.known else ""
    return f"{case.id}: still fails: {title}\n    expected {quoted(case.reference)}, got {got}{known}"


def _case_dict(case: Case, judged: Verdict) -> dict[str, Any]:
    return {
        "id": case.id,
        "title": case.title,
        "fails": bool(judged.kind),
        "kind": judged.kind,
        "expected": summarise(case.reference),
        "output": summarise(judged.output),
        "score": judged.score,
        "known": case.known,
    }
