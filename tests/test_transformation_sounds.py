"""The measured effect of each transformation on the sound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft, signal

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.systems.builtin.speech import SEEDS as SPEECH
from deepcruiser.transformations import (
    DRC,
    PAPER,
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
)
from deepcruiser.transformations.clearness import medians, percussive
from tests.test_transformations import voice


def sine(hertz: float, *, seconds: float = 1.0, rate: int = 16000, peak: float = 0.5) -> Audio:
    t = np.arange(round(seconds * rate)) / rate
    return Audio(peak * np.sin(2 * np.pi * hertz * t), rate)


def db(ratio: float) -> float:
    return float(20 * np.log10(ratio))


def gain_db(before: Audio, after: Audio) -> float:
    """The change of level, without the first tenth of a second, in which filters settle."""
    settled = slice(before.rate // 10, None)
    return db(np.std(after.samples[settled]) / np.std(before.samples[settled]))


def pitch(audio: Audio) -> float:
    """The strongest frequency, between the lines of a spectrum by a parabola."""
    size = 1 << 19
    spectrum = np.abs(np.fft.rfft(audio.samples * np.hanning(len(audio)), size))
    return float(np.argmax(spectrum) * audio.rate / size)


# Volume


@given(st.floats(-40, 5.9))
def test_volume_changes_by_the_gain(gain: float) -> None:
    before = sine(440)
    assert gain_db(before, ChangeVolume(gain)(before)) == pytest.approx(gain, abs=1e-3)


def test_volume_stops_at_full_scale_without_clipping() -> None:
    before = sine(440, peak=0.5)
    after = ChangeVolume(10)(before)
    assert np.abs(after.samples).max() == 1.0
    assert after.samples == pytest.approx(before.samples / np.abs(before.samples).max(), abs=1e-6)


@pytest.mark.parametrize("rate", [8000, 16000, 48000])
def test_filters_keep_what_they_pass_and_take_the_rest(rate: int) -> None:
    cutoff = 1500.0
    low, high = LowPassFilter(cutoff), HighPassFilter(cutoff)
    for hertz, passing, stopping in ((cutoff / 4, low, high), (cutoff * 2.2, high, low)):
        tone = sine(hertz, rate=rate)
        assert abs(gain_db(tone, passing(tone))) < 0.5
        assert gain_db(tone, stopping(tone)) < -24
    edge = sine(cutoff, rate=rate)
    assert gain_db(edge, low(edge)) == pytest.approx(-3, abs=0.1)
    assert gain_db(edge, high(edge)) == pytest.approx(-3, abs=0.1)


def test_beyond_half_the_rate_low_pass_keeps_all_and_high_pass_nothing() -> None:
    audio = Audio(voice(rate=8000), 8000)
    assert LowPassFilter(4000)(audio) is audio
    assert not HighPassFilter(4000)(audio).samples.any()
    assert LowPassFilter(3999)(audio) is not audio


def test_a_constant_does_not_pass_the_high_pass() -> None:
    after = HighPassFilter(100)(Audio(np.full(16000, 0.5), 16000))
    assert np.abs(after.samples[4000:]).max() < 1e-4


# Speed


@settings(max_examples=20)
@given(st.floats(-6, 6), st.sampled_from([8000, 16000, 44100]))
def test_pitch_moves_by_semitones_and_the_length_stays(semitones: float, rate: int) -> None:
    before = sine(400, seconds=0.8, rate=rate)
    after = PitchShift(semitones)(before)
    assert len(after) == len(before)
    assert 12 * np.log2(pitch(after) / 400) == pytest.approx(semitones, abs=0.15)
    assert abs(gain_db(before, after)) < 1


@settings(max_examples=20)
@given(st.floats(0.6, 1.6), st.sampled_from([8000, 16000, 44100]))
def test_speed_divides_the_length_and_the_pitch_stays(factor: float, rate: int) -> None:
    before = sine(400, seconds=0.8, rate=rate)
    after = ChangeSpeed(factor)(before)
    assert abs(len(after) - len(before) / factor) <= 1
    assert 12 * np.log2(pitch(after) / 400) == pytest.approx(0, abs=0.1)


def test_speed_moves_events_in_proportion() -> None:
    rate = 16000
    burst = np.zeros(rate * 2)
    for at in (8000, 24000):
        burst[at : at + 1600] = 0.5 * np.sin(np.arange(1600) * 0.3)
    after = ChangeSpeed(1.25)(Audio(burst, rate))
    for at in (8000, 24000):
        middle = round((at + 800) / 1.25)
        around = np.abs(after.samples[middle - 2400 : middle + 2400])
        centre = (around * np.arange(4800)).sum() / around.sum()
        assert centre == pytest.approx(2400, abs=160)


# Clearness


@settings(max_examples=30)
@given(st.floats(0, 60), st.integers(0, 2**32 - 1))
def test_noise_lies_exactly_below_the_speech(snr_db: float, seed: int) -> None:
    before = Audio(voice() * 0.2, 16000)  # so soft that nothing is scaled down
    noise = AddWhiteNoise(snr_db, seed)(before).samples - before.samples
    assert db(np.std(before.samples) / np.std(noise)) == pytest.approx(snr_db, abs=0.05)


def test_noise_is_white_and_other_for_every_seed() -> None:
    before = Audio(voice(2) * 0.2, 16000)
    one, other = (AddWhiteNoise(20, seed)(before).samples - before.samples for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    power = np.abs(np.fft.rfft(one)) ** 2
    quarters = [float(part.mean()) for part in np.array_split(power, 4)]
    assert max(quarters) / min(quarters) < 1.1


def test_a_constant_does_not_make_the_noise_louder() -> None:
    plain, offset = Audio(voice() * 0.2, 16000), Audio(voice() * 0.2 + np.float32(0.5), 16000)
    noise = [AddWhiteNoise(20, 1)(audio).samples - audio.samples for audio in (plain, offset)]
    assert np.std(noise[0]) == pytest.approx(np.std(noise[1]), rel=1e-3)


def test_loud_speech_with_noise_is_scaled_not_clipped() -> None:
    before = sine(440, peak=1.0)
    after = AddWhiteNoise(10, 1)(before)
    assert np.count_nonzero(np.abs(after.samples) == 1.0) == 1


def test_the_harmonic_part_keeps_tones_and_loses_clicks() -> None:
    tone = sine(500)
    clicks = np.zeros(16000)
    clicks[2000::4000] = 0.9
    full = ExtractHarmonic(1)
    assert abs(gain_db(tone, full(tone))) < 0.5
    left = full(Audio(clicks, 16000))
    assert db(left.rms / np.sqrt(np.mean(clicks**2))) < -12
    half = ExtractHarmonic(0.5)(Audio(clicks, 16000))
    assert db(half.rms / np.sqrt(np.mean(clicks**2))) == pytest.approx(-6, abs=1.5)


def test_the_harmonic_part_does_not_depend_on_the_volume() -> None:
    loud = Audio(voice(), 16000)
    soft = Audio(voice() / 1024, 16000)
    change = ExtractHarmonic(0.7)
    assert change(soft).samples * 1024 == pytest.approx(change(loud).samples, abs=1e-6)


def plain_medians(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    padded = np.pad(values, ((8, 8), (0, 0)), mode="symmetric")
    return np.stack([np.median(padded[i : i + 17], axis=0) for i in range(len(values))])


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
def test_running_medians_of_rows(rows: int, columns: int, seed: int) -> None:
    values = np.random.default_rng(seed).random((rows, columns)).astype(np.float32)
    assert (medians(values) == plain_medians(values)).all()
    assert (medians(values.T) == plain_medians(values.T)).all()


def test_many_columns_are_taken_block_by_block() -> None:
    values = np.random.default_rng(0).random((300, 700)).astype(np.float32)
    assert (medians(values) == plain_medians(values)).all()


def plain_percussive(samples: npt.NDArray[np.float64], rate: int) -> npt.NDArray[np.float64]:
    """The part that median filters with soft masks remove, one window after another."""
    hop = max(16, round(0.064 * rate)) // 4
    size = 4 * hop
    window = signal.get_window("hann", size)
    padded = np.pad(samples, (size, size + -len(samples) % hop))
    starts = range(0, len(padded) - size + 1, hop)
    spectrum = np.stack([fft.rfft((padded[at : at + size] * window).astype(np.float32)) for at in starts])
    power = np.square(np.abs(spectrum))
    broad, lasting = plain_medians(power.T).T, plain_medians(power)
    masked = spectrum * (broad / np.maximum(broad + lasting, np.finfo(np.float32).tiny))
    whole = np.zeros(len(padded) + size)
    for part in range(4):  # in the order of the parts of a window, in which every sample is added up
        for at, row in zip(starts, masked, strict=True):
            here = slice(part * hop, (part + 1) * hop)
            whole[at + here.start : at + here.stop] += (fft.irfft(row, n=size) * window)[here]
    return np.asarray(whole[size : size + len(samples)] / 1.5)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("rate", [8000, 16000, 48000])
def test_the_harmonic_part_of_speech_is_that_of_the_plain_computation_bit_for_bit(number: int, rate: int) -> None:
    audio = read_corpus(SPEECH).samples[number].input
    assert isinstance(audio, Audio)
    samples = audio.resample(rate).samples.astype(np.float64)
    assert (percussive(samples, rate) == plain_percussive(samples, rate)).all()


# Unaffected


def test_compression_brings_loud_and_soft_together_and_keeps_the_level() -> None:
    soft, loud = sine(300, peak=0.05), sine(300, peak=0.8)
    before = Audio(np.concatenate([soft.samples, loud.samples, soft.samples]), 16000)
    after = DRC(threshold_db=-20, ratio=4)(before)

    def span(audio: Audio) -> float:
        parts = audio.samples[8000:15000], audio.samples[20000:31000]
        return db(np.std(parts[1]) / np.std(parts[0]))

    assert span(before) == pytest.approx(24.1, abs=0.1)
    # 20 dB of the loud part lie above the threshold, and 5 remain.
    assert span(after) == pytest.approx(24.1 - 15, abs=1)
    assert after.rms == pytest.approx(before.rms, rel=1e-4)


def test_compression_does_not_depend_on_the_volume() -> None:
    change = DRC(-25, 3)
    loud, soft = change(Audio(voice(), 16000)), change(Audio(voice() / 512, 16000))
    assert soft.samples * 512 == pytest.approx(loud.samples, abs=1e-6)


def test_the_compressors_level_is_that_of_the_plain_recursion() -> None:
    """The running maximum gives what the loop over samples gives, sample by sample."""
    change, rate = DRC(-30, 3), 8000
    samples = voice(0.3, rate).astype(np.float64)
    samples /= np.abs(samples).max()
    keep = np.exp(-1 / (0.003 * rate))
    held, smooth, expected = -np.inf, 0.0, []
    for value in [*samples, *[0.0] * 80]:
        level = 20 * np.log10(max(abs(value), 1e-9))
        held = max(level, held - 20 / np.log(10) / (0.1 * rate))
        smooth = keep * smooth + (1 - keep) * max(held + 30, 0)
        expected.append(10 ** (smooth * (1 / 3 - 1) / 20))
    # It looks 10 ms, or 80 samples, ahead; what it thinks comes after the end is its own affair.
    assert change._gain(samples, rate)[:-80] == pytest.approx(np.array(expected)[80:-80], rel=1e-6)


def test_trimming_cuts_the_ends_and_keeps_the_speech() -> None:
    rng, rate = np.random.default_rng(0), 16000
    speech = np.concatenate([voice(0.6), np.zeros(4800), voice(0.6)])  # with a pause, which stays
    hiss = 1e-4 * rng.standard_normal(len(speech) + 5 * rate)
    hiss[2 * rate : 2 * rate + len(speech)] += speech
    after = Trim(top_db=40)(Audio(hiss, rate))
    assert len(speech) <= len(after) + 0.1 * rate
    assert len(after) <= len(speech) + 0.3 * rate
    kept = np.lib.stride_tricks.sliding_window_view(hiss.astype(np.float32), len(after))
    start = int(np.argmin(np.abs(kept[:, 0] - after.samples[0])))
    assert (kept[start] == after.samples).all(), "what is kept is kept as it was"
    energy = float(np.sum(np.square(after.samples, dtype=np.float64)) / np.sum(np.square(hiss)))
    assert energy > 0.9999


def test_trimming_more_cuts_more() -> None:
    fading = Audio(0.5 * np.random.default_rng(0).standard_normal(32000) * np.exp(-np.arange(32000) / 2000) / 4, 16000)
    lengths = [len(Trim(top_db)(fading)) for top_db in (20, 30, 40, 60)]
    assert all(one < other for one, other in pairwise(lengths))


# Beyond the paper


def test_a_room_rings_on_and_fades_in_its_time() -> None:
    click = Audio(np.eye(1, 16000, 0)[0] * 0.5, 16000)
    room = Reverb(rt60_seconds=0.4, direct_db=6, seed=1)(click).samples.astype(np.float64)
    direct, tail = room[0], room[1:]
    assert not room[1:48].any(), "the first echo comes after 3 ms"
    assert db(abs(direct) / np.sqrt(np.sum(tail**2))) == pytest.approx(6, abs=0.01)
    early, late = tail[48:848], tail[48 + 3200 : 848 + 3200]  # 0.2 s later: 30 dB less
    assert db(np.std(early) / np.std(late)) == pytest.approx(30, abs=1.5)  # type: ignore[arg-type]


def test_a_telephone_passes_its_band_alone() -> None:
    change = Telephone(300, 3400)
    for hertz, least, most in ((100, -45, -30), (1000, -0.5, 0.5), (2000, -0.5, 0.5), (5000, -90, -30)):
        tone = sine(hertz)
        assert least <= gain_db(tone, change(tone)) <= most, hertz


def test_a_telephone_rounds_to_eight_bits() -> None:
    after = Telephone(0, 8000)(Audio(voice(2), 16000))
    assert len(np.unique(after.samples)) <= 255
    noise = after.samples - voice(2)
    assert 30 < db(np.std(voice(2)) / np.std(noise)) < 45


# Real speech


@pytest.fixture(scope="module")
def speech(shared: Path) -> list[Audio]:
    corpus = shared / "speech" / "LibriSpeech" / "test-clean-200"
    if not corpus.is_dir():
        pytest.skip(f"there is no {corpus}")
    samples = read_corpus(corpus).samples
    return [samples[i].input for i in range(0, len(samples), len(samples) // 12)]  # type: ignore[misc]


@pytest.mark.shared
def test_trimming_takes_no_energy_from_real_speech(speech: list[Audio]) -> None:
    for audio in speech:
        kept = Trim(30)(audio)
        lost = 1 - np.sum(np.square(kept.samples, dtype=np.float64)) / np.sum(
            np.square(audio.samples, dtype=np.float64)
        )
        assert lost < 1e-3
        assert kept.seconds > 0.5 * audio.seconds


@pytest.mark.shared
@pytest.mark.parametrize("kind", PAPER, ids=lambda kind: kind.__name__)
def test_real_speech_is_changed_and_stays_as_loud_as_it_should(kind: type[Transformation], speech: list[Audio]) -> None:
    rng = np.random.default_rng(0)
    for audio in speech:
        change = kind.draw(rng)
        after = change(audio)
        assert kind is Trim or after.samples.tobytes() != audio.samples.tobytes()
        expected = change.gain_db if isinstance(change, ChangeVolume) else 0
        loudest = db(1 / np.abs(audio.samples).max())  # louder than that would clip
        # A filter takes a few dB away, and a trimmed audio has less silence in its mean.
        assert -4 < db(after.rms / audio.rms) - min(expected, loudest) < 1.5
