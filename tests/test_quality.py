from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deepcruiser.audio import Audio
from deepcruiser.transformations.quality import Quality, QualityLimits


def syllables(level: float, noise: float, *, seconds: float = 4.0, rate: int = 16_000) -> Audio:
    """Half a second of a hum, half a second of pause, with noise throughout."""
    times = np.arange(int(seconds * rate)) / rate
    hum = level * np.sqrt(2) * np.sin(2 * np.pi * 200 * times) * (times % 1 < 0.5)
    return Audio((hum + noise * np.random.default_rng(0).standard_normal(len(times))).astype(np.float32), rate)


@pytest.mark.parametrize(("level", "noise"), [(0.1, 0.001), (0.05, 0.01), (0.2, 0.0005)])
def test_level_and_noise_are_those_that_were_mixed(level: float, noise: float) -> None:
    quality = Quality.of(syllables(level, noise))
    assert quality.seconds == 4.0
    assert quality.level_db == pytest.approx(20 * np.log10(np.hypot(level, noise)), abs=0.5)
    assert quality.noise_db == pytest.approx(20 * np.log10(noise), abs=0.6)
    assert quality.snr_db == quality.level_db - quality.noise_db


def test_clipping_is_the_share_at_full_scale() -> None:
    audio = syllables(0.9, 0.0)
    clipped = Audio(np.clip(audio.samples, -1, 1), audio.rate)
    assert Quality.of(clipped).clipped == np.mean(np.abs(audio.samples) >= 1) > 0.1
    assert Quality.of(syllables(0.1, 0.001)).clipped == 0


def test_digital_silence_around_the_recording_is_not_its_noise() -> None:
    audio = syllables(0.1, 0.001)
    padded = Audio(np.pad(audio.samples, 32_000), audio.rate)
    assert Quality.of(padded).noise_db == pytest.approx(Quality.of(audio).noise_db, abs=0.2)


@pytest.mark.parametrize("samples", [np.zeros(1000, np.float32), np.zeros(0, np.float32)])
def test_silence_and_nothing(samples: np.ndarray) -> None:
    quality = Quality.of(Audio(samples, 16_000))
    assert (quality.level_db, quality.noise_db, quality.clipped) == (-np.inf, -np.inf, 0)
    assert QualityLimits().reasons(quality) == ["short", "soft"]


def test_reasons() -> None:
    limits = QualityLimits()
    assert limits.reasons(Quality(3.0, -20.0, -60.0, 0.0)) == []
    assert limits.reasons(Quality(0.2, -50.0, -60.0, 0.01)) == ["short", "soft", "noisy", "clipped"]


@pytest.mark.shared
def test_noise_added_to_real_speech_is_seen(shared: Path) -> None:
    from deepcruiser import read_corpus
    from deepcruiser.transformations import AddWhiteNoise

    for sample in list(read_corpus(shared / "speech" / "LibriSpeech" / "test-clean-200"))[:20]:
        audio = sample.input
        assert isinstance(audio, Audio)
        noisy = AddWhiteNoise(snr_db=10, seed=0)(audio)
        assert Quality.of(noisy).snr_db < Quality.of(audio).snr_db
        assert Quality.of(noisy).noise_db == pytest.approx(20 * np.log10(audio.rms) - 10, abs=1.5)
