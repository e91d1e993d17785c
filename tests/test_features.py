"""Front ends, compared with the same formulas in loops and with the libraries whose presets they imitate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc

RECOGNISER = dc.LogMel(bins=80, fft_size=512, low_hz=20, high_hz=7600, taper="hann-symmetric", padding="zeros")
FRONT_ENDS = (
    RECOGNISER,
    dc.LogMel(triangles="mel", power=1, preemphasis=0.97, context=2),
    dc.LogSpectrogram.ba_dls(),
    dc.MFCC.deepspeech(),
    dc.MFCC.librosa(rate=16000, coefficients=12, padding="reflect"),
    dc.MFCC.speech_features(),
    dc.LogMel.kaldi(),
)


def speech(seed: int = 0, samples: int = 9000) -> Any:
    """A rising tone, hiss, and a pause, for large and small logarithms."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 16000
    sound = 0.3 * np.sin(2 * np.pi * (300 + 900 * t) * t) + 0.01 * rng.standard_normal(samples)
    sound[samples // 3 : samples // 2] *= 1e-3
    return sound.astype(np.float32)


@pytest.mark.parametrize("front", FRONT_ENDS)
def test_arrays_tensors_and_batches_agree(front: Any) -> None:
    long, short = speech(1), speech(2, 5000)
    batch = np.zeros((2, 9000), np.float32)
    batch[0], batch[1, :5000] = long, short
    single = front(long)
    assert isinstance(single, np.ndarray)
    assert single.dtype == np.float32
    assert single.shape == (front.frames(9000), front.size)
    tensor = front(torch.from_numpy(long))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.numpy(), single, atol=1e-4)
    np.testing.assert_allclose(front(long.astype(np.float64)), single, atol=1e-4)
    both = front(torch.from_numpy(batch))
    assert both.shape == (2, *single.shape)
    np.testing.assert_allclose(both[0], single, atol=1e-4)
    if (
        front.padding in ("none", "zeros") and front.context == 0
    ):  # otherwise the end of the row is part of what is seen
        np.testing.assert_allclose(both[1, : front.frames(5000)], front(short), atol=1e-4)


