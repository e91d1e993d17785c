"""Campaigns killed (SIGKILL) at random moments, again and again: nothing that was reported may be lost.

    python -m tests.quality.kills --kills 200
    python -m tests.quality.kills --kills 200 --workers

Each campaign is run by a process that prints the number of every failing test once it has been told of it. The process
is killed, the folder checked, and the campaign resumed, until it is done; then it must be the one that never stopped.
Of every ten killed processes one makes its mutants in worker processes, which must end with it.

With `--workers`, every other campaign has two worker processes, and the others a Ray cluster of three nodes on this
machine. What is killed is the process that plans and writes, a worker, or a node, which is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.executors.workers import CampaignWorker
from deepcruiser.campaign.fuzz import Status
from deepcruiser.workers import Workers
from tests.support import toy

#: Every campaign is another one.
GUIDES = (dc.BSCov, (dc.SBCov(2), dc.WICov), "random", dc.BTCov, "none")
BATCHES = (16, 1, 5)
RUNS = 600
#: How often a campaign is killed before it is done, roughly, however slow the machine is.
KILLS_A_CAMPAIGN = 12


def options(number: int) -> dict[str, Any]:
    guide, batch_size = GUIDES[number % len(GUIDES)], BATCHES[number % len(BATCHES)]
    return {"guide": guide, "batch_size": batch_size, "runs": RUNS, "seed": number}


def in_child(work: Callable[[int], None]) -> tuple[int, int]:
    """Start some work in its own process with a pipe to write to; returns its id and the other end."""
    end, its_end = os.pipe()
    child = os.fork()
    if child:
        os.close(its_end)
        return child, end
    try:
        os.setpgid(0, 0)
        work(its_end)
    except BaseException as error:
        os.write(its_end, f"raised {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def campaign(folder: Path, number: int, workers: int) -> Callable[[int], None]:
    def work(pipe: int) -> None:
        def watch(status: Status) -> None:
            for event in status.events:
                if isinstance(event, Ran) and event.outcome == "failed":
                    os.write(pipe, f"failed {event.number}\n".encode())

        toy.campaign(folder, workers=workers, watch=watch, **options(number))
        os.write(pipe, b"done\n")

    return work


def check(folder: Path, reported: set[int]) -> int:
    """The number of failing tests in a folder that no process is using."""
    with closing(sqlite3.connect(folder / "campaign.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the database is damaged"
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        stored = {}
        if "runs" in tables:
            stored = dict(db.execute("SELECT number, lower(hex(digest)) FROM runs WHERE outcome = 'failed'"))
    assert reported <= set(stored), f"told but not stored: {sorted(reported - set(stored))}"
    for number, digest in stored.items():
        text, about = (folder / "failed" / f"{number:06}{suffix}" for suffix in (".txt", ".json"))
        assert text.is_file(), f"{number} is stored, but there is no {text.name}"
        assert json.loads(about.read_text())["sha256"] == digest, f"{about.name} tells of another input"
    return len(stored)


def kill(number: int, folder: Path, reported: set[int], *, seconds: float, workers: int) -> bool:
    """Resume a campaign for at most this long; returns whether it finished."""
    child, pipe = in_child(campaign(folder, number, workers))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(pipe) as lines:
        message = lines.read().splitlines()
    raised = [line for line in message if line.startswith("raised")]
    assert not raised, raised
    reported.update(int(line.split()[1]) for line in message if line.startswith("failed"))
    if (folder / "campaign.db").exists():
        check(folder, reported)
    if workers:
        assert no_more(child), "the workers of a killed campaign live on"
    return "done" in message


def no_more(group: int, *, seconds: float = 60) -> bool:
    """Whether all processes of a group end in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        fields = [stat.rpartition(")")[2].split() for stat in map(_read, Path("/proc").glob("[0-9]*/stat")) if stat]
        if not any(int(of[2]) == group and of[0] != "Z" for of in fields):
            return True
        time.sleep(0.05)
    return False


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it is over
        return ""


def run(kills: int, *, seed: int = 0, say: Callable[[str], None] = print) -> Counter[str]:
    """Kill this many processes, and count what happened."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    toy.model()  # so that no process has to make it
    with tempfile.TemporaryDirectory() as temporary:
        while counts["kills"] < kills:
            number = counts["campaigns"]
            folder, whole, reported = Path(temporary, f"{number}"), Path(temporary, f"{number}-whole"), set[int]()
            began = time.monotonic()
            toy.campaign(whole, **options(number))
            pace = max(0.12, (time.monotonic() - began) / KILLS_A_CAMPAIGN)
            done = False
            while not done and counts["kills"] < kills:
                counts["starts"] += 1
                workers = int(counts["starts"] % 10 == 0)
                seconds = float(rng.exponential(pace) + workers * rng.uniform(0, 3))  # workers take seconds to start
                done = kill(number, folder, reported, seconds=seconds, workers=workers)
                counts["kills"] += not done
            toy.campaign(folder, **options(number))  # the rest of the last one, in peace
            counts["failures"] += check(folder, reported)
            counts["reported"] += len(reported)
            assert toy.rows(folder) == toy.rows(whole), f"campaign {number} is not the one that never stopped"
            names = [sorted(file.name for file in (path / "failed").iterdir()) for path in (folder, whole)]
            assert names[0] == names[1], f"left behind: {sorted(set(names[0]) - set(names[1]))}"
            counts["campaigns"] += 1
            say(f"campaign {number}: {len(reported):,} failures reported, all there; {counts['kills']:,} kills so far")
    return counts


class Slow(toy.Reader):
    """A reader that takes a while for a batch, so that it is killed in the middle of one."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        time.sleep(0.05)
        return super().run(batch)


