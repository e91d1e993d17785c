"""Changes of numeric series: properties of all of them, the effect of each, and the gate."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.transformations import NAMES, apply, from_dict, to_dict
from deepcruiser.transformations.series import (
    FAMILIES,
    KINDS,
    DropGap,
    DropSamples,
    Jitter,
    Offset,
    Scale,
    SeriesChange,
    SeriesValidity,
    TimeWarp,
)

WAVES = (np.sin(np.arange(120)[:, None] / [3, 7, 20]) * [1, 10, 100] + [0, 5, -1000]).astype(np.float32)
SERIES: dict[str, Any] = {
    "waves": WAVES,
    "double precision": WAVES.astype(np.float64),
    "one channel": WAVES[:, 0],
    "two axes of channels": WAVES.reshape(60, 2, 3),
    "every second step": WAVES[::2],
    "constant": np.full((30, 2), 7.0),
    "zeros": np.zeros(30, np.float32),
    "one step": np.ones((1, 2)),
    "two steps": np.arange(4.0).reshape(2, 2),
    "three steps": np.arange(3.0),
    "nothing": np.zeros((0, 3)),
    "no channels": np.zeros((5, 0)),
    "a value missing": np.where(np.arange(120)[:, None] == 50, np.nan, WAVES),
    "nothing but missing": np.full(20, np.nan),
    "infinite": np.where(np.arange(120)[:, None] == 50, np.inf, WAVES),
    "as large as float32 goes": WAVES[:, 0] * np.float32(3e38),
    "half precision": WAVES[:, :1].astype(np.float16),
}
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def drawn(kind: type[SeriesChange], count: int = 20, **ranges: Any) -> Iterator[SeriesChange]:
    rng = np.random.default_rng(0)
    return (kind.draw(rng, **ranges) for _ in range(count))


@kinds
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(SERIES)), wide=st.booleans())
def test_what_comes_out_is_like_what_went_in(kind: type[SeriesChange], seed: int, name: str, wide: bool) -> None:
    series, before = SERIES[name], SERIES[name].copy()
    change = kind.draw(np.random.default_rng(seed), **(kind.LIMITS if wide else {}))
    result = change(series)
    assert result.shape == series.shape
    assert result.dtype == series.dtype
    assert change(series).tobytes() == result.tobytes()
    assert series.tobytes() == before.tobytes(), "the input was changed in place"
    if np.isfinite(series).all() and not (wide and name in ("as large as float32 goes", "half precision")):
        assert np.isfinite(result).all()


@kinds
def test_values_are_values(kind: type[SeriesChange]) -> None:
    for change in drawn(kind):
        assert change == eval(repr(change), {kind.__name__: kind})
        assert hash(change) == hash(replace(change))
        back = from_dict(json.loads(json.dumps(to_dict(change))))
        assert back == change == pickle.loads(pickle.dumps(change))
        assert back(WAVES).tobytes() == change(WAVES).tobytes()
        with pytest.raises(FrozenInstanceError):
            change.seed = 3  # type: ignore[attr-defined]
    assert NAMES[kind.__name__] is kind


@kinds
def test_draws_stay_within_the_ranges_and_the_generator_decides(kind: type[SeriesChange]) -> None:
    for change in drawn(kind, 200):
        for name, (low, high) in kind.RANGES.items():
            assert low <= getattr(change, name) <= high
    assert list(drawn(kind)) == list(drawn(kind))
    name, (low, high) = next(iter(kind.LIMITS.items()))
    with pytest.raises(dc.InputError, match=f"{kind.__name__}: {name} must be a number from"):
        replace(next(drawn(kind)), **{name: high + 1})
    for change in drawn(kind, **{name: (high, high)}):  # type: ignore[arg-type]
        assert getattr(change, name) == high
    with pytest.raises(dc.InputError, match=f"{kind.__name__} draws no 'amplitude'; its ranges are"):
        kind.draw(np.random.default_rng(0), amplitude=(0, 1))


@kinds
def test_no_global_random_state(kind: type[SeriesChange]) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    for change in drawn(kind, 5):
        change(WAVES)
    assert np.random.get_state(legacy=False)["state"]["key"].tobytes() == before  # noqa: NPY002


def test_another_process_gives_the_same_numbers() -> None:
    recipe = [next(drawn(kind)) for kind in (Scale, TimeWarp, DropSamples, Jitter)]
    code = (
        "import sys, json, hashlib, numpy as np\n"
        "from deepcruiser.transformations import apply, from_dict\n"
        "recipe = [from_dict(data) for data in json.loads(sys.argv[1])]\n"
        "series = np.linspace(-1, 1, 200).reshape(100, 2)\n"
        "print(hashlib.sha256(apply(recipe, series).tobytes()).hexdigest())"
    )
    given_ = json.dumps([to_dict(change) for change in recipe])
    there = subprocess.run([sys.executable, "-c", code, given_], capture_output=True, text=True, check=True).stdout
    here = subprocess.run([sys.executable, "-c", code, given_], capture_output=True, text=True, check=True).stdout
    assert there == here
    import hashlib

    mine = apply(recipe, np.linspace(-1, 1, 200).reshape(100, 2))  # type: ignore[arg-type]
    assert hashlib.sha256(mine.tobytes()).hexdigest() == there.strip()


def test_jitter_has_the_level_it_says() -> None:
    series = np.random.default_rng(1).standard_normal((100_000, 2)) * [1, 50] + [0, 1000]
    for snr_db in (10.0, 20.0, 40.0):
        noise = Jitter(snr_db, 3)(series) - series
        result = 20 * np.log10(series.std(0) / noise.std(0))
        np.testing.assert_allclose(result, snr_db, atol=0.1)
        assert abs(np.corrcoef(noise.T)[0, 1]) < 0.02, "each channel has noise of its own"  # type: ignore[index]
    assert not np.array_equal(Jitter(20, 1)(series), Jitter(20, 2)(series))
    np.testing.assert_array_equal(Jitter(20, 1)(SERIES["constant"]), SERIES["constant"])


def test_scale_and_offset() -> None:
    series = WAVES.astype(np.float64)
    mean, deviation = series.mean(0), series.std(0)
    scaled = Scale(1.1)(series)
    np.testing.assert_allclose(scaled.mean(0), mean)
    np.testing.assert_allclose(scaled.std(0), 1.1 * deviation)
    np.testing.assert_allclose(Scale(1)(series), series)
    np.testing.assert_allclose(Offset(-0.1)(series), series - 0.1 * deviation)
    missing = SERIES["a value missing"]
    np.testing.assert_allclose(
        np.nanmean(Scale(2)(missing), 0), np.nanmean(missing, 0), rtol=1e-5, err_msg="missing values have no say"
    )


@settings(max_examples=200)
@given(st.floats(0, 3), st.integers(0, 2**32 - 1), st.integers(3, 200))
def test_time_goes_forward_from_end_to_end(strength: float, seed: int, steps: int) -> None:
    line = np.arange(steps, dtype=np.float64)  # its own clock: the warped series shows which moment was read
    times = TimeWarp(strength, seed)(line)
    assert times[0] == 0
    assert times[-1] == pytest.approx(steps - 1)
    passed = np.diff(times)
    assert (passed > 0).all()
    assert passed.max() / passed.min() <= (1 + strength) ** 2 * (1 + 1e-6)
    both = TimeWarp(strength, seed)(np.stack([line, 5 * line], axis=1))
    np.testing.assert_allclose(both[:, 1], 5 * both[:, 0], err_msg="channels go together")
    if strength > 0.1 and steps > 10:
        assert not np.allclose(times, line)


def test_time_warp_stays_between_the_values_and_can_do_nothing() -> None:
    for change in drawn(TimeWarp):
        result = change(WAVES)
        assert (result.max(0) <= WAVES.max(0)).all()
        assert (result.min(0) >= WAVES.min(0)).all()
        np.testing.assert_array_equal(result[0], WAVES[0])
    np.testing.assert_array_equal(TimeWarp(0, 1)(WAVES), WAVES)


@settings(max_examples=200)
@given(st.floats(0, 0.9), st.integers(0, 2**32 - 1), st.integers(1, 80), st.floats(0, 1))
def test_what_is_lost_is_held(share: float, seed: int, steps: int, where: float) -> None:
    """Step by step: a lost value repeats the one before, others are unchanged, and their number is right."""
    line = np.arange(1, steps + 1, dtype=np.float64)
    count = min(max(round(share * steps), 1 if share else 0), steps - 1)
    for change in (DropSamples(share, seed), DropGap(where, share)):
        result = change(line)
        lost = result != line
        assert lost.sum() == count
        for step in np.flatnonzero(lost):
            assert result[step] == result[step - 1]
        if isinstance(change, DropGap) and count:
            (at,) = np.nonzero(lost)
            assert at[-1] - at[0] + 1 == count, "in one piece"
    if 0 < count < steps - 1:
        assert DropGap(0, share)(line)[1] == line[0]
        assert DropGap(1, share)(line)[-1] != line[-1]


def test_families() -> None:
    assert {kind for S in FAMILIES for kind in S} == set(KINDS)
    assert len(KINDS) == sum(map(len, FAMILIES))
    mutations = dc.Mutations.series()
    assert mutations.allowed([]) == KINDS
    assert set(mutations.allowed([Jitter(20, 1), Scale(1.1)])) == {TimeWarp, DropSamples, DropGap}
    assert mutations.allowed([Jitter(20, 1), Offset(0.1), TimeWarp(0.1, 1), DropGap(0.5, 0.1)]) == ()


def test_what_the_ranges_make_is_valid_alone_and_in_chains() -> None:
    mutations, rng, rejected = dc.Mutations.series(), np.random.default_rng(0), 0
    for name in ("waves", "one channel", "two axes of channels", "a value missing", "constant", "zeros"):
        for _ in range(60):
            recipe: list[Any] = []
            while allowed := mutations.allowed(recipe):
                recipe.append(mutations.draw(allowed[rng.integers(len(allowed))], rng))
            if name != "a value missing":  # interpolation and holding spread what is missing
                rejected += mutations.invalid(SERIES[name], apply(recipe, SERIES[name])) is not None
    assert rejected == 0


@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        (WAVES, None),
        (WAVES + WAVES.std(0) * np.float32(0.9), None),
        (WAVES + WAVES.std(0) * np.float32(1.1), "too far from the seed: values beyond its own"),
        (WAVES - WAVES.std(0) * [0, 0, 1.1], "too far from the seed: values beyond its own"),
        (Scale(1.29)(WAVES), None),
        (Scale(1.31)(WAVES), "too far from the seed: swings of another size"),
        (Scale(0.76)(WAVES), "too far from the seed: swings of another size"),
        (np.zeros_like(WAVES), "too far from the seed: swings of another size"),
        (np.where(WAVES > 104, np.nan, np.where(np.arange(120)[:, None] == 3, np.nan, WAVES)), "not finite: 3 values"),
        (WAVES[:90], "too short: 90 steps for 120"),
        (np.tile(WAVES, (2, 1)), "too long: 240 steps for 120"),
        (WAVES[:, :2], "other channels: (2,) where the seed has (3,)"),
    ],
)
def test_the_gate(mutant: Any, reason: str | None) -> None:
    result = SeriesValidity().reason(WAVES, mutant)
    assert result == reason if reason is None else (result or "").startswith(reason)


def test_the_gate_has_limits_that_make_sense() -> None:
    assert SeriesValidity(max_spread=2).reason(WAVES, Scale(1.31)(WAVES)) is None
    with pytest.raises(dc.InputError, match=r"SeriesValidity: max_stretch must be a number from 1 to inf, not 0\.5"):
        SeriesValidity(max_stretch=0.5)


@pytest.mark.parametrize(
    "wrong", [[1.0, 2.0], "text", np.arange(5), np.array(["a"]), np.float64(1.0), np.array(1.0), None], ids=repr
)
def test_what_is_no_series_is_refused(wrong: Any) -> None:
    with pytest.raises(dc.InputError, match=r"a series must be a floating-point numpy array \[time, ...\], not a"):
        Scale(1.1)(wrong)
