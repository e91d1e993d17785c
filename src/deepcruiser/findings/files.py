"""Inputs of tests as files, bit for bit, and how much each has changed since."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from deepcruiser.atomic import atomic_write
from deepcruiser.audio import Audio
from deepcruiser.errors import InputError


def write_input(stem: Path, value: Any) -> Path:
    """Write a sound as a WAV file of 32-bit floats, a text as UTF-8, an array as .npy; reading gives the same value."""
    if isinstance(value, Audio):
        path = stem.with_name(f"{stem.name}.wav")
        value.write(path)
    elif isinstance(value, str):
        path = stem.with_name(f"{stem.name}.txt")
        with atomic_write(path) as file:
            file.write(value.encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        path = stem.with_name(f"{stem.name}.npy")
        with atomic_write(path) as file:
            np.save(file, value, allow_pickle=False)
    else:
        raise InputError(f"an input of the type {type(value).__name__} cannot be written: a sound, text or array can")
    return path


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
