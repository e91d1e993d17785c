"""Features in Kaldi's archives, in every form that a matrix can have there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from tests.support import kaldi_files
from tests.support.kaldi_files import FORMS


def test_every_form_is_read_from_an_archive_and_by_a_list(tmp_path: Path) -> None:
    values, places = kaldi_files.archive(tmp_path / "feats.ark")
    (tmp_path / "text").write_text("utt-CM hello there\nutt-text bye\n")
    lines = [f"{key} feats.ark:{place}\n" for key, place in places.items()]
    (tmp_path / "feats.scp").write_text("".join(lines) + f"part feats.ark:{places['utt-float']}[1:3]\n")
    archive, listed = dc.read_corpus(tmp_path / "feats.ark"), dc.read_corpus(tmp_path / "feats.scp")
    assert [sample.id for sample in archive] == [f"utt-{form}" for form in FORMS]
    assert dc.read_corpus(tmp_path).samples == listed.samples
    for sample in [*archive, *listed[:-1]]:
        result = sample.input
        assert isinstance(result, np.ndarray)
        np.testing.assert_allclose(result, values[sample.id], rtol=1e-6, atol=1e-6)
        assert sample.text == {"utt-CM": "hello there", "utt-text": "bye"}.get(sample.id)
    np.testing.assert_array_equal(listed[-1].input, values["utt-float"][1:4])


def test_text_archives_and_single_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(b"one  [\n  1 2\n  3 nan ]\ntwo  [ 1 2; 3 4 ]\nvector  [ 5 6 7 ]\nempty  [ ]\n\n")
    one, two, vector, empty = (sample.input for sample in dc.read_corpus(path))
    np.testing.assert_array_equal(one, [[1, 2], [3, np.nan]])
    np.testing.assert_array_equal(two, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(vector, [5, 6, 7])
    assert isinstance(empty, np.ndarray)
    assert empty.size == 0
    (tmp_path / "whole").write_bytes(kaldi_files.binary(np.eye(3)))
    (tmp_path / "lists.scp").write_text(f"whole {tmp_path}/whole\n")
    np.testing.assert_array_equal(dc.read_corpus(tmp_path / "lists.scp")[0].input, np.eye(3))


def test_an_archive_of_features_profiles_any_system(tmp_path: Path) -> None:
    import torch

    kaldi_files.archive(tmp_path / "feats.ark")
    generator = torch.random.fork_rng()
    with generator:
        system = dc.TorchSystem(torch.nn.LSTM(4, 3, batch_first=True).eval())
    corpus = dc.read_corpus(tmp_path / "feats.ark")
    model = dc.profile(system, corpus, components=2).abstract(5)
    assert dc.cover(model, system, corpus)["BSCov"] == 1.0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", r"it is empty \(0 bytes\)"),
        (b"utt1", r"byte 0: expected the id of an utterance and a space"),
        (b"utt1 \0BXY ", r"byte 7: expected a vector or a matrix \(FM, DM, .*\), not 'XY '"),
        (b"utt1 \0BFM \4\2\0", r"expected a size, not '\\x04\\x02\\x00'; is the file damaged"),
        (
            b"utt1 \0BFM " + kaldi_files.size(2**31 - 1) * 2,
            r"an array of 2,147,483,647 x 2,147,483,647 takes [0-9,]+ bytes, and the file has 0 left; it is damaged",
        ),
        (b"utt1 \0BFM " + kaldi_files.size(-1) * 2, r"the sizes \[-1, -1\] are not those of an array"),
        (b"utt1 \0BFM " + kaldi_files.size(10**9) + kaldi_files.size(0), r"the sizes \[1000000000, 0\] are not"),
        (b"utt1 \0BCM3 \0\0", "expected the 16 bytes of a compressed matrix's header"),
        (b"utt1  [ 1 2\n 3 4\n", "a bracket is never closed; the file is cut short"),
    ],
)
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "a.ark").write_bytes(content)
    with pytest.raises(dc.FileError, match=says):
        dc.read_corpus(tmp_path / "a.ark")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "utt1 copy-feats a.ark ark:- |",
            r"line 1: expected an id, a file and a byte, .* \(no command\), not 'utt1 copy",
        ),
        ("utt1", "line 1: expected an id, a file and a byte"),
        ("utt1 a.ark:99", "at byte 99: it has 36 bytes"),
        ("utt1 a.ark:2", "expected a vector or a matrix in brackets, not "),
        ("utt1 a.ark:5[1:2]", r"'utt1' is rows 1 to 2 of .*a\.ark, where there are 2"),
        ("utt1 b.ark:5", r"cannot read .*b\.ark: no such file or directory"),
        ("utt1 rows.ark", "expected rows of one length in the brackets"),
        (f"utt1 a.ark:{'9' * 18}", "it has 36 bytes"),
    ],
)
def test_lists_that_do_not_fit_are_refused(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "a.ark").write_bytes(b"utt1 " + kaldi_files.binary(np.ones((2, 2))))
    (tmp_path / "rows.ark").write_bytes(b"[ 1 2\n 3 ]")
    (tmp_path / "feats.scp").write_text(line + "\n")
    with pytest.raises(dc.FileError, match=says):
        assert dc.read_corpus(tmp_path / "feats.scp")[0].input is not None


@pytest.mark.shared
def test_kaldis_own_archives_are_read(shared: Path) -> None:
    folder = shared / "models" / "eesen"
    plain, compressed = (dc.read_corpus(folder / name)[0].input for name in ("fbank.ark", "fbank_c.ark"))
    assert isinstance(plain, np.ndarray)
    assert isinstance(compressed, np.ndarray)
    assert plain.shape == (221, 40)
    # A column is stored in 64 steps or more between each two of four marks, so at most half a step is lost.
    assert (np.abs(plain - compressed).max(0) <= np.ptp(plain, axis=0) / 63 / 2 + 1e-3).all()
    assert dc.read_corpus(folder / "cmvn.ark")[0].input.dtype == np.float64  # type: ignore[union-attr]
