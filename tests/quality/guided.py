"""Does guidance pay? Campaigns on the brackets network with its planted weakness, measured.

    python -m tests.quality.guided                first failures, over 20 campaigns each
    python -m tests.quality.guided --strategies   coverage and failures of all ways to select and pick, over 10 each

A campaign begins with 50 ordinary texts; every one has its own texts and its own random numbers.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.spec import Component
from deepcruiser.systems.builtin import bracket_changes, brackets
from tests.support.toy import Text

MUTATIONS = Mutations(
    bracket_changes.KINDS, bracket_changes.FAMILIES, bracket_changes.UNAFFECTED, bracket_changes.too_long
)


class Found(Exception):  # noqa: N818
    """The first failure was found; nothing else was wanted."""


@dataclass(frozen=True)
class Scene:
    """The network, its model, and campaigns on them."""

    system: dc.TorchSystem
    model: dc.AbstractModel

    @classmethod
    def load(cls, *, partitions: int = 20) -> Scene:
        system = brackets.load()
        return cls(system, dc.profile(system, brackets.training_texts(), batch_size=256).abstract(partitions))

    def campaign(self, folder: Path, seed: int, **options: Any) -> dc.CampaignRecord:
        texts = brackets.ordinary_tests(50, seed=seed)
        seeds = [Text(f"t{i}", text, brackets.verdict(text)) for i, text in enumerate(texts)]
        oracle = dc.Disagreement("text")
        if "select" in options:
            options["scheduler"] = Component(options.pop("select"), {"pick": options.pop("pick", "uniform")})
        if isinstance(guide := options.get("guide"), dc.Criterion):
            options["guide"] = dc.Guide((guide,), "coverage")
        options = {"severity": "unlimited", "workers": 0, **options}
        return dc.fuzz(
            self.system, self.model, seeds, folder=folder, seed=seed, oracle=oracle, mutations=MUTATIONS, **options
        )

    def first_failure(self, seed: int, *, runs: int, **options: Any) -> float:
        """The number of the first run that fails; infinite if none of `runs` does."""
        result: list[int] = []

        def watch(status: Status) -> None:
            result.extend(
                event.number for event in status.events if event.outcome == "failed" and event.reason == "wrong"
            )
            if result:
                raise Found

        with tempfile.TemporaryDirectory() as folder:
            try:
                self.campaign(Path(folder), seed, runs=runs, watch=watch, **options)
            except Found:
                return result[0]
        return float("inf")

    def first_failures(self, seeds: Sequence[int], *, runs: int, **options: Any) -> list[float]:
        return sorted(self.first_failure(seed, runs=runs, **options) for seed in seeds)


def table_of_guides(scene: Scene, *, campaigns: int, runs: int) -> None:
    print(f"the first failure, in runs; {campaigns} campaigns of up to {runs} runs, {scene.model}")
    print(f"{'guide':10} {'select, pick':20} {'quartiles':>24} {'result':>8}")
    for select, pick in (("uniform", "uniform"), ("rarity", "thompson")):
        for guide in ("none", "random", dc.BSCov, dc.SBCov(2), dc.BTCov, dc.ISCov, dc.WICov):
            result = scene.first_failures(range(campaigns), runs=runs, guide=guide, select=select, pick=pick)
            quartiles = np.quantile(np.minimum(result, 10**6), (0.25, 0.5, 0.75), method="nearest")
            words = "".join(f"{value:8.0f}" if value < 10**6 else f"  > {runs:4}" for value in quartiles)
            print(
                f"{guide!s:10} {select + ', ' + pick:20} {words} {np.isfinite(result).sum():5} of {campaigns}",
                flush=True,
            )


def table_of_strategies(scene: Scene, *, campaigns: int, runs: int) -> None:
    print(f"means of {campaigns} campaigns of {runs} runs, {scene.model}")
    print(f"{'guide':10} {'select, pick':20} {'executed':>9} {'failures':>9} {'texts':>7} {'seeds':>7}")
    pairs = [("uniform", "uniform"), ("recent", "uniform"), ("decay", "uniform"), ("rarity", "uniform"),
             ("uniform", "thompson"), ("rarity", "thompson")]  # fmt: skip
    for guide in (dc.BSCov, dc.SBCov(2), "random", "none"):
        for select, pick in pairs:
            rows = []
            for seed in range(campaigns):
                with tempfile.TemporaryDirectory() as folder:
                    done = scene.campaign(Path(folder), seed, runs=runs, guide=guide, select=select, pick=pick)
                failed = done.failed
                distinct, seeds = {test.make() for test in failed}, {test.seed for test in failed}
                rows.append(
                    (
                        done.coverage(dc.BSCov if isinstance(guide, str) else guide).value,
                        len(failed),
                        len(distinct),
                        len(seeds),
                    )
                )
            covered, failures, distinct_, seeds_ = map(mean, zip(*rows, strict=True))
            words = f"{covered:9.1%} {failures:9.1f} {distinct_:7.1f} {seeds_:7.1f}"
            print(f"{guide!s:10} {select + ', ' + pick:20} {words}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategies", action="store_true")
    parser.add_argument("--campaigns", type=int)
    parser.add_argument("--runs", type=int, default=600)
    options = parser.parse_args()
    scene = Scene.load()
    if options.strategies:
        table_of_strategies(scene, campaigns=options.campaigns or 10, runs=options.runs)
    else:
        table_of_guides(scene, campaigns=options.campaigns or 20, runs=options.runs)


if __name__ == "__main__":
    main()
