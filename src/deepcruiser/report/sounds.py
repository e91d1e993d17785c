"""Audio for the page: compressed in a format that every browser plays, and its outline to draw."""

from __future__ import annotations

import base64
import io

import numpy as np
import soundfile as sf

from deepcruiser.audio import Audio
from deepcruiser.errors import FileError

#: Sample rates of MP3 in Hz.
_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
#: Points in an outline.
_POINTS = 120


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
    starts = np.linspace(0, len(audio), min(_POINTS, len(audio)), endpoint=False).astype(np.int64)
    peaks = np.maximum.reduceat(np.abs(audio.samples), starts)
    return base64.b64encode(np.round(np.clip(peaks, 0, 1) * 255).astype(np.uint8).tobytes()).decode()
