"""Campaigns, `profile` and `cover` on all cores, on a GPU and on a cluster, beside what limits them.

python -m benchmarks.scale                                   the built-in recogniser on 1, 2 and all cores
python -m benchmarks.scale --device cuda                     the same on a GPU, and networks in DeepSpeech's shape
python -m benchmarks.scale --cluster                         a Ray cluster on this machine, of one node and of two

A campaign is compared with the larger of two bounds, measured on its own mutants: their transformations and the gate,
divided by the cores, and inference alone, on the same batches. `--sections` chooses what runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import deepcruiser as dc
from benchmarks.speech import Benches, Sources, Speech, idle, phases, transform
from benchmarks.timing import line
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.stream import input_of
from deepcruiser.workers import ProcessWorkers, Workers

#: Inputs for which inference alone is measured.
_INFERRED = 1024
#: The seconds that are left.
Left = Callable[[], float]
#: Starts workers: what each holds, and how many.
Start = Callable[[Any, int], Workers[Any]]


class Report:
    """Prints each figure as it is measured, and keeps all of them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.figures: list[dict[str, Any]] = []

    def add(self, section: str, **figures: Any) -> None:
        self.figures.append({"section": section, **figures})
        shown = ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items()
        )
        print(f"   {section}: {shown}", flush=True)
        if self.path is not None:
            self.path.write_text(json.dumps(self.figures, indent=2))


def all_started(workers: Workers[Any]) -> None:
    """Wait until every worker has started."""
    while not workers.ready:
        time.sleep(0.05)
    for _ in range(3):
        for future in [workers.submit(idle, 0.2) for _ in range(workers.count)]:
            future.result()


def campaign(
    speech: Speech, start: Start, count: int, batch_size: int, runs: int, where: str, report: Report, cores: int
) -> float:
    """Runs a second of one campaign, and how long it takes over each of its bounds."""
    system, sounds = speech.system(), speech.sounds()
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "abstract.model"))
        dc.profile(system, sounds, batch_size=batch_size).abstract(20).save(model)
        began = time.perf_counter()
        with start(Benches(speech, model), count) as workers:
            all_started(workers)
            starting, at = time.perf_counter() - began, list[tuple[float, float]]()
            record = dc.fuzz(
                system,
                dc.AbstractModel.load(model),
                sounds,
                folder=Path(folder, "campaign"),
                oracle=dc.WordErrorRate(above=0.3, against="output"),
                runs=runs,
                batch_size=batch_size,
                window=2 * count * batch_size,
                workers=_Kept(workers),
                watch=lambda _: at.append((time.perf_counter(), time.process_time())),
            )
            seconds, parent = (b - a for a, b in zip(at[0], at[-1], strict=True))
            mutants = _mutants(record)
            made, inferred = _bounds(record, mutants, workers, system, batch_size)
            for busy in sorted({1, count}):
                batches = [mutants[at * batch_size :][:batch_size] for at in range(busy)]
                parts = [future.result() for future in [workers.submit(phases, batch) for batch in batches if batch]]
                means = {name: sum(part[name] for part in parts) / len(parts) for name in parts[0]}
                report.add(f"seconds of a batch, {busy} of {count} workers busy", **means)
    runs, failed = len(record.runs), len(record.failed)
    bound = max(made / cores, inferred)
    report.add(
        f"campaign {where}",
        workers=count,
        batch_size=batch_size,
        runs=runs,
        failing=failed,
        starting=starting,
        seconds=seconds,
        parent_ms_per_run=1e3 * parent / runs,
        transformations_and_gate=made / cores,
        inference=inferred,
    )
    what = f"campaign of {runs} runs on {where}, {count} workers, batches of {batch_size}"
    line(f"{what}: runs a second", f"{runs / seconds:.1f}", "400 on an H200")
    line(f"{what}: seconds / the larger bound", f"{seconds / bound:.3f}", "1.30")
    return seconds


