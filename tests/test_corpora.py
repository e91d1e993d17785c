"""Samples, corpora, arrays and folders: what is read, and every way in which one can be broken."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from deepcruiser.audio import Audio
from deepcruiser.corpora.corpus import Corpus, Sample
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import FileError, InputError
from tests.support.corpora import fails, ids, level, sound, text, texts

# Sample and Corpus


def corpus_of(count: int) -> Corpus:
    return Corpus("toy", tuple(Sample(f"s{i}", Path(f"s{i}.wav")) for i in range(count)))


def test_a_corpus_is_a_sequence_that_can_be_walked_twice() -> None:
    corpus = corpus_of(5)
    assert len(corpus) == 5
    assert ids(corpus) == ids(corpus) == ["s0", "s1", "s2", "s3", "s4"]
    assert corpus[1].id == "s1"
    assert corpus[-1].id == "s4"
    assert corpus[2] in corpus
    with pytest.raises(IndexError):
        corpus[5]


def test_a_slice_is_a_corpus() -> None:
    part = corpus_of(5)[1:4:2]
    assert isinstance(part, Corpus)
    assert part.name == "toy"
    assert ids(part) == ["s1", "s3"]
    assert len(corpus_of(5)[5:]) == 0


@pytest.mark.parametrize(
    ("count", "says"),
    [(0, "Corpus toy: 0 samples"), (1, "Corpus toy: 1 sample"), (1234, "Corpus toy: 1,234 samples")],
)
def test_a_corpus_prints_itself(count: int, says: str) -> None:
    assert repr(corpus_of(count)) == str(corpus_of(count)) == says


def test_corpora_are_frozen_equal_by_value_and_travel_to_workers() -> None:
    corpus = corpus_of(2)
    with pytest.raises(FrozenInstanceError):
        corpus.name = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        corpus[0].id = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(corpus)) == corpus == corpus_of(2) != corpus_of(3)
    assert hash(corpus) == hash(corpus_of(2))


def test_ids_are_unique() -> None:
    with pytest.raises(InputError, match=r"the id 'a' stands for both a\.wav and b\.wav; ids must be unique"):
        Corpus("toy", (Sample("a", Path("a.wav")), Sample("a", Path("b.wav"))))


def test_input_is_read_each_time(tmp_path: Path) -> None:
    sample = Sample("a", str(sound(tmp_path / "a.wav", 0.25)))  # type: ignore[arg-type]
    assert sample.path == tmp_path / "a.wav"
    assert level(sample) == 0.25
    sound(tmp_path / "a.wav", 0.5)
    assert level(sample) == 0.5
    (tmp_path / "a.wav").unlink()
    with pytest.raises(FileError, match=r"cannot read .*a\.wav: there is no such file"):
        _ = sample.input


def test_a_part_of_a_file(tmp_path: Path) -> None:
    samples = np.linspace(-1, 1, 32000, dtype=np.float32)
    Audio(samples, 16000).write(tmp_path / "a.wav")
    part = Sample("a", tmp_path / "a.wav", offset=0.5, duration=1.0).input
    rest = Sample("a", tmp_path / "a.wav", offset=0.5).input
    whole = Sample("a", tmp_path / "a.wav", duration=1.0).input
    assert isinstance(part, Audio)
    assert isinstance(rest, Audio)
    assert isinstance(whole, Audio)
    assert np.array_equal(part.samples, samples[8000:24000])
    assert np.array_equal(rest.samples, samples[8000:])
    assert np.array_equal(whole.samples, samples)


# Arrays


def test_an_array(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    np.save(tmp_path / "a.npy", array)
    corpus = read_corpus(tmp_path / "a.npy")
    assert ids(corpus) == ["a"]
    value = corpus[0].input
    assert isinstance(value, np.ndarray)
    assert value.dtype == np.float64
    assert np.array_equal(value, array)


def saved(path: Path, array: object) -> bytes:
    np.save(path, np.asarray(array))
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b""), "numpy.save"),
        (lambda path: path.write_bytes(b"some text"), "numpy.save"),
        (lambda path: path.write_bytes(saved(path, np.zeros((40, 4)))[:200]), "numpy.save"),
        (lambda path: path.write_bytes(saved(path, np.zeros(4))[:20]), "numpy.save"),
        (lambda path: path.write_bytes(saved(path, np.zeros(4)).replace(b"(4,)", b"(9**9,)")), "numpy.save"),
        (lambda path: path.write_bytes(saved(path, np.zeros(4)).replace(b"(4,), }  ", b"(-1,), } ")), "numpy.save"),
        (
            lambda path: path.write_bytes(
                saved(path, np.zeros(4)).replace(b"(4,), }" + b" " * 13, b"(%d,), }" % 10**14)
            ),
            "numpy.save",
        ),
    ],
    ids=["missing", "empty", "text", "cut", "cut header", "formula", "negative", "huge"],
)
def test_a_damaged_array(tmp_path: Path, damage: Callable[[Path], object], says: str) -> None:
    path = tmp_path / "a.npy"
    before = saved(path, np.zeros(4))
    sample = read_corpus(path)[0]
    damage(path)
    assert not path.exists() or path.read_bytes() != before
    with pytest.raises(FileError, match=says) as caught:
        _ = sample.input
    assert str(path) in str(caught.value)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (trap,))

    np.save(tmp_path / "a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Trap()))
    corpus = read_corpus(tmp_path)
    assert len(corpus) == 2
    for sample in corpus:
        with pytest.raises(FileError, match=r"expected an array saved by numpy\.save$"):
            _ = sample.input
    assert not trap.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert trap.exists()  # so it was set


def test_an_archive_of_arrays_is_not_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(3), b=np.zeros(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    sample = read_corpus(tmp_path)[0]
    with pytest.raises(FileError, match=r"magic string is not correct.*; expected an array"):
        _ = sample.input


# Folders


def test_a_folder_of_audio(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for number, name in enumerate(["z.wav", "b/c.flac", "b/a.v2.ogg", "a.MP3", "B.opus"], 1):
        sound(folder / name, number / 10)
    text(folder / "notes.md", "not audio")
    sound(folder / ".hidden.wav")
    sound(folder / ".cache" / "d.wav")
    corpus = read_corpus(str(folder))
    assert repr(corpus) == "Corpus mine: 5 samples"
    assert ids(corpus) == ["B", "a", "b/a.v2", "b/c", "z"]
    assert texts(corpus) == [None] * 5
    assert [level(sample) for sample in corpus if sample.id in ("b/c", "z")] == [0.2, 0.1]
    assert read_corpus(folder) == corpus


def test_a_folder_of_arrays(tmp_path: Path) -> None:
    for number, name in enumerate(["b.npy", "a/x.npy", "a.npy"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, np.full(3, number))
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["a", "a/x", "b"]
    assert [int(np.asarray(sample.input)[0]) for sample in corpus] == [2, 1, 0]


def test_arrays_beside_audio_are_passed_over(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert [sample.path.name for sample in read_corpus(tmp_path)] == ["a.wav"]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    sound(tmp_path / "a.flac")
    fails(tmp_path, "the id 'a' stands for both", "a.flac and ", "a.wav; ids must be unique")


def test_a_single_file(tmp_path: Path) -> None:
    sound(tmp_path / "a.b.FLAC", 0.3)
    corpus = read_corpus(tmp_path / "a.b.FLAC")
    assert repr(corpus) == "Corpus a.b: 1 sample"
    assert ids(corpus) == ["a.b"]
    assert level(corpus[0]) == 0.3


def test_one_bad_file_does_not_spoil_the_others(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    (tmp_path / "b.wav").write_bytes(b"damaged")
    sound(tmp_path / "c.wav")
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["a", "b", "c"]
    assert level(corpus[0]) == level(corpus[2]) == 0.25
    with pytest.raises(FileError, match=r"cannot read .*b\.wav"):
        _ = corpus[1].input


def test_a_corpus_named_by_dots_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "mine" / "sub" / "a.wav")
    monkeypatch.chdir(tmp_path / "mine")
    corpora = [read_corpus("."), read_corpus("sub/.."), read_corpus("../mine/"), read_corpus(tmp_path / "mine")]
    assert [corpus.name for corpus in corpora] == ["mine"] * 4
    assert [ids(corpus) for corpus in corpora] == [["sub/a"]] * 4
    monkeypatch.chdir(tmp_path)
    assert [level(corpus[0]) for corpus in corpora] == [0.25] * 4


def test_reading_writes_nothing(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    before = sorted(tmp_path.rglob("*"))
    _ = read_corpus(tmp_path)[0].input
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_there(tmp_path: Path) -> None:
    fails(tmp_path / "nowhere", f"there is no corpus at {tmp_path / 'nowhere'}: no such file or folder")


def test_an_empty_folder(tmp_path: Path) -> None:
    fails(
        tmp_path,
        f"no corpus in {tmp_path}: looked for wav.scp, feats.scp, transcripts.tsv, *.trans.txt and .flac",
        "no files",
    )


def test_a_folder_of_other_things_says_what_is_there(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "sub/c.TXT", "d.m4a", "README"):
        text(tmp_path / name, "x")
    fails(tmp_path, "found 3 .txt, ", "1 .m4a", "1 without suffix")


def test_a_folder_with_only_lists_says_which(tmp_path: Path) -> None:
    text(tmp_path / "train.csv", "path,text\n")
    text(tmp_path / "dev.json", "")
    fails(tmp_path, "to read a list, name it: dev.json, train.csv")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = text(tmp_path / "a.text", "hello")
    fails(path, "a.text is not a corpus: expected a folder, a list (.ark, .csv, .json", ".npy)")


def test_a_folder_without_permission_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "a.wav")
    sound(tmp_path / "locked" / "b.wav")
    scandir = os.scandir

    def guarded(path: str) -> object:  # root, who runs many a CI, may read everything
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    fails(tmp_path, f"cannot read {tmp_path / 'locked'}: permission denied")
