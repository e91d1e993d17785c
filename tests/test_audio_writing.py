"""Audio is written completely or not at all, and reads back unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError, InputError
from tests.support.sounds import SAMPLES, SHARED, noise

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


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such pipes")
def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    (tmp_path / "b.wav").symlink_to("a.wav")
    for name in ("a.wav", "b.wav"):
        with pytest.raises(FileError, match=rf"cannot write .*{name}': it is a device or a pipe"):
            Audio(noise(10), 16000).write(tmp_path / name)
    assert (tmp_path / "b.wav").is_fifo()


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
