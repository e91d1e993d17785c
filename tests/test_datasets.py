"""Corpora: every format that is read, every way in which one can be broken."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.datasets import Corpus, Sample, read_corpus
from deepcruiser.errors import FileError, InputError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "speech"


def sound(path: Path, level: float = 0.25, seconds: float = 0.1) -> Path:
    """A file of constant `level`, by which a test can tell which file it was given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form, subtype = ("OGG", "OPUS") if path.suffix == ".opus" else (None, None)
    sf.write(path, np.full(round(seconds * 16000), level, np.float32), 16000, format=form, subtype=subtype)
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="")
    return path


def level(sample: Sample) -> float:
    audio = sample.input
    assert isinstance(audio, Audio)
    return round(float(np.median(audio.samples)), 2)


def ids(corpus: Corpus) -> list[str]:
    return [sample.id for sample in corpus]


def texts(corpus: Corpus) -> list[str | None]:
    return [sample.text for sample in corpus]


def fails(path: Path, *says: str) -> None:
    with pytest.raises(FileError) as caught:
        read_corpus(path)
    message = str(caught.value)
    for part in says:
        assert part in message
    assert "\n" not in message


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
    with pytest.raises(InputError, match=r"the id 'a' stands for a\.wav and again for b\.wav; ids must be unique"):
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
    given = corpus[0].input
    assert isinstance(given, np.ndarray)
    assert given.dtype == np.float64
    assert np.array_equal(given, array)


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
        with pytest.raises(FileError, match=r"needed an array saved by numpy\.save$"):
            _ = sample.input
    assert not trap.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert trap.exists()  # so it was set


