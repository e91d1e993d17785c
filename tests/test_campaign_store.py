"""A campaign's folder: who may use it, what it refuses, and what becomes of damage."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import deepcruiser as dc
from deepcruiser.campaign.database import pack, unpack
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.serialise import as_json, digest_of, from_json, to_json
from deepcruiser.campaign.store import Store
from deepcruiser.systems.builtin import bracket_changes
from deepcruiser.transformations import Validity
from tests.support import toy

LABELLED = [replace(seed, text=run.output) for seed, run in
            zip(toy.seeds(), toy.Reader().run([seed.value for seed in toy.seeds()]), strict=True)]  # fmt: skip


def other_way(**changes: Any) -> dc.Mutations:
    return replace(toy.MUTATIONS, **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guide": dc.BTCov}, 'guide was "BSCov" and is "BTCov"'),
        ({"guide": "random"}, r'guide was "BSCov" and is "random \(BSCov measured\)"'),
        ({"guide": (dc.BSCov, dc.SBCov(2))}, 'guide was "BSCov" and is "BSCov, 2-SBCov"'),
        ({"oracle": dc.WordErrorRate(above=0.3)}, 'oracle was "another answer" and is "word error rate above 0.3"'),
        ({"oracle": dc.Disagreement("output")}, r'oracle was .* is "another answer \(against the output\)"'),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"batch_size": 8}, "batch_size was 16 and is 8"),
        ({"select": "uniform"}, 'select was "rarity" and is "uniform"'),
        ({"pick": "uniform"}, 'pick was "thompson" and is "uniform"'),
        ({"seed": 1, "pick": "uniform"}, 'pick was "thompson" and is "uniform"; seed was 0 and is 1'),
        ({"system": toy.Reader(1), "model": toy.model(1)}, 'model was .*; system was "reader 0" and is "reader 1"'),
        ({"mutations": other_way(kinds=bracket_changes.KINDS[1:])}, r"kinds \(gone: InsertRound\)"),
        ({"mutations": other_way(kinds=bracket_changes.KINDS[::-1])}, r"kinds \(in another order\)"),
        ({"mutations": other_way(families=(bracket_changes.KINDS[:3],))}, r"families \(gone: .*new: InsertRound\+Ins"),
        ({"mutations": other_way(invalid=Validity().reason)}, r'valid was "too_long" and is "Validity\('),
        ({"mutations": other_way(ranges={"SwapKinds": {}})}, r'ranges was \{\} and is \{"SwapKinds": \{\}\}'),
        ({"given": LABELLED[:-1]}, r"seeds \(gone: t11\)"),
        ({"given": [*LABELLED, toy.Text("x", "ab")]}, r"seeds \(new: x\)"),
        ({"given": [replace(seed, id=f"u{seed.id}") for seed in LABELLED]}, r"gone: t0, t1, t10, ..., new: ut0, ut1, "),
        ({"given": LABELLED[::-1]}, r"seeds \(in another order\)"),
        ({"given": [replace(LABELLED[0], text="other"), *LABELLED[1:]]}, "texts of the seeds was "),
        (
            {"given": [*LABELLED[:3], replace(LABELLED[3], value="ab"), *LABELLED[4:]]},
            "the seed 't3' has changed since",
        ),
    ],
)
def test_a_campaign_that_was_begun_otherwise_is_refused_with_what_differs(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    toy.campaign(tmp_path, LABELLED, runs=16)
    before = toy.rows(tmp_path)
    with pytest.raises(dc.MismatchError, match=message) as caught:
        toy.campaign(tmp_path, **{"given": LABELLED, "runs": 32, **change})
    assert "give another folder" in str(caught.value)
    assert toy.rows(tmp_path) == before
    toy.campaign(tmp_path, LABELLED, runs=32)


def test_limits_and_stops_may_change(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=16, limit_seconds=None)
    assert toy.campaign(tmp_path, runs=None, minutes=0, limit_seconds=9.0).runs == 16


def test_a_system_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dc.MismatchError, match="the profile was made from another network"):
        toy.campaign(tmp_path / "c", system=toy.Reader(1))
    assert not (tmp_path / "c").exists()


def test_a_second_one_at_work_is_refused_and_the_first_can_be_read(tmp_path: Path) -> None:
    read: list[dc.Campaign] = []

    def watch(status: Status) -> None:
        with pytest.raises(
            dc.FileError, match=f"another process is at work in '{tmp_path}': wait for it or give another"
        ):
            toy.campaign(tmp_path)
        read.append(dc.Campaign.open(tmp_path, mutations=toy.MUTATIONS))

    toy.campaign(tmp_path, watch=watch)
    assert [campaign.runs for campaign in read] == [0, 16, 32, 48, 64]
    assert [len(campaign.history) for campaign in read] == [1, 2, 3, 4, 5]
    assert toy.campaign(tmp_path, runs=80).runs == 80


def test_another_process_finds_the_folder_locked(tmp_path: Path) -> None:
    script = "import fcntl, sys\nwith open(sys.argv[1]) as f:\n    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with Store.open(tmp_path, write=True):
        assert b"BlockingIOError" in subprocess.run(command, capture_output=True, check=False).stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_what_is_read_is_of_one_moment(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=16)
    with Store.open(tmp_path, write=False) as store:
        toy.campaign(tmp_path, runs=64)
        assert len(list(store.events(toy.MUTATIONS))) == 12 + 16
        assert store.history()[-1]["runs"] == 16


def test_there_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=f"there is no campaign in '{tmp_path}': no campaign.db is there"):
        dc.Campaign.open(tmp_path)
    (tmp_path / "campaign.db").touch()  # killed at the very beginning
    with pytest.raises(dc.FileError, match=f"there is no campaign in '{tmp_path}' yet: its campaign.db is empty"):
        dc.Campaign.open(tmp_path)
    assert toy.campaign(tmp_path).runs == 64


def test_a_campaign_that_has_only_begun(tmp_path: Path) -> None:
    with Store.open(tmp_path, write=True) as store:
        store.configure({"seed": 3})
    campaign = dc.Campaign.open(tmp_path)
    assert (campaign.runs, campaign.failed, campaign.coverage) == (0, [], ([], []))
    assert toy.campaign(tmp_path).runs == 64  # and so nothing holds it to that seed


def test_a_folder_that_is_a_file_or_lies_in_one(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(dc.FileError, match=r"cannot write to the folder '.*c': it is a file"):
        toy.campaign(tmp_path / "c")
    with pytest.raises(dc.FileError, match=r"cannot write to the folder '.*c/d': not a directory"):
        toy.campaign(tmp_path / "c" / "d")


def flip(path: Path, *, at: float, size: int = 64) -> None:
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    data[start : start + size] = bytes(255 - byte for byte in data[start : start + size])
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "another file": lambda path: path.write_bytes(b"RIFF" + bytes(5000)),
    "header": lambda path: flip(path, at=0),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:6000]),
    "pages": lambda path: [flip(path, at=at, size=600) for at in np.linspace(0.1, 0.9, 60)] and None,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    toy.campaign(tmp_path, runs=256)
    DAMAGE[damage](tmp_path / "campaign.db")
    message = f"cannot use the campaign's database '{tmp_path}/campaign.db': "
    with pytest.raises(dc.FileError, match=message):
        dc.Campaign.open(tmp_path, mutations=toy.MUTATIONS)
    with pytest.raises(dc.FileError, match=message):
        toy.campaign(tmp_path, runs=300)


def test_a_folder_that_nobody_may_write_to_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = toy.campaign(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert dc.Campaign.open(tmp_path, mutations=toy.MUTATIONS).runs == campaign.runs
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "abstract.model",
        "campaign.db",
        "failed",
        "lock",
        "seeds",
    ]


def test_other_mutations_are_needed_to_read_texts(tmp_path: Path) -> None:
    toy.campaign(tmp_path)
    with pytest.raises(
        dc.InputError, match=r"no transformation '(Insert|Swap).*' in this campaign; its kinds are: Change"
    ):
        dc.Campaign.open(tmp_path)


def test_the_file_beside_a_failing_input_tells_all(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    for test in campaign.failed:
        about = json.loads((tmp_path / "failed" / f"{test.number:06}.json").read_text())
        assert about == {
            "number": test.number,
            "seed": test.seed,
            "recipe": [toy.MUTATIONS.to_dict(change) for change in test.recipe],
            "kind": "wrong",
            "reference": test.reference,
            "output": test.output,
            "score": 1.0,
            "sha256": digest_of((tmp_path / "failed" / f"{test.number:06}.txt").read_text()),
        }
        assert tuple(map(toy.MUTATIONS.from_dict, about["recipe"])) == test.recipe
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db:
        versions = json.loads(db.execute("SELECT value FROM meta WHERE key = 'versions'").fetchone()[0])
    assert versions["numpy"] == np.__version__
    assert campaign.versions == versions


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    toy.campaign(tmp_path)
    (tmp_path / "failed" / ".000012.txt.x7y").touch()
    toy.campaign(tmp_path)
    assert not list((tmp_path / "failed").glob(".*"))


@pytest.mark.parametrize("value", [b"bytes", np.zeros(0), np.arange(5), "a\udc80b", ("x", 1)])
def test_failing_inputs_of_other_kinds_are_saved_too(tmp_path: Path, value: Any) -> None:
    from deepcruiser.campaign.store import _write_failed

    _write_failed(tmp_path / "failed", 3, value, {"output": "a\udc80b", "number": 3})
    assert json.loads((tmp_path / "failed" / "000003.json").read_text()) == {"output": "a\udc80b", "number": 3}
    if isinstance(value, np.ndarray):
        assert np.array_equal(np.load(tmp_path / "failed" / "000003.npy"), value)


arrays = st.lists(st.one_of(st.integers(0, 2**40)), max_size=20).map(lambda v: np.array(sorted(v), np.int64))


@given(st.lists(st.lists(arrays, max_size=3).map(tuple), max_size=4).map(tuple))
def test_packed_arrays_come_back(groups: tuple[tuple[np.ndarray, ...], ...]) -> None:
    found = unpack(pack(groups))
    assert [[array.tolist() for array in group] for group in found] == [[a.tolist() for a in group] for group in groups]
    assert all(array.dtype == np.int64 for group in found for array in group)


leaves = st.one_of(
    st.none(), st.booleans(), st.text(), st.integers(), st.floats(allow_nan=False),
    hnp.arrays(st.sampled_from(["f4", "i8", "?", "U3", "c8"]), hnp.array_shapes(max_dims=2, max_side=3)),
)  # fmt: skip
answers = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.one_of(st.text(), st.integers(), st.tuples(st.integers())), inner, max_size=3)
    ),
    max_leaves=6,
)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@given(answers)
def test_references_come_back_as_they_were(value: Any) -> None:
    assert same(from_json(json.loads(json.dumps(to_json(value)))), value)


@given(answers)
def test_answers_can_be_stored_and_are_told_apart(value: Any) -> None:
    stored = json.loads(json.dumps(as_json(value), allow_nan=False))
    assert stored == as_json(value) == as_json(stored)


@given(answers, answers)
def test_digests_are_the_same_just_for_the_same(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(from_json(to_json(one)))
    if digest_of(one) == digest_of(other):
        assert repr(one) == repr(other)


def test_digests_of_large_and_of_strange_inputs() -> None:
    """Their repr is cut short, or tells where they are in memory."""
    large = np.zeros(5000, np.float32)
    changed = large.copy()
    changed[2500] = 1e-6
    tensors = torch.from_numpy(large), torch.from_numpy(changed)
    for one, other in ((large, changed), tensors, ([large], [changed]), ({"x": large}, {"x": changed})):
        assert digest_of(one) != digest_of(other)
    assert digest_of(tensors[0]) == digest_of(large)
    assert digest_of(dc.Audio(large, 8000)) != digest_of(dc.Audio(large, 16000)) != digest_of(dc.Audio(changed, 16000))
    assert digest_of(dc.Audio(large, 8000)) == digest_of(dc.Audio(large.copy(), 8000))
    assert digest_of(torch.zeros(2, dtype=torch.bfloat16)) == digest_of(torch.zeros(2))
