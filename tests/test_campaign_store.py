"""A campaign's folder: who may use it, what it refuses, and what becomes of damage."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import deepcruiser as dc
from deepcruiser.campaign.database import pack, unpack
from deepcruiser.campaign.events import Event
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.serialise import decode, digest_of, encode, summarise
from deepcruiser.campaign.store import Store
from deepcruiser.systems.builtin import bracket_changes
from deepcruiser.transformations import Validity, from_dict, to_dict
from deepcruiser.transformations.recipe import UnknownChange
from tests.support import toy

LABELLED = [replace(seed, text=run.output) for seed, run in
            zip(toy.seeds(), toy.Reader().run([seed.value for seed in toy.seeds()]), strict=True)]  # fmt: skip


def other_way(**changes: Any) -> dc.Mutations:
    return replace(toy.MUTATIONS, **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guide": dc.BTCov}, r"guide.criteria \(gone: BSCov, new: BTCov\)"),
        ({"guide": "random"}, 'guide.type was "coverage" and is "random"'),
        ({"guide": (dc.BSCov, dc.SBCov(2))}, r"guide.criteria \(new: 2-SBCov\)"),
        (
            {"oracle": dc.WordErrorRate(above=0.3)},
            'oracle.type was "Disagreement" and is "WordErrorRate", oracle.above',
        ),
        ({"oracle": dc.Disagreement("output")}, 'oracle.against was null and is "output"'),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"batch_size": 8}, "batch_size was 16 and is 8"),
        ({"window": 16}, "window was null and is 16"),
        ({"select": "uniform", "pick": "thompson"}, 'scheduler.type was "rarity" and is "uniform"'),
        ({"pick": "uniform"}, 'scheduler.pick was "thompson" and is "uniform"'),
        ({"seed": 1, "pick": "uniform"}, 'scheduler.pick was "thompson" and is "uniform"; seed was 0 and is 1'),
        ({"system": toy.Reader(1), "model": toy.model(1)}, 'model was .*; system was "reader 0" and is "reader 1"'),
        ({"mutations": other_way(kinds=bracket_changes.KINDS[1:])}, r"mutations.kinds \(gone: InsertRound\)"),
        ({"mutations": other_way(kinds=bracket_changes.KINDS[::-1])}, r"mutations.kinds \(in another order\)"),
        (
            {"mutations": other_way(families=(bracket_changes.KINDS[:3],))},
            r"mutations.families \(gone: .*new: InsertRound\+Ins",
        ),
        (
            {"mutations": other_way(invalid=Validity().reason)},
            r'mutations.valid was "too_long" and is "Validity\(',
        ),
        (
            {"mutations": other_way(ranges={"SwapKinds": {}})},
            r"mutations.ranges.SwapKinds was null and is \{\}",
        ),
        (
            {"mutations": dc.Mutations.text()},
            r'mutations.type was "own" and is "text", mutations.kinds \(gone: InsertLetter, .* new: ChangeCase, ',
        ),
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
    assert re.match(
        rf"the campaign in '{tmp_path}' was started with different settings: .*\. "
        "Use the original settings, or another folder$|the seed 't3' has changed .*: use another folder$",
        str(caught.value),
    )
    assert toy.rows(tmp_path) == before
    toy.campaign(tmp_path, LABELLED, runs=32)


def test_limits_and_stops_may_change(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=16, limit_seconds=None)
    assert len(toy.campaign(tmp_path, runs=None, minutes=0, limit_seconds=9.0).runs) == 16


def test_a_system_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dc.MismatchError, match="the profile was made from another network"):
        toy.campaign(tmp_path / "c", system=toy.Reader(1))
    assert not (tmp_path / "c").exists()


def test_a_second_one_at_work_is_refused_and_the_first_can_be_read(tmp_path: Path) -> None:
    read: list[dc.CampaignRecord] = []

    def watch(status: Status) -> None:
        with pytest.raises(
            dc.FileError, match=f"another process is writing to '{tmp_path}': wait for it or use another"
        ):
            toy.campaign(tmp_path)
        read.append(dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS))

    toy.campaign(tmp_path, watch=watch)
    assert [len(campaign.runs) for campaign in read] == [0, 16, 32, 48, 64]
    assert [[runs for runs, _ in campaign.moments] for campaign in read] == [
        [*range(0, 16 * n, 16)] for n in (1, 2, 3, 4, 5)
    ]
    assert [(campaign.state, campaign.stopped) for campaign in read] == [("running", "")] * 5
    assert len(toy.campaign(tmp_path, runs=80).runs) == 80


def test_a_record_reads_on(tmp_path: Path) -> None:
    records: list[dc.CampaignRecord] = []
    counts: list[tuple[int, int, int]] = []

    def watch(status: Status) -> None:
        records[:] = records or [dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)]
        records[0].update()
        counts.append((len(records[0].runs), len(records[0].moments), len(records[0].tests)))

    campaign = toy.campaign(tmp_path, watch=watch)
    (record,) = records
    assert [(runs, moments) for runs, moments, _ in counts] == [(16 * n, n + 1) for n in range(5)]
    assert [tests for *_, tests in counts] == sorted(tests for *_, tests in counts)
    record.update()
    assert (record.state, record.stopped) == ("finished", "64 runs are done")
    assert [told(event) for event in record.runs] == [told(event) for event in campaign.runs]
    assert [str(test) for test in record.failed] == [str(test) for test in campaign.failed]
    assert record.tests.keys() == campaign.tests.keys()
    toy.campaign(tmp_path, runs=80)
    record.update()
    assert (len(record.runs), len(record.moments), record.stopped) == (80, 6, "80 runs are done")


def told(event: Event) -> tuple[Any, ...]:
    """An event as values that can be compared."""
    visits = None if event.visits is None else [array.tolist() for array in event.visits.arrays]
    return (*(getattr(event, each.name) for each in fields(event) if each.name != "visits"), visits)


class Ended(Exception):  # noqa: N818
    """Ends a campaign from outside."""


@pytest.mark.parametrize("steps", [1, 3])
def test_a_campaign_that_was_killed_is_unfinished(tmp_path: Path, steps: int) -> None:
    left = steps

    def watch(status: Status) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Ended

    with pytest.raises(Ended):
        toy.campaign(tmp_path, watch=watch)
    record = dc.CampaignRecord.open(tmp_path)
    assert (record.state, record.stopped, len(record.runs)) == ("unfinished", "", 16 * (steps - 1))
    toy.campaign(tmp_path)
    assert dc.CampaignRecord.open(tmp_path).state == "finished"


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
        assert len(list(store.seeds(None))) == 12
        assert len(list(store.runs(None, dict))) == 16
        assert [runs for runs, _ in store.moments()] == [0, 16]


def test_there_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=f"there is no campaign in '{tmp_path}': it has no campaign.db"):
        dc.CampaignRecord.open(tmp_path)
    (tmp_path / "campaign.db").touch()  # killed at the very beginning
    with pytest.raises(dc.FileError, match=f"there is no campaign in '{tmp_path}' yet: its campaign.db is empty"):
        dc.CampaignRecord.open(tmp_path)
    assert len(toy.campaign(tmp_path).runs) == 64


def test_a_campaign_that_has_only_begun(tmp_path: Path) -> None:
    with Store.open(tmp_path, write=True) as store:
        store.configure(dc.CampaignSpec(seed=3), {"system": "another"})
    with pytest.raises(
        dc.FileError, match=f"^the campaign in '{tmp_path}' has not started: its seeds were not run yet$"
    ):
        dc.CampaignRecord.open(tmp_path)
    assert len(toy.campaign(tmp_path).runs) == 64  # and so nothing holds it to that seed


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
    "another file": lambda path: path.write_bytes(b"RIFF" + bytes(5000)),  # type: ignore[dict-item]
    "header": lambda path: flip(path, at=0),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:6000]),  # type: ignore[dict-item]
    "pages": lambda path: [flip(path, at=at, size=600) for at in np.linspace(0.1, 0.9, 60)] and None,  # type: ignore[dict-item, func-returns-value]
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    toy.campaign(tmp_path, runs=256)
    DAMAGE[damage](tmp_path / "campaign.db")
    message = f"cannot use the campaign's database '{tmp_path}/campaign.db': "
    with pytest.raises(dc.FileError, match=message):
        dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    with pytest.raises(dc.FileError, match=message):
        toy.campaign(tmp_path, runs=300)


#: What damage does to a single run, number 40, and what is said of it.
SPOILT: dict[str, tuple[str, str]] = {
    "visits that cannot be unpacked": ("visits = x'00'", "incorrect header|incomplete|Error -"),
    "visits of half the arrays": (f"visits = x'{pack([np.arange(2)] * 2).hex()}'", "do not fit together"),
    "states that the model lacks": (
        f"visits = x'{pack([np.array([10**6]), *[np.arange(0)] * 3]).hex()}'",
        "states or transitions that the model does not have",
    ),
    "negative transitions": (
        f"visits = x'{pack([np.arange(1), np.array([-1]), *[np.arange(0)] * 2]).hex()}'",
        "states or transitions that the model does not have",
    ),
    "choices that the model lacks": (
        f"visits = x'{pack([*[np.arange(1)] * 2, np.array([10**6]), np.arange(0)]).hex()}'",
        "choices that the model does not have",
    ),
    "an answer that is no JSON": ("output = '{'", "Expecting property name"),
    "changes that are no JSON": ("changes = ''", "Expecting value"),
    "changes that are no list": ("changes = '3'", "not iterable"),
    "a change that is no mapping": ("changes = '[3]'", "must be a mapping"),
    "a change without its parameters": (
        """changes = '[{"name": "InsertRound"}]'""",
        "needs the parameters where, not none",
    ),
    "a digest that is a text": ("digest = 'abc'", "without an encoding"),
    "a parent that never was": ("parent = 9999", "run 40 was made from test 9999, which is not in the queue"),
}  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_can_be_read_is_shown_and_said_what_cannot(tmp_path: Path, spoilt: str) -> None:
    campaign = toy.campaign(tmp_path)
    change, message = SPOILT[spoilt]
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db, db:
        db.execute(f"UPDATE runs SET {change} WHERE number = 40")
    record = dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    assert re.search(rf"^runs after 39 cannot be read: .*({message})", record.problem)
    assert "\n" not in record.problem
    assert [told(event) for event in record.runs] == [told(event) for event in campaign.runs[:39]]
    assert [told(event) for event in record.seeds] == [told(event) for event in campaign.seeds]
    assert {test.number for test in record.failed} == {test.number for test in campaign.failed if test.number < 40}
    assert (record.state, record.moments) == ("finished", campaign.moments)
    assert campaign.problem == ""
    with pytest.raises(dc.DeepCruiserError):
        toy.campaign(tmp_path, runs=80)


@pytest.mark.parametrize("table", ["seeds", "meta"])
def test_damaged_seeds_and_settings_are_a_clear_error(tmp_path: Path, table: str) -> None:
    toy.campaign(tmp_path, runs=16)
    column, where = {"seeds": ("reference", "position = 3"), "meta": ("value", "key = 'spec'")}[table]
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db, db:
        db.execute(f"UPDATE {table} SET {column} = '{{' WHERE {where}")
    message = f"cannot use the campaign's database '{tmp_path}/campaign.db': Expecting property name"
    with pytest.raises(dc.FileError, match=message):
        dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)


def test_damage_anywhere_is_a_clear_error_or_is_told(tmp_path: Path) -> None:
    """Sixty-four bytes at a time, all over the file: never another error than ours, and never a run too many."""
    whole = toy.campaign(tmp_path / "whole", runs=256)
    data = (tmp_path / "whole" / "campaign.db").read_bytes()
    found = Counter[str]()
    for number, at in enumerate(np.linspace(0, 0.999, 150)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "campaign.db").write_bytes(data)
        flip(folder / "campaign.db", at=at)
        record = None
        with suppress(dc.DeepCruiserError):
            record = dc.CampaignRecord.open(folder, model=toy.model(), mutations=toy.MUTATIONS)
        if record is None:
            found["refused"] += 1
            continue
        found["told" if record.problem else "not seen"] += 1
        assert len(record.runs) <= len(whole.runs)
    assert min(found["refused"], found["told"]) > 3


#: The database as version 0.1.0 made it.
OLD_SCHEMA = """
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE seeds (
    position INTEGER PRIMARY KEY, seed TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, output TEXT,
    reference TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL, news BLOB NOT NULL
);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, transformation TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, output TEXT, score REAL NOT NULL, digest TEXT NOT NULL, visited BLOB NOT NULL,
    news BLOB NOT NULL, executed BLOB NOT NULL
);
CREATE TABLE history (runs INTEGER PRIMARY KEY, seconds REAL NOT NULL, queue TEXT NOT NULL, executed TEXT NOT NULL);
CREATE TABLE territory (runs INTEGER NOT NULL, who TEXT NOT NULL, news BLOB NOT NULL, PRIMARY KEY (runs, who));
CREATE INDEX failed ON runs (number) WHERE outcome = 'failed';
INSERT INTO meta VALUES ('configuration', '{"guide": "BSCov", "seed": 0}'), ('random', '{}'), ('pending', '[]');
INSERT INTO seeds VALUES (0, 't0', 'kept', '', '"high"', '"high"', 0.0, 'ab', x'00', x'00');
INSERT INTO runs VALUES (1, -1, '{"name": "SwapKinds"}', 'dropped', '', '"high"', 0.0, 'cd', x'00', x'00', x'00');
INSERT INTO history VALUES (0, 0.1, '[0.1]', '[0.1]'), (1, 0.2, '[0.1]', '[0.1]');
COMMIT;
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("version", ["old", "newer"])
def test_a_folder_of_another_format_is_refused_and_left_as_it_is(tmp_path: Path, version: str) -> None:
    if version == "newer":
        toy.campaign(tmp_path, runs=16)
        for folder in ("failed", "seeds"):
            shutil.rmtree(tmp_path / folder)
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db:
        db.executescript(OLD_SCHEMA if version == "old" else "UPDATE meta SET value = '3' WHERE key = 'format'")
    (tmp_path / "lock").touch()
    before = contents(tmp_path)
    message = (
        f"the campaign in '{tmp_path}' has format {1 if version == 'old' else 3} and this version reads format 2: read "
        "it with the version that wrote it (format 1: 0.1.0), or start a new campaign in another folder"
    )
    with pytest.raises(dc.FileError, match=f"^{re.escape(message)}$"):
        dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    with pytest.raises(dc.FileError, match=f"^{re.escape(message)}$"):
        toy.campaign(tmp_path)
    assert contents(tmp_path) == before
    toy.campaign(tmp_path / "other", runs=16)


