"""Audio: reading what people have, refusing what is damaged, writing whole files."""

from __future__ import annotations

import math
import os
import pickle
import struct
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError, InputError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "speech"

SAMPLES = hnp.arrays(np.float32, st.integers(1, 300), elements=st.floats(-1, 1, width=32))


def tone(seconds: float = 0.5, rate: int = 16000, hertz: float = 440) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def noise(count: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(0).standard_normal(count)).astype(np.float32)


def near(given: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert given.shape == expected.shape
    assert np.abs(given - expected).max() <= tolerance


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


def flac_with_length(path: Path, samples: np.ndarray, high: int, low: int) -> None:
    """The 36-bit number of samples stands in bytes 21 (its low half) to 25."""
    sf.write(path, samples, 16000)
    data = bytearray(path.read_bytes())
    data[21] = data[21] & 0xF0 | high
    data[22:26] = struct.pack(">I", low)
    path.write_bytes(data)


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


# Reading what cannot be read


def fails(path: Path, says: str) -> None:
    with pytest.raises(FileError, match=says) as caught:
        Audio.read(path)
    message = str(caught.value)
    assert str(path) in message
    assert message[0].islower()
    assert "\n" not in message


def test_missing(tmp_path: Path) -> None:
    fails(tmp_path / "no.wav", "cannot read .*no.wav: there is no such file")


def test_a_folder(tmp_path: Path) -> None:
    fails(tmp_path, "it is not a file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    fails(tmp_path / "a.wav", "it is not a file")


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3", "a.opus", "a.raw"])
def test_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    fails(tmp_path / name, r"it is empty \(0 bytes\)")


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg", "a.opus", "a.raw", "a"])
@pytest.mark.parametrize("content", [b"hello, this is a text\n" * 50, b"\0" * 1000, b"RIFF"], ids=["text", "0", "RIFF"])
def test_not_audio(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    fails(tmp_path / name, r"; needed a whole WAV, FLAC, Ogg \(Opus or Vorbis\) or MP3 file$")


def test_an_impossible_path() -> None:
    fails(Path("a\0b.wav"), "null")


def test_no_samples(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", np.zeros(0), 16000)
    fails(tmp_path / "a.wav", "it holds no samples")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_cut_short(tmp_path: Path, name: str, share: float) -> None:
    sf.write(tmp_path / name, noise(32000), 16000)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(len(data) * share)])
    fails(tmp_path / name, "cut short" if name == "a.wav" else "needed a whole")


def test_cut_in_the_header(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", tone(), 16000)
    (tmp_path / "a.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:20])
    fails(tmp_path / "a.wav", "malformed 'fmt ' chunk|needed a whole")


@pytest.mark.parametrize(("name", "subtype"), [("a.flac", None), ("a.ogg", "OPUS"), ("a.ogg", "VORBIS")])
def test_damaged(tmp_path: Path, name: str, subtype: str | None) -> None:
    sf.write(tmp_path / name, noise(8000), 16000, subtype=subtype)
    data = bytearray((tmp_path / name).read_bytes())
    half = len(data) // 2
    data[half : half + 600] = np.random.default_rng(0).bytes(600)
    (tmp_path / name).write_bytes(data[:-20])
    fails(tmp_path / name, "needed a whole|no samples")


@pytest.mark.parametrize(("high", "low"), [(0, 1001), (0, 2**20), (0x0F, 0xFFFFFFFF)])
def test_a_flac_cut_between_two_frames(tmp_path: Path, high: int, low: int) -> None:
    """And a claim of 68 billion samples is not allocated."""
    flac_with_length(tmp_path / "a.flac", noise(1000), high, low)
    fails(tmp_path / "a.flac", f"it is cut short, with 1000 samples out of {(high << 32) + low}")


@pytest.mark.parametrize("loud_first", [True, False])
def test_an_mp3_without_its_table_is_read_whole_or_refused(tmp_path: Path, loud_first: bool) -> None:
    """Its length is guessed from its first frames: too short when they are large, too long when they are small."""
    loud, quiet = noise(160_000), noise(160_000) * 1e-3
    sound = np.concatenate([loud, quiet] if loud_first else [quiet, loud])
    sf.write(tmp_path / "a.mp3", sound, 16000, bitrate_mode="VARIABLE", compression_level=0.5)
    data = (tmp_path / "a.mp3").read_bytes()
    assert len(Audio.read(tmp_path / "a.mp3")) == len(sound)
    assert b"Xing" in data[:50]
    (tmp_path / "a.mp3").write_bytes(data[data.index(data[:2], 200) :])
    if loud_first:
        fails(
            tmp_path / "a.mp3", "it has no table of its length, and goes on after the end that was guessed; convert it"
        )
    else:
        assert len(Audio.read(tmp_path / "a.mp3")) == pytest.approx(len(sound), abs=2000)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_not_finite(tmp_path: Path, value: float, name: str) -> None:
    samples = tone()
    samples[70] = value
    sf.write(tmp_path / "a.wav", samples, 16000, subtype="FLOAT")
    fails(tmp_path / "a.wav", f"cannot use .*a.wav: sample 70 of 8000 is {name}")


def test_filled_with_nan(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", np.full((800, 2), np.nan), 16000, subtype="FLOAT")
    fails(tmp_path / "a.wav", "sample 0 of 800 is nan")


def test_infinities_that_cancel(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", np.array([[0, 0], [np.inf, -np.inf]]), 16000, subtype="FLOAT")
    fails(tmp_path / "a.wav", "sample 1 of 2 is nan")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), form=st.sampled_from([("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "OPUS")]))
def test_no_damage_escapes_as_another_error(tmp_path: Path, data: st.DataObject, form: tuple[str, str]) -> None:
    path = tmp_path / "a.audio"
    sf.write(path, tone(0.05), 16000, format=form[0], subtype=form[1])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        audio = Audio.read(path)
    except FileError as error:
        message = str(error)
    else:
        message = str(path)
        assert len(audio) > 0
        assert np.isfinite(audio.samples).all()
    assert str(path) in message


# Writing


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=SAMPLES, rate=st.sampled_from([8000, 16000, 44100]))
def test_a_wav_keeps_every_sample(tmp_path: Path, samples: np.ndarray, rate: int) -> None:
    Audio(samples * 3, rate).write(tmp_path / "a.wav")
    back = Audio.read(tmp_path / "a.wav")
    assert back.rate == rate
    assert np.array_equal(back.samples, samples * 3)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=SAMPLES, rate=st.sampled_from([8000, 16000, 44100]))
def test_a_flac_keeps_24_bits_and_then_all(tmp_path: Path, samples: np.ndarray, rate: int) -> None:
    Audio(samples, rate).write(tmp_path / "a.flac")
    once = Audio.read(tmp_path / "a.flac")
    assert once.rate == rate
    assert np.abs(once.samples - samples).max() <= 2**-23
    once.write(tmp_path / "b.flac")
    assert np.array_equal(Audio.read(tmp_path / "b.flac").samples, once.samples)


def test_a_flac_clips(tmp_path: Path) -> None:
    Audio(np.array([2.0, -3.0, 0.5]), 16000).write(tmp_path / "a.FLAC")
    assert Audio.read(tmp_path / "a.FLAC").samples == pytest.approx([1.0, -1.0, 0.5], abs=1e-6)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_the_same_audio_gives_the_same_bytes(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    audio = Audio(noise(1000), 16000)
    audio.write(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    if name == "a.wav":
        time = first.index(b"PEAK") + 12
        assert first[time : time + 4] == bytes(4)  # where libsndfile writes the time of day
    audio.write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    Audio(noise(1000), 16000).write(tmp_path / "a.wav")
    Audio(noise(500), 8000).write(tmp_path / "a.wav")
    assert os.listdir(tmp_path) == ["a.wav"]
    assert len(Audio.read(tmp_path / "a.wav")) == 500


def test_others_may_read_what_is_written(tmp_path: Path) -> None:
    Audio(noise(10), 16000).write(tmp_path / "a.wav")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "a.wav").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Audio(noise(1000), 16000).write(tmp_path / "a.wav")
    before = (tmp_path / "a.wav").read_bytes()

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(FileError, match=r"cannot write .*a.wav': no space left on device"):
            Audio(noise(500), 8000).write(tmp_path / "a.wav")
    assert os.listdir(tmp_path) == ["a.wav"]
    assert (tmp_path / "a.wav").read_bytes() == before


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: str, target: Path) -> None:
        assert os.path.exists(source)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Audio(noise(500), 8000).write(tmp_path / "a.wav")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.wav").mkdir()
    with pytest.raises(FileError, match=r"cannot write .*a.wav': it is a folder"):
        Audio(noise(10), 16000).write(tmp_path / "a.wav")
    assert os.listdir(tmp_path) == ["a.wav"]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    audio = Audio(noise(10), 16000)
    with pytest.raises(InputError, match=r"cannot write .*a.mp3: the suffix must be .flac or .wav"):
        audio.write(tmp_path / "a.mp3")
    with pytest.raises(InputError, match=r"the suffix must be"):
        audio.write(tmp_path / "a")
    with pytest.raises(FileError, match=r"there is no folder .*nowhere'; create it first"):
        audio.write(tmp_path / "nowhere" / "a.wav")
    with pytest.raises(InputError, match="there are no samples"):
        Audio(np.zeros(0), 16000).write(tmp_path / "a.wav")
    with pytest.raises(FileError, match=r"cannot write .*a.flac: flac does not support this sample rate$"):
        Audio(noise(10), 1_000_003).write(tmp_path / "a.flac")
    assert os.listdir(tmp_path) == []


# Real speech


@pytest.mark.shared
def test_real_opus_files() -> None:
    folder = SHARED / "common-voice"
    if not folder.is_dir():
        pytest.skip(f"there is no speech at {folder}")
    files = sorted(folder.glob("*.opus"))[:3]
    assert len(files) == 3
    for file in files:
        audio = Audio.read(file)
        assert audio.rate == 16000
        assert 0.5 < audio.seconds < 30
        assert 0.001 < audio.rms < 0.5
        assert audio.resample(8000).rms == pytest.approx(audio.rms, rel=0.5)


@pytest.mark.shared
def test_real_speech_survives_writing(tmp_path: Path) -> None:
    folder = SHARED / "LibriSpeech" / "test-clean-200"
    if not folder.is_dir():
        pytest.skip(f"there is no speech at {folder}")
    audio = Audio.read(min(folder.rglob("*.flac")))
    for name in ("a.flac", "a.wav"):  # 16-bit speech is exact in both
        audio.write(tmp_path / name)
        assert np.array_equal(Audio.read(tmp_path / name).samples, audio.samples)
