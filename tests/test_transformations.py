"""Properties of every transformation, for all parameters and sounds."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError, InputError, MismatchError
from deepcruiser.transformations import (
    DRC,
    EXTRA,
    PAPER,
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
)

KINDS = PAPER + EXTRA
STEADY = tuple(kind for kind in KINDS if kind not in (ChangeSpeed, Trim))


def voice(seconds: float = 0.5, rate: int = 16000, *, seed: int = 0) -> np.ndarray:
    """Harmonics that swell and fade, and some hiss: similar enough to speech for every transformation."""
    t = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20) if 140 * k < rate / 2)
    swell = np.sin(np.pi * t / max(seconds, 1e-9)) ** 2 * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    return (0.2 * tone * swell + 0.003 * np.random.default_rng(seed).standard_normal(len(t))).astype(np.float32)


def constant(value: float, count: int, rate: int = 16000) -> Audio:
    return Audio(np.full(count, value, np.float32), rate)


SIGNALS = {
    "voice": Audio(voice(), 16000),
    "voice at 8 kHz": Audio(voice(rate=8000), 8000),
    "voice at 48 kHz": Audio(voice(0.3, rate=48000), 48000),
    "voice at 22.05 kHz": Audio(voice(0.3, rate=22050), 22050),
    "voice on a constant": Audio(voice() + np.float32(0.3), 16000),
    "silence": constant(0, 8000),
    "nothing": constant(0, 0),
    "one sample": constant(0.7, 1),
    "two samples": Audio(np.array([0.5, -0.5], np.float32), 16000),
    "a constant": constant(0.5, 8000),
    "full scale": constant(-1, 8000),
    "a click": Audio(np.eye(1, 8000, 4000, dtype=np.float32)[0], 16000),
    "a full-scale square": Audio(np.sign(np.sin(np.arange(8000) * 0.05) + 1e-9).astype(np.float32), 16000),
    "20 ms": Audio(voice(0.02), 16000),
    "just under a block": Audio(voice(0.1199), 16000),
    "just over a block": Audio(voice(0.1201), 16000),
    "three times full scale": Audio(3 * np.clip(voice() * 4, -1, 1), 16000),
    "as loud as float32 goes": Audio(np.clip(voice() * 4, -1, 1) * np.float32(3.4e38), 16000),
    "as soft as float32 goes": Audio(voice() * np.float32(1e-44), 16000),
    "1,000 Hz": Audio(voice(0.5, rate=1000), 1000),
    "8 Hz": Audio(voice(5, rate=8), 8),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(0)
    Audio(0.1 * rng.standard_normal(12000), 16000).write(folder / "long.wav")
    Audio(0.1 * rng.standard_normal(500), 8000).write(folder / "short.flac")
    (folder / "read me.txt").write_text("no recording")
    return folder


def drawn(kind: type[Transformation], rng: np.random.Generator, folder: Path, **ranges: Any) -> Transformation:
    return kind.draw(rng, **({"folder": folder} if kind is AddBackgroundNoise else {}), **ranges)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=120)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(SIGNALS)), wide=st.booleans())
def test_results_are_sound(kind: type[Transformation], folder: Path, seed: int, name: str, wide: bool) -> None:
    """Finite float32 at the same rate, no louder than full scale or the input, the same twice; lengths kept."""
    audio, before = SIGNALS[name], SIGNALS[name].samples.copy()
    change = drawn(kind, np.random.default_rng(seed), folder, **(kind.LIMITS if wide else {}))
    result = change(audio)
    assert result.rate == audio.rate
    assert result.samples.dtype == np.float32
    assert np.isfinite(result.samples).all()
    loudest = max(1.0, float(np.abs(audio.samples).max(initial=0)))
    assert float(np.abs(result.samples).max(initial=0)) <= loudest
    assert change(audio).samples.tobytes() == result.samples.tobytes()
    assert audio.samples.tobytes() == before.tobytes(), "the input was changed in place"
    if kind in STEADY:
        assert len(result) == len(audio)
    if kind is Trim:
        assert min(1, len(audio)) <= len(result) <= len(audio)
    if not len(audio):
        assert not len(result)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_silence_stays_silent(kind: type[Transformation], folder: Path) -> None:
    result = drawn(kind, np.random.default_rng(1), folder)(SIGNALS["silence"])
    assert not result.samples.any()


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize(
    "change",
    [
        ChangeVolume(0),
        LowPassFilter(24000),
        HighPassFilter(0),
        PitchShift(0),
        ChangeSpeed(1),
        ExtractHarmonic(0),
        DRC(-30, 1),
        DRC(0, 4),
    ],
    ids=repr,
)
def test_identity_parameters_give_the_very_input_back(change: Transformation, name: str) -> None:
    assert change(SIGNALS[name]) is SIGNALS[name]


def test_nothing_is_trimmed_where_nothing_is_silent() -> None:
    for name in ("silence", "a constant", "full scale", "a full-scale square", "nothing", "one sample"):
        assert Trim(30)(SIGNALS[name]) is SIGNALS[name]


@pytest.mark.parametrize("change", [PitchShift(2), ChangeSpeed(1.2)], ids=repr)
def test_less_than_a_block_is_not_stretched(change: Transformation) -> None:
    for name in ("20 ms", "just under a block", "8 Hz"):
        assert change(SIGNALS[name]) is SIGNALS[name]
    assert change(SIGNALS["just over a block"]) is not SIGNALS["just over a block"]


DIGESTS = """
import sys
from tests.test_transformations import digests
from pathlib import Path
print(digests(Path(sys.argv[1])))
"""


def digests(folder: Path) -> list[str]:
    rng = np.random.default_rng(5)
    changes = [drawn(kind, rng, folder) for kind in KINDS]
    return [hashlib.sha256(change(SIGNALS["voice"]).samples).hexdigest() for change in changes]  # type: ignore[arg-type]


def test_another_process_makes_the_same_samples(folder: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", DIGESTS, str(folder)]
    other = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert other.strip() == str(digests(folder))


# Values and their parameters


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_is_a_value(kind: type[Transformation], folder: Path) -> None:
    one = drawn(kind, np.random.default_rng(3), folder)
    assert one == drawn(kind, np.random.default_rng(3), folder)
    assert len({one, drawn(kind, np.random.default_rng(3), folder)}) == 1
    assert one != drawn(kind, np.random.default_rng(4), folder)
    assert eval(repr(one)) == one  # the repr is the exact value
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(FrozenInstanceError):
        one.anything = 1  # type: ignore[attr-defined]


def test_its_repr_reads_well() -> None:
    assert repr(AddWhiteNoise(snr_db=24.1, seed=91)) == "AddWhiteNoise(snr_db=24.1, seed=91)"
    assert repr(AddWhiteNoise(np.float32(24.5), np.int64(91))) == "AddWhiteNoise(snr_db=24.5, seed=91)"  # type: ignore[arg-type]
    assert repr(AddWhiteNoise.draw(np.random.default_rng(0))) == "AddWhiteNoise(snr_db=39.55, seed=2195314465)"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_draws_stay_in_their_ranges_and_fill_them(kind: type[Transformation], folder: Path) -> None:
    rng = np.random.default_rng(0)
    many = [drawn(kind, rng, folder) for _ in range(200)]
    for name, (low, high) in kind.RANGES.items():
        values = [getattr(one, name) for one in many]
        assert low <= min(values) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(values) <= high
        limits = kind.LIMITS[name]
        assert limits[0] <= low < high <= limits[1]


@given(st.integers(0, 2**32), st.floats(-60, 120), st.floats(-60, 120))
def test_ranges_can_be_overridden(seed: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    change = AddWhiteNoise.draw(np.random.default_rng(seed), snr_db=(low, high))
    assert low <= change.snr_db <= high


def test_drawing_uses_nothing_but_its_generator() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    AddWhiteNoise.draw(np.random.default_rng(0))(SIGNALS["voice"])
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AddWhiteNoise("loud", 1), "AddWhiteNoise: snr_db must be a number from -60 to 120, not 'loud'"),  # type: ignore[arg-type]
        (lambda: AddWhiteNoise(float("nan"), 1), "snr_db must be a number from -60 to 120, not nan"),
        (lambda: AddWhiteNoise(20, 1.5), "AddWhiteNoise: seed must be a whole number from 0 to 4294967295, not 1.5"),  # type: ignore[arg-type]
        (lambda: AddWhiteNoise(20, -1), "seed must be a whole number"),
        (lambda: AddWhiteNoise(True, 1), "snr_db must be a number"),
        (lambda: ChangeSpeed(0), "ChangeSpeed: factor must be a number from 0.25 to 4, not 0"),
        (lambda: ChangeVolume(float("inf")), "gain_db must be a number"),
        (lambda: DRC(-20, 0.5), "DRC: ratio must be a number from 1 to 20, not 0.5"),
        (lambda: DRC(3, 2), "DRC: threshold_db must be a number from -80 to 0, not 3"),
        (lambda: LowPassFilter(0), "cutoff_hz"),
        (lambda: ExtractHarmonic(1.1), "amount"),
        (lambda: PitchShift(None), "semitones"),  # type: ignore[arg-type]
        (lambda: Trim(0), "top_db"),
        (lambda: Reverb(0, 10, 1), "rt60_seconds"),
        (lambda: Telephone(300, 300), "high_hz"),
        (lambda: AddBackgroundNoise(7, 0, 20), "AddBackgroundNoise: recording must be a text, not 7"),  # type: ignore[arg-type]
        (lambda: AddWhiteNoise.draw(np.random.default_rng(0), snr=(1, 2)), "draws no 'snr'; its ranges are: snr_db"),
        (lambda: ChangeVolume.draw(np.random.default_rng(0), gain_db=3), "must be two numbers"),
        (lambda: ChangeVolume.draw(np.random.default_rng(0), gain_db=(3, 1)), "must start with the smaller number"),
        (lambda: ChangeVolume.draw(np.random.default_rng(0), gain_db=(0, 500)), "from -120 to 120, not 500"),
        (lambda: AddBackgroundNoise.draw(np.random.default_rng(0)), "needs a folder of recordings"),
        (lambda: AddBackgroundNoise.draw(np.random.default_rng(0), folder=Path("no")), "there are no recordings"),
    ],
)
def test_wrong_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)


# The recordings of AddBackgroundNoise


def test_a_recording_that_changed_is_refused(tmp_path: Path) -> None:
    Audio(voice(seed=1), 16000).write(tmp_path / "a.wav")
    change = AddBackgroundNoise.draw(np.random.default_rng(0), folder=tmp_path)
    first = change(SIGNALS["voice"])
    Audio(voice(0.7, seed=2), 16000).write(tmp_path / "a.wav")
    with pytest.raises(MismatchError, match=r"a\.wav has changed"):
        change(SIGNALS["voice"])
    Audio(voice(seed=1), 16000).write(tmp_path / "a.wav")
    assert change(SIGNALS["voice"]).samples.tobytes() == first.samples.tobytes()
    (tmp_path / "a.wav").unlink()
    with pytest.raises(FileError, match="there is no such file"):
        change(SIGNALS["voice"])


def test_a_recording_begins_where_it_was_drawn_and_repeats(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 3000).astype(np.float32)
    Audio(noise, 16000).write(tmp_path / "a.wav")
    speech = SIGNALS["voice"]
    result = AddBackgroundNoise(str(tmp_path / "a.wav"), 0.5, 10)(speech)
    added = (result.samples - speech.samples)[:6000]
    expected = np.tile(np.roll(noise, -1500), 2)
    assert np.corrcoef(added, expected)[0, 1] > 0.9999