@pytest.mark.cuda
@pytest.mark.parametrize("front", FRONT_ENDS)
def test_cuda_agrees(front: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    sound = torch.from_numpy(np.stack([speech(1), speech(3)]))
    on_device = front(sound.cuda())
    assert on_device.is_cuda
    np.testing.assert_allclose(on_device.cpu(), front(sound), atol=1e-4)


@given(
    st.integers(0, 700), st.sampled_from(["none", "end", "zeros", "reflect"]), st.integers(2, 64), st.integers(1, 70)
)
def test_frames_and_their_number(samples: int, padding: Any, window: int, step: int) -> None:
    """Every frame, cut out by hand, for lengths down to nothing."""
    front = dc.LogSpectrogram(
        window_samples=window, step_samples=step, fft_size=64, padding=padding, taper="rectangular"
    )
    sound = np.random.default_rng(samples).standard_normal(samples)
    first = -32 + (64 - window) // 2 if padding in ("zeros", "reflect") else 0

    def sample(at: int) -> float:
        if padding == "reflect" and samples > 0:
            while not 0 <= at < samples:
                at = 0 if samples == 1 else abs(at) if at < 0 else 2 * (samples - 1) - at
        return float(sound[at]) if 0 <= at < samples else 0.0

    if padding == "none":
        count = len([at for at in range(0, samples, step) if at + window <= samples])
    elif padding == "end":
        count = 0
        while samples and (count == 0 or (count - 1) * step + window < samples):
            count += 1
    else:
        count = len(range(0, samples + 1, step))
    assert front.frames(samples) == count
    expected = []
    for frame in range(count):
        cut = [sample(first + frame * step + n) for n in range(window)]
        expected.append(np.log(np.maximum(np.abs(np.fft.rfft(cut, 64)) ** 2, 1e-10)))
    result = front(sound)
    assert result.shape == (count, 33)
    if count:
        np.testing.assert_allclose(np.exp(result), np.exp(expected), atol=1e-9)


def test_log_mel_is_its_formula() -> None:
    """The recogniser's front end, a frame and a band at a time."""
    sound = speech().astype(np.float64)
    mel = [2595 * math.log10(1 + hz / 700) for hz in (20, 7600)]
    corners = [700 * (10 ** ((mel[0] + (mel[1] - mel[0]) * i / 81) / 2595) - 1) for i in range(82)]
    padded = np.concatenate([np.zeros(256), sound, np.zeros(256)])
    result = RECOGNISER(sound)
    assert len(result) == 9000 // 160 + 1
    for frame in (0, 7, 30, len(result) - 1):
        cut = padded[frame * 160 + 56 :][:400] * np.hanning(400)
        power = np.abs(np.fft.rfft(cut, 512)) ** 2
        for band in (0, 1, 40, 79):
            low, peak, high = corners[band : band + 3]
            total = 0.0
            for place in range(257):
                hz = place * 16000 / 512
                if low < hz <= peak:
                    total += power[place] * (hz - low) / (peak - low)
                elif peak < hz < high:
                    total += power[place] * (high - hz) / (high - peak)
            assert result[frame, band] == pytest.approx(math.log(max(total, 1e-10)), abs=1e-8)


def test_deepspeech_is_tensorflows_mfcc() -> None:
    """TensorFlow's spectrogram and Mfcc as its kernels go about it, from the periodic window to the cosines."""
    sound = speech().astype(np.float64)
    result = dc.MFCC.deepspeech()(sound)
    assert result.shape == ((9000 - 512) // 320 + 1, 26)
    low, high = (1127 * math.log1p(hz / 700) for hz in (20, 8000))
    centres = [low + (high - low) / 41 * (i + 1) for i in range(41)]
    for frame in (0, 5, len(result) - 1):
        cut = [sound[frame * 320 + n] * (0.5 - 0.5 * math.cos(2 * math.pi * n / 512)) for n in range(512)]
        magnitude = np.abs(np.fft.rfft(cut))
        bands = [0.0] * 40
        for place in range(int(1.5 + 20 / 31.25), int(8000 / 31.25) + 1):
            here = 1127 * math.log1p(place * 31.25 / 700)
            channel = sum(centre < here for centre in centres[:40]) - 1
            left = low if channel < 0 else centres[channel]
            weight = (centres[channel + 1] - here) / (centres[channel + 1] - left)
            if channel >= 0:
                bands[channel] += magnitude[place] * weight
            if channel + 1 < 40:
                bands[channel + 1] += magnitude[place] * (1 - weight)
        logs = [math.log(max(band, 1e-12)) for band in bands]
        for n in range(26):
            total = sum(math.sqrt(2 / 40) * math.cos(n * math.pi / 40 * (j + 0.5)) * logs[j] for j in range(40))
            assert result[frame, n] == pytest.approx(total, abs=1e-8)


def test_deepspeech_against_tensorflow_itself() -> None:
    tf = pytest.importorskip("tensorflow", reason="needs tensorflow, which is large: pip install tensorflow-cpu")
    sound = speech()
    power = tf.raw_ops.AudioSpectrogram(input=sound[:, None], window_size=512, stride=320, magnitude_squared=True)
    expected = tf.raw_ops.Mfcc(
        spectrogram=power, sample_rate=16000, dct_coefficient_count=26, upper_frequency_limit=8000
    )
    np.testing.assert_allclose(dc.MFCC.deepspeech()(sound), expected[0].numpy(), atol=1e-4)


@pytest.mark.parametrize("padding", ["zeros", "reflect"])
def test_librosa_preset_is_librosa(padding: Any) -> None:
    librosa = pytest.importorskip("librosa", reason="needs librosa: pip install librosa")
    sound = speech()
    mode = "constant" if padding == "zeros" else "reflect"
    expected = librosa.feature.mfcc(y=sound, sr=16000, n_mfcc=12, n_fft=2048, hop_length=512, pad_mode=mode)
    result = dc.MFCC.librosa(rate=16000, coefficients=12, padding=padding)(sound)
    np.testing.assert_allclose(result, expected.T, atol=1e-3)  # of values up to 600, in librosa's single precision


def test_librosa_preset_is_its_formula() -> None:
    """Slaney's scale and areas, decibels with a range of 80, an orthogonal cosine transform."""
    from scipy.fft import dct

    sound = speech().astype(np.float64)

    def mel(hz: float) -> float:
        return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)

    def hz(mel: float) -> float:
        return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    corners = [hz(mel(8000) * i / 129) for i in range(130)]
    weights = np.zeros((1025, 128))
    for band in range(128):
        low, peak, high = corners[band : band + 3]
        for place in range(1025):
            f = place * 16000 / 2048
            inside = min((f - low) / (peak - low), (high - f) / (high - peak))
            weights[place, band] = max(0.0, inside) * 2 / (high - low)
    padded = np.pad(sound, 1024)
    frames = np.stack([padded[at : at + 2048] for at in range(0, len(sound) + 1, 512)])
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(2048) / 2048)
    logs = 10 * np.log10(np.maximum(1e-10, np.abs(np.fft.rfft(frames * taper)) ** 2 @ weights))
    expected = dct(np.maximum(logs, logs.max() - 80), norm="ortho")[:, :12]
    np.testing.assert_allclose(dc.MFCC.librosa(rate=16000, coefficients=12)(sound), expected, atol=1e-8)