def slow_worker(number: int) -> CampaignWorker:
    return CampaignWorker.of(Slow(), toy.model(), toy.seeds(), mutations=toy.MUTATIONS)


def worker_options(number: int) -> dict[str, Any]:
    return {"guide": GUIDES[number % len(GUIDES)], "batch_size": 4, "window": 16, "runs": 400, "seed": number}


def drive(folder: str, number: int, address: str) -> None:
    """Resume a campaign on workers in its own process, and print its reports."""

    def watch(status: Status) -> None:
        for event in status.events:
            if isinstance(event, Ran):
                print("failed" if event.outcome == "failed" else "passed", event.number, flush=True)

    workers: Workers[CampaignWorker] = (
        dc.RayWorkers(slow_worker, 2, address=address) if address else dc.ProcessWorkers(slow_worker, 2)
    )
    with workers:
        while not workers.ready:
            time.sleep(0.01)
        toy.campaign(Path(folder), system=Slow(), workers=workers, watch=watch, **worker_options(number))
    print("done", flush=True)


class Driver:
    """The process that plans and writes, and its output."""

    def __init__(self, folder: Path, number: int, address: str) -> None:
        code = f"from tests.quality.kills import drive; drive({str(folder)!r}, {number}, {address!r})"
        command = [sys.executable, "-c", code]  # a process that is not this module, so that workers can import it
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.reported: set[int] = set()
        self.said: set[str] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, _, number = line.strip().partition(" ")
            self.said.add(word)
            if word == "failed":
                self.reported.add(int(number))

    def wait(self, seconds: float) -> bool:
        """Whether it ends within some time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join()
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()


def worker_processes(driver: int, *, on_ray: bool) -> list[int]:
    """The processes of the workers: children of multiprocessing's server, or Ray's actors."""
    stats = {int(path.parent.name): _read(path) for path in Path("/proc").glob("[0-9]*/stat")}
    parents = {pid: int(stat.rpartition(")")[2].split()[1]) for pid, stat in stats.items() if stat}
    if on_ray:
        return [pid for pid in parents if _read(Path(f"/proc/{pid}/cmdline")).startswith("ray::Worker")]
    servers = {pid for pid, parent in parents.items() if parent == driver}
    return [pid for pid, parent in parents.items() if parent in servers]


def run_on_workers(kills: int, *, seed: int = 0, say: Callable[[str], None] = print) -> Counter[str]:
    """Kill this many processes of campaigns on workers, and nodes, and count what happened."""
    from ray.cluster_utils import Cluster

    rng, counts = np.random.default_rng(seed), Counter[str]()
    os.environ |= {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]), "RAY_USAGE_STATS_ENABLED": "0"}
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
    try:
        with tempfile.TemporaryDirectory() as temporary:
            while counts["kills"] < kills:
                number = counts["campaigns"]
                on_ray = number % 2 == 1
                folder, whole = Path(temporary, f"{number}"), Path(temporary, f"{number}-whole")
                toy.campaign(whole, **worker_options(number))
                reported = set[int]()
                driver = Driver(folder, number, cluster.address if on_ray else "")
                while "done" not in driver.said:
                    if driver.wait(float(rng.exponential(0.3))):
                        reported |= driver.reported
                        if "done" not in driver.said:  # a batch was lost three times: the campaign is saved
                            counts["stopped"] += 1
                            assert counts["stopped"] <= kills, "campaigns stop without being killed"
                            driver = Driver(folder, number, cluster.address if on_ray else "")
                        continue
                    if "passed" not in driver.said or counts["kills"] >= kills:
                        continue
                    victim = rng.choice(["driver", "worker", "worker", "node"] if on_ray else ["driver", "worker"])
                    if victim == "driver":
                        driver.kill()
                        reported |= driver.reported
                        if (folder / "campaign.db").exists():
                            check(folder, reported)
                        driver = Driver(folder, number, cluster.address if on_ray else "")
                    elif victim == "node":
                        cluster.remove_node(nodes.pop(int(rng.integers(len(nodes)))), allow_graceful=False)
                        nodes.append(cluster.add_node(num_cpus=1))
                    elif workers := worker_processes(driver.process.pid, on_ray=on_ray):
                        with suppress(ProcessLookupError):
                            os.kill(int(rng.choice(workers)), signal.SIGKILL)
                    else:
                        continue
                    counts["kills"] += 1
                    counts[f"{victim}s killed"] += 1
                driver.wait(60)
                reported |= driver.reported
                check(folder, reported)
                assert toy.rows(folder) == toy.rows(whole), f"campaign {number} is not the one that never stopped"
                counts["campaigns"] += 1
                counts["reported"] += len(reported)
                say(f"campaign {number} on {'Ray' if on_ray else 'processes'}: {dict(counts)}")
    finally:
        cluster.shutdown()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", action="store_true", help="kill workers and nodes as well (needs Ray)")
    options = parser.parse_args()
    counts = (run_on_workers if options.workers else run)(options.kills, seed=options.seed)
    print(
        f"{counts['kills']:,} kills in {counts['campaigns']:,} campaigns: {counts['reported']:,} failures reported and "
        "there, all databases sound, and every campaign is the one that never stopped"
    )


if __name__ == "__main__":
    main()
