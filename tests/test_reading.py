"""Foreign files: what is refused before memory is allocated, and contradictions."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.failed_test import input_text
from deepcruiser.corpora.corpus import Sample
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.files.archive import load
from deepcruiser.files.containers import _ogg_crc
from deepcruiser.files.csv_cells import cell, text_of
from deepcruiser.files.reading import LIMIT
from deepcruiser.files.trial import check_loads
from deepcruiser.report.data import CampaignData
from deepcruiser.report.inputs import Inputs
from deepcruiser.systems.by_suffix import system_from_file
from tests.conftest import walks
from tests.support import toy
from tests.support.sounds import flac_with_length, noise


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "a.model"
    dc.Profile.of(walks(np.random.default_rng(0), 40), components=2).abstract(4).save(path)
    return path


def rewritten(path: Path, copy: Path, /, *, compress: bool = False, **changes: Any) -> Path:
    """A copy of an archive with other arrays, or another header, and with the checksums that belong to them."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as archive:
        for name in source.namelist():
            stem, data = name.partition(".")[0], source.read(name)
            if stem == "about" and "about" in changes:
                data = json.dumps({**json.loads(data), **changes["about"]}).encode()
            elif stem in changes:
                buffer = io.BytesIO()
                np.save(buffer, changes[stem](np.load(io.BytesIO(data))))
                data = buffer.getvalue()
            archive.writestr(name, data, zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED)
    return copy


#: What is done to an array of a model, and what is said of it.
CRAFTED: dict[str, tuple[str, Any, str]] = {
    "unsorted states": ("states", lambda a: a[::-1], "states are not in ascending order"),
    "states outside": ("states", lambda a: a + 10**9, "cells outside of its grid"),
    "negative codes": ("states", lambda a: a - 10**15, "cells outside of its grid"),
    "floats": ("count", lambda a: a.astype(float), "not a list of whole numbers"),
    "negative counts": ("count", lambda a: -a, "transitions were counted"),
    "counts that do not add up": ("count", lambda a: a + 1, "transitions were counted"),
    "targets that are not there": ("target", lambda a: a + 10**4, "but there are"),
    "sources out of order": ("source", lambda a: np.roll(a, 1), "not in ascending order"),
    "actions that are not there": ("action", lambda a: a - 1, "but there are"),
    "a row too few": ("action", lambda a: a[:-1], "different lengths"),
    "initial twice": ("initial", lambda a: np.repeat(a, 2), "not in ascending order"),
    "bounds the wrong way round": ("grid", lambda a: a[::-1].copy(), "bounds of the grid"),
    "bounds that are not finite": ("grid", lambda a: a * np.inf, "bounds of the grid"),
    "no partitions": ("partitions", lambda a: a * 0, "partitions must be at least 1"),
    "axes that are too long": ("states_axes", lambda a: a * 2, "not of length 1"),
    "variances that do not add up": ("states_variances", lambda a: a * [1, 1, 0.1], "do not add up"),
    "a mean that is not finite": ("inputs_mean", lambda a: a * np.nan, "not finite numbers"),
    "an origin of another kind": ("about", {"origin": {"traces": 1}}, "Origin"),
    "more steps": ("about", {"origin": {"state_name": "", "network": "", "data": "0" * 32, "traces": 40, "steps": 1,
                                        "fitted_on": 40}}, "in 1 steps"),
    "too many arrays": ("about", {"arrays": []}, "it has the arrays"),
    "an infinite number": ("about", {"origin": {"traces": float("inf")}}, "Origin"),
}  # fmt: skip


@pytest.mark.parametrize("crafted", CRAFTED)
def test_models_that_make_no_sense_are_refused(model: Path, tmp_path: Path, crafted: str) -> None:
    name, change, message = CRAFTED[crafted]
    with pytest.raises(dc.FileError, match=message):
        dc.AbstractModel.load(rewritten(model, tmp_path / "b.model", **{name: change}))


def test_the_checks_refuse_no_model_of_ours(tmp_path: Path) -> None:
    for seed in range(20):
        profile = dc.Profile.of(walks(np.random.default_rng(seed), 1 + seed % 7), components=1 + seed % 3)
        models = [profile.abstract(1 + seed), profile.abstract(50, input_partitions=1 + seed)]
        for each in [*models, profile.cluster(2)] if len(profile.states) > 9 else models:
            each.save(tmp_path / "a.model")
            assert dc.AbstractModel.load(tmp_path / "a.model") == each


