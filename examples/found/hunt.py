"""What the scripts in this folder share: profile a network, run a campaign, and shrink what failed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import deepcruiser as dc
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.findings.cluster import find
from deepcruiser.findings.shrink import shrink
from deepcruiser.systems.builtin.speech import SEEDS

#: Ordinary speech of synthetic voices, which comes with DeepCruiser.
SPEECH = dc.read_corpus(SEEDS)


@dataclass(frozen=True, eq=False)
class Found:
    """A seed and the mildest mutant of it that fails, to be tried outside DeepCruiser."""

    seed: Any
    mutant: Any
    recipe: tuple[Any, ...]
    reference: Any


def hunt(
    system: dc.System,
    training: Sequence[Any],
    seeds: Sequence[Any],
    *,
    oracle: dc.Oracle,
    mutations: dc.Mutations,
    runs: int,
    guided: bool = True,
) -> list[Found]:
    """Print what a campaign of `runs` finds.

    Return the worst test of each finding, the most important first, then tests of other seeds; at most eight in all.
    """
    model = None
    if guided:
        model = dc.profile(system, training, components=3).abstract(partitions=20)
        print(model, dc.cover(model, system, seeds), sep="\n")
    campaign = dc.fuzz(
        system,
        model,
        seeds,
        folder=tempfile.mkdtemp(),
        guide=dc.SBCov(2) if guided else "none",
        oracle=oracle,
        mutations=mutations,
        runs=runs,
        workers=0,
    )
    findings = find(campaign).findings
    print(campaign, f"findings: {len(findings)}", sep="\n")
    tests = [finding.worst.test for finding in findings[:8]]
    shown = {test.seed for test in tests}
    first = {test.seed: test for test in reversed(campaign.failed) if test.seed not in shown}
    tests = [*tests, *reversed(first.values())][:8]
    executor = LocalExecutor(system, None, campaign.inputs, mutations.invalid)
    shrunk = {one.number: one for one in shrink(tests, executor, campaign.inputs, oracle, ranges=mutations.ranges)}
    for finding in findings[:8]:
        print(f"{finding.title}\n  {finding.worst.test}\n  shrunk: {shrunk[finding.worst.test.number]}")
    recipes = [(test, shrunk[test.number].recipe) for test in tests if shrunk[test.number].status == "shrunk"]
    make = campaign.inputs.make
    return [Found(make(test.seed, ()), make(test.seed, recipe), recipe, test.reference) for test, recipe in recipes]


def free(*kinds: Any) -> dc.Mutations:
    """Mutations of own kinds, each used at most once."""
    return dc.Mutations(kinds, tuple((kind,) for kind in kinds), (), lambda seed, mutant: None)
