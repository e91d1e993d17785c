"""Audio: one channel of samples and their rate."""

from __future__ import annotations

import io
import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import soundfile as sf
import soxr

from deepcruiser.errors import FileError, InputError, reason
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.containers import contradiction
from deepcruiser.files.reading import check_bytes, open_regular
from deepcruiser.notebook import card, player

#: The suffixes of the recordings that `read` decodes.
AUDIO_SUFFIXES = (".flac", ".mp3", ".oga", ".ogg", ".opus", ".wav")

#: The encodings of `write` by suffix: float32 keeps every sample, and so do 24 bits between -1 and 1.
ENCODINGS = {".flac": ("FLAC", "PCM_24"), ".wav": ("WAV", "FLOAT")}

#: The lowest and the highest sample rate in Hz that is accepted.
RATES = (100, 1_000_000)

#: Frames decoded at a time. The length in a file's header is never trusted, and never allocated.
BLOCK = 2**16

#: libsndfile reads a truncated WAV without an error, but notes the length in the header.
CUT_WAV = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)

#: Programs that write to a pipe do not know the length; they write this number or a larger one.
UNKNOWN_LENGTH = 0x7FFFF000

#: This much may be missing at the end of a part: lists of segments round their times, and lossy codecs pad.
SLACK_SECONDS = 0.1

