"""Audio: the value, resampling, and reading files of many kinds."""

from __future__ import annotations

import math
import pickle
import struct
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError, InputError
from tests.support.sounds import flac_with_length, near, noise, tone

# The value itself


def test_it_holds_float32_and_prints_itself() -> None:
    audio = Audio(np.zeros(36960), 16000)
    assert audio.samples.dtype == np.float32
    assert len(audio) == 36960
    assert audio.seconds == 2.31
    assert repr(audio) == "Audio of 2.31 s at 16000 Hz"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f4"])
def test_any_float_is_converted(dtype: str) -> None:
    audio = Audio(np.array([0.0, 0.5, -0.25, 2.0], dtype=dtype), 8000)
    assert audio.samples.dtype == np.dtype("f4")
    assert audio.samples.tolist() == [0.0, 0.5, -0.25, 2.0]


def test_a_strided_array_becomes_contiguous() -> None:
    audio = Audio(np.arange(10, dtype=np.float32)[::-2], 8000)
    assert audio.samples.flags.c_contiguous
    assert audio.samples.tolist() == [9, 7, 5, 3, 1]


def test_float32_is_not_copied() -> None:
    samples = noise(100)
    assert Audio(samples, 8000).samples is samples


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Audio(noise(3), 8000).rate = 16000  # type: ignore[misc]


def test_it_survives_pickling() -> None:
    audio = Audio(noise(100), 8000)
    copy = pickle.loads(pickle.dumps(audio))
    assert copy.rate == 8000
    assert np.array_equal(copy.samples, audio.samples)


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([0.0, 1.0], "samples must be a numpy array, not list"),
        (np.zeros((2, 5)), r"one dimension, not the shape \(2, 5\)"),
        (np.float32(1.0), "numpy array, not float32"),
        (np.zeros(3, np.int16), "not int16; divide int16 samples by 32768"),
        (np.zeros(3, bool), "not bool"),
        (np.zeros(3, complex), "not complex128"),
        (np.array(["a"]), "floating-point numbers, not <U1"),
        (np.array([0.0, 0.0, np.nan, 0.0]), "sample 2 of 4 is nan; every sample"),
        (np.array([0.0, -np.inf], np.float32), "sample 1 of 2 is -inf"),
        (np.array([1e300, 0.0]), r"sample 0 of 2 is 1e\+300"),
    ],
)
def test_bad_samples_are_refused(samples: np.ndarray, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Audio(samples, 16000)


@pytest.mark.parametrize("rate", [0, -16000, 16000.0, "16000", None, True, math.nan])
def test_bad_rates_are_refused(rate: int) -> None:
    with pytest.raises(InputError, match="rate must be a whole number of Hz above 0, not"):
        Audio(noise(3), rate)
    with pytest.raises(InputError, match="rate must be a whole number of Hz above 0, not"):
        Audio(noise(3), 8000).resample(rate)


def test_a_numpy_integer_is_a_rate() -> None:
    rate = Audio(noise(3), np.int32(8000)).rate  # type: ignore[arg-type]
    assert type(rate) is int
    assert rate == 8000


def test_rms() -> None:
    assert Audio(np.array([3.0, -4.0, 0.0, 0.0]), 8000).rms == 2.5
    assert Audio(np.full(10, 3e38, np.float32), 8000).rms == pytest.approx(3e38)
    assert Audio(np.zeros(0), 8000).rms == 0.0


def test_replace_keeps_the_rate() -> None:
    audio = Audio(noise(10), 8000).replace(np.ones(3))
    assert audio.rate == 8000
    assert audio.samples.tolist() == [1, 1, 1]


# Resampling


def test_the_same_rate_is_the_same_object() -> None:
    audio = Audio(noise(10), 8000)
    assert audio.resample(8000) is audio


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 48000])
def test_a_tone_keeps_its_pitch_and_length(rate: int) -> None:
    audio = Audio(tone(1.0), 16000).resample(rate)
    assert audio.rate == rate
    assert audio.seconds == pytest.approx(1.0, abs=2 / rate)
    expected = tone(1.0, rate)[: len(audio)]
    middle = slice(rate // 10, -rate // 10)
    assert np.abs(audio.samples[: len(expected)] - expected)[middle].max() < 1e-3


def test_resampling_twice_gives_the_same_samples() -> None:
    audio = Audio(noise(5000), 44100)
    assert np.array_equal(audio.resample(16000).samples, audio.resample(16000).samples)


def test_nothing_resampled_is_nothing() -> None:
    audio = Audio(np.zeros(0), 8000).resample(16000)
    assert (len(audio), audio.rate) == (0, 16000)


# Reading


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [
        ("a.wav", "PCM_U8", 1 / 127),
        ("a.wav", "PCM_16", 1 / 32767),
        ("a.wav", "PCM_24", 1e-6),
        ("a.wav", "PCM_32", 1e-7),
        ("a.wav", "FLOAT", 0),
        ("a.wav", "DOUBLE", 0),
        ("a.wav", "ULAW", 0.02),
        ("a.flac", "PCM_S8", 1 / 127),
        ("a.flac", "PCM_16", 1 / 32767),
        ("a.flac", "PCM_24", 1e-6),
        ("a.ogg", "VORBIS", 0.05),
        ("a.mp3", "MPEG_LAYER_III", 0.05),
    ],
)
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_formats_and_rates(tmp_path: Path, name: str, subtype: str, tolerance: float, rate: int) -> None:
    expected = tone(0.5, rate)
    sf.write(tmp_path / name, expected, rate, subtype=subtype)
    audio = Audio.read(tmp_path / name)
    assert audio.rate == rate
    assert audio.samples.dtype == np.float32
    assert len(audio) == len(expected)
    edge = rate // 10 if tolerance > 0.01 else 0  # lossy codecs fade in
    middle = slice(edge, len(expected) - edge)
    assert np.abs(audio.samples - expected)[middle].max() <= tolerance


