"""The layouts of corpora that others have made: LibriSpeech, Kaldi, NeMo, Common Voice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import FileError
from tests.support.corpora import fails, ids, level, sound, text, texts

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
    fails(tmp_path, f"{path}, line 3: expected an id, a space and a text, not '1-2-0001'")


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
    fails(tmp_path, f"{path}, line 2: expected an id, an id of wav.scp, a start and an end in seconds, not '{line}'")


def test_kaldi_malformed(tmp_path: Path) -> None:
    path = text(tmp_path / "wav.scp", "utt1 a.wav\nutt2\n")
    fails(tmp_path, f"{path}, line 2: expected an id and a path, not 'utt2'")
    text(path, "utt1 a.wav\nutt1 b.wav\n")
    fails(tmp_path, f"{path}, line 2: the id 'utt1' appears twice")
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
    ("line", "expected"),
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
def test_nemo_malformed(tmp_path: Path, line: str, expected: str) -> None:
    path = text(tmp_path / "m.jsonl", '{"audio_filepath": "x.wav"}\n\n' + line + "\n")
    fails(path, f"{path}, line 3: expected ", expected, ", not ")


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
    fails(path, f"{path}, line 1: expected a header with one of wav_filename, path", "not 'clip, duration[ms]'")


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
    fails(tmp_path, f"{path}, line 2: expected a file name, a tab and a text, not ")