def test_an_archive_of_arrays_is_not_one_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(3), b=np.zeros(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    sample = read_corpus(tmp_path)[0]
    with pytest.raises(FileError, match=r"magic string is not correct.*; needed an array"):
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
    fails(tmp_path, "the id 'a' stands for", "a.flac and again for", "a.wav; ids must be unique")


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
    fails(tmp_path, f"no corpus in {tmp_path}: looked for wav.scp, transcripts.tsv, *.trans.txt and .flac", "no files")


def test_a_folder_of_other_things_says_what_is_there(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "sub/c.TXT", "d.m4a", "README"):
        text(tmp_path / name, "x")
    fails(tmp_path, "found 3 .txt, ", "1 .m4a", "1 without suffix")


def test_a_folder_with_only_lists_says_which(tmp_path: Path) -> None:
    text(tmp_path / "train.csv", "path,text\n")
    text(tmp_path / "dev.json", "")
    fails(tmp_path, "to read a list, name it: dev.json, train.csv")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", "hello")
    fails(path, "a.txt is no corpus: needed a folder, a list (.csv, .json", ".npy)")


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


# LibriSpeech


def librispeech(root: Path) -> Path:
    for chapter, lines in {
        "84/121123": ["84-121123-0000 GO DO YOU HEAR", "84-121123-0001 BUT IN LESS THAN FIVE MINUTES"],
        "1272/128104": ["1272-128104-0000 MISTER QUILTER'S MANNER"],
    }.items():
        folder = root / chapter
        text(folder / f"{chapter.replace('/', '-')}.trans.txt", "".join(f"{line}\n" for line in lines))
        for number, line in enumerate(lines, 1):
            sound(folder / f"{line.split()[0]}.flac", number / 10)
    return root


@pytest.mark.parametrize("under", ["", "LibriSpeech/test-clean"])
def test_librispeech(tmp_path: Path, under: str) -> None:
    librispeech(tmp_path / under)
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["1272-128104-0000", "84-121123-0000", "84-121123-0001"]
    assert texts(corpus) == ["mister quilter's manner", "go do you hear", "but in less than five minutes"]
    assert [level(sample) for sample in corpus] == [0.1, 0.1, 0.2]


def test_one_chapter_of_librispeech(tmp_path: Path) -> None:
    corpus = read_corpus(librispeech(tmp_path) / "84" / "121123")
    assert corpus.name == "121123"
    assert ids(corpus) == ["84-121123-0000", "84-121123-0001"]


def test_librispeech_converted_to_another_format(tmp_path: Path) -> None:
    text(tmp_path / "1-2.trans.txt", "1-2-0000 HELLO\n1-2-0001 WORLD\n")
    sound(tmp_path / "1-2-0000.wav", 0.1)
    sound(tmp_path / "1-2-0001.wav", 0.2)
    sound(tmp_path / "1-2-0001.flac", 0.3)
    assert [level(sample) for sample in read_corpus(tmp_path)] == [0.1, 0.3]


def test_librispeech_with_a_missing_file(tmp_path: Path) -> None:
    librispeech(tmp_path)
    (tmp_path / "84/121123/84-121123-0000.flac").unlink()
    corpus = read_corpus(tmp_path)
    assert len(corpus) == 3
    with pytest.raises(FileError, match=r"84-121123-0000\.flac: there is no such file"):
        _ = corpus[1].input
    assert level(corpus[2]) == 0.2


def test_librispeech_malformed(tmp_path: Path) -> None:
    path = text(tmp_path / "1-2.trans.txt", "1-2-0000 HELLO\n\n1-2-0001\n")
    fails(tmp_path, f"{path}, line 3: needed an id, a space and a text, not '1-2-0001'")


# Kaldi


def test_kaldi(tmp_path: Path) -> None:
    sound(tmp_path / "audio/one.wav", 0.1)
    sound(tmp_path / "elsewhere/t wo.flac", 0.2)
    data = tmp_path / "data"
    text(data / "wav.scp", f"utt2 {tmp_path}/elsewhere/t wo.flac \nutt1\t../audio/one.wav\nutt3 no.wav\n")
    text(data / "text", "utt1 Hello  World\nutt3\nutt9 Not here\n")
    for path in (data, data / "wav.scp"):
        corpus = read_corpus(path)
        assert ids(corpus) == ["utt2", "utt1", "utt3"]
        assert texts(corpus) == [None, "Hello  World", ""]
        assert [level(sample) for sample in corpus[:2]] == [0.2, 0.1]
        with pytest.raises(FileError, match="there is no such file"):
            _ = corpus[2].input


def test_kaldi_paths_from_where_it_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "audio/one.wav", 0.1)
    text(tmp_path / "data/train/wav.scp", "utt1 audio/one.wav\n")
    monkeypatch.chdir(tmp_path)
    corpus = read_corpus("data/train")
    monkeypatch.chdir("/")
    assert level(corpus[0]) == 0.1


@pytest.mark.parametrize("space", ["", " ", " \r"])
def test_kaldi_commands_are_never_run(tmp_path: Path, space: str) -> None:
    sound(tmp_path / "a.wav")
    path = text(tmp_path / "wav.scp", f"utt1 a.wav\nutt2 touch {tmp_path}/ran; cat a.wav |{space}\n")
    fails(tmp_path, f"{path}, line 2: 'touch", "is a command, which is never run; convert the audio and list the files")
    assert not (tmp_path / "ran").exists()


def test_kaldi_segments(tmp_path: Path) -> None:
    samples = np.repeat(np.array([0.1, 0.2, 0.3, 0.4], np.float32), 16000)
    Audio(samples, 16000).write(tmp_path / "talk.wav")
    text(tmp_path / "wav.scp", "talk talk.wav\n")
    text(tmp_path / "segments", "u2 talk 1.0 2.0\nu1 talk 0 1\nu3 talk 2.5 -1\n")
    text(tmp_path / "text", "u1 one\nu2 two\n")
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["u2", "u1", "u3"]
    assert texts(corpus) == ["two", "one", None]
    assert [len(sample.input) for sample in corpus] == [16000, 16000, 24000]
    assert [level(sample) for sample in corpus] == [0.2, 0.1, 0.4]


