"""Small corpora of sounds, to test the readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from deepcruiser.audio import Audio
from deepcruiser.corpora.corpus import Corpus, Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import FileError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "speech"


def sound(path: Path, level: float = 0.25, seconds: float = 0.1) -> Path:
    """A file of constant `level`, by which a test can tell which file it was given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form, subtype = ("OGG", "OPUS") if path.suffix == ".opus" else (None, None)
    sf.write(path, np.full(round(seconds * 16000), level, np.float32), 16000, format=form, subtype=subtype)
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="")
    return path


def level(sample: Sample) -> float:
    audio = sample.input
    assert isinstance(audio, Audio)
    return round(float(np.median(audio.samples)), 2)


def ids(corpus: Corpus) -> list[str]:
    return [sample.id for sample in corpus]


def texts(corpus: Corpus) -> list[str | None]:
    return [sample.text for sample in corpus]


def fails(path: Path, *says: str) -> None:
    with pytest.raises(FileError) as caught:
        read_corpus(path)
    message = str(caught.value)
    for part in says:
        assert part in message
    assert "\n" not in message
