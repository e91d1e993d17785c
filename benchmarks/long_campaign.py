"""What long campaigns cost: a run late over a run early, resuming, and the size of the database.

The system is a recurrent network in a few lines of numpy that reads short texts, so that hardly anything but the
campaign itself takes time. Processor time is measured, which other work on the machine hardly affects.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import deepcruiser as dc
from benchmarks.timing import line
from deepcruiser.campaign.fuzz import Status
from deepcruiser.corpora.samples import Labelled
from deepcruiser.systems.builtin import bracket_changes, brackets

MUTATIONS = dc.Mutations(
    bracket_changes.KINDS, bracket_changes.FAMILIES, bracket_changes.UNAFFECTED, bracket_changes.too_long
)


class Reader:
    """Says "high" or "low" of a text, by a recurrent network with fixed random weights."""

    fingerprint = "reader"
    state_name = "h"

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._keep, self._read = rng.normal(0, 0.6, (4, 4)), rng.normal(0, 0.7, (128, 4))

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [self._run(text) for text in batch]

    def _run(self, text: str) -> dc.Run:
        inputs = self._read[[ord(symbol) % 128 for symbol in text]]
        states = np.zeros((len(text) + 1, 4))
        for step, read in enumerate(inputs):
            states[step + 1] = np.tanh(states[step] @ self._keep + read)
        return dc.Run("high" if states[-1, 0] > 0 else "low", dc.Trace(states, inputs))


def seeds() -> list[Labelled]:
    return [Labelled(f"{i:02}", text, None) for i, text in enumerate(brackets.ordinary_tests(50, seed=0))]


def run(folder: Path, runs: int) -> list[tuple[int, float, float]]:
    """Run or resume a campaign: after each batch its runs, the processor time and the time so far."""
    system, began, used = Reader(), time.perf_counter(), time.process_time()
    model = dc.profile(system, [each.input for each in seeds()]).abstract(20)
    moments: list[tuple[int, float, float]] = []

    def watch(status: Status) -> None:
        moments.append((status.state.runs, time.process_time() - used, time.perf_counter() - began))

    oracle = dc.Disagreement()
    dc.fuzz(
        system, model, seeds(), folder=folder, oracle=oracle, mutations=MUTATIONS, runs=runs, workers=0, watch=watch
    )
    return moments


def per_run(moments: list[tuple[int, float, float]], first: int, last: int) -> float:
    """Processor seconds per run between two runs."""
    part = [(runs, used) for runs, used, _ in moments if first <= runs <= last]
    return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--database-runs", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, size = Path(temporary) / "long", 0.0
        moments = run(folder, options.database_runs)
        size = (folder / "campaign.db").stat().st_size
        early = per_run(moments, 500, 1_500)
        moments = run(folder, options.runs)
        late = per_run(moments, options.runs - 1_000, options.runs)
        resumed = run(folder, options.runs + 16)[0]
    line(f"a run of {1e3 * early:.2f} ms at 1,000: at {options.runs:,} over that", f"{late / early:.2f}", "1.2")
    line(f"resuming after {resumed[0]:,} runs ({resumed[1]:.1f} s of a processor)", f"{resumed[2]:.1f} s", "10 s")
    line(f"database of {options.database_runs:,} runs", f"{size / 1e6:.1f} MB", "none")


if __name__ == "__main__":
    main()