@pytest.mark.parametrize(
    "line",
    ["u1 talk 0", "u1 other 0 1", "u1 talk one 2", "u1 talk 2 1", "u1 talk 1 1", "u1 talk -1 2", "u1 talk 0 nan"],
)
def test_kaldi_segments_malformed(tmp_path: Path, line: str) -> None:
    text(tmp_path / "wav.scp", "talk talk.wav\n")
    path = text(tmp_path / "segments", f"u0 talk 0 1\n{line}\n")
    fails(tmp_path, f"{path}, line 2: needed an id, an id of wav.scp, a start and an end in seconds, not '{line}'")


def test_kaldi_malformed(tmp_path: Path) -> None:
    path = text(tmp_path / "wav.scp", "utt1 a.wav\nutt2\n")
    fails(tmp_path, f"{path}, line 2: needed an id and a path, not 'utt2'")
    text(path, "utt1 a.wav\nutt1 b.wav\n")
    fails(tmp_path, f"{path}, line 2: the id 'utt1' was there before")
    text(path, "\n")
    fails(tmp_path, f"{tmp_path} lists no samples")


# NeMo


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".ndjson", ".JSON"])
def test_nemo(tmp_path: Path, suffix: str) -> None:
    elsewhere = sound(tmp_path / "elsewhere/b.wav", 0.2)
    data = tmp_path / "data"
    sound(data / "clips/a.wav", 0.1)
    entries = [
        {"audio_filepath": "clips/a.wav", "duration": 0.1, "text": "Hé, World"},
        {"audio_filepath": str(elsewhere), "duration": 99},
        {"audio_filepath": str(data / "c.wav"), "text": None, "offset": None},
    ]
    path = text(data / f"train{suffix}", "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries))
    corpus = read_corpus(path)
    assert repr(corpus) == "Corpus train: 3 samples"
    assert ids(corpus) == ["clips/a", str(tmp_path / "elsewhere/b"), "c"]
    assert texts(corpus) == ["Hé, World", None, None]
    assert [level(sample) for sample in corpus[:2]] == [0.1, 0.2]


def test_nemo_parts(tmp_path: Path) -> None:
    samples = np.repeat(np.array([0.1, 0.2, 0.3, 0.4], np.float32), 16000)
    Audio(samples, 16000).write(tmp_path / "talk.wav")
    parts = [
        {"offset": 1, "duration": 1.0},
        {"offset": 2.5},
        {"offset": 0, "duration": 0.5},
        {"offset": 3.9, "duration": 9},
    ]
    lines = [json.dumps({"audio_filepath": "talk.wav", "text": "x", **part}) for part in parts]
    corpus = read_corpus(text(tmp_path / "m.json", "\n".join(lines)))
    assert ids(corpus) == ["talk@1.0+1.0", "talk@2.5", "talk@0.0+0.5", "talk@3.9+9.0"]
    assert [len(sample.input) for sample in corpus[:3]] == [16000, 24000, 8000]
    assert [level(sample) for sample in corpus[:3]] == [0.2, 0.4, 0.1]
    with pytest.raises(FileError, match=r"talk\.wav from 3\.9 s on: it ends at 4\.00 s"):
        _ = corpus[3].input


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("not json", "a JSON object with strings as audio_filepath and text"),
        ("[1, 2]", "a JSON object"),
        ('{"text": "no file"}', "a JSON object"),
        ('{"audio_filepath": ""}', "a JSON object"),
        ('{"audio_filepath": 5}', "a JSON object"),
        ('{"audio_filepath": "a.wav", "text": 5}', "strings as audio_filepath and text"),
        ('{"audio_filepath": "a.wav"', "a JSON object"),
        ("[" * 100_000, "a JSON object"),
        ('{"audio_filepath": "a.wav", "offset": "late"}', "offset and duration in seconds"),
        ('{"audio_filepath": "a.wav", "offset": -1}', "offset and duration in seconds"),
        ('{"audio_filepath": "a.wav", "offset": NaN}', "offset and duration in seconds"),
        ('{"audio_filepath": "a.wav", "offset": 1%s}' % ("0" * 400), "offset and duration in seconds"),
        ('{"audio_filepath": "a.wav", "offset": 1, "duration": 0}', "offset and duration in seconds"),
        ('{"audio_filepath": "a.wav", "offset": 1, "duration": [2]}', "offset and duration in seconds"),
    ],
)
def test_nemo_malformed(tmp_path: Path, line: str, needed: str) -> None:
    path = text(tmp_path / "m.jsonl", '{"audio_filepath": "x.wav"}\n\n' + line + "\n")
    fails(path, f"{path}, line 3: needed ", needed, ", not ")