def test_a_folder_that_nobody_may_write_to_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = toy.campaign(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    again = dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    assert [told(event) for event in again.runs] == [told(event) for event in campaign.runs]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "abstract.model",
        "campaign.db",
        "failed",
        "lock",
        "seeds",
    ]


def test_without_the_mutations_their_changes_are_shown_and_cannot_be_applied(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    record = dc.CampaignRecord.open(tmp_path, seeds=toy.seeds())
    assert (len(record.runs), record.problem) == (64, "")
    assert [str(test) for test in record.failed] == [str(test) for test in campaign.failed]
    for test in record.failed:
        known = campaign[test.number].recipe
        assert [str(change) for change in test.recipe] == [str(change) for change in known]
        assert [*map(to_dict, test.recipe)] == [*map(to_dict, known)]
        assert {type(change) for change in test.recipe} == {UnknownChange}
        first = type(known[0]).__name__
        message = rf"^{first}\(.*\) cannot be applied: pass the mutations that define {first}$"
        for make in (test.make, partial(test.replay, toy.Reader())):
            with pytest.raises(dc.InputError, match=message):
                make()


def test_the_file_beside_a_failing_input_tells_all(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    for test in campaign.failed:
        about = json.loads((tmp_path / "failed" / f"{test.number:06}.json").read_text())
        assert about == {
            "number": test.number,
            "seed": test.seed,
            "recipe": [to_dict(change) for change in test.recipe],
            "kind": "wrong",
            "reference": test.reference,
            "output": test.output,
            "score": 1.0,
            "doubt": None,
            "sha256": digest_of((tmp_path / "failed" / f"{test.number:06}.txt").read_text()),
        }
        assert tuple(from_dict(change, kinds=toy.MUTATIONS.kinds) for change in about["recipe"]) == test.recipe
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


#: First values and gaps: mostly small ones, some at the edges of 63 bits.
edges = [2**bits - less for bits in (7, 14, 61) for less in (0, 1)]
numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**61), st.sampled_from(edges))