class _Kept(Workers[Any]):
    """Workers that a campaign does not end, since more is to be measured with them."""

    def __init__(self, workers: Workers[Any]) -> None:
        self.workers, self.count, self.ready = workers, workers.count, True

    def submit(self, work: Any, unit: Any) -> Any:
        return self.workers.submit(work, unit)

    def close(self) -> None:
        pass

    _start = _do = _end = None  # type: ignore[assignment]


def _mutants(record: dc.CampaignRecord) -> list[Mutant]:
    """What a campaign planned."""
    tests = {-1 - position: (seed, ()) for position, seed in enumerate(record.inputs.seeds)}
    mutants = []
    for event in record.runs:
        seed, recipe = tests[event.parent]
        tests[event.number] = seed, (*recipe, *event.changes)
        mutants.append(Mutant(event.number, event.parent, seed, recipe, event.changes))
    return mutants


def _bounds(
    record: dc.CampaignRecord, mutants: list[Mutant], workers: Workers[Any], system: dc.System, batch_size: int
) -> tuple[float, float]:
    """The seconds of all transformations and gates, one after the other, and of inference alone."""
    jobs = [(mutants[at : at + batch_size], at < _INFERRED) for at in range(0, len(mutants), batch_size)]
    done = [future.result() for future in [workers.submit(transform, job) for job in jobs]]
    batches = [values for _, values in done if values]
    system.run(batches[0])
    began = time.perf_counter()
    for batch in batches:
        system.run(batch)
    inferred = (time.perf_counter() - began) * sum(event.outcome != "rejected" for event in record.runs)
    return sum(seconds for seconds, _ in done), inferred / sum(map(len, batches))


def passes(speech: Speech, start: Start, counts: Sequence[int], where: str, report: Report) -> None:
    """`profile` and `cover` of recordings, beside inference alone on the same batches."""
    system, sounds = speech.system(), speech.sounds()
    values = sorted((input_of(sound) for sound in sounds), key=len)
    batches = [values[at : at + 16] for at in range(0, len(values), 16)]
    system.run(batches[0])
    began = time.perf_counter()
    for batch in batches:
        system.run(batch)
    bare = time.perf_counter() - began
    model = dc.profile(system, sounds).abstract(20)
    for count in counts:
        with start(Sources(speech), count) as workers:
            all_started(workers)
            began = time.perf_counter()
            dc.profile(system, sounds, workers=workers)
            middle = time.perf_counter()
            dc.cover(model, system, sounds, workers=workers)
            end = time.perf_counter()
        limit = bare / min(count, os.cpu_count() or 1)
        report.add(
            f"profile and cover {where}",
            workers=count,
            sounds=len(sounds),
            bare=bare,
            profile=middle - began,
            cover=end - middle,
        )
        line(
            f"profile of {len(sounds)} sounds on {where}, {count} workers / bare on as many cores",
            f"{(middle - began) / limit:.3f}",
            "1.25",
        )
        line(
            f"cover of {len(sounds)} sounds on {where}, {count} workers / bare on as many cores",
            f"{(end - middle) / limit:.3f}",
            "1.15",
        )


def deepspeech_shaped(
    sections: Sequence[str], sequences: Sequence[int], steps: int, left: Left, report: Report
) -> None:
    """A network in DeepSpeech's shape on the GPU: parts of a batch, `profile` and `cover`, the paper's size."""
    from benchmarks import cuda

    torch.set_float32_matmul_precision("high")
    net = cuda.DeepSpeechShaped(torch.Generator().manual_seed(0)).eval().cuda()
    if "parts" in sections:
        report.add("parts of a batch", **cuda.parts(net, batch_size=256))
    if "shaped" in sections:
        for number, count in enumerate(sequences):
            seconds = cuda.over_bare(net, batch_size=256, sequences=count, warm=number == 0)
            report.add(f"DeepSpeech-shaped, {500 * count:,} steps", **seconds)
    if "paper" in sections:
        done, total = cuda.paper_scale(net, steps, batch_size=256, limit=left())
        report.add("paper's size", steps=done, seconds=total)


