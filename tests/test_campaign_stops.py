"""When a campaign stops, and the reason that it gives."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from tests.support import toy


def interrupt(status: Status) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(("runs", "batch_size"), [(0, 16), (1, 16), (16, 16), (17, 16), (5, 1)])
def test_as_many_runs_as_planned(tmp_path: Path, runs: int, batch_size: int) -> None:
    campaign = toy.campaign(tmp_path, runs=runs, batch_size=batch_size)
    assert len(campaign.runs) == runs
    assert campaign.stopped == f"{runs} runs are done"


def test_minutes_of_this_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("deepcruiser.campaign.fuzz.time", SimpleNamespace(monotonic=lambda: now))

    def watch(status: Status) -> None:
        nonlocal now
        now += 6 if status.events else 0

    for calls in (1, 2):
        campaign = toy.campaign(tmp_path, runs=2000, minutes=0.5, watch=watch)
        assert campaign.stopped == "0.5 minutes are over"
        assert len(campaign.runs) == (64 if calls == 1 else 64 + 80)  # running the seeds takes one of five turns of 6 s
    assert [seconds for _, seconds in campaign.moments] == [0, 6, 12, 18, 24, 24, 30, 36, 42, 48]


def test_until_coverage(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, runs=2000, until_coverage=0.3)
    last = campaign.coverage(dc.BSCov, queue=True).value
    before = toy.campaign(tmp_path / "before", runs=len(campaign.runs) - 16).coverage(dc.BSCov, queue=True).value
    assert before < 0.3 <= last
    assert campaign.stopped == f"BSCov reached {last:.1%}"
    assert len(toy.campaign(tmp_path, runs=2000, until_coverage=0.3).runs) == len(campaign.runs)


def test_every_test_is_spent(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, mutations=dc.Mutations(()))
    assert campaign.stopped == "every test is spent"
    assert len(campaign.runs) == 0
    assert toy.campaign(tmp_path, mutations=dc.Mutations(())).stopped == "every test is spent"


def test_ctrl_c_finishes_the_batch_and_the_next_call_goes_on(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    campaign = toy.campaign(tmp_path / "parts", watch=interrupt)
    assert (campaign.stopped, len(campaign.runs)) == ("interrupted", 0)  # the seeds are the first batch
    system = toy.Reader()
    run = system.run

    def interrupted(batch: Any) -> Any:
        if len(batch) > 1:  # probes run alone
            interrupt(None)  # type: ignore[arg-type]
        return run(batch)

    system.run = interrupted  # type: ignore[method-assign]
    campaign = toy.campaign(tmp_path / "parts", system=system)
    assert (campaign.stopped, len(campaign.runs)) == ("interrupted", 16)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(toy.campaign(tmp_path / "parts").runs) == 64
    toy.campaign(tmp_path / "whole")
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")


def test_ctrl_c_before_the_seeds_are_judged_leaves_nothing_to_resume(tmp_path: Path) -> None:
    system = toy.Reader()
    run, system.run = system.run, lambda batch: (interrupt(None), run(batch))[1]  # type: ignore[func-returns-value, method-assign,arg-type]
    with pytest.raises(KeyboardInterrupt):
        toy.campaign(tmp_path / "parts", system=system)
    for name in ("parts", "whole"):
        toy.campaign(tmp_path / name)
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")


def test_a_second_ctrl_c_ends_it_at_once_and_loses_nothing_told(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    reported: list[int] = []
    system = toy.Reader()
    run = system.run

    def impatient(batch: Any) -> Any:
        if reported and reported[-1] >= 32:
            interrupt(None)  # type: ignore[arg-type]
            interrupt(None)  # type: ignore[arg-type]
        return run(batch)

    system.run = impatient  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        toy.campaign(tmp_path / "parts", system=system, watch=lambda status: reported.append(status.state.runs))
    assert signal.getsignal(signal.SIGINT) is before
    assert reported[-1] == len(dc.CampaignRecord.open(tmp_path / "parts", mutations=toy.MUTATIONS).runs) == 32
    toy.campaign(tmp_path / "parts")
    toy.campaign(tmp_path / "whole")
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")


def test_in_another_thread_there_is_no_ctrl_c_but_all_else(tmp_path: Path) -> None:
    result: list[dc.CampaignRecord] = []
    thread = threading.Thread(target=lambda: result.append(toy.campaign(tmp_path / "thread")))
    thread.start()
    thread.join()
    toy.campaign(tmp_path / "main")
    assert len(result[0].runs) == 64
    assert toy.rows(tmp_path / "thread") == toy.rows(tmp_path / "main")


def test_what_a_watcher_is_told(tmp_path: Path) -> None:
    reported: list[tuple[int, int, bool]] = []

    def watch(status: Status) -> None:
        reported.append((status.state.runs, len(status.events), status.resumed))
        stored = dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
        assert len(stored.runs) == status.state.runs, "told before it was saved"
        assert stored.coverage(dc.BSCov).value == status.state.executed[0].value

    toy.campaign(tmp_path, runs=32, watch=watch)
    toy.campaign(tmp_path, runs=48, watch=watch)
    assert reported == [(0, 12, False), (16, 16, False), (32, 16, False), (32, 0, True), (48, 16, True)]
