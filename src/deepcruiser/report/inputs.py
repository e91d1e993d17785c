"""The inputs of failing tests as the page shows them: sounds to play, texts to compare, series to draw."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile as sf

from deepcruiser.alignment import character_pieces
from deepcruiser.audio import Audio
from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.files.reading import open_regular, read_array, read_text

#: The most that is shown: characters of a text, points and channels of a series.
_LONGEST_TEXT, _POINTS, _CHANNELS = 2000, 240, 3
#: An array with more channels than are drawn as lines is a picture if no side is longer than this.
_LONGEST_SIDE = 64
#: Files that a campaign writes for its inputs; nothing else is served or linked.
INPUT_FILE = re.compile(r"(failed|seeds)/\d{6,}\.(flac|txt|npy)")


class Inputs:
    """The inputs in a campaign's folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, dict[str, Any]] = {}
        self._of: dict[int, dict[str, Any]] = {}

    def of(self, number: int, position: int) -> dict[str, Any]:
        """The seed and the failing input of a test, each with its `form`: sound, text, series or missing."""
        if number not in self._of:
            seed, mutant = self._look("seeds", position), self._look("failed", number)
            self._of[number] = {"form": mutant["form"], "seed": seed, "mutant": mutant}
            if seed["form"] == mutant["form"] == "text":
                self._of[number] = {"form": "text", "pieces": character_pieces(seed["text"], mutant["text"])}
        return self._of[number]

    def audio(self, file: str) -> Audio:
        """An audio file of the folder."""
        return Audio.read(self._folder / file)

    def _look(self, where: str, number: int) -> dict[str, Any]:
        if number < 0:
            return {"form": "missing", "problem": "the seed's number is lost with the campaign's database"}
        stem = f"{where}/{number:06}"
        if stem not in self._known:
            try:
                self._known[stem] = self._read(stem)
            except (DeepCruiserError, OSError, ValueError) as error:
                self._known[stem] = {"form": "missing", "problem": str(error)}
        return self._known[stem]

    def _read(self, stem: str) -> dict[str, Any]:
        for suffix in ("flac", "txt", "npy"):
            file = f"{stem}.{suffix}"
            path = self._folder / file
            if not path.is_file():
                continue
            if suffix == "flac":
                audio = Audio.read(path)
                seconds = round(audio.seconds, 3)
                return {
                    "form": "sound", "file": file, "seconds": seconds, "rate": audio.rate, "outline": outline(audio)
                }  # fmt: skip
            if suffix == "txt":
                return {"form": "text", "file": file, "text": read_text(path, errors="replace")[:_LONGEST_TEXT]}
            with open_regular(path) as opened:
                array = read_array(opened, path.stat().st_size)
            return {"form": "series", "file": file, "shape": list(array.shape), **(_table(array) or _lines(array))}
        return {"form": "missing", "problem": f"there is no file {stem}.* in the campaign's folder"}


def _table(array: npt.NDArray[Any]) -> dict[str, Any] | None:
    """A small array as a picture: a byte for each number, from the least to the greatest; None of any other."""
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not _CHANNELS < array.shape[1] <= _LONGEST_SIDE:
        return None
    if not 1 <= len(array) <= _LONGEST_SIDE or not np.isfinite(array).all():
        return None
    values = array.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    shares = np.round((values - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
    pixels = base64.b64encode(shares.tobytes()).decode()
    return {"table": {"rows": len(array), "columns": array.shape[1], "low": low, "high": high, "bytes": pixels}}


def _lines(array: npt.NDArray[Any]) -> dict[str, Any]:
    """A series as lines of a few points, evenly spread over time."""
    if array.ndim == 0 or array.dtype.kind not in "biuf" or not array.size:
        return {"lines": []}
    table = array.reshape(len(array), -1)
    at = np.unique(np.linspace(0, len(table) - 1, min(_POINTS, len(table))).astype(np.int64))
    channels = table[at][:, :_CHANNELS].astype(np.float64)
    lines = [[float(f"{value:.4g}") if np.isfinite(value) else None for value in line] for line in channels.T]
    return {"lines": lines, "at": at.tolist(), "channels": table.shape[1]}


#: Sample rates of MP3 in Hz.
_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
#: Points in an outline.
_OUTLINE_POINTS = 120


def compressed(audio: Audio) -> tuple[bytes, str]:
    """The audio as a compressed file, and its media type.

    MP3 at the best variable bit rate, about 9 kB per second of speech. Ogg is smaller, but Safari before 18.4 does not
    play it. FLAC if libsndfile has no MP3.
    """
    buffer = io.BytesIO()
    audio = audio.resample(next((rate for rate in _RATES if rate >= audio.rate), _RATES[-1]))
    samples = np.clip(audio.samples, -1, 1)
    try:
        if "MP3" in sf.available_formats():
            options = {"compression_level": 0.0, "bitrate_mode": "VARIABLE"}
            sf.write(buffer, samples, audio.rate, format="MP3", subtype="MPEG_LAYER_III", **options)
            return buffer.getvalue(), "audio/mpeg"
        sf.write(buffer, samples, audio.rate, format="FLAC", subtype="PCM_16")
    except sf.SoundFileError as error:
        raise FileError(f"cannot compress {audio}: {error}") from error
    return buffer.getvalue(), "audio/flac"


def outline(audio: Audio) -> str:
    """The peaks of equal parts of the audio, one byte each (255 is full scale), in base64."""
    if not len(audio):
        return ""
    starts = np.linspace(0, len(audio), min(_OUTLINE_POINTS, len(audio)), endpoint=False).astype(np.int64)
    peaks = np.maximum.reduceat(np.abs(audio.samples), starts)
    return base64.b64encode(np.round(np.clip(peaks, 0, 1) * 255).astype(np.uint8).tobytes()).decode()
