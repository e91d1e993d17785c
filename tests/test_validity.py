"""The validity gate: what it accepts, what it rejects, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import InputError, MismatchError
from deepcruiser.transformations import (
    PAPER,
    AddWhiteNoise,
    ChangeSpeed,
    ChangeVolume,
    HighPassFilter,
    Transformation,
    Trim,
    Validity,
    allowed,
    apply,
)
from deepcruiser.transformations.validity import _warped, distance_db
from tests.test_transformations import SIGNALS

RATE = 16000


def syllables(seed: int, count: int = 8) -> Audio:
    """Something like speech: vowels of two broad formants on a falling spectrum, hisses, and gaps."""
    rng = np.random.default_rng(seed)
    parts = [1e-4 * rng.standard_normal(RATE // 2)]
    for _ in range(count):
        t = np.arange(int(rng.integers(1800, 4000))) / RATE
        pitch, formants = rng.uniform(90, 220), (rng.uniform(300, 900), rng.uniform(900, 3000))
        vowel = np.zeros_like(t)
        for harmonic in np.arange(pitch, 3500, pitch):
            loudness = 60 / harmonic + sum(np.exp(-(((harmonic - f) / 400) ** 2)) for f in formants)
            vowel += loudness * np.sin(2 * np.pi * harmonic * t)
        vowel *= np.hanning(len(t)) * rng.uniform(0.1, 0.4)
        hiss = 0.02 * rng.standard_normal(int(rng.integers(400, 1500)))
        parts += [vowel, hiss, 1e-4 * rng.standard_normal(int(rng.integers(200, 1600)))]
    samples = np.concatenate([*parts, 1e-4 * rng.standard_normal(RATE // 2)])
    return Audio(0.5 * samples / np.abs(samples).max(), RATE)


SEED = syllables(0)


def test_a_seed_is_valid_by_itself() -> None:
    assert Validity().reason(SEED, SEED) is None
    assert distance_db(SEED, SEED) == pytest.approx(0, abs=1e-5)


def test_whatever_the_default_ranges_make_is_valid() -> None:
    rng = np.random.default_rng(0)
    for number in range(25):
        seed, applied = syllables(number), []  # type: ignore[var-annotated]
        while kinds := allowed(applied):
            applied.append(kinds[rng.integers(len(kinds))].draw(rng))
            assert Validity().reason(seed, apply(applied, seed)) is None, applied


def replaced(samples: Any) -> Audio:
    return SEED.replace(np.asarray(samples, dtype=np.float32))


@pytest.mark.parametrize(
    ("mutant", "reason"),
    [
        (replaced([]), "too short: 0.00 s"),
        (replaced(SEED.samples[:800]), "too short: 0.05 s"),
        (replaced(np.zeros(len(SEED))), "silent"),
        (replaced(np.full(len(SEED), 0.5)), "silent"),
        (ChangeVolume(-80)(SEED), "silent"),
        (HighPassFilter(8000)(SEED), "silent"),
        (replaced(np.clip(SEED.samples * 8, -1, 1)), "clipped"),
        (replaced(SEED.samples[: len(SEED) // 2]), "too short: "),
        (ChangeSpeed(2)(SEED), "too short: "),
        (ChangeSpeed(0.6)(SEED), "too long: "),
        (ChangeVolume(-30)(SEED), "too far from the seed: 30.0 dB softer"),
        (AddWhiteNoise(-5, 1)(SEED), "too far from the seed: "),
        (HighPassFilter(3000)(SEED), "too far from the seed: "),
        (syllables(1).replace(np.resize(syllables(1).samples, len(SEED))), "too far from the seed: "),
        (replaced(0.1 * np.random.default_rng(0).standard_normal(len(SEED))), "too far from the seed: "),
    ],
)
def test_what_is_no_longer_the_seed_is_stopped(mutant: Audio, reason: str) -> None:
    result = Validity().reason(SEED, mutant)
    assert result is not None
    assert result.startswith(reason)


def test_the_limits_can_be_chosen() -> None:
    noisy = AddWhiteNoise(-5, 1)(SEED)
    assert Validity(max_distance_db=100).reason(SEED, noisy) is None
    assert Validity(max_stretch=3, max_distance_db=10).reason(SEED, ChangeSpeed(2)(SEED)) is None
    assert Validity(max_clipped=1, max_distance_db=10).reason(SEED, replaced(np.clip(SEED.samples * 8, -1, 1))) is None
    assert Validity(max_level_change_db=40).reason(SEED, ChangeVolume(-30)(SEED)) is None
    assert Validity(min_level_db=-100, max_level_change_db=100).reason(SEED, ChangeVolume(-60)(SEED)) is None
    assert Validity(min_seconds=9).reason(SEED, SEED) == f"too short: {SEED.seconds:.2f} s"


def test_clipping_that_the_seed_has_is_no_fault_of_the_mutant() -> None:
    clipped = replaced(np.clip(SEED.samples * 4, -1, 1))
    assert Validity().reason(clipped, clipped) is None
    assert Validity().reason(clipped, Trim(30)(clipped)) is None


def test_long_silence_that_was_trimmed_does_not_count() -> None:
    rng = np.random.default_rng(1)
    padded = replaced(np.concatenate([1e-4 * rng.standard_normal(10 * RATE), SEED.samples]))
    assert Validity().reason(padded, Trim(40)(padded)) is None
    assert distance_db(padded, Trim(40)(padded)) < 0.5


def test_wrong_limits_and_rates_are_refused() -> None:
    with pytest.raises(InputError, match=r"Validity: max_stretch must be a number from 1 to inf, not 0\.5"):
        Validity(max_stretch=0.5)
    with pytest.raises(InputError, match="Validity: max_distance_db must be a number"):
        Validity(max_distance_db="4")  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="the seed has 16000 Hz and its mutant 8000 Hz"):
        Validity().reason(SEED, SEED.resample(8000))


@pytest.mark.parametrize("seed", SIGNALS)
@pytest.mark.parametrize("mutant", SIGNALS)
def test_any_two_sounds_get_an_answer(seed: str, mutant: str) -> None:
    one, other = SIGNALS[seed], SIGNALS[mutant]
    if one.rate == other.rate:
        reason = Validity().reason(one, other)
        assert reason is None or len(reason) < 60
        if len(one) and len(other):
            assert np.isfinite(distance_db(one, other))


@settings(max_examples=60)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 99))
def test_the_alignment_is_the_cheapest_of_all(rows: int, columns: int, seed: int) -> None:
    cost = np.random.default_rng(seed).random((rows, columns))

    def cheapest(i: int, j: int) -> float:
        """The least weighted sum over all ways to a cell, by trying them all."""
        if (i, j) == (0, 0):
            return float(2 * cost[0, 0])
        ways = [cheapest(i - 1, j) + cost[i, j]] if i else []
        ways += [cheapest(i, j - 1) + cost[i, j]] if j else []
        ways += [cheapest(i - 1, j - 1) + 2 * cost[i, j]] if i and j else []
        return float(min(ways))

    assert _warped(cost) == cheapest(rows - 1, columns - 1) / (rows + columns)


def test_what_is_remembered_of_a_seed_changes_no_reason() -> None:
    gate = Validity(max_distance_db=0)  # so that the reason holds the distance
    rng = np.random.default_rng(0)
    long = Audio(np.tile(SEED.samples, 6), RATE)  # whose moments are farther apart
    for mutant in (*(kind.draw(rng)(SEED) for kind in PAPER), long):
        assert gate.reason(SEED, mutant) == gate.reason(Audio(SEED.samples, RATE), mutant)
        assert distance_db(SEED, mutant) == distance_db(Audio(SEED.samples, RATE), mutant)


@pytest.mark.shared
def test_real_speech_passes_and_other_words_do_not(shared: Path) -> None:
    corpus = shared / "speech" / "librispeech-dev-clean"
    if not corpus.is_dir():
        pytest.skip(f"there is no {corpus}")
    samples = read_corpus(corpus).samples
    speech = [samples[i].input for i in range(0, len(samples), len(samples) // 24)]
    rng, rejected, made = np.random.default_rng(0), 0, 0
    for audio in speech:
        applied: list[Transformation] = []
        while kinds := allowed(applied):
            applied.append(kinds[rng.integers(len(kinds))].draw(rng))
        made += 1
        rejected += Validity().reason(audio, apply(applied, audio)) is not None  # type: ignore[arg-type]
    assert rejected <= 0.05 * made
    others = [Validity().reason(one, other) for one, other in zip(speech, speech[1:] + speech[:1], strict=True)]  # type: ignore[arg-type]
    assert None not in others
    assert None not in [Validity().reason(audio, AddWhiteNoise(0, 1)(audio)) for audio in speech]  # type: ignore[arg-type]