def test_nemo_duplicates(tmp_path: Path) -> None:
    path = text(tmp_path / "m.jsonl", '{"audio_filepath": "x.wav"}\n{"audio_filepath": "./x.wav"}\n')
    fails(path, f"cannot use {path}: the id 'x' stands for")


# Common Voice and transcripts.tsv


def test_common_voice(tmp_path: Path) -> None:
    sound(tmp_path / "clips/common_voice_en_2.mp3", 0.2)
    sound(tmp_path / "clips/common_voice_en_1.mp3", 0.1)
    path = text(
        tmp_path / "dev.tsv",
        "client_id\tpath\tsentence\tup_votes\tage\r\n"
        'abc\tcommon_voice_en_2.mp3\t"Oh, he said.\t2\ttwenties\r\n'
        "def\tcommon_voice_en_1.mp3\tÇa va?\t2\r\n"
        "ghi\tcommon_voice_en_3\t\t0\t\r\n",
    )
    corpus = read_corpus(path)
    assert repr(corpus) == "Corpus dev: 3 samples"
    assert ids(corpus) == ["common_voice_en_2", "common_voice_en_1", "common_voice_en_3"]
    assert texts(corpus) == ['"Oh, he said.', "Ça va?", ""]
    assert [level(sample) for sample in corpus[:2]] == [0.2, 0.1]
    assert corpus[2].path == tmp_path / "clips/common_voice_en_3.mp3"  # as the first editions wrote it


def test_the_folder_of_common_voice_asks_for_a_list(tmp_path: Path) -> None:
    sound(tmp_path / "clips/a.mp3")
    text(tmp_path / "train.tsv", "path\tsentence\n")
    text(tmp_path / "dev.tsv", "path\tsentence\n")
    fails(tmp_path, "is Common Voice's folder; name one of its lists: dev.tsv, train.tsv")


def test_a_tsv_of_another_kind(tmp_path: Path) -> None:
    path = text(tmp_path / "clip_durations.tsv", "clip\tduration[ms]\na.mp3\t5000\n")
    fails(path, f"{path}, line 1: needed a header with one of wav_filename, path", "not 'clip, duration[ms]'")


def test_transcripts(tmp_path: Path) -> None:
    for number, name in enumerate(["b.opus", "a.opus", "sub/c.wav"], 1):
        sound(tmp_path / name, number / 10)
    path = text(tmp_path / "transcripts.tsv", "b.opus\tHello there\nsub/c.wav\t\n\na.opus\twith\u2028odd\x0bbreaks\n")
    for corpus in (read_corpus(tmp_path), read_corpus(path)):
        assert ids(corpus) == ["b", "sub/c", "a"]
        assert texts(corpus) == ["Hello there", "", "with\u2028odd\x0bbreaks"]
        assert level(corpus[1]) == 0.3


@pytest.mark.parametrize("line", ["b.wav hello", "\thello"])
def test_transcripts_malformed(tmp_path: Path, line: str) -> None:
    path = text(tmp_path / "transcripts.tsv", f"a.wav\thello\n{line}\n")
    fails(tmp_path, f"{path}, line 2: needed a file name, a tab and a text, not ")


# CSV


