"""A weakness planted in a system comes out as the first finding, and its title names it.

Measured with 60 recordings and 256 runs: the damaged recogniser gives the finding "empty answer when high-passed at
171 Hz: 14 seeds" with a rank of 8.9; the next one has 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.findings.cluster import find, oracle_of
from deepcruiser.findings.shrink import shrink
from deepcruiser.systems.builtin import brackets
from deepcruiser.systems.builtin.speech import SEEDS
from deepcruiser.transformations import HighPassFilter
from tests.quality.guided import MUTATIONS, Scene


class Damaged:
    """The recogniser in the box with a front end that hears nothing where one low band is too soft."""

    fingerprint = "damaged at 60 to 120 Hz"

    def __init__(self) -> None:
        self._system = dc.load_system("english")

    def run(self, batch: Sequence[dc.Audio]) -> list[dc.Run]:
        heard = [audio.replace(np.zeros_like(audio.samples)) if self._is_soft(audio) else audio for audio in batch]
        return [dc.Run(run.output) for run in self._system.run(heard)]

    def _is_soft(self, audio: dc.Audio) -> bool:
        power = np.square(np.abs(np.fft.rfft(audio.samples.astype(np.float64))))
        frequency = np.fft.rfftfreq(len(audio), 1 / audio.rate)
        band, above = ((frequency >= low) & (frequency < high) for low, high in ((60, 120), (120, 480)))
        return bool(power[band].sum() < power[above].sum() / 300)


def test_a_band_in_which_the_front_end_is_damaged(tmp_path: Path) -> None:
    system, seeds = Damaged(), dc.read_corpus(SEEDS)[:48]
    oracle = dc.WordErrorRate(0.3, normalise=("case", "spacing"))
    campaign = dc.fuzz(system, None, seeds, folder=tmp_path, guide="none", oracle=oracle, runs=160, workers=0)
    first = find(campaign).findings[0]
    executor = LocalExecutor(system, None, campaign.inputs, dc.Mutations().invalid)
    shrunk = {each.number: each for each in shrink([first.worst.test], executor, campaign.inputs, oracle)}
    named, *others = find(campaign, shrunk).findings
    assert named.id == first.id
    assert named.title.startswith("empty answer when high-passed at ")
    assert isinstance(named.worst.recipe[-1], HighPassFilter)
    assert len(named.seeds) > 3
    assert all(named.rank > 3 * other.rank for other in others)
    soft = [test for test in campaign.failed if test.output == "" and isinstance(test.recipe[-1], HighPassFilter)]
    assert {member.test.number for member in named.members} == {test.number for test in soft}, (
        "one finding has them all"
    )


def test_brackets_that_nest_deeper_than_training(tmp_path: Path) -> None:
    """Every failing test of the first finding, also when shrunk, nests deeper than any text that was trained on."""
    scene = Scene.load()
    campaign = scene.campaign(tmp_path, 0, runs=600, guide=dc.SBCov(2))
    executor = LocalExecutor(scene.system, scene.model, campaign.inputs, MUTATIONS.invalid)
    oracle = oracle_of(campaign)
    assert oracle is not None
    shrunk = {each.number: each for each in shrink(campaign.failed, executor, campaign.inputs, oracle)}
    first, *others = find(campaign, shrunk).findings
    assert {each.status for each in shrunk.values()} == {"shrunk"}
    for member in first.members:
        assert brackets.nesting(campaign.inputs.make(member.test.seed, member.recipe)) > max(brackets.TRAINED_DEPTHS)
    assert first.rank > max((other.rank for other in others), default=0.0)
