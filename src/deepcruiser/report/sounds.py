"""Sound for a page: compressed as every browser plays it, and its outline to draw."""

from __future__ import annotations

import base64
import io

import numpy as np
import soundfile as sf

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError

#: The rates of MP3, in Hz.
_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
#: Points of an outline.
_POINTS = 120


def compressed(audio: Audio) -> tuple[bytes, str]:
    """The sound as a file, and its type.

    MP3 of the best variable rate, about 9 kB a second of speech: Ogg is smaller, but Safari before 18.4 does not play
    it. A libsndfile without MP3 gives FLAC.
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
    """The largest sample of each of some parts, as bytes from 0 to 255 in base64; full scale is 255."""
    if not len(audio):
        return ""
    starts = np.linspace(0, len(audio), min(_POINTS, len(audio)), endpoint=False).astype(np.int64)
    peaks = np.maximum.reduceat(np.abs(audio.samples), starts)
    return base64.b64encode(np.round(np.clip(peaks, 0, 1) * 255).astype(np.uint8).tobytes()).decode()
