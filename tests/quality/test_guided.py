"""Guidance pays: on the brackets network, the planted weakness is found in fewer runs with coverage than without.

Measured with `python -m tests.quality.guided`: the run that failed first, over 20 campaigns of up to 600 runs, each
from 50 other texts with other random numbers, on M{3,20}:

                           uniform, uniform                    rarity, thompson
    guide          quartiles                 found        quartiles             found
    none           159     471   > 600    13 of 20         88   222   467    17 of 20
    random         217     354     529    17 of 20         85   239   465    16 of 20
    BSCov          140     214     351    19 of 20         39   193   272    19 of 20
    2-SBCov        130     213     355    18 of 20         37   128   165    19 of 20
    BTCov          139     182     319    17 of 20         69   187   356    17 of 20
    ISCov          225     300     442    17 of 20         62   187   315    16 of 20
    WICov          139     182     319    17 of 20         69   252   324    17 of 20

With `--strategies`, means of 10 campaigns of 600 runs: what all runs together covered of the guide's criterion (BSCov
for the baselines), and how many different failing texts there were:

    select, pick                BSCov           2-SBCov          random            none
    uniform, uniform      43.6 %    2.3      3.4 %    4.5    39.8 %    1.3    36.9 %    1.3
    recent, uniform       37.9 %    4.1      2.9 %   10.7    34.2 %    2.6    32.3 %    1.5
    decay, uniform        44.1 %    3.0      4.0 %    6.0    39.9 %    2.1    37.0 %    1.6
    rarity, uniform       47.2 %    1.7      4.3 %    8.9    45.3 %    2.5    39.4 %    1.5
    uniform, thompson     43.1 %    2.9      3.3 %    4.8    39.7 %    2.0    37.9 %    1.9
    rarity, thompson      47.5 %    3.7      4.7 %   10.6    45.9 %    2.0    40.0 %    1.6
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

import deepcruiser as dc
from tests.quality.guided import Scene

SEEDS = range(20)
#: Where a campaign is given up: beyond the median of the guided ones, and before that of the others.
RUNS = 320
UNIFORM = {"select": "uniform", "pick": "uniform"}


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene.load()


@pytest.fixture(scope="module")
def unguided(scene: Scene) -> list[float]:
    return scene.first_failures(SEEDS, runs=RUNS, guide="none", **UNIFORM)


@pytest.mark.parametrize("guide", [dc.BSCov, dc.SBCov(2)], ids=str)
def test_the_weakness_is_found_in_fewer_runs_than_without_guidance(
    scene: Scene, unguided: list[float], guide: dc.Criterion
) -> None:
    guided = scene.first_failures(SEEDS, runs=RUNS, guide=guide, **UNIFORM)
    figures = f"first failures with {guide}: {guided}; without guidance: {unguided}"
    assert median(guided) < 0.85 * min(median(unguided), RUNS), figures
    assert sum(run <= RUNS for run in guided) >= sum(run <= RUNS for run in unguided) + 2, figures


def test_what_was_found_is_wrong_and_deep_and_can_be_replayed(scene: Scene, tmp_path: Path) -> None:
    from deepcruiser.systems.builtin import brackets

    campaign = scene.campaign(tmp_path, 0, runs=480, guide=dc.SBCov(2), select="rarity", pick="thompson")
    assert len(campaign.failed) >= 3
    depths = []
    for test in campaign.failed:
        again = test.replay(scene.system)
        assert (again.differences, again.output) == ((), test.output)
        assert brackets.verdict(again.value) == test.reference != test.output
        depths.append(brackets.nesting(again.value))
    assert median(depths) in brackets.DEEP_DEPTHS