@contextmanager
def ray_cluster(cpus: int) -> Iterator[Any]:
    """A Ray cluster on this machine, of one node with this number of CPUs."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus, "include_dashboard": False})
    try:
        yield cluster
    finally:
        cluster.shutdown()


def on_cluster(speech: Speech, runs: int, batch_size: int, report: Report) -> None:
    """The same campaign on one node with half of the cores, and on two."""
    cpus = max(1, (os.cpu_count() or 2) // 2)
    with ray_cluster(cpus) as cluster:

        def start(load: Any, count: int) -> Workers[Any]:
            return dc.RayWorkers(load, count, address=cluster.address)

        one = campaign(speech, start, cpus, batch_size, runs, "one Ray node", report, cpus)
        cluster.add_node(num_cpus=cpus)
        two = campaign(speech, start, 2 * cpus, batch_size, runs, "two Ray nodes", report, 2 * cpus)
        passes(speech, start, [2 * cpus], "two Ray nodes", report)
    line("campaign on one node of a cluster / on two", f"{one / two:.2f}", "1.8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cluster", action="store_true", help="a Ray cluster on this machine instead of processes")
    parser.add_argument(
        "--sections", default="", help="of campaign, passes, parts, shaped and paper, separated by commas"
    )
    parser.add_argument("--workers", default="", help="numbers of workers, separated by commas")
    parser.add_argument("--batches", default="16", help="batch sizes of the campaigns, separated by commas")
    parser.add_argument(
        "--runs", type=int, help="runs of each campaign (default: 4096 on a GPU, 128 for each worker elsewhere)"
    )
    parser.add_argument("--speech", metavar="FOLDER", help="a corpus to take 100 sounds of 3 to 5 s from")
    parser.add_argument("--system", default="english-letters", help="or english, with its language model")
    parser.add_argument("--sequences", default="2048,8192", help="sequences of 500 steps in the section shaped")
    parser.add_argument("--steps", type=int, default=44_000_000, help="steps in the section paper")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds; the section paper has fewer steps then")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file for all figures")
    options = parser.parse_args()
    began = time.perf_counter()

    def left() -> float:
        return float(options.limit) - (time.perf_counter() - began)

    cores, on_gpu = os.cpu_count() or 1, options.device != "cpu"
    machine = torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine()
    print(f"{machine}, {cores} cores, torch {torch.__version__}, numpy {np.__version__}", flush=True)
    report, speech = Report(options.output), Speech(options.device, options.speech, 100, options.system)
    sections = (
        options.sections.split(",")
        if options.sections
        else ["campaign", "passes", *(["parts", "shaped", "paper"] if on_gpu else [])]
    )
    batches = [int(size) for size in options.batches.split(",")]
    if options.cluster:
        for size in batches:
            on_cluster(speech, options.runs or 64 * cores, size, report)
        return

    def start(load: Any, count: int) -> Workers[Any]:
        return ProcessWorkers(load, count, preload=["torch", "benchmarks.speech"])

    counts = (
        [int(count) for count in options.workers.split(",")] if options.workers else sorted({1, min(2, cores), cores})
    )
    if "campaign" in sections:
        for count in counts if options.workers or not on_gpu else [cores]:
            for size in batches:
                runs = options.runs or (4096 if on_gpu else 128 * count)
                campaign(speech, start, count, size, runs, options.device, report, min(count, cores))
    if "passes" in sections:
        passes(speech, start, counts, options.device, report)
    if on_gpu:
        sizes = [int(size) for size in options.sequences.split(",")]
        deepspeech_shaped(sections, sizes, options.steps, left, report)


if __name__ == "__main__":
    main()
