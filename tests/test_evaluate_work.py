"""Work that is interrupted, shared between processes, damaged, or done by a system that crashes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import deepcruiser as dc
from deepcruiser.cli.evaluate_options import EvaluateOptions
from deepcruiser.evaluate.campaign_table import compare
from deepcruiser.evaluate.campaigns import Budget
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.rq1 import rq1
from deepcruiser.evaluate.rq3 import rq3
from deepcruiser.stream import Progress
from deepcruiser.workers import device_for
from tests.support import toy
from tests.test_evaluate_questions import SMALL, asked, load

FEW: dict[str, Any] = {"seeds": 6, "budget": Budget(32), "campaigns": 1, "base": 12}


class Counting(toy.Reader):
    """Counts its inputs, and is interrupted now and then; not while an experiment is loaded, which runs probes."""

    def __init__(self, *, every: int = 0) -> None:
        super().__init__()
        self.inputs = self.batches = 0
        self._every = every
        self._loading = False

    def load(self, folder: Path) -> Experiment:
        self._loading = True
        experiment = load(folder, system=self)
        self._loading = False
        return experiment

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        if self._loading:
            return super().run(batch)
        self.batches += 1
        if self._every and self.batches % self._every == 0:
            raise KeyboardInterrupt
        self.inputs += len(batch)
        return super().run(batch)


class Crashing(toy.Reader):
    """Cannot take a text with two round brackets in a row."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        if any("((" in text for text in batch):
            raise RuntimeError("too deep")
        return super().run(batch)


class Dying(toy.Reader):
    """Kills its process."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        os._exit(3)


def test_side_by_side_gives_the_same(tmp_path: Path) -> None:
    here, there = (asked(rq3, tmp_path / str(jobs), jobs=jobs, **FEW) for jobs in (1, 2))
    assert here.data.rows == there.data.rows
    assert [table.markdown() for table in here.tables] == [table.markdown() for table in there.tables]
    names = [sorted(path.name for path in (tmp_path / str(jobs) / "work").iterdir()) for jobs in (1, 2)]
    assert names[0] == names[1]


@pytest.mark.parametrize(("question", "options"), [(rq1, SMALL), (rq3, FEW)], ids=["rq1", "rq3"])
def test_after_an_interruption_it_goes_on(tmp_path: Path, question: Any, options: dict[str, Any]) -> None:
    whole = Counting()
    with Pool(whole.load(tmp_path / "whole")) as pool:
        expected = question(pool, **options)
    parts = Counting(every=3)
    interruptions = 0
    while True:
        try:
            with Pool(parts.load(tmp_path / "parts")) as pool:
                result = question(pool, **options)
                break
        except KeyboardInterrupt:
            interruptions += 1
            assert not list((tmp_path / "parts" / "work").glob(".*")), "a file was left half written"
    assert interruptions > 2
    assert result.data.rows == expected.data.rows
    assert parts.inputs == whole.inputs, "a batch was run twice"


def test_the_same_batch_is_shared_by_campaigns(tmp_path: Path) -> None:
    system = Counting()
    with Pool(system.load(tmp_path)) as pool:
        result = compare(pool, **FEW)
        assert result.total_runs == 32 * 15
        # The first two batches of campaigns with one random number are drawn before anything is known of the guide.
        uniform = [arm for arm in result.by_arm if arm.select == arm.pick == "uniform"]
        assert system.inputs < result.total_runs - 2 * 16 * (len(uniform) - 1) + 64
        before = system.inputs
        compare(pool, **FEW)
        assert system.inputs == before


def test_progress_is_told(tmp_path: Path) -> None:
    reported: list[tuple[str, int, int]] = []

    def watch(progress: Progress) -> None:
        reported.append((progress.stage, progress.done, progress.total))

    with Pool(load(tmp_path), watch=watch) as pool:
        rq1(pool, **SMALL)
    assert reported[-1] == ("running mutants", 100, 100)
    assert {stage for stage, _, _ in reported} == {"running seeds", "running mutants"}


def test_crashes_are_noted_and_not_compared(tmp_path: Path) -> None:
    with Pool(load(tmp_path, system=Crashing())) as pool:
        answer = rq1(pool, **SMALL)
        result = compare(pool, **FEW)
    assert 0 < len(answer.data.rows) < 100
    reasons = {run["reason"] for several in result.by_arm.values() for each in several for run in each["ran"]}
    assert "crash" in reasons


def dying(folder: Path, number: int) -> Experiment:
    return load(folder, system=Dying())


def numbered(folder: Path, number: int) -> Experiment:
    (folder / str(number)).touch()
    return load(folder)


def processes(experiment: Experiment, unit: int) -> set[str]:
    """The numbers of the processes, once there are two."""
    numbers: set[str] = set()
    for _ in range(600):
        if len(numbers := {path.name for path in experiment.folder.glob("[0-9]")}) == 2:
            break
        time.sleep(0.1)
    return numbers


def test_every_process_loads_with_its_number(tmp_path: Path) -> None:
    with Pool(load(tmp_path), partial(numbered, tmp_path), jobs=2) as pool:
        assert pool.do(processes, [0], stage="", inputs=1) == [{"0", "1"}]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_processes_are_spread_over_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [device_for("cuda", number) for number in range(4)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert [device_for(device, 3) for device in ("cuda:0", "cpu")] == ["cuda:0", "cpu"]
    options = EvaluateOptions(
        spec=dc.CampaignSpec(system="brackets"),
        data=("brackets",),
        profile=None,
        train="brackets",
        folder=tmp_path,
        partitions=(10,),
        input_partitions=None,
        components=3,
        seed=0,
        batch_size=16,
        device="cuda",
        paper=False,
    )
    for worker, device in ((None, "cuda"), (2, "cuda:0"), (3, "cuda:1")):
        with pytest.raises(dc.InputError, match=f"the device '{device}' cannot be used"):
            options.load(worker)


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    with Pool(load(tmp_path), partial(dying, tmp_path), jobs=2) as pool, pytest.raises(
        dc.DeepCruiserError, match="a process ended before its work was done"
    ):  # fmt: skip
        rq1(pool, **SMALL)


def test_damage_is_noticed(tmp_path: Path) -> None:
    asked(rq1, tmp_path, **SMALL)
    first = min((tmp_path / "work").glob("*.batch"))
    first.write_bytes(first.read_bytes()[:-200])
    with pytest.raises(dc.FileError, match="not a batch of DeepCruiser, or it is damaged"):
        asked(rq1, tmp_path, **SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, "was started with different settings: seed (was 0, is 1)"),
        ({"oracle": dc.WordErrorRate()}, "different settings: oracle"),
        ({"system": toy.Reader(1)}, "another network"),
        ({"components": 5}, "components=5 is more than the 3 of the profile"),
        ({"partitions": (4, 4)}, "partitions must be different numbers, at least one, not [4, 4]"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"oracle": dc.SpanDisagreement()}, "compares answers with texts or labels"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    load(tmp_path)
    with pytest.raises(dc.DeepCruiserError) as raised:
        load(tmp_path, **options)
    assert message in str(raised.value)


def test_more_seeds_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match="--seeds 100 is too large: only 24 of the 24 inputs are readable"):
        asked(rq1, tmp_path, seeds=100)
    with pytest.raises(dc.InputError, match="mutants must be at least 1 per seed, not 0"):
        asked(rq1, tmp_path, seeds=2, mutants=0)
    with pytest.raises(dc.InputError, match="--base 7 must be one of the partitions, 4, 12"):
        asked(rq3, tmp_path, **{**FEW, "base": 7})
    with pytest.raises(dc.InputError, match="2 jobs need a function"):
        Pool(load(tmp_path), jobs=2)