def test_bombs_and_twins_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match="a part of it is compressed"):
        dc.AbstractModel.load(rewritten(model, tmp_path / "a.model", compress=True))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(model, "a") as archive:
        archive.writestr("count.npy", b"")
    with pytest.raises(dc.FileError, match="the same part twice"):
        dc.AbstractModel.load(model)


def npy(shape: str, *, descr: str = "<f4", data: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(1000000000000, 3)"), "names 3,000,000,000,000 numbers of 4 bytes, but 0 bytes follow"),
        (npy("(-1, 3)"), "impossible layout"),
        (npy("(" * 5000), "header of an array is damaged"),
        (npy("(2,)", descr="|O", data=bytes(16)), "objects of python"),
        (npy("(2,)", descr="|V0"), "impossible layout"),
        (npy("(3,)", data=bytes(8)), "names 3 numbers"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "header of an array is damaged"),
    ],
)
def test_headers_of_arrays(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(
        dc.FileError, match=f"cannot read .*a.npy: .*{message}.*; expected an array saved by numpy.save"
    ):
        assert Sample("a", tmp_path / "a.npy").input is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["a.npy", "a.txt", "a.wav", "a.csv", "a.jsonl", "a.model"])
def test_pipes_are_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)

    def read() -> Any:
        if name == "a.model":
            return load(tmp_path / name, "model")
        return dc.read_corpus(tmp_path / name) if name in ("a.csv", "a.jsonl") else Sample("a", tmp_path / name).input

    with pytest.raises(dc.FileError, match="it is not a file"):
        read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "too large"])
