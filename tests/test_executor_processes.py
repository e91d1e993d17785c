"""Mutants made in other processes, and processes that come to an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.systems.builtin import bracket_changes
from tests.quality import kills
from tests.support import toy


@dataclass(frozen=True)
class Deadly:
    """A transformation that kills its process, unless that is the test's own."""

    test: int

    def __call__(self, text: str) -> str:
        if os.getpid() != self.test:
            os.kill(os.getpid(), signal.SIGKILL)
        return text + "a"

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(os.getpid())


def mutations(kind: Any, **options: Any) -> dc.Mutations:
    return dc.Mutations((kind,), ((kind,),), (), **{"invalid": bracket_changes.too_long, **options})


def test_when_workers_are_killed_the_campaign_goes_on_without_them(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="the worker processes were killed .* made in this process from now on"):
        campaign = toy.campaign(tmp_path, mutations=mutations(Deadly), runs=32, workers=1)
    assert len(campaign.runs) == 32
    assert all(event.outcome != "rejected" for event in campaign.runs)


def test_what_cannot_go_to_another_process_is_named(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local(Deadly):
        pass

    with pytest.raises(dc.InputError, match=r"Local\(.*cannot be sent to another process \(.*Local.*workers=0"):
        toy.campaign(tmp_path / "kind", mutations=mutations(Local), workers=1)
    gate = mutations(Deadly, invalid=lambda seed, mutant: None)
    with pytest.raises(dc.InputError, match=r"cannot be sent to another process \(.*lambda.*workers=0"):
        toy.campaign(tmp_path / "gate", mutations=gate, workers=1)
    assert len(toy.campaign(tmp_path / "kind", mutations=mutations(Local)).runs) == 64


#: As a newcomer would write it: no function, and no `if __name__ == "__main__"`.
SCRIPT = """
import sys
import deepcruiser as dc
from tests.support import toy

print("begun", flush=True)
def watch(status):
    print(status.state.runs, *[event.number for event in status.events if event.outcome == "failed"], flush=True)
campaign = toy.campaign(sys.argv[1], workers=2, runs=None, batch_size=4, watch=watch)
print(campaign.stopped, flush=True)
"""


@contextmanager
def running(script: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The script in a process group of its own; none of it is left behind."""
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, script, folder],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root, process_group=0,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until(process: subprocess.Popen[str], runs: int) -> list[str]:
    """What a process prints until it has done `runs` runs."""
    assert process.stdout is not None
    message = []
    for line in process.stdout:
        message.append(line.strip())
        if line.split()[0].isdecimal() and int(line.split()[0]) >= runs:
            return message
    raise AssertionError("\n".join(message))


def test_a_script_with_workers_interrupted_resumed_and_killed(tmp_path: Path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "campaign"
    script.write_text(SCRIPT)
    with running(script, folder) as process:
        message = until(process, 20)
        assert [line for line in message if not line[0].isdigit()] == ["begun"], "workers ran the script again"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers as well
        rest, _ = process.communicate(timeout=60)
        *lines, stopped = rest.splitlines()
        assert (stopped, process.returncode) == ("interrupted", 0), rest
        done = int((message + lines)[-1].split()[0])
        assert kills.no_more(process.pid)
    assert len(dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS).runs) == done
    with running(script, folder) as process:
        message += until(process, done + 20)
        with pytest.raises(dc.FileError, match="another process is writing to"):
            toy.campaign(folder, batch_size=4)
        read = dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS)
        assert len(read.runs) >= done + 20
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
        assert kills.no_more(process.pid), "the workers of a killed campaign live on"
    reported = {
        int(number) for line in message + rest.splitlines() if line[:1].isdecimal() for number in line.split()[1:]
    }
    assert kills.check(folder, reported) >= len(reported) > 0
    runs = len(dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS).runs)
    for path in (folder, tmp_path / "whole"):
        toy.campaign(path, batch_size=4, runs=runs + 8)
    assert toy.rows(folder) == toy.rows(tmp_path / "whole")


def test_ten_kills() -> None:
    """The same as a command, for 200: python -m tests.quality.kills"""
    command = [sys.executable, "-W", "ignore", "-m", "tests.quality.kills", "--kills", "10", "--seed", "1"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].startswith("10 kills in "), result.stdout


def test_nothing_waits_for_workers_that_are_not_needed(tmp_path: Path) -> None:
    """Stopped in the middle, with mutants in progress: they are dropped, and made again after resuming."""

    def watch(status: Status) -> None:
        if status.state.runs == 16:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        toy.campaign(tmp_path / "parts", workers=2, watch=watch)
    time.sleep(0.1)
    toy.campaign(tmp_path / "parts", workers=2)
    toy.campaign(tmp_path / "whole")
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")