def test_speech_features_preset_is_python_speech_features() -> None:
    """That library's way: corners on whole bins, energy in front, liftered."""
    from scipy.fft import dct

    sound = speech().astype(np.float64)
    emphasised = np.append(sound[0], sound[1:] - 0.97 * sound[:-1])
    count = 1 + math.ceil((9000 - 400) / 160)
    padded = np.append(emphasised, np.zeros(500))
    power = np.stack([np.abs(np.fft.rfft(padded[i * 160 : i * 160 + 400], 512)) ** 2 / 512 for i in range(count)])
    top = 2595 * math.log10(1 + 8000 / 700)
    corners = [math.floor(513 * 700 * (10 ** (top * i / 27 / 2595) - 1) / 16000) for i in range(28)]
    weights = np.zeros((257, 26))
    for band in range(26):
        for place in range(corners[band], corners[band + 1]):
            weights[place, band] = (place - corners[band]) / (corners[band + 1] - corners[band])
        for place in range(corners[band + 1], corners[band + 2]):
            weights[place, band] = (corners[band + 2] - place) / (corners[band + 2] - corners[band + 1])
    expected = dct(np.log(np.maximum(power @ weights, np.finfo(float).eps)), norm="ortho")[:, :13]
    expected *= 1 + 11 * np.sin(np.pi * np.arange(13) / 22)
    expected[:, 0] = np.log(power.sum(axis=1))
    np.testing.assert_allclose(dc.MFCC.speech_features()(sound), expected, atol=1e-8)


def test_spectral_density_is_scipys() -> None:
    from scipy import signal

    sound = speech().astype(np.float64)
    _, _, density = signal.spectrogram(
        sound, 16000, window=np.hanning(320), nperseg=320, noverlap=160, detrend=False, scaling="density"
    )
    result = dc.LogSpectrogram.ba_dls()(sound)
    assert result.shape[1] == 161
    np.testing.assert_allclose(result, np.log(density.T + 1e-14), atol=1e-8)


def test_context_is_the_neighbours_with_zeros_beyond_the_ends() -> None:
    sound = speech(samples=4000)
    plain = dc.MFCC.deepspeech()(sound)
    windows = dc.MFCC.deepspeech(context=9)(sound).reshape(len(plain), 19, 26)
    around = np.pad(plain, ((9, 9), (0, 0)))
    for frame in range(len(plain)):
        np.testing.assert_array_equal(windows[frame], around[frame : frame + 19])


def test_gradients_flow_through_to_the_samples() -> None:
    front = dc.LogMel(rate=16_000, bins=20)
    signal = torch.from_numpy(np.random.default_rng(0).normal(0, 0.1, 1_600)).requires_grad_(True)
    total = front(signal).sum()
    (gradient,) = torch.autograd.grad(total, signal)
    nudged = signal.detach().clone()
    nudged[700] += 1e-6
    assert float(gradient[700]) == pytest.approx(float(front(nudged).sum() - total.detach()) / 1e-6, rel=1e-3)


