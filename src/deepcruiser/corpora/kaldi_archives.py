"""Features in Kaldi's archives: `.ark` files, and `.scp` lists of where in archives each utterance is."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from deepcruiser.corpora.corpus import Sample
from deepcruiser.corpora.lists import kaldi_texts, key_and_rest, lines, malformed
from deepcruiser.errors import FileError, reason
from deepcruiser.files.kaldi_objects import KaldiReader
from deepcruiser.files.reading import open_regular

_KEY = re.compile(rb"\s*([^\s\0]{1,1000})[ \t]")
#: A file, the byte where the object begins, and its first and last row.
_PLACE = re.compile(r"(?P<path>[^\0]+?)(?::(?P<byte>[0-9]{1,18}))?(?:\[(?P<first>[0-9]{1,9}):(?P<last>[0-9]{1,9})\])?")


@dataclass(frozen=True, slots=True)
class ArchivedSample(Sample):
    """A vector or matrix at the byte `position` of an archive, or some of its `rows`."""

    position: int = 0
    rows: tuple[int, int] | None = None  # the first and the last

    @property
    def input(self) -> npt.NDArray[Any]:
        with _mapped(self.path) as data:
            if self.position >= len(data):
                raise FileError(f"cannot read {self.path} at byte {self.position}: it has {len(data):,} bytes")
            array = KaldiReader(data, str(self.path), self.position).array()
        if self.rows is None:
            return array
        first, last = self.rows
        if not first <= last < len(array):
            raise FileError(f"{self.id!r} is rows {first} to {last} of {self.path}, where there are {len(array):,}")
        return array[first : last + 1]


def archive(path: Path) -> Iterator[Sample]:
    """The utterances of an archive, binary or text, with the texts of the file `text` beside it."""
    texts = kaldi_texts(path)
    with _mapped(path) as data:
        place = 0
        while place < len(data):
            match = _KEY.match(data, place)
            if match is None:
                raise FileError(
                    f"{path}, byte {place}: expected the id of an utterance and a space; is the file damaged?"
                )
            key = match[1].decode("utf-8", "replace")
            reader = KaldiReader(data, str(path), match.end())
            reader.skip_array()
            yield ArchivedSample(key, path, texts.get(key), position=match.end())
            place = reader.position
            if not reader.binary and reader.at_end():
                return


def archive_list(scp: Path) -> Iterator[Sample]:
    """The utterances of a list like feats.scp, with the texts of the file `text` beside it."""
    texts = kaldi_texts(scp)
    for number, line in lines(scp):
        key, place = key_and_rest(line)
        match = _PLACE.fullmatch(place)
        if match is None or place.endswith("|") or place.startswith("|"):
            raise malformed(scp, number, line, "an id, a file and a byte, as in utt1 feats.ark:5 (no command)")
        path = scp.parent / match["path"]
        if not path.exists() and Path(match["path"]).exists():  # as for wav.scp, Kaldi's own are relative to the start
            path = Path(match["path"]).absolute()
        rows = None if match["first"] is None else (int(match["first"]), int(match["last"]))
        yield ArchivedSample(key, path, texts.get(key), position=int(match["byte"] or 0), rows=rows)


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    try:
        with open_regular(path) as file:
            try:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise FileError(f"cannot read {path}: it is empty (0 bytes)") from None
            with data:
                yield data
    except OSError as error:
        raise FileError(f"cannot read {path}: {reason(error)}") from None