@pytest.mark.parametrize(
    "header",
    [
        "wav_filename,wav_filesize,transcript",
        "path,n,text",
        "FILE, n, Transcript",
        "audio,n,sentence",
        "\ufeffpath,n,text",
    ],
)
def test_csv(tmp_path: Path, header: str) -> None:
    sound(tmp_path / "wavs/a.wav", 0.1)
    elsewhere = sound(tmp_path / "b.wav", 0.2)
    rows = f'wavs/a.wav,5,"well, ""yes"""\r\n\r\n{elsewhere},6,"two\r\nlines"\r\nc.wav,7,None\r\n,,\r\n'
    corpus = read_corpus(text(tmp_path / "train.csv", f"{header}\r\n{rows}"))
    assert ids(corpus) == ["wavs/a", "b", "c"]
    assert texts(corpus) == ['well, "yes"', "two\r\nlines", "None"]
    assert [level(sample) for sample in corpus[:2]] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("path,speaker\na.wav,x\n", "line 1: needed a header with one of wav_filename, path, file, audio and one of"),
        ("a.wav,hello\n", "line 1: needed a header"),
        ("", "line 1: needed a header"),
        (
            "path,text\na.wav,hello\nb.wav\n",
            "line 3: needed a file and a text, in 2 columns as in the header, not 'b.wav'",
        ),
        ("path,text\na.wav,hello, world\n", "line 2: needed a file and a text, in 2 columns"),
        ("path,text\n,hello\n", "line 2: needed a file and a text"),
        ('path,text\na.wav,"hello\nb.wav,x\n', "line 3: unexpected end of data; needed a well-formed table"),
        ('path,text\na.wav,"hello"x\n', "line 2: ',' expected after '\"'"),
        ("path,text\n", "lists no samples"),
        ("path,text\na.wav,x\na.wav,y\n", "the id 'a' stands for"),
    ],
)
def test_csv_malformed(tmp_path: Path, content: str, says: str) -> None:
    path = text(tmp_path / "train.csv", content)
    fails(path, str(path), says)


# Any list


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("transcripts.tsv", b"a.wav\tx\n", b"b.wav\t"),
        ("m.tsv", b"path\tsentence\n", b"b.wav\t"),
        ("m.csv", b"path,text\n", b"b.wav,"),
        ("m.jsonl", b'{"audio_filepath": "a.wav"}\n', b'{"audio_filepath": "'),
        ("wav.scp", b"a a.wav\n", b"b "),
        ("1-2.trans.txt", b"a X\n", b"b "),
    ],
)
def test_text_that_is_not_utf8(tmp_path: Path, name: str, head: bytes, tail: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(head + tail + b"caf\xe9\n")
    at = len(head + tail) + 3
    given = tmp_path if name.endswith("txt") else path
    fails(given, f"{path}, line 2: needed UTF-8, but byte {at} is 0xe9; save it as UTF-8")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
@pytest.mark.parametrize("name", ["m.jsonl", "transcripts.tsv", "wav.scp", "1-2.trans.txt"])
def test_an_empty_list(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    fails(tmp_path if name.endswith("txt") else tmp_path / name, "lists no samples")


NAMES = st.lists(
    st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=8), min_size=1, max_size=6, unique=True
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\t\0"), max_size=20)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES, data=st.data())
def test_every_list_gives_back_what_was_put_in(tmp_path: Path, names: list[str], data: st.DataObject) -> None:
    said = {name: data.draw(TEXT) for name in names}
    quoted = {name: said[name].replace('"', '""') for name in names}
    lists = {
        "m.jsonl": [json.dumps({"audio_filepath": f"{name}.wav", "text": said[name]}) for name in names],
        "m.csv": ["path,text", *(f'{name}.wav,"{quoted[name]}"' for name in names)],
        "m.tsv": ["path\tsentence", *(f"{name}.wav\t{said[name]}" for name in names)],
        "transcripts.tsv": [f"{name}.wav\t{said[name]}" for name in names],
    }
    for name, lines in lists.items():
        corpus = read_corpus(text(tmp_path / name, "\n".join(lines) + "\n"))
        assert ids(corpus) == names
        assert texts(corpus) == list(said.values())
        assert [sample.path for sample in corpus] == [tmp_path / f"{name}.wav" for name in names]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["m.jsonl", "m.csv", "m.tsv", "transcripts.tsv", "kaldi/wav.scp", "libri/a.trans.txt"]),
    head=st.sampled_from([b"", b"path,text\n", b"path\tsentence\n", b'{"audio_filepath": "a.wav"}\n', b"a a.wav\n"]),
    tail=st.one_of(st.binary(max_size=40), st.text("abc,\t\"' \r\n|{}[]:.1-", max_size=40).map(str.encode)),
)
def test_whatever_a_list_holds_only_file_errors_come_out(tmp_path: Path, name: str, head: bytes, tail: bytes) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(head + tail)
    message = None
    try:
        corpus = read_corpus(path.parent if name.endswith("txt") else path)
    except FileError as error:
        message = str(error)
    if message is None:
        assert len(corpus) > 0
        for sample in corpus:
            with pytest.raises(FileError):
                _ = sample.input  # there is no audio here at all
    else:
        assert str(path.parent) in message


