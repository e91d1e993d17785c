"""Lists of recordings in CSV, what holds for every list, and real corpora."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.errors import FileError
from tests.support.corpora import SHARED, fails, ids, level, sound, text, texts

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
        ("path,speaker\na.wav,x\n", "line 1: expected a header with one of wav_filename, path, file, audio and one of"),
        ("a.wav,hello\n", "line 1: expected a header"),
        ("", "line 1: expected a header"),
        (
            "path,text\na.wav,hello\nb.wav\n",
            "line 3: expected a file and a text, in 2 columns as in the header, not 'b.wav'",
        ),
        ("path,text\na.wav,hello, world\n", "line 2: expected a file and a text, in 2 columns"),
        ("path,text\n,hello\n", "line 2: expected a file and a text"),
        ('path,text\na.wav,"hello\nb.wav,x\n', "line 3: unexpected end of data; expected a well-formed table"),
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
    source = tmp_path if name.endswith("txt") else path
    fails(source, f"{path}, line 2: expected UTF-8, but byte {at} is 0xe9; save it as UTF-8")


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
    message = {name: data.draw(TEXT) for name in names}
    quoted = {name: message[name].replace('"', '""') for name in names}
    lists = {
        "m.jsonl": [json.dumps({"audio_filepath": f"{name}.wav", "text": message[name]}) for name in names],
        "m.csv": ["path,text", *(f'{name}.wav,"{quoted[name]}"' for name in names)],
        "m.tsv": ["path\tsentence", *(f"{name}.wav\t{message[name]}" for name in names)],
        "transcripts.tsv": [f"{name}.wav\t{message[name]}" for name in names],
    }
    for name, lines in lists.items():
        corpus = read_corpus(text(tmp_path / name, "\n".join(lines) + "\n"))
        assert ids(corpus) == names
        assert texts(corpus) == list(message.values())
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
    parts = [len(read_corpus(folder)) for folder in (SHARED / "LibriSpeech").iterdir() if folder.is_dir()]
    assert len(read_corpus(SHARED / "LibriSpeech")) == sum(parts)
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
