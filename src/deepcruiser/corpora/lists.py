"""Readers of lists: files that name samples and usually give their texts."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepcruiser.corpora.corpus import FILE_COLUMNS, INPUT_COLUMNS, INPUT_SUFFIXES, LABEL_COLUMNS, TEXT_COLUMNS, Sample
from deepcruiser.errors import FileError
from deepcruiser.files.csv_cells import text_of
from deepcruiser.files.reading import check_bytes, open_regular

#: The fields of a line of `segments`.
SEGMENT = "an id, an id of wav.scp, a start and an end in seconds"


def named(folder: Path, name: str, text: Any = None) -> Sample:
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
        for number, line in lines(path):
            key, text = key_and_rest(line)
            if not text:
                raise malformed(path, number, line, "an id, a space and a text")
            yield Sample(key, by_name.get(path.parent / key, path.parent / f"{key}.flac"), text.lower())


def kaldi(scp: Path) -> Iterator[Sample]:
    """The recordings of a wav.scp, or the parts of them that the file `segments` beside it lists."""
    recordings: dict[str, Path] = {}
    for number, line in lines(scp):
        key, name = key_and_rest(line)
        if not name:
            raise malformed(scp, number, line, "an id and a path")
        if name.endswith("|"):
            what = f"{name[:80]!r} is a command, which is never run"
            raise FileError(f"{scp}, line {number}: {what}; convert the audio and list the files")
        if key in recordings:
            raise FileError(f"{scp}, line {number}: the id {key!r} appears twice; ids must be unique")
        path = scp.parent / name
        # In Kaldi's own scripts, paths are relative to the folder the script was started in.
        recordings[key] = path if path.exists() or not Path(name).exists() else Path(name).absolute()
    texts = kaldi_texts(scp)
    segments = scp.with_name("segments")
    if not segments.exists():
        yield from (Sample(key, path, texts.get(key)) for key, path in recordings.items())
    for number, line in lines(segments):
        fields = line.split()
        if len(fields) != 4:
            raise malformed(segments, number, line, SEGMENT)
        key, recording, start, end = fields
        offset, stop = _seconds(start), math.inf if end == "-1" else _seconds(end)
        if recording not in recordings or offset is None or stop is None or stop <= offset:
            raise malformed(segments, number, line, SEGMENT)
        duration = None if stop == math.inf else stop - offset
        yield Sample(key, recordings[recording], texts.get(key), offset, duration)


def kaldi_texts(path: Path) -> dict[str, str]:
    """The texts by id in the file `text` next to a file of Kaldi, if there is one."""
    return dict(key_and_rest(line) for _, line in lines(path.with_name("text")))


def nemo(manifest: Path) -> Iterator[Sample]:
    """The entries of a NeMo manifest, or texts with labels.

    An entry with an offset is a part of a file, and its id says which.
    """
    texts: bool | None = None  # the first line decides
    for number, line in lines(manifest):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        entry = entry if isinstance(entry, dict) else {}
        column = next((key for key in INPUT_COLUMNS if key in entry), None)
        label = next((entry[key] for key in LABEL_COLUMNS if key in entry), None)
        texts = "audio_filepath" not in entry if texts is None else texts
        if texts and column is not None and isinstance(entry[column], str):
            yield Sample(str(entry.get("id", number)), manifest, label, value=entry[column])
            continue
        name, text, offset, duration = (entry.get(key) for key in ("audio_filepath", "text", "offset", "duration"))
        if not isinstance(name, str) or not name or not isinstance(text, str | None):
            expected = "a JSON object with strings as audio_filepath and text, or a text and a label"
            raise malformed(manifest, number, line, expected)
        text = label if text is None else text
        whole = named(manifest.parent, name, text)
        if offset is None:  # the duration is then the length of the whole file
            yield whole
            continue
        start, length = _seconds(offset), _seconds(duration)
        if start is None or (duration is not None and not length):
            raise malformed(manifest, number, line, "offset and duration in seconds")
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
    for number, line in lines(path):
        name, tab, text = line.partition("\t")
        if not name or not tab:
            raise malformed(path, number, line, "a file name, a tab and a text")
        yield named(path.parent, name, text)


def _table(path: Path, folder: Path, rows: Any) -> Iterator[Sample]:
    """A table of recordings with their texts or labels, or of texts with their labels."""
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        file, words, label, name = (
            next((header.index(column) for column in columns if column in header), None)
            for columns in (FILE_COLUMNS, TEXT_COLUMNS, LABEL_COLUMNS, ("id",))
        )
        source, right = (words, label) if file is None else (file, label if words is None else words)
        if source is None or (file is not None and right is None):
            texts = f"{', '.join(TEXT_COLUMNS)} or label; for texts without sounds, columns named text and label"
            expected = f"a header with one of {', '.join(FILE_COLUMNS)} and one of {texts}"
            raise malformed(path, 1, ", ".join(header), expected)
        for row in filter(any, rows):
            # Common Voice omits empty columns at the end; an extra column means a comma without quotes.
            last = max(source, -1 if right is None else right)
            if not last < len(row) <= len(header) or not row[source]:
                expected = f"a {'text and a label' if file is None else 'file and a text'}, in {len(header)} columns"
                raise malformed(path, rows.line_num, " | ".join(row), f"{expected} as in the header")
            answer = None if right is None else text_of(row[right])
            if file is None:
                key = row[name] if name is not None and name < len(row) else str(rows.line_num)
                yield Sample(key, path, answer, value=text_of(row[source]))
                continue
            # The first editions of Common Voice omit the suffix as well.
            suffix = ".mp3" if folder.name == "clips" and not Path(row[file]).suffix else ""
            yield named(folder, text_of(row[file]) + suffix, answer)
    except csv.Error as error:
        raise FileError(f"{path}, line {rows.line_num}: {error}; expected a well-formed table") from error


def texts(path: Path) -> Iterator[Sample]:
    """The lines of a plain text file, each an input without a label."""
    return (Sample(str(number), path, value=line) for number, line in lines(path))


def _text(path: Path) -> str:
    with open_regular(path) as file:
        check_bytes(os.fstat(file.fileno()).st_size, str(path))
        data = file.read()
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise FileError(f"{path}, line {line}: expected UTF-8, but {byte}; save it as UTF-8") from error


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1; none if the file does not exist."""
    lines = _text(path).split("\n") if path.exists() else ()
    return ((number, line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip())


def malformed(path: Path, number: int, line: str, expected: str) -> FileError:
    return FileError(f"{path}, line {number}: expected {expected}, not {line[:80]!r}")


def key_and_rest(line: str) -> tuple[str, str]:
    key, *rest = line.strip().split(maxsplit=1)
    return key, "".join(rest)


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < math.inf else None
