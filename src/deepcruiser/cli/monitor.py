"""deepcruiser monitor: inputs whose states leave the region that training visited."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.profile import Profile
from deepcruiser.cli import options
from deepcruiser.cli.output import print_skipped, say
from deepcruiser.cli.resolve import data_from, model_from, system_from
from deepcruiser.errors import InputError, printable
from deepcruiser.monitor.monitor import Alarm, Monitor, Seen
from deepcruiser.monitor.nearest import Neighbour, nearest
from deepcruiser.progress import watching
from deepcruiser.stream import Progress, input_of, named
from deepcruiser.trace import System

#: The table has all alarms, and at least this many inputs.
_ROWS = 10
#: There are too many alarms if the calibrated rate makes that number less likely than this.
_UNLIKELY = 0.01


@click.command()
@options.system
@options.data("The inputs to check: a corpus on disk, or FILE.py:NAME.")
@options.model_source
@click.option("--monitor", "saved", metavar="FILE", help="A calibrated monitor, saved with -o.")
@click.option("--calibrate", metavar="PATH", help="Held-out clean data, which show what is usual.")
@click.option("--bad", metavar="PATH", help="Examples of bad inputs, to weigh the scores; with --calibrate.")
@click.option("--alarm-rate", default=0.01, show_default=True, help="The share of clean inputs that raise an alarm.")
@click.option("-o", "--output", metavar="FILE", help="The file to save the calibrated monitor to.")
@click.option(
    "--nearest", "count", default=0, help="Number of training sequences to name for an alarm; with --profile."
)
@click.option("--fail-above", type=float, help="Exit with status 1 if a larger share of the inputs raises an alarm.")
@options.batch_size_by_length
@options.device
@options.json_output("Print a JSON object for each input, the most unusual first.")
def monitor(
    system: str,
    data: str,
    profile: str | None,
    partitions: int | None,
    input_partitions: int,
    model: str | None,
    saved: str | None,
    calibrate: str | None,
    bad: str | None,
    alarm_rate: float,
    output: str | None,
    count: int,
    fail_above: float | None,
    batch_size: int,
    device: str,
    as_json: bool,
) -> None:
    """Find inputs whose states leave the region that training visited, the most unusual first.

    \b
    deepcruiser monitor --system asr.py:system --model asr.model --calibrate dev/ --data live/ -o asr.monitor
    deepcruiser monitor --system asr.py:system --model asr.model --monitor asr.monitor --data live/

    Without --calibrate or --monitor, inputs are only sorted, and none raises an alarm.

    Exit status: 1 if there are more alarms than the calibrated rate explains (probability below 1 %), or than
    --fail-above allows; 0 otherwise.
    """
    if saved is not None and calibrate is not None:
        raise click.UsageError("give either --calibrate or --monitor")
    if (bad is not None or output is not None) and calibrate is None:
        raise click.UsageError("--bad and -o need --calibrate with clean data")
    if count and profile is None:
        raise click.UsageError(
            "--nearest needs --profile and --partitions, because a model does not store training sequences"
        )
    network = system_from(system, device=device)
    abstract = model_from(profile, partitions, input_partitions, model)
    watch_over = _monitor(abstract, network, saved, calibrate, bad, alarm_rate, batch_size)
    if output is not None:
        watch_over.save(output)
    inputs = data_from(data)
    skipped: dict[str, str] = {}
    with watching() as watch:

        def show(progress: Progress) -> None:
            skipped.update(progress.skipped)
            watch(progress)

        readings = watch_over.scan(network, inputs, batch_size=batch_size, watch=show)
        checked = [_checked(watch_over, seen) for seen in readings]
    checked.sort(key=lambda row: row.order, reverse=True)
    neighbours = _neighbours(network, profile, abstract, inputs, checked, count) if count and profile else {}
    alarms = sum(row.alarm is not None for row in checked)
    for line in _json(checked, neighbours) if as_json else _table(watch_over, checked, alarms, neighbours):
        say(line)
    print_skipped(skipped)
    raise click.exceptions.Exit(1 if _too_many(watch_over, alarms, len(checked), fail_above) else 0)


@dataclass(frozen=True, eq=False)
class Checked:
    """An input that was checked, and what it is sorted by."""

    seen: Seen
    alarm: Alarm | None
    score: float | None
    order: tuple[float, ...]


def _monitor(
    model: AbstractModel,
    system: System,
    saved: str | None,
    calibrate: str | None,
    bad: str | None,
    alarm_rate: float,
    batch_size: int,
) -> Monitor:
    if saved is not None:
        return Monitor.load(saved, model)
    if calibrate is None:
        return Monitor(model)
    examples = None if bad is None else data_from(bad)
    with watching() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # reported below, in one line
        calibrated = Monitor(model).calibrate(
            system, data_from(calibrate), bad=examples, alarm_rate=alarm_rate, batch_size=batch_size, watch=watch
        )
    if calibrated.calibration is not None and calibrated.calibration.warning:
        say(f"warning: {calibrated.calibration.warning}", err=True)
    return calibrated


def _checked(monitor: Monitor, seen: Seen) -> Checked:
    if monitor.calibration is None:
        scores = seen.reading.scores
        broken = float("inf") if seen.reading.problem else 0.0
        return Checked(seen, None, None, (broken, scores["outside"], scores["transitions"], scores["surprise"]))
    score = monitor.score(seen.reading)
    return Checked(seen, monitor.judge(seen.reading), score, (score,))


def _neighbours(
    system: System, profile: str, model: AbstractModel, inputs: Any, checked: Sequence[Checked], count: int
) -> dict[str, list[Neighbour]]:
    """The training sequences nearest to the states behind each alarm; the inputs are run again for it."""
    loaded, neighbours = Profile.load(profile), {}
    alarms = {row.seen.name: row.alarm for row in checked if row.alarm is not None and not row.alarm.problem}
    for name, item in named(inputs):
        if name in alarms:
            (run,) = system.run([input_of(item)])
            neighbours[name] = nearest(loaded, model, run.traced, steps=alarms[name].steps, count=count)
    return neighbours


def _json(checked: Sequence[Checked], neighbours: dict[str, list[Neighbour]]) -> Iterator[str]:
    for row in checked:
        reading = row.seen.reading
        result: dict[str, Any] = {
            "input": row.seen.name,
            "alarm": None if row.alarm is None else row.alarm.to_dict(),
            "score": None if reading.problem else row.score,
            "scores": dict(reading.scores),
            "steps": reading.steps,
            "problem": reading.problem,
        }
        if row.seen.name in neighbours:
            near = neighbours[row.seen.name]
            result["nearest"] = [{"name": n.name, "distance": n.distance, "step": n.step} for n in near]
        yield json.dumps(result)


def _table(
    monitor: Monitor, checked: Sequence[Checked], alarms: int, neighbours: dict[str, list[Neighbour]]
) -> Iterator[str]:
    calibration = monitor.calibration
    yield repr(monitor.model)
    if calibration is None:
        yield f"{len(checked):,} inputs; without --calibrate or --monitor, none raises an alarm"
    else:
        low, high = calibration.interval
        yield (
            f"{len(checked):,} inputs, {alarms:,} with an alarm ({alarms / len(checked):.1%}; "
            f"of clean inputs {low:.1%} to {high:.1%})"
        )
    yield f"{'':5} {'score':>7} {'outside':>8} {'unknown':>8}  input"
    for row in checked[: max(_ROWS, alarms)]:
        scores = row.seen.reading.scores
        mark, score = "alarm" if row.alarm else "", "" if row.score is None else f"{row.score:.2f}"
        yield (
            f"{mark:5} {score:>7} {scores['outside']:>8.1%} {scores['transitions']:>8.1%}  "
            f"{printable(row.seen.name, width=80)}"
        )
        if row.alarm:
            yield f"{'':32}{row.alarm}"
        for near in neighbours.get(row.seen.name, ()):
            yield f"{'':32}near {printable(near.name, width=60)}, step {near.step:,} ({near.distance:.2f} cells away)"


def _too_many(monitor: Monitor, alarms: int, inputs: int, fail_above: float | None) -> bool:
    """Whether there are more alarms than allowed or, without a limit, than the calibrated rate explains."""
    if fail_above is not None:
        if not 0 <= fail_above <= 1:
            raise InputError(f"--fail-above must be a share from 0 to 1, not {fail_above}")
        return alarms > fail_above * inputs
    if monitor.calibration is None:
        return False
    from scipy.stats import binom

    return float(binom.sf(alarms - 1, inputs, monitor.calibration.interval[1])) < _UNLIKELY
