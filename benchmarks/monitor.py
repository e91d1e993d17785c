"""What checking a run costs, over the inference that made it, with the built-in recogniser."""

from __future__ import annotations

import argparse
import warnings

import deepcruiser as dc
from benchmarks.timing import alternate, line, ratio
from deepcruiser.systems.builtin.speech import PROFILE, SEEDS


def measure(model: dc.AbstractModel, *, rounds: int) -> None:
    system = dc.load_system("english")
    recordings = [sample.input for sample in dc.read_corpus(SEEDS)[:20]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few recordings are enough to measure time
        monitor = dc.Monitor(model).calibrate(system, recordings)
    runs = [system.run([recording])[0] for recording in recordings]
    versions = {
        "inference": lambda: [system.run([recording]) for recording in recordings],
        "check": lambda: [monitor.check(run) for run in runs],
    }
    seconds = alternate(versions, rounds=rounds)
    line(f"Monitor.check on {model.name} / inference", f"{ratio(seconds, 'check', 'inference'):.3f}", "0.05")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    profile = dc.profile(dc.load_system("english"), dc.read_corpus(PROFILE))
    for partitions in (20, 100):
        measure(profile.abstract(partitions), rounds=options.rounds)


if __name__ == "__main__":
    main()
