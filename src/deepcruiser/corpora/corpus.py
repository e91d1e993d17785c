"""A corpus and its samples, the same for every format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy.typing as npt

from deepcruiser.audio import AUDIO_SUFFIXES, Audio
from deepcruiser.errors import FileError, InputError, reason
from deepcruiser.files.reading import open_regular, read_array, read_text

INPUT_SUFFIXES = (*AUDIO_SUFFIXES, ".npy")
#: The columns of tables, and fields of dictionaries, that name a file or hold its transcript.
FILE_COLUMNS = ("wav_filename", "path", "file", "audio")
TEXT_COLUMNS = ("transcript", "transcription", "sentence", "text")
#: Those of an input that is a text, and of right labels.
INPUT_COLUMNS = ("text", "sentence")
LABEL_COLUMNS = ("label", "labels", "target", "class")


@dataclass(frozen=True, slots=True)
class Sample:
    """An input of a corpus with its text or right label, if known.

    `offset` and `duration`, in seconds, select a part of an audio file; without an offset, all of it is read. `value`
    is an input from the list itself, such as a text; `path` is then that of the list.
    """

    id: str
    path: Path
    text: Any = None
    offset: float | None = None
    duration: float | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    @property
    def input(self) -> Audio | npt.NDArray[Any] | str:
        """The audio, the array of a .npy file or the text of a .txt file; read from disk each time."""
        if self.value is not None:
            return self.value
        if self.path.suffix.lower() == ".txt":
            return read_text(self.path, encoding="utf-8")
        if self.path.suffix.lower() == ".npy":
            return _array(self.path)
        if self.offset is None:
            return Audio.read(self.path)
        return Audio.read(self.path, offset=self.offset, duration=self.duration)


@dataclass(frozen=True, repr=False)
class Corpus(Sequence[Sample]):
    """Samples with unique ids, and a name. A slice of a corpus is a corpus."""

    name: str
    samples: tuple[Sample, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", tuple(self.samples))
        seen: dict[str, Path] = {}
        for sample in self.samples:
            if sample.id in seen:
                raise InputError(
                    f"the id {sample.id!r} stands for both {seen[sample.id]} and {sample.path}; "
                    "ids must be unique, so rename or drop one"
                )
            seen[sample.id] = sample.path

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Sample | Corpus:
        return Corpus(self.name, self.samples[index]) if isinstance(index, slice) else self.samples[index]

    def __repr__(self) -> str:
        samples = "sample" if len(self) == 1 else "samples"
        return f"Corpus {self.name}: {len(self):,} {samples}"


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        with open_regular(path) as file:
            return read_array(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise FileError(f"cannot read {path}: {reason(error)}") from error
    except ValueError as error:
        raise FileError(f"cannot read {path}: {reason(error)}; expected an array saved by numpy.save") from error