# Real speech


def shared(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip(f"there is no speech at {SHARED / name}")
    return SHARED / name


@pytest.mark.shared
def test_real_librispeech() -> None:
    corpus = read_corpus(shared("LibriSpeech/test-clean-200"))
    assert repr(corpus) == "Corpus test-clean-200: 200 samples"
    assert all(sample.text and sample.text == sample.text.lower() for sample in corpus)
    assert all(sample.path.is_file() for sample in corpus)
    by_id = {sample.id: sample for sample in corpus}
    assert by_id["2094-142345-0018"].text == "who taught you to scrub a floor i should like to know"
    assert len(read_corpus(SHARED / "LibriSpeech")) == 200
    for sample in corpus[::80]:
        audio = sample.input
        assert isinstance(audio, Audio)
        assert audio.rate == 16000
        assert 2 <= audio.seconds <= 7.1
        assert audio.rms > 0.001


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "count"),
    [("common-voice", 3673), ("an4-train", 948), ("librispeech-dev-clean", 2703), ("librispeech-train-clean-5", 1519)],
)
def test_real_transcripts(name: str, count: int) -> None:
    corpus = read_corpus(shared(name))
    assert repr(corpus) == f"Corpus {name}: {count:,} samples"
    assert all(sample.text for sample in corpus)
    assert {sample.path.suffix for sample in corpus} == {".opus"}
    for sample in (corpus[0], corpus[-1]):
        audio = sample.input
        assert isinstance(audio, Audio)
        assert audio.rate == 16000
        assert audio.rms > 0.0001


@pytest.mark.shared
def test_a_real_folder_of_audio() -> None:
    corpus = read_corpus(shared("noise"))
    assert len(corpus) == 6
    assert texts(corpus) == [None] * 6
    assert "pink_noise" in ids(corpus)


@pytest.mark.shared
def test_a_real_corpus_in_other_formats(tmp_path: Path) -> None:
    """The same samples through Kaldi's, NeMo's and CSV lists give the same audio and texts."""
    corpus = read_corpus(shared("LibriSpeech/test-clean-200"))[:5]
    for sample in corpus:
        shutil.copy(sample.path, tmp_path)
    names = [sample.path.name for sample in corpus]
    text(tmp_path / "wav.scp", "".join(f"{sample.id} {sample.path.name}\n" for sample in corpus))
    text(tmp_path / "text", "".join(f"{sample.id} {sample.text}\n" for sample in corpus))
    text(
        tmp_path / "m.json", "".join(json.dumps({"audio_filepath": s.path.name, "text": s.text}) + "\n" for s in corpus)
    )
    text(tmp_path / "m.csv", "wav_filename,transcript\n" + "".join(f"{s.path.name},{s.text}\n" for s in corpus))
    assert len(names) == 5
    for name in ("wav.scp", "m.json", "m.csv"):
        other = read_corpus(tmp_path / name)
        assert ids(other) == ids(corpus)
        assert texts(other) == texts(corpus)
        for a, b in zip(corpus, other, strict=True):
            assert np.array_equal(a.input.samples, b.input.samples)  # type: ignore[union-attr]
