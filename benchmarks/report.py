"""The report of a large campaign: how long it takes to write and to open, and how large it is.

python -m benchmarks.report                 20,000 runs, 2,000 failing tests with their sounds
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import deepcruiser as dc
from benchmarks.browser import browser
from deepcruiser.campaign.events import Event, Outcome, Ran, Seeded
from deepcruiser.campaign.failed_test import FailedTest, InputFile
from deepcruiser.campaign.loop import Step
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Test
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.campaign.store import MODEL, Store
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.page import write_page
from deepcruiser.report.sections import collect

WORDS = ["the", "of", "and", "in", "he", "was", "that", "it", "his", "her", "with", "had", "for", "she", "not", "at"]


def synthesise(folder: Path, *, runs: int, failures: int, seeds: int = 200) -> None:
    """A campaign's folder as the loop would leave it, with random walks and random words instead of a network."""
    rng = np.random.default_rng(0)
    mutations = Mutations()

    def trace() -> dc.Trace:
        moves = rng.normal(0, 1, (60, 8)) * np.geomspace(3, 0.3, 8)
        states = np.concatenate([np.zeros((1, 8)), np.cumsum(moves, axis=0)])
        return dc.Trace(states, rng.normal(0, 1, (60, 4)))

    def words() -> str:
        return " ".join(rng.choice(WORDS, 8))

    model = dc.Profile.of([trace() for _ in range(400)], components=3).abstract(40)
    sound = dc.Audio(0.1 * rng.standard_normal(24000), 16000)
    references = [words() for _ in range(seeds)]
    failing = set(rng.choice(np.arange(1, runs + 1), failures, replace=False).tolist())
    tests: dict[int, Test] = {}
    with Store.open(folder, write=True) as store:
        names = [f"seed-{i:04}" for i in range(seeds)]
        store.configure(CampaignSpec(), {"model": model.fingerprint, "system": "", "seeds": names})
        store.put("versions", {"python": "3"})
        model.save(folder / MODEL)
        sown: list[Event] = []
        for i, text in enumerate(references):
            sown.append(Seeded(i, f"seed-{i:04}", "kept", "", text, text, 0.0, None, "00", model.visits(trace())))
            tests[-1 - i] = Test(-1 - i, f"seed-{i:04}", i, (), None, text, np.empty(0, np.int64))
            store.keep_seed(i, lambda: sound)
        store.save(Step(tuple(sown), (), {}), runs=0, seconds=0.0, failures={})
        for start in range(1, runs + 1, 16):
            events: list[Event] = []
            failed: dict[int, Any] = {}
            for number in range(start, min(start + 16, runs + 1)):
                fails = number in failing
                change = mutations.draw(mutations.kinds[int(rng.integers(9))], rng)
                score = float(rng.uniform(0.3, 1)) if fails else 0.0
                parent, digest = -1 - int(rng.integers(seeds)), f"{number:064x}"
                outcome: Outcome = "failed" if fails else "dropped"
                judged = "wrong" if fails else "", words(), score, None, digest, model.visits(trace())
                event = Ran(number, parent, (change,), outcome, *judged)
                events.append(event)
                if fails:
                    failed[number] = InputFile.of(sound), FailedTest.of(event, tests[parent]).to_dict()
            last = start + len(events) - 1
            store.save(Step(tuple(events), (), {}), runs=last, seconds=last / 10, failures=failed)
        store.put("stopped", f"{runs:,} runs are done")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--failures", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "large"
        synthesise(folder, runs=options.runs, failures=options.failures)
        began = time.perf_counter()
        campaigns = [CampaignData(folder)]
        read = time.perf_counter() - began
        for embed in (0, 25):
            began = time.perf_counter()
            page = folder / f"report-{embed}.html"
            write_page(campaigns, page, embed=embed)
            wrote = time.perf_counter() - began
            print(f"{options.runs:,} runs, {options.failures:,} failing tests, sounds of {embed} inside: ", end="")
            held = len(collect(ReportData.of(campaigns), page=True)["failures"])
            print(f"{page.stat().st_size / 1e6:.2f} MB with {held} failing tests; ", end="")
            print(f"read in {read:.1f} s, written in {wrote:.1f} s")
        with browser() as chromium:
            for _ in range(3):
                print(_opened(chromium, page))


def _opened(chromium: Any, page: Path) -> str:
    """How long the page takes to be there, and the slowest frame while it is scrolled from end to end."""
    chromium.get("about:blank")
    began = time.perf_counter()
    chromium.get(page.as_uri())
    chromium.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    seconds = time.perf_counter() - began
    frames = chromium.execute_async_script(
        """
        const done = arguments[0], frames = [];
        let last = performance.now(), y = 0;
        const end = document.documentElement.scrollHeight;
        (function step(now) {
          frames.push(now - last); last = now; y += 60; scrollTo({top: y, behavior: "instant"});
          if (y < end) requestAnimationFrame(step); else done(frames.slice(1));
        })(last);
        """
    )
    turn = chromium.execute_async_script(
        """
        const began = performance.now(), done = arguments[0];
        document.querySelector(".sortable button").click();
        requestAnimationFrame(() => done(performance.now() - began));
        """
    )
    typical, slowest = np.median(frames), np.max(frames)
    return f"opened in {seconds:.2f} s; frames {typical:.0f} ms, the slowest {slowest:.0f} ms; sorted in {turn:.0f} ms"


if __name__ == "__main__":
    main()
