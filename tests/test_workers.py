"""Workers that hold a system: any number of them gives the same campaign; lost workers are replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import deepcruiser as dc
from deepcruiser.campaign.executors.workers import CampaignWorker
from deepcruiser.campaign.fuzz import Status
from deepcruiser.stream import Progress, Source, stream
from deepcruiser.workers import ProcessWorkers, WorkerError
from tests.support import toy
from tests.support.typed import run


def campaign_worker(number: int) -> CampaignWorker:
    return CampaignWorker.of(toy.Reader(), toy.model(), toy.seeds(), mutations=toy.MUTATIONS)


def source(number: int) -> Source:
    return Source(toy.Reader(), toy.texts(90, longest=12))


def double(held: int, unit: int) -> int:
    return held * unit


def divide(held: int, unit: int) -> float:
    return held / unit


def die(held: int, unit: str) -> int:
    """Kills the process, unless a file says that it did so before."""
    if not os.path.exists(unit):
        Path(unit).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return held


def kill(held: int, unit: int) -> None:
    os.kill(os.getpid(), unit)


class Unloadable:
    """An object that another process cannot load."""

    def __reduce__(self) -> Any:
        return fail_to_load, ()


def fail_to_load() -> None:
    raise ValueError("not here")


def hold(value: int, number: int) -> int:
    return value


def fail(number: int) -> int:
    raise ValueError("no such weights")


@contextmanager
def workers(count: int) -> Iterator[ProcessWorkers[CampaignWorker]]:
    """Workers that have started, so that nothing is executed in this process."""
    with ProcessWorkers(campaign_worker, count) as these:
        while not these.ready:
            time.sleep(0.01)
        yield these


def test_the_same_campaign_in_this_process_and_with_one_two_or_four_workers(tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "window": 16, "runs": 128, "guide": (dc.BSCov, dc.SBCov(2))}
    toy.campaign(tmp_path / "here", **options)
    for count in (1, 2, 4):
        with workers(count) as these:
            toy.campaign(tmp_path / str(count), workers=these, **options)
        assert toy.rows(tmp_path / str(count)) == toy.rows(tmp_path / "here")
    failing = sorted(path.name for path in (tmp_path / "here/failed").iterdir())
    assert failing
    for name in failing:
        assert (tmp_path / "4/failed" / name).read_bytes() == (tmp_path / "here/failed" / name).read_bytes()


def test_killed_workers_are_replaced_and_nothing_changes(tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "window": 16, "runs": 96}
    toy.campaign(tmp_path / "here", **options)
    with workers(2) as these:

        def watch(status: Status) -> None:
            if status.state.runs in (16, 48):
                for process in list(these._processes.values()):
                    os.kill(process.pid, signal.SIGKILL)

        toy.campaign(tmp_path / "killed", workers=these, watch=watch, **options)
    assert toy.rows(tmp_path / "killed") == toy.rows(tmp_path / "here")


def test_profile_and_coverage_are_the_same_from_any_number_of_workers() -> None:
    system, data, tests = toy.Reader(), toy.texts(90, longest=12), toy.texts(90, longest=12)
    options: dict[str, Any] = {"batch_size": 3, "pca_share": 0.5}
    whole = dc.profile(system, data, **options)
    report = dc.cover(whole.abstract(12), system, tests, batch_size=3)
    for count in (1, 2, 5):
        with ProcessWorkers(source, count) as these:
            parts = dc.profile(system, data, workers=these, **options)
            covered = dc.cover(whole.abstract(12), system, tests, batch_size=3, workers=these)
        assert parts.projections == whole.projections
        assert parts.abstract(12).fingerprint == whole.abstract(12).fingerprint
        assert (str(covered), covered.traces, covered.steps) == (str(report), report.traces, report.steps)


def outputs(names: list[str], runs: list[dc.Run]) -> list[Any]:
    return [(run.output, tuple(names)) for run in runs]


@pytest.mark.parametrize("count", [7, 30, 90])
def test_the_same_batches_on_all_workers_and_results_in_the_order_of_the_data(count: int) -> None:
    system, data = toy.Reader(), toy.texts(90, longest=12)[:count]
    here = list(stream(system, data, outputs, progress=Progress(count), batch_size=3))
    with ProcessWorkers(source, 4) as these:
        there = list(stream(system, data, outputs, progress=(seen := Progress(count)), batch_size=3, workers=these))
    assert there == here
    assert seen.done == count


def test_the_commands_profile_and_cover_with_workers(tmp_path: Path) -> None:
    common = ("--system", "brackets", "--data", "brackets", "--batch-size", "2", "--json")
    outputs = []
    for count in ("0", "2"):
        path = str(tmp_path / "a.profile")
        made = run("profile", *common, "--workers", count, "--exact", "-o", path)
        covered = run("cover", *common, "--workers", count, "--profile", path, "--partitions", "9")
        assert (made.exit_code, covered.exit_code) == (0, 0), made.output + covered.output
        outputs.append((made.stdout, covered.stdout))
    assert outputs[0] == outputs[1]


def test_results_errors_and_lost_workers(tmp_path: Path) -> None:
    with ProcessWorkers(partial(hold, 3), 2) as these:
        assert [future.result() for future in [these.submit(double, n) for n in range(20)]] == list(range(0, 60, 3))
        with pytest.raises(ZeroDivisionError):
            these.submit(divide, 0).result()
        assert these.submit(die, str(tmp_path / "once")).result() == 3
        with pytest.raises(WorkerError, match=r"lost 3 times before its work was done \(killed by SIGSEGV\)"):
            these.submit(kill, signal.SIGSEGV).result()
        with pytest.raises(dc.InputError, match="cannot be sent to another process"):
            these.submit(double, lambda: 1)  # type: ignore[arg-type]
        with pytest.raises(dc.InputError, match=r"cannot load its work \(ValueError: not here\): define it at the top"):
            these.submit(double, Unloadable()).result()  # type: ignore[arg-type]
        assert these.submit(double, 2).result() == 6
    with ProcessWorkers(fail, 1) as these, pytest.raises(dc.InputError, match=r"could not start: ValueError: no such"):
        these.submit(double, 2).result()


def test_the_command_makes_everything_anew_in_its_workers(tmp_path: Path) -> None:
    common = ["fuzz", "--system", "brackets", "--guide", "none", "--runs", "64", "--plain"]
    for count in ("0", "2"):
        result = run(*common, "--workers", count, "-o", str(tmp_path / count))
        assert result.exit_code in (0, 1), result.output
    assert toy.rows(tmp_path / "2") == toy.rows(tmp_path / "0")
    result = run(*common, "--workers", "3", "-o", str(tmp_path / "2"))
    assert "note: this window keeps only 2 of 3 workers busy; --window 96 keeps all of them busy" in result.output


def test_a_program_that_ends_while_its_workers_start_prints_nothing() -> None:
    """Their contents are larger than a pipe, so only a part is sent at first."""
    code = "from functools import partial; from deepcruiser.workers import ProcessWorkers; from time import sleep; "
    code += "ProcessWorkers(partial(print, bytes(2_000_000)), 2, preload=['torch']); sleep(0.2)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


class Hungry(toy.Reader):
    """A reader whose worker is killed while a file exists, as if memory had run out."""

    def __init__(self, full: Path) -> None:
        super().__init__()
        self.full = full

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        if self.full.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(batch)


def hungry(full: Path, number: int) -> CampaignWorker:
    return CampaignWorker.of(Hungry(full), toy.model(), toy.seeds(), mutations=toy.MUTATIONS)


def test_out_of_memory_says_what_to_try_and_the_same_campaign_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "window": 16, "runs": 96}
    toy.campaign(tmp_path / "here", **options)

    def watch(status: Status) -> None:
        if status.state.runs == 32:
            (tmp_path / "full").touch()

    with ProcessWorkers(partial(hungry, tmp_path / "full"), 2) as these:
        while not these.ready:
            time.sleep(0.01)
        with pytest.raises(WorkerError, match=r"SIGKILL\); if memory .* --workers 1 instead of 2, or --batch-size 2 i"):
            toy.campaign(tmp_path / "lost", workers=these, watch=watch, **options)
    with workers(1) as one:
        toy.campaign(tmp_path / "lost", workers=one, **options)
    assert toy.rows(tmp_path / "lost") == toy.rows(tmp_path / "here")
