"""An input as the file that a campaign's folder keeps of it: a sound as FLAC, a text, or an array."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from deepcruiser.audio import Audio
from deepcruiser.files.atomic import atomic_write


@dataclass(frozen=True)
class InputFile:
    """The content of the file of an input, and the suffix of its name."""

    suffix: str
    content: bytes

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """The file of a sound, a text or an array; None for an empty sound and for anything else."""
        if isinstance(value, Audio):
            return cls(".flac", value.encoded(".flac")) if len(value) else None
        if isinstance(value, str):
            return cls(".txt", value.encode(errors="backslashreplace"))
        if isinstance(value, np.ndarray):
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            return cls(".npy", buffer.getvalue())
        return None

    def write(self, stem: Path) -> None:
        """Write it beside its stem, whole or not at all."""
        with atomic_write(stem.with_suffix(self.suffix)) as file:
            file.write(self.content)
