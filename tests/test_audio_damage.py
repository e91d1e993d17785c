"""Audio files that cannot be read: each is a clear error."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError
from tests.support.sounds import flac_with_length, noise, tone

# Reading what cannot be read


def fails(path: Path, says: str) -> None:
    with pytest.raises(FileError, match=says) as caught:
        Audio.read(path)
    message = str(caught.value)
    assert str(path).replace("\0", "\\x00") in message
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
    fails(tmp_path / name, r"; expected a whole WAV, FLAC, Ogg \(Opus or Vorbis\) or MP3 file$")


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
    fails(tmp_path / name, "cut short" if name == "a.wav" else "cut short|expected a whole")


def test_cut_in_the_header(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.wav", tone(), 16000)
    (tmp_path / "a.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:20])
    fails(tmp_path / "a.wav", "malformed 'fmt ' chunk|expected a whole")


@pytest.mark.parametrize(("name", "subtype"), [("a.flac", None), ("a.ogg", "OPUS"), ("a.ogg", "VORBIS")])
def test_damaged(tmp_path: Path, name: str, subtype: str | None) -> None:
    sf.write(tmp_path / name, noise(8000), 16000, subtype=subtype)
    data = bytearray((tmp_path / name).read_bytes())
    half = len(data) // 2
    data[half : half + 600] = np.random.default_rng(0).bytes(600)
    (tmp_path / name).write_bytes(data[:-20])
    fails(tmp_path / name, "expected a whole|no samples|cut short|checksum differs")


@pytest.mark.parametrize(("high", "low"), [(0, 1001), (0, 2**20), (0x0F, 0xFFFFFFFF)])
def test_a_flac_cut_between_two_frames(tmp_path: Path, high: int, low: int) -> None:
    """A claimed length of 68 billion samples is not allocated."""
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
        fails(tmp_path / "a.mp3", "it has no table of its length, and continues after the estimated end; convert it")
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