def test_audio_is_resampled_and_nothing_gives_no_frames() -> None:
    sound = dc.Audio(speech(), 8000)
    result = dc.LogMel()(sound)
    np.testing.assert_array_equal(result, dc.LogMel()(sound.resample(16000).samples))
    assert dc.LogMel()(np.zeros(0, np.float32)).shape == (0, 80)
    assert np.isfinite(RECOGNISER(np.zeros(0, np.float32))).all()
    assert np.isfinite(dc.MFCC.librosa()(np.zeros((2, 1), np.float32))).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dc.LogMel(taper="hanning"), "taper must be one of hann, .*, not 'hanning'"),  # type: ignore[arg-type]
        (lambda: dc.LogMel(fft_size=256), "fft_size must be a whole number of 400 or more, not 256"),
        (lambda: dc.LogMel(high_hz=9000), "high_hz 9000 must lie between 0 and 8000.0, half the rate"),
        (lambda: dc.MFCC(coefficients=40, bins=26), "40 coefficients need at least as many bins, not 26"),
        (lambda: replace(RECOGNISER, floor=0.0), "floor 0.0 and offset 0.0 must be 0 or more and one above 0"),
        (lambda: RECOGNISER([0.0, 1.0]), "must be an Audio, a numpy array or a tensor, not a list"),
        (lambda: RECOGNISER(np.zeros((1, 2, 3))), r"must have the shape \(samples,\) or \(batch, samples\)"),
        (lambda: RECOGNISER(np.zeros(900, np.int16)), "not torch.int16; divide int16 by 32768"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(dc.InputError, match=words):
        make()


def test_kaldi_preset_is_its_formula() -> None:
    """Frame by frame and band by band, as in compute-fbank-feats."""
    sound, bins = speech(), 23
    samples = sound.astype(np.float64) * 32768
    mel = [1127 * math.log(1 + k * 16000 / 512 / 700) for k in range(257)]
    low, high = (1127 * math.log(1 + hz / 700) for hz in (20, 8000))
    width = (high - low) / (bins + 1)
    expected = []
    for start in range(0, len(samples) - 400 + 1, 160):
        frame = samples[start : start + 400] - samples[start : start + 400].mean()
        frame = [frame[n] - 0.97 * frame[max(n - 1, 0)] for n in range(400)]
        window = [(0.5 - 0.5 * math.cos(2 * math.pi * n / 399)) ** 0.85 for n in range(400)]
        power = np.abs(np.fft.rfft(np.multiply(frame, window), 512)) ** 2
        row = []
        for band in range(bins):
            left, centre, right = (low + (band + k) * width for k in range(3))
            sums = 0.0
            for k in range(256):
                if left < mel[k] < right:
                    up = mel[k] <= centre
                    sums += power[k] * ((mel[k] - left) / width if up else (right - mel[k]) / width)
            row.append(math.log(max(sums, 1.1754944e-38)))
        expected.append(row)
    np.testing.assert_allclose(dc.LogMel.kaldi(bins=bins)(sound.astype(np.float64)), expected, atol=1e-3)


def steps_by_hand(rows: Any, step: str) -> Any:
    """A step of a recipe, value by value, beyond the ends the first row or the last."""
    rows = np.asarray(rows, dtype=np.float64)
    count, size = rows.shape
    at = [rows[min(max(n, 0), count - 1)] for n in range(-9, count + 9)]  # at[t + 9] is row t
    if step == "subsample":
        return rows[1::3]
    if step == "splice":
        return np.array([[value for k in (-1, 0, 1) for value in at[t + 9 + k]] for t in range(count)])
    if step == "cmvn":
        means = [sum(rows[:, b]) / count for b in range(size)]
        deviations = [math.sqrt(sum((v - m) ** 2 for v in rows[:, b]) / count) for b, m in enumerate(means)]
        return np.array([[(row[b] - means[b]) / deviations[b] for b in range(size)] for row in rows])
    first = [[sum(k * at[t + 9 + k][b] for k in (-2, -1, 1, 2)) / 10 for b in range(size)] for t in range(count)]
    second = np.zeros((count, size))
    for t in range(count):
        for j in (-2, -1, 1, 2):
            for k in (-2, -1, 1, 2):
                second[t] += j * k * at[t + 9 + j + k] / 100
    return np.concatenate([rows, first, second], axis=1)


@pytest.mark.parametrize("samples", [9000, 1100, 400])  # 54 frames, 5, and 1
@pytest.mark.parametrize("order", [(), ("deltas", "cmvn"), ("splice", "deltas", "subsample"), ("subsample", "deltas")])
def test_kaldi_features_take_their_steps_in_order(order: Any, samples: int) -> None:
    if samples == 400 and "cmvn" in order:
        pytest.skip("one frame has no deviation")
    sound = speech(samples=samples)
    features = dc.KaldiFeatures(order=order, bins=5, first=1)
    expected = features.fbank(sound.astype(np.float64))
    for step in order:
        expected = steps_by_hand(expected, step) if len(expected) else expected
    result = features(sound)
    assert result.shape == (len(expected), features.size)
    assert result.dtype == np.float32
    if len(expected):
        np.testing.assert_allclose(result, expected, atol=1e-4)
    np.testing.assert_allclose(features(features.fbank(sound)), result, atol=1e-3)


def test_a_speakers_statistics_normalise_the_speakers_recordings() -> None:
    front = dc.KaldiFeatures(order=("cmvn",), bins=7)
    sounds = [speech(seed, samples) for seed, samples in enumerate((9000, 4000, 6000))]
    speaker = dc.KaldiFeatures(order=("cmvn",), bins=7, statistics=front.statistics_of(sounds))
    rows = np.concatenate([speaker(sound) for sound in sounds])
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(rows.std(0), 1, atol=1e-3)
    assert np.abs(speaker(sounds[0]).mean(0)).max() > 0.05
    shifted = dc.KaldiFeatures(order=("cmvn",), bins=7, variance=False)(sounds[0])
    np.testing.assert_allclose(shifted, front.fbank(sounds[0]) - front.fbank(sounds[0]).mean(0), atol=1e-3)


def test_kaldi_features_that_cannot_be_are_refused() -> None:
    for settings, says in (
        ({"order": ("cmvn", "pitch")}, "order must name some of cmvn, deltas, splice, subsample, each once"),
        ({"order": ("deltas", "deltas")}, "each once"),
        ({"statistics": np.zeros((2, 40))}, r"statistics must be \[2, 41\]: sums and a count above 0"),
        ({"every": 0}, "every must be a whole number of 1 or more"),
    ):
        with pytest.raises(dc.InputError, match=says):
            dc.KaldiFeatures(**settings)
    with pytest.raises(dc.InputError, match="there is no recipe 'xyz'; there are wsj, swbd, librispeech, tedlium"):
        dc.KaldiFeatures.recipe("xyz")
    with pytest.raises(dc.InputError, match="features of 39 values are not those of 40 bins; set bins="):
        dc.KaldiFeatures()(np.zeros((5, 39)))


@pytest.mark.shared
def test_recipes_give_the_features_of_eesens_programs(shared: Any) -> None:
    folder = shared / "models" / "eesen"
    audio = dc.Audio.read(folder / "a.wav")

    def written(name: str) -> Any:
        return dc.read_corpus(folder / f"{name}.ark")[0].input

    speaker = written("cmvn")
    for name, features in (
        ("fbank", dc.KaldiFeatures(order=())),
        ("norm", dc.KaldiFeatures(order=("cmvn",))),
        ("feats", dc.KaldiFeatures.recipe("wsj")),
        ("feats", dc.KaldiFeatures.recipe("wsj", statistics=speaker)),
        ("spl", dc.KaldiFeatures(order=("cmvn", "splice"))),
        ("spld", dc.KaldiFeatures(order=("cmvn", "splice", "deltas"))),
        ("sub", dc.KaldiFeatures.recipe("librispeech")),
    ):
        np.testing.assert_allclose(features(audio), written(name), atol=1e-3)
    np.testing.assert_allclose(dc.KaldiFeatures().statistics_of([audio])[0], speaker[0], rtol=1e-5)
