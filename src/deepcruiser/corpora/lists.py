"""Readers of lists: files that name samples and usually give their texts."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepcruiser.corpora.corpus import INPUT_SUFFIXES, Sample
from deepcruiser.errors import FileError

FILE_COLUMNS = ("wav_filename", "path", "file", "audio")
TEXT_COLUMNS = ("transcript", "sentence", "text")
#: What a line of `segments` holds.
SEGMENT = "an id, an id of wav.scp, a start and an end in seconds"


def named(folder: Path, name: str, text: str | None = None) -> Sample:
    """The sample in a file. Its id is the path of the file in the folder, without the suffix."""
    path = folder / name
    key = path.relative_to(folder) if path.is_relative_to(folder) else path
    if path.suffix.lower() in INPUT_SUFFIXES:
        key = key.with_suffix("")
    return Sample(key.as_posix(), path, text)


def librispeech(transcripts: list[Path], audio: list[Path]) -> Iterator[Sample]:
    """The lines of all `transcripts`; the audio file of a line is beside the transcript and named by the id."""
    by_name = {file.with_suffix(""): file for file in reversed(audio)}  # the first of two files wins: .flac
    for path in transcripts:
        for number, line in _lines(path):
            key, text = _key_and_rest(line)
            if not text:
                raise _malformed(path, number, line, "an id, a space and a text")
            yield Sample(key, by_name.get(path.parent / key, path.parent / f"{key}.flac"), text.lower())


def kaldi(scp: Path) -> Iterator[Sample]:
    """The recordings of a wav.scp, or the parts of them that the file `segments` beside it lists."""
    recordings: dict[str, Path] = {}
    for number, line in _lines(scp):
        key, name = _key_and_rest(line)
        if not name:
            raise _malformed(scp, number, line, "an id and a path")
        if name.endswith("|"):
            what = f"{name[:80]!r} is a command, which is never run"
            raise FileError(f"{scp}, line {number}: {what}; convert the audio and list the files")
        if key in recordings:
            raise FileError(f"{scp}, line {number}: the id {key!r} appears twice; ids must be unique")
        path = scp.parent / name
        # In Kaldi's own scripts, paths are relative to the folder the script was started in.
        recordings[key] = path if path.exists() or not Path(name).exists() else Path(name).absolute()
    texts = dict(_key_and_rest(line) for _, line in _lines(scp.with_name("text")))
    segments = scp.with_name("segments")
    if not segments.exists():
        yield from (Sample(key, path, texts.get(key)) for key, path in recordings.items())
    for number, line in _lines(segments):
        fields = line.split()
        if len(fields) != 4:
            raise _malformed(segments, number, line, SEGMENT)
        key, recording, start, end = fields
        offset, stop = _seconds(start), math.inf if end == "-1" else _seconds(end)
        if recording not in recordings or offset is None or stop is None or stop <= offset:
            raise _malformed(segments, number, line, SEGMENT)
        duration = None if stop == math.inf else stop - offset
        yield Sample(key, recordings[recording], texts.get(key), offset, duration)


def nemo(manifest: Path) -> Iterator[Sample]:
    """The entries of a NeMo manifest. An entry with an offset is a part of a file, and its id says which."""
    for number, line in _lines(manifest):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        name, text, offset, duration = (
            entry.get(key) if isinstance(entry, dict) else None
            for key in ("audio_filepath", "text", "offset", "duration")
        )
        if not isinstance(name, str) or not name or not isinstance(text, str | None):
            raise _malformed(manifest, number, line, "a JSON object with strings as audio_filepath and text")
        whole = named(manifest.parent, name, text)
        if offset is None:  # the duration is then the length of the whole file
            yield whole
            continue
        start, length = _seconds(offset), _seconds(duration)
        if start is None or (duration is not None and not length):
            raise _malformed(manifest, number, line, "offset and duration in seconds")
        part = f"@{start}" if length is None else f"@{start}+{length}"
        yield Sample(whole.id + part, whole.path, text, start, length)


def tsv(path: Path) -> Iterator[Sample]:
    """Common Voice's table with a header, or the two bare columns of a transcripts.tsv."""
    text = _text(path)
    header = {column.strip().lower() for column in text.partition("\n")[0].split("\t")}
    if path.name == "transcripts.tsv" and (header.isdisjoint(FILE_COLUMNS) or header.isdisjoint(TEXT_COLUMNS)):
        return _transcripts(path)
    clips = path.with_name("clips")
    # Common Voice writes quotation marks literally, and not always in pairs.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    return _table(path, clips if clips.is_dir() else path.parent, rows)


def csv_table(path: Path) -> Iterator[Sample]:
    """A table with a header, such as DeepSpeech's."""
    return _table(path, path.parent, csv.reader(io.StringIO(_text(path), newline=""), strict=True))


def _transcripts(path: Path) -> Iterator[Sample]:
    for number, line in _lines(path):
        name, tab, text = line.partition("\t")
        if not name or not tab:
            raise _malformed(path, number, line, "a file name, a tab and a text")
        yield named(path.parent, name, text)


def _table(path: Path, folder: Path, rows: Any) -> Iterator[Sample]:
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        files = [header.index(name) for name in FILE_COLUMNS if name in header]
        texts = [header.index(name) for name in TEXT_COLUMNS if name in header]
        if not files or not texts:
            needed = f"a header with one of {', '.join(FILE_COLUMNS)} and one of {', '.join(TEXT_COLUMNS)}"
            raise _malformed(path, 1, ", ".join(header), needed)
        file, text = files[0], texts[0]
        for row in filter(any, rows):
            # Common Voice omits empty columns at the end; an extra column means a comma without quotes.
            if not max(file, text) < len(row) <= len(header) or not row[file]:
                needed = f"a file and a text, in {len(header)} columns as in the header"
                raise _malformed(path, rows.line_num, " | ".join(row), needed)
            # The first editions of Common Voice omit the suffix as well.
            suffix = ".mp3" if folder.name == "clips" and not Path(row[file]).suffix else ""
            yield named(folder, row[file] + suffix, row[text])
    except csv.Error as error:
        raise FileError(f"{path}, line {rows.line_num}: {error}; needed a well-formed table") from error


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise FileError(f"{path}, line {line}: needed UTF-8, but {byte}; save it as UTF-8") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1; none if the file does not exist."""
    lines = _text(path).split("\n") if path.exists() else ()
    return ((number, line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip())


def _malformed(path: Path, number: int, line: str, needed: str) -> FileError:
    return FileError(f"{path}, line {number}: needed {needed}, not {line[:80]!r}")


def _key_and_rest(line: str) -> tuple[str, str]:
    key, *rest = line.strip().split(maxsplit=1)
    return key, "".join(rest)


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < math.inf else None