#: MP3 decoding starts this much earlier, because a decoder that starts in the middle is wrong for up to half a second.
RUN_UP_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class Audio:
    """One channel of audio: float32 samples, full scale at -1 and 1, and their rate in Hz.

    Any floating-point array is converted; values beyond full scale are kept. The samples may share memory with that
    array, so treat them as read-only.
    """

    samples: npt.NDArray[np.floating[Any]]
    rate: int

    def __post_init__(self) -> None:
        array = self.samples
        if not isinstance(array, np.ndarray):
            raise InputError(f"samples must be a numpy array, not {type(array).__name__}; convert with np.asarray")
        if array.ndim != 1:
            raise InputError(f"samples must have one dimension, not the shape {array.shape}; average the channels")
        if array.dtype.kind != "f":
            raise InputError(
                f"samples must be floating-point numbers, not {array.dtype}; divide int16 samples by 32768"
            )
        with np.errstate(over="ignore"):  # values too large for float32 become infinite, and are refused below
            samples = np.ascontiguousarray(array, dtype=np.float32)
        finite = np.isfinite(samples)
        if not finite.all():
            at = int(np.argmin(finite))
            raise InputError(f"sample {at} of {len(samples)} is {array[at]}; every sample must be a finite float32")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "rate", _checked_rate(self.rate))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, offset: float = 0.0, duration: float | None = None) -> Audio:
        """Read a WAV, FLAC, Ogg (Opus or Vorbis) or MP3 file, or `duration` seconds of it starting at `offset`.

        The rate is the file's own; channels are averaged. The content decides the format, not the suffix. A truncated
        or contradictory WAV, FLAC or Ogg file is refused; MP3 files do not say how long they should be.
        """
        if not 0 <= offset < math.inf:
            raise InputError(f"offset must be 0 seconds or more, not {offset}")
        if duration is not None and not 0 < duration < math.inf:
            raise InputError(f"duration must be more than 0 seconds, not {duration}; leave it out to read to the end")
        path = Path(path)
        try:
            samples, rate = _decode(path, offset, duration)
        except OSError as error:
            raise FileError(f"cannot read {path}: {_why(error)}") from error
        except (TypeError, ValueError, sf.SoundFileError) as error:  # soundfile's own for .raw, odd paths, bad files
            expected = "expected a whole WAV, FLAC, Ogg (Opus or Vorbis) or MP3 file"
            raise FileError(f"cannot read {path}: {_why(error)}; {expected}") from error
        try:
            return cls(samples, rate)
        except InputError as error:
            raise FileError(f"cannot use {path}: {error}") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a .wav (32-bit float, every sample kept) or a .flac (24 bits, clipped to full scale).

        The file is written completely or not at all, and the same audio gives the same bytes.
        """
        path = Path(path)
        if path.suffix.lower() not in ENCODINGS:
            raise InputError(f"cannot write {path}: the suffix must be {' or '.join(ENCODINGS)}")
        if not len(self):
            raise InputError(f"cannot write {path}: there are no samples")
        try:
            data = self.encoded(path.suffix.lower())
        except sf.SoundFileError as error:
            raise FileError(f"cannot write {path}: {_why(error)}") from error
        with atomic_write(path) as file:
            file.write(data)

    def encoded(self, suffix: str) -> bytes:
        """The bytes of a file with this suffix; there must be samples."""
        form, subtype = ENCODINGS[suffix]
        # In memory first: on a full disk, plain Python reports the cause and libsndfile does not.
        buffer = io.BytesIO()
        sf.write(buffer, self.samples, self.rate, format=form, subtype=subtype)
        data = bytearray(buffer.getvalue())
        if form == "WAV":
            # libsndfile writes the time of day into a float WAV: 'PEAK', size, version, time, four bytes each.
            time = data.index(b"PEAK", 0, data.index(b"data")) + 12
            data[time : time + 4] = bytes(4)
        return bytes(data)

    def resample(self, rate: int) -> Audio:
        """The same audio at another rate; at its own rate, the same object."""
        rate = _checked_rate(rate)
        check_bytes(4 * len(self) * rate // self.rate, f"{self!r} at {rate:,} Hz")
        return self if rate == self.rate else Audio(soxr.resample(self.samples, self.rate, rate), rate)

    def replace(self, samples: npt.NDArray[np.floating[Any]]) -> Audio:
        """Other samples at this rate."""
        return Audio(samples, self.rate)

    @property
    def seconds(self) -> float:
        return len(self) / self.rate

    @property
    def rms(self) -> float:
        """The root of the mean square of the samples; 0.0 when there are none."""
        return float(np.sqrt(np.mean(np.square(self.samples, dtype=np.float64)))) if len(self) else 0.0

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.samples)

    def _repr_html_(self) -> str:
        return card(repr(self), below=player(self.wav()) if len(self) else "")

    def wav(self) -> bytes:
        """The audio as a WAV file with 16 bits, for players."""
        buffer = io.BytesIO()
        sf.write(buffer, np.clip(self.samples, -1, 1), self.rate, format="WAV", subtype="PCM_16")
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"Audio of {self.seconds:.2f} s at {self.rate} Hz"


def _checked_rate(rate: int) -> int:
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or rate <= 0:
        raise InputError(f"rate must be a whole number of Hz above 0, not {rate!r}")
    return int(rate)


def _decode(path: Path, offset: float, duration: float | None) -> tuple[npt.NDArray[np.float32], int]:
    with open_regular(path) as raw:
        if not os.fstat(raw.fileno()).st_size:
            raise FileError(f"cannot read {path}: it is empty (0 bytes)")
        with sf.SoundFile(raw) as file:
            rate = int(file.samplerate)
            if not RATES[0] <= rate <= RATES[1]:
                raise FileError(
                    f"cannot read {path}: its rate is {rate:,} Hz; {RATES[0]} to {RATES[1]:,} Hz can be read"
                )
            if wrong := contradiction(path, raw, file.extra_info, frames=file.frames):
                raise FileError(f"cannot read {path}: {wrong}; record it again, or convert it")
            start = round(offset * rate)
            if start and start >= file.frames:
                raise FileError(f"cannot read {path} from {offset} s on: it ends at {file.frames / rate:.2f} s")
            stop = sys.maxsize if duration is None else round((offset + duration) * rate)
            early = max(0, start - round(RUN_UP_SECONDS * rate))
            check_bytes(4 * (min(stop, file.frames) - start) * (file.frames < sys.maxsize), str(path))
            samples = _mono(file, early, stop, str(path))[start - early :]
            if lack := _lack(file, raw, len(samples), min(stop, file.frames) - start):
                raise FileError(f"cannot read {path}: {lack}")
    if not len(samples):
        raise FileError(f"cannot read {path}: it holds no samples")
    if duration is not None and (stop - start - len(samples)) / rate > SLACK_SECONDS:
        end = f"{offset + len(samples) / rate:.2f} s"
        raise FileError(f"cannot read {duration} s of {path} from {offset} s on: it ends at {end}")
    return samples, rate


def _lack(file: Any, raw: BinaryIO, read: int, promised: int) -> str:
    """Why fewer samples were read than the file should hold; empty if nothing is missing."""
    cut = CUT_WAV.search(file.extra_info)
    if cut and int(cut[1]) < UNKNOWN_LENGTH:
        return f"it is cut short, with {cut[2]} bytes of sound out of {cut[1]}"
    if file.format == "MP3":
        # The length may be a guess. libsndfile stops there even if more frames follow, which start with 0xff.
        size = os.fstat(raw.fileno()).st_size
        more = file.tell() == file.frames and raw.read(1) == b"\xff" and size - raw.tell() > size / 10
        return "it has no table of its length, and continues after the estimated end; convert it" if more else ""
    unknown = file.frames == sys.maxsize  # in a FLAC that was written to a pipe
    return "" if unknown or read >= promised else f"it is cut short, with {read} samples out of {promised}"


def _mono(file: Any, start: int, stop: int, name: str) -> npt.NDArray[np.float32]:
    if start:
        file.seek(start)
    # soundfile seeks after every read, and a FLAC of unknown length (written to a pipe) fails at that at its end.
    file.seekable = lambda: False
    blocks = [np.zeros(0, dtype=np.float32)]
    left = stop - start
    while left and len(block := file.read(min(BLOCK, left), dtype="float32", always_2d=True)):
        left -= len(block)
        check_bytes(4 * (stop - start - left), name)
        with np.errstate(invalid="ignore"):  # NaN from infinities is refused later, with its position
            mean = block[:, 0] if block.shape[1] == 1 else block.mean(axis=1, dtype=np.float64).astype(np.float32)
        blocks.append(mean)
    return np.concatenate(blocks)


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError):
        return reason(error)
    message = str(getattr(error, "error_string", error)).removeprefix("Error : ").rstrip(".")
    return message[:1].lower() + message[1:]