def test_files_of_a_campaign_that_cannot_be_read_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The report says so; nothing waits for a pipe, and nothing large is read."""
    record = toy.campaign(tmp_path / "run", runs=32)
    number = record.failed[0].number
    for path in (tmp_path / "run" / "failed" / f"{number:06}.txt", tmp_path / "run" / "shrunk.json"):
        path.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.write_bytes(bytes(30_000_001))
    monkeypatch.setenv(LIMIT, "30000000")
    assert input_text(tmp_path / "run", number) is None
    data = Inputs(tmp_path / "run").of(number, record.failed[0].position)
    assert data["mutant"]["form"] == "missing"
    (tmp_path / "run" / "failed" / f"{number:06}.json").unlink()
    os.mkfifo(tmp_path / "run" / "failed" / f"{number:06}.json")
    (tmp_path / "run" / "campaign.db").write_bytes(b"damaged")
    assert CampaignData(tmp_path / "run").record.problem


@pytest.mark.parametrize("suffix", [".onnx", ".tflite", ".nnet", ".pt", ".h5", ".keras", ".pb"])
def test_networks_beyond_the_limit_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"
    path.write_bytes(bytes(2000))
    monkeypatch.setenv(LIMIT, "1000")
    with pytest.raises(dc.DeepCruiserError, match=r"would take 2,000 bytes|needs the package"):
        system_from_file(path)


def test_what_others_made_is_read_by_one_function() -> None:
    """`files.reading` refuses pipes, devices and what is too large; all others read files of the package alone."""
    own = {"evaluate/page.py", "evaluate/result.py", "report/templates.py", "report/__init__.py"}
    root = Path(dc.__file__).parent
    readers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\.read_(bytes|text)\(", path.read_text())
    }
    assert readers == own


def test_limits_come_before_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sf.write(tmp_path / "a.wav", noise(8000), 1)
    with pytest.raises(dc.FileError, match="its rate is 1 Hz; 100 to 1,000,000 Hz can be read"):
        dc.Audio.read(tmp_path / "a.wav")
    with pytest.raises(dc.FileError, match=rf"would take 3,200,000,000 bytes, more than .*: set the .* {LIMIT}"):
        dc.Audio(np.zeros(8000), 10).resample(10**6)
    sf.write(tmp_path / "b.flac", noise(8000), 16_000)
    np.save(tmp_path / "b.npy", np.zeros(8000))
    for name in ("b.flac", "b.npy"):
        monkeypatch.setenv(LIMIT, "20000")
        with pytest.raises(dc.FileError, match="more than the 20,000 allowed"):
            assert Sample("a", tmp_path / name).input is None
        monkeypatch.setenv(LIMIT, "100000")
        assert Sample("a", tmp_path / name).input is not None
    monkeypatch.setenv(LIMIT, "1e9")
    with pytest.raises(dc.InputError, match=f"{LIMIT} must be a whole number of bytes, not '1e9'"):
        dc.Audio(np.zeros(10), 10).resample(20)


@pytest.mark.parametrize("held", [1000, 5000, 9000])
def test_a_flac_that_claims_to_hold_less_is_refused(tmp_path: Path, held: int) -> None:
    flac_with_length(tmp_path / "a.flac", noise(held), 0, held - 1)
    with pytest.raises(dc.FileError, match=f"its header says {held - 1:,} samples, but it holds {held:,}"):
        dc.Audio.read(tmp_path / "a.flac")
    flac_with_length(tmp_path / "a.flac", noise(held), 0, held)
    assert len(dc.Audio.read(tmp_path / "a.flac")) == held


def changed(path: Path, at: int, data: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "at", "data", "message"),
    [
        ("a.wav", 24, struct.pack("<I", 44_100), "Bytes/sec is"),
        ("a.wav", 32, b"\x06\x00", "Bytes/sec is"),
        ("a.wav", 40, struct.pack("<I", 4000), "its sound ends at byte 4,044"),
        ("a.flac", 18, b"\x0a\xc4\x40", "its header says 44,100 Hz, and its last frame 16,000 Hz"),
        ("a.ogg", 4500, b"\x00\x01\x02", "its checksum differs"),
    ],
)
def test_headers_that_contradict_what_follows(tmp_path: Path, name: str, at: int, data: bytes, message: str) -> None:
    sf.write(tmp_path / name, noise(40_000), 16_000)
    with pytest.raises(dc.FileError, match=message):
        dc.Audio.read(changed(tmp_path / name, at, data))


def test_a_page_of_ogg_that_is_missing_or_cut(tmp_path: Path) -> None:
    sf.write(tmp_path / "a.ogg", noise(160_000), 16_000)
    data = (tmp_path / "a.ogg").read_bytes()
    pages = [at for at in range(len(data)) if data[at : at + 4] == b"OggS"]
    assert len(pages) > 4
    (tmp_path / "a.ogg").write_bytes(data[: pages[3]] + data[pages[4] :])
    with pytest.raises(dc.FileError, match="a page is missing before byte"):
        dc.Audio.read(tmp_path / "a.ogg")
    (tmp_path / "a.ogg").write_bytes(data[: pages[3] + 40])
    with pytest.raises(dc.FileError, match="cut short, in the middle of a page"):
        dc.Audio.read(tmp_path / "a.ogg")


@pytest.mark.skipif(not has_beam_search() or not hasattr(os, "fork"), reason="needs flashlight-text, and fork")
def test_a_file_that_crashes_its_library_is_refused(tmp_path: Path) -> None:
    data = (Path(__file__).parent / "data" / "tiny.kenlm").read_bytes()
    (tmp_path / "a.kenlm").write_bytes(data)
    check_loads("kenlm", tmp_path / "a.kenlm", name="KenLM")
    (tmp_path / "a.kenlm").write_bytes(data[:204] + b"\xff" * 8 + data[212:])
    with pytest.raises(dc.FileError, match="is damaged: KenLM crashes on it"):
        check_loads("kenlm", tmp_path / "a.kenlm", name="KenLM")


@given(st.binary(max_size=60))
def test_the_checksum_of_ogg(data: bytes) -> None:
    value = 0
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x04C11DB7 if value >> 31 else value << 1) & 0xFFFFFFFF
    assert _ogg_crc(data) == value


@given(st.text(st.characters(codec=None), max_size=8))
def test_cells_are_no_formulas_and_are_read_again(text: str) -> None:
    for given_text in (text, f"={text}", f"-{text}", f"'{text}", f"{text}\udce9"):
        if "\\u" not in given_text:
            written = cell(given_text)
            written.encode()
            assert not written.startswith(("=", "+", "-", "@", "\t", "\r"))
            assert text_of(written) == given_text
    assert cell(-1.5) == -1.5
