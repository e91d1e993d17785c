"""Damaged campaign folders, and folders of another format: a clear error, or what can be read and what cannot."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.database import FORMAT, MOST_VISITS, pack
from tests.support import toy


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
    "visits that unpack to a thousand times their size": (
        f"visits = x'{zlib.compress(bytes(2 * MOST_VISITS)).hex()}'",
        "incomplete, or take more than",
    ),
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
    "a score that is a text": ("score = 'high'", "a row holds 'high'"),
    "a score that is infinite": ("score = 9e999", "a row holds inf"),
    "a doubt that is a text": ("doubt = 'low'", "a row holds 'low'"),
    "a parent that never was": ("parent = 9999", "run 40 was made from test 9999, which is not in the queue"),
}  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_can_be_read_is_shown_and_said_what_cannot(tmp_path: Path, spoilt: str) -> None:
    campaign = toy.campaign(tmp_path)
    change, message = SPOILT[spoilt]
    toy.overwrite(tmp_path / "campaign.db", "runs", change, "number = 40")
    record = dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    assert re.search(rf"^runs after 39 cannot be read: .*({message})", record.problem)
    assert "\n" not in record.problem
    assert [toy.event_fields(event) for event in record.runs] == [
        toy.event_fields(event) for event in campaign.runs[:39]
    ]
    assert [toy.event_fields(event) for event in record.seeds] == [toy.event_fields(event) for event in campaign.seeds]
    assert {test.number for test in record.failed} == {test.number for test in campaign.failed if test.number < 40}
    assert (record.state, record.moments) == ("finished", campaign.moments)
    assert campaign.problem == ""
    with pytest.raises(dc.DeepCruiserError):
        toy.campaign(tmp_path, runs=80)


@pytest.mark.parametrize("table", ["seeds", "meta"])
def test_damaged_seeds_and_settings_are_a_clear_error(tmp_path: Path, table: str) -> None:
    toy.campaign(tmp_path, runs=16)
    column, where = {"seeds": ("reference", "position = 3"), "meta": ("value", "key = 'spec'")}[table]
    toy.overwrite(tmp_path / "campaign.db", table, f"{column} = '{{'", where)
    message = f"cannot use the campaign's database '{tmp_path}/campaign.db': Expecting property name"
    with pytest.raises(dc.FileError, match=message):
        dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)


@pytest.mark.parametrize(
    ("key", "value", "to_resume"),
    [
        ("probes", "true", False),
        ("spec", "3", True),
        ("random", '{"bit_generator": "PCG64"}', True),
        ("pending", '[[["x", []]]]', True),
    ],
)
def test_settings_of_another_shape_are_a_clear_error(tmp_path: Path, key: str, value: str, to_resume: bool) -> None:
    toy.campaign(tmp_path, runs=16)
    toy.overwrite(tmp_path / "campaign.db", "meta", f"value = '{value}'", f"key = '{key}'")
    message = f"cannot use the campaign's database '{tmp_path}/campaign.db': "
    with pytest.raises(dc.FileError, match=message):
        toy.campaign(tmp_path, runs=32) if to_resume else dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)


def test_damage_anywhere_is_a_clear_error_or_is_told(tmp_path: Path) -> None:
    """64 bytes at a time, all over the file: only our errors, and never an extra run."""
    whole = toy.campaign(tmp_path / "whole", runs=256)
    data = (tmp_path / "whole" / "campaign.db").read_bytes()
    result = Counter[str]()
    for number, at in enumerate(np.linspace(0, 0.999, 150)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "campaign.db").write_bytes(data)
        flip(folder / "campaign.db", at=at)
        record = None
        with suppress(dc.DeepCruiserError):
            record = dc.CampaignRecord.open(folder, model=toy.model(), mutations=toy.MUTATIONS)
        if record is None:
            result["refused"] += 1
            continue
        result["told" if record.problem else "not seen"] += 1
        assert len(record.runs) <= len(whole.runs)
    assert min(result["refused"], result["told"]) > 3


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
        for folder in ("failed", "seeds", "paths"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db:
        db.executescript(OLD_SCHEMA if version == "old" else "UPDATE meta SET value = '99' WHERE key = 'format'")
    (tmp_path / "lock").touch()
    before = contents(tmp_path)
    message = (
        f"the campaign in '{tmp_path}' has format {1 if version == 'old' else 99} and this version reads format "
        f"{FORMAT}: read it with the version of deepcruiser that wrote it, or start a new campaign in another folder"
    )
    with pytest.raises(dc.FileError, match=f"^{re.escape(message)}$"):
        dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    with pytest.raises(dc.FileError, match=f"^{re.escape(message)}$"):
        toy.campaign(tmp_path)
    assert contents(tmp_path) == before
    toy.campaign(tmp_path / "other", runs=16)


def test_a_lock_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    toy.campaign(tmp_path, runs=16)
    (tmp_path / "lock").unlink()
    os.mkfifo(tmp_path / "lock")
    assert dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS).state == "finished"
    with pytest.raises(dc.FileError, match="its lock is not a file"):
        toy.campaign(tmp_path, runs=32)
