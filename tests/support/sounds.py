"""Plain sounds, for tests of audio files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import soundfile as sf
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SHARED = Path(__file__).resolve().parents[3] / "shared" / "speech"

SAMPLES = hnp.arrays(np.float32, st.integers(1, 300), elements=st.floats(-1, 1, width=32))


def tone(seconds: float = 0.5, rate: int = 16000, hertz: float = 440) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def noise(count: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(0).standard_normal(count)).astype(np.float32)


def near(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= tolerance


def flac_with_length(path: Path, samples: np.ndarray, high: int, low: int) -> None:
    """The 36-bit number of samples stands in bytes 21 (its low half) to 25."""
    sf.write(path, samples, 16000)
    data = bytearray(path.read_bytes())
    data[21] = data[21] & 0xF0 | high
    data[22:26] = struct.pack(">I", low)
    path.write_bytes(data)