@st.composite
def ascending(draw: st.DrawFn) -> npt.NDArray[np.int64]:
    """Distinct numbers in order, the first of them often negative, with gaps of all sizes."""
    first, gaps = draw(numbers), draw(st.lists(numbers.map(lambda gap: gap + 1), max_size=20))
    values = np.cumsum([first * draw(st.sampled_from([1, -1])), *gaps], dtype=object)
    return np.array([value for value in values if value < 2**62][: draw(st.integers(0, 20))], np.int64)


@given(st.lists(ascending(), min_size=1, max_size=5))
@example([np.empty(0, np.int64)] * 4)
@example([np.array([-(2**62), 2**62 - 1])])
@example([np.arange(-3, 100_000), np.array([2**62 - 1])])
def test_packed_arrays_come_back(arrays: list[npt.NDArray[np.int64]]) -> None:
    found = unpack(pack(arrays), len(arrays))
    assert [array.tolist() for array in found] == [array.tolist() for array in arrays]
    assert all(array.dtype == np.int64 for array in found)


def test_dense_arrays_take_about_a_byte_for_each_number_at_most() -> None:
    rng = np.random.default_rng(0)
    arrays = [np.sort(rng.choice(8 * size, size, replace=False)) for size in (100, 400, 400, 20)]
    assert len(pack(arrays)) < 1.1 * sum(map(len, arrays))


@pytest.mark.parametrize(
    "data", [b"", b"no zlib", zlib.compress(b""), zlib.compress(b"\x80"), zlib.compress(b"\x08" * 4)]
)
def test_what_pack_did_not_make_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, zlib.error)):
        unpack(data, 4)


def test_arrays_of_another_number_are_refused() -> None:
    for count in (1, 2, 4, 5):
        with pytest.raises(ValueError, match="do not fit together"):
            unpack(pack([np.arange(5)] * 3), count)


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
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@given(answers)
def test_answers_can_be_stored_and_are_told_apart(value: Any) -> None:
    stored = json.loads(json.dumps(summarise(value), allow_nan=False))
    assert stored == summarise(value) == summarise(stored)


@given(answers, answers)
def test_digests_are_the_same_just_for_the_same(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(decode(encode(one)))
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