@pytest.mark.parametrize("name", ["a.opus", "a.ogg"])
def test_opus(tmp_path: Path, name: str) -> None:
    sf.write(tmp_path / name, tone(), 16000, format="OGG", subtype="OPUS")
    audio = Audio.read(str(tmp_path / name))
    assert (audio.rate, len(audio)) == (16000, 8000)
    assert np.abs(audio.samples - tone())[2000:6000].max() < 0.05


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = tone(0.1), noise(1600)
    sf.write(tmp_path / "a.wav", np.stack([left, right, right], axis=1), 16000, subtype="FLOAT")
    near(Audio.read(tmp_path / "a.wav").samples, (left + right + right) / 3, 1e-7)


def test_values_beyond_full_scale_are_kept(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", np.array([3.5, -2.0]), 16000, subtype="FLOAT")
    assert Audio.read(tmp_path / "a.wav").samples.tolist() == [3.5, -2.0]


@pytest.mark.parametrize("name", ["sound.wav", "sound.mp3", "sound.txt", "sound"])
def test_the_content_decides_not_the_suffix(tmp_path: Path, name: str) -> None:
    sf.write(tmp_path / name, tone(), 16000, format="FLAC")
    near(Audio.read(tmp_path / name).samples, tone(), 1e-4)


def test_files_longer_than_a_block(tmp_path: Path) -> None:
    expected = noise(3 * 2**16 + 17)
    sf.write(tmp_path / "a.wav", expected, 16000, subtype="FLOAT")
    assert np.array_equal(Audio.read(tmp_path / "a.wav").samples, expected)


@pytest.mark.parametrize("placeholder", [0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
def test_a_wav_of_unknown_length_from_a_pipe_is_read(tmp_path: Path, placeholder: int) -> None:
    sf.write(tmp_path / "a.wav", tone(), 16000, subtype="PCM_16")
    data = bytearray((tmp_path / "a.wav").read_bytes())
    at = data.index(b"data") + 4
    data[4:8] = data[at : at + 4] = struct.pack("<I", placeholder)
    (tmp_path / "a.wav").write_bytes(data)
    assert len(Audio.read(tmp_path / "a.wav")) == len(tone())


@pytest.mark.parametrize("count", [1000, 2**16, 100_000])
def test_a_flac_of_unknown_length_from_a_pipe_is_read(tmp_path: Path, count: int) -> None:
    flac_with_length(tmp_path / "a.flac", noise(count), 0, 0)
    near(Audio.read(tmp_path / "a.flac").samples, noise(count), 1e-4)


def test_a_part(tmp_path: Path) -> None:
    expected = noise(32000)
    Audio(expected, 16000).write(tmp_path / "a.wav")
    assert np.array_equal(Audio.read(tmp_path / "a.wav", offset=0.5, duration=0.25).samples, expected[8000:12000])
    assert np.array_equal(Audio.read(tmp_path / "a.wav", offset=1.5).samples, expected[24000:])
    assert np.array_equal(Audio.read(tmp_path / "a.wav", duration=0.5).samples, expected[:8000])
    # Lists round their times: 0.05 s too long is taken, 0.5 s is not.
    assert np.array_equal(Audio.read(tmp_path / "a.wav", offset=1.0, duration=1.05).samples, expected[16000:])


@pytest.mark.parametrize("name", ["a.flac", "a.mp3", "a.ogg", "a.opus"])
@pytest.mark.parametrize("offset", [0.25, 1.0, 4.5, 5.25])
@pytest.mark.parametrize("sound", [tone(7), noise(7 * 16000)], ids=["tone", "noise"])
def test_a_part_is_what_the_whole_has_there(tmp_path: Path, name: str, offset: float, sound: np.ndarray) -> None:
    form, subtype = ("OGG", "OPUS") if name == "a.opus" else (None, None)
    # The more an MP3 is compressed, the longer a decoder that starts in the middle stays silent.
    level = 0.99 if name == "a.mp3" else None
    sf.write(tmp_path / name, sound, 16000, format=form, subtype=subtype, compression_level=level)
    part = Audio.read(tmp_path / name, offset=offset, duration=1.0)
    start = round(offset * 16000)
    near(part.samples, Audio.read(tmp_path / name).samples[start : start + 16000], 1e-3)


@pytest.mark.parametrize(
    ("offset", "duration", "says"),
    [
        (2.0, None, r"from 2.0 s on: it ends at 2.00 s"),
        (1e300, None, r"it ends at 2.00 s"),
        (1.0, 1.5, r"cannot read 1.5 s of .*a.wav from 1.0 s on: it ends at 2.00 s"),
    ],
)
def test_a_part_that_is_not_there(tmp_path: Path, offset: float, duration: float | None, says: str) -> None:
    Audio(noise(32000), 16000).write(tmp_path / "a.wav")
    with pytest.raises(FileError, match=says):
        Audio.read(tmp_path / "a.wav", offset=offset, duration=duration)


@pytest.mark.parametrize(
    ("offset", "duration"), [(-1.0, None), (math.nan, None), (math.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan)]
)
def test_a_senseless_part(tmp_path: Path, offset: float, duration: float | None) -> None:
    Audio(noise(100), 16000).write(tmp_path / "a.wav")
    with pytest.raises(InputError, match=r"(offset|duration) must be .* seconds"):
        Audio.read(tmp_path / "a.wav", offset=offset, duration=duration)
