"""Which transformations may follow which, against the rule as the paper writes it."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from deepcruiser.errors import InputError
from deepcruiser.transformations import (
    CLEARNESS,
    DRC,
    EXTRA,
    FAMILIES,
    PAPER,
    SPEED,
    UNAFFECTED,
    VOLUME,
    AddBackgroundNoise,
    AddWhiteNoise,
    ChangeSpeed,
    ChangeVolume,
    ExtractHarmonic,
    HighPassFilter,
    LowPassFilter,
    PitchShift,
    Reverb,
    Telephone,
    Transformation,
    Trim,
    allowed,
    series,
    text,
)
from deepcruiser.transformations.families import NOT_FOR


def literally(applied: frozenset[type], available: tuple[type, ...]) -> set[type]:
    """{ t in S u UAT | S in {VRT, SRT, CRT}, ({t} u S) n T = {} }, the extra ones within their family's S."""
    VRT = {ChangeVolume, LowPassFilter, HighPassFilter, Telephone} & set(available)
    SRT = {PitchShift, ChangeSpeed} & set(available)
    CRT = {AddWhiteNoise, ExtractHarmonic, AddBackgroundNoise, Reverb} & set(available)
    UAT = {DRC, Trim} & set(available)
    return {t for S in (VRT, SRT, CRT) for t in S | UAT if not ({t} | S) & applied}


def histories(available: tuple[type[Transformation], ...]) -> set[frozenset[type]]:
    """The sets of kinds of all histories that can be reached."""
    reached: set[frozenset[type]] = {frozenset()}
    todo: deque[frozenset[type]] = deque([frozenset()])
    while todo:
        history = todo.popleft()
        for kind in literally(history, available):
            if (longer := history | {kind}) not in reached:
                reached.add(longer)
                todo.append(longer)
    return reached


def test_the_families_are_those_of_the_paper() -> None:
    assert set(VOLUME) == {ChangeVolume, LowPassFilter, HighPassFilter}
    assert set(SPEED) == {PitchShift, ChangeSpeed}
    assert set(CLEARNESS) == {AddWhiteNoise, ExtractHarmonic}
    assert set(UNAFFECTED) == {DRC, Trim}
    assert len(PAPER) == len(set(PAPER)) == 9
    assert not set(EXTRA) & set(PAPER)
    assert {kind for S in FAMILIES for kind in S} | set(UNAFFECTED) == set(PAPER + EXTRA)


@pytest.mark.parametrize(
    "available",
    [PAPER, PAPER + EXTRA, (*PAPER, Reverb), UNAFFECTED, VOLUME, (Trim, AddWhiteNoise), ()],
    ids=lambda kinds: "+".join(kind.__name__ for kind in kinds) or "none",
)
def test_it_is_the_papers_rule_for_every_reachable_history(available: tuple[type[Transformation], ...]) -> None:
    reached = histories(available)
    for history in reached:
        result = allowed(history, available)
        assert set(result) == literally(history, available)
        assert result == tuple(kind for kind in available if kind in result), "in the order of the available ones"
    if available == PAPER:
        # 4 choices of volume (3 and none) x 3 of speed x 3 of clearness x 4 of DRC and Trim
        assert len(reached) == 4 * 3 * 3 * 4
        assert max(map(len, reached)) == 5


def test_every_way_ends() -> None:
    for history in histories(PAPER):
        touched = sum(bool(history & set(S)) for S in (VOLUME, SPEED, CLEARNESS))
        assert (allowed(history) == ()) == (touched == 3), "spent when volume, speed and clearness have changed"


def test_it_takes_values_as_well_as_kinds() -> None:
    applied = [ChangeSpeed(1.1), AddWhiteNoise(30, 1), Trim(40)]
    assert allowed(applied) == allowed([type(one) for one in applied]) == (*VOLUME, DRC)
    rng = np.random.default_rng(0)
    while kinds := allowed(applied):
        applied.append(kinds[rng.integers(len(kinds))].draw(rng))
    assert len(applied) in (4, 5)


def test_the_default_is_the_papers_and_the_others_must_be_asked_for() -> None:
    assert allowed([]) == PAPER
    assert allowed([], PAPER + EXTRA) == PAPER + EXTRA
    assert set(allowed([Reverb(0.2, 10, 1)], PAPER + EXTRA)) == {*VOLUME, Telephone, *SPEED, *UNAFFECTED}


def test_a_stranger_is_refused() -> None:
    with pytest.raises(InputError, match="int is in no family of transformations; the families contain"):
        allowed([3])
    with pytest.raises(InputError, match="float is in no family"):
        allowed([], (float,))


def test_tasks_are_those_of_kinds_that_exist_and_the_documentation_names_them() -> None:
    kinds = {kind.__name__ for kind in (*PAPER, *EXTRA, *text.KINDS, *series.KINDS)}
    assert {*NOT_FOR} <= kinds
    page = (Path(__file__).parents[1] / "docs/transformations.md").read_text(encoding="utf-8")
    table = page.partition("## Which task they suit")[2].partition("\n## ")[0]
    assert {name for name in kinds if f"`{name}`" in table} == {*NOT_FOR, "Telephone"}
