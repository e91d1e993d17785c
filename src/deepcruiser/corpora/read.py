"""Choose the reader for the files at a path."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deepcruiser.audio import AUDIO_SUFFIXES
from deepcruiser.corpora.corpus import INPUT_SUFFIXES, Corpus, Sample
from deepcruiser.corpora.kaldi_archives import archive, archive_list
from deepcruiser.corpora.lists import csv_table, kaldi, librispeech, named, nemo, texts, tsv
from deepcruiser.errors import FileError, InputError, reason

LIST_SUFFIXES = (".ark", ".csv", ".json", ".jsonl", ".ndjson", ".scp", ".tsv", ".txt")


def read_corpus(path: str | os.PathLike[str]) -> Corpus:
    """List the samples at a path; the format is recognised from its files.

    No input is opened yet. A missing or damaged file raises an error when the `input` of its sample is read.
    """
    path = Path(path).absolute()
    try:
        if not path.exists():
            raise FileError(f"there is no corpus at {path}: no such file or folder")
        samples = tuple(_folder(path) if path.is_dir() else _file(path))
        if not samples:
            raise FileError(f"{path} lists no samples")
        whole = Path(os.path.abspath(path))  # so that "corpora/.." has a name
        return Corpus(whole.name if path.is_dir() else whole.stem, samples)
    except OSError as error:
        raise FileError(f"cannot read {error.filename or path}: {reason(error)}") from error
    except InputError as error:
        raise FileError(f"cannot use {path}: {error}") from error


def _file(path: Path) -> Iterator[Sample]:
    suffix = path.suffix.lower()
    if path.name == "wav.scp":
        return kaldi(path)
    if suffix == ".ark":
        return archive(path)
    if suffix == ".scp":
        return archive_list(path)
    if suffix in (".json", ".jsonl", ".ndjson"):
        return nemo(path)
    if suffix == ".tsv":
        return tsv(path)
    if suffix == ".csv":
        return csv_table(path)
    if suffix == ".txt":
        return texts(path)
    if suffix in INPUT_SUFFIXES:
        return iter([named(path.parent, path.name)])
    raise FileError(
        f"{path} is not a corpus: expected a folder, a list ({', '.join(LIST_SUFFIXES)}), "
        f"or an audio file or array ({', '.join(INPUT_SUFFIXES)}); other data are named in a Python file, FILE.py:NAME"
    )


def _folder(folder: Path) -> Iterator[Sample]:
    if (folder / "wav.scp").is_file():
        return kaldi(folder / "wav.scp")
    if (folder / "feats.scp").is_file():
        return archive_list(folder / "feats.scp")
    if (folder / "transcripts.tsv").is_file():
        return tsv(folder / "transcripts.tsv")
    files = _files(folder)
    lists = [file.name for file in files if file.parent == folder and file.suffix.lower() in LIST_SUFFIXES]
    if (folder / "clips").is_dir() and any(name.endswith(".tsv") for name in lists):
        raise FileError(f"{folder} is Common Voice's folder; name one of its lists: {', '.join(lists)}")
    audio = [file for file in files if file.suffix.lower() in AUDIO_SUFFIXES]
    transcripts = [file for file in files if file.name.endswith(".trans.txt")]
    if transcripts:
        return librispeech(transcripts, audio)
    inputs = audio or [file for file in files if file.suffix.lower() == ".npy"]
    if inputs:
        return (named(folder, str(file)) for file in inputs)
    counts = Counter(file.suffix.lower() or "without suffix" for file in files)
    there = ", ".join(f"{count:,} {suffix}" for suffix, count in counts.most_common(6)) or "no files"
    raise FileError(
        f"no corpus in {folder}: looked for wav.scp, feats.scp, transcripts.tsv, *.trans.txt and "
        f"{', '.join(INPUT_SUFFIXES)} files, and found {there}"
        + (f"; to read a list, name it: {', '.join(lists)}" if lists else "")
    )


def _files(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise error  # os.walk would silently skip a folder without permission

    paths: list[Path] = []
    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(here, name) for name in names if not name.startswith(".")]
    return sorted(paths, key=Path.as_posix)
