"""A campaign's folder: who may use it, what it refuses, and how damage is handled."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.spec import Component
from deepcruiser.campaign.store import Store
from deepcruiser.cli import main
from deepcruiser.serialise import digest_of
from deepcruiser.systems.builtin import bracket_changes
from deepcruiser.transformations import Validity, from_dict, to_dict
from deepcruiser.transformations.recipe import UnknownChange
from tests.support import toy
from tests.support.journals import journal_of

LABELLED = [replace(seed, text=run.output) for seed, run in
            zip(toy.seeds(), toy.Reader().run([seed.value for seed in toy.seeds()]), strict=True)]  # fmt: skip


def other_way(**changes: Any) -> dc.Mutations:
    return replace(toy.MUTATIONS, **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guide": dc.BTCov}, r"guide.criteria \(gone: BSCov, new: BTCov\)"),
        ({"guide": "random"}, 'guide.type was "coverage\\+distance" and is "random"'),
        ({"guide": (dc.BSCov, dc.SBCov(2))}, r"guide.criteria \(new: 2-SBCov\)"),
        (
            {"oracle": dc.WordErrorRate(above=0.3)},
            'oracle.type was "Disagreement" and is "WordErrorRate", oracle.above',
        ),
        ({"oracle": dc.Disagreement("output")}, 'oracle.against was null and is "output"'),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"severity": "mild"}, 'severity was "unlimited" and is "mild"'),
        ({"batch_size": 8}, "batch_size was 16 and is 8"),
        ({"window": 16}, "window was null and is 16"),
        ({"select": "uniform", "pick": "thompson"}, 'scheduler.type was "learned" and is "uniform"'),
        ({"scheduler": Component("learned", {"aim": "seeds"})}, 'scheduler.aim was "balanced" and is "seeds"'),
        ({"seed": 1, "select": "uniform"}, 'scheduler.type was "learned" .*; seed was 0 and is 1'),
        ({"system": toy.Reader(1), "model": toy.model(1)}, "the network changed since the campaign in "),
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
        ({"data": LABELLED[:-1]}, r"seeds \(gone: t11\)"),
        ({"data": [*LABELLED, toy.Text("x", "ab")]}, r"seeds \(new: x\)"),
        ({"data": [replace(seed, id=f"u{seed.id}") for seed in LABELLED]}, r"gone: t0, t1, t10, ..., new: ut0, ut1, "),
        ({"data": LABELLED[::-1]}, r"seeds \(in another order\)"),
        ({"data": [replace(LABELLED[0], text="other"), *LABELLED[1:]]}, "texts of the seeds was "),
        (
            {"data": [*LABELLED[:3], replace(LABELLED[3], value="ab"), *LABELLED[4:]]},
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
        toy.campaign(tmp_path, **{"data": LABELLED, "runs": 32, **change})
    assert re.match(
        rf"the campaign in '{tmp_path}' was started with different settings: .*\. "
        "Use the original settings, or another folder$|the network changed since .* or use another folder$|"
        "the seed 't3' has changed .*: use another folder$",
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
    assert [toy.event_fields(event) for event in record.runs] == [toy.event_fields(event) for event in campaign.runs]
    assert [str(test) for test in record.failed] == [str(test) for test in campaign.failed]
    assert record.tests.keys() == campaign.tests.keys()
    toy.campaign(tmp_path, runs=80)
    record.update()
    assert (len(record.runs), len(record.moments), record.stopped) == (80, 6, "80 runs are done")


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
        dc.FileError, match=f"^the campaign in '{tmp_path}' has not started: its seeds have not been run yet$"
    ):
        dc.CampaignRecord.open(tmp_path)
    assert len(toy.campaign(tmp_path).runs) == 64  # and so nothing holds it to that seed


def test_a_folder_that_is_a_file_or_lies_in_one(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(dc.FileError, match=r"cannot write to the folder '.*c': it is a file"):
        toy.campaign(tmp_path / "c")
    with pytest.raises(dc.FileError, match=r"cannot write to the folder '.*c/d': not a directory"):
        toy.campaign(tmp_path / "c" / "d")


def test_a_folder_that_nobody_may_write_to_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = toy.campaign(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    again = dc.CampaignRecord.open(tmp_path, mutations=toy.MUTATIONS)
    assert [toy.event_fields(event) for event in again.runs] == [toy.event_fields(event) for event in campaign.runs]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "abstract.model",
        "campaign.db",
        "failed",
        "lock",
        "paths",
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
            "seed_output": test.reference,  # seeds are right
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
    (tmp_path / "failed" / ".000012.txt.x7y_3abc").touch()
    (tmp_path / "failed" / ".ipynb_checkpoints").mkdir()  # which a notebook makes, and keeps
    (tmp_path / "failed" / ".gitignore").touch()
    toy.campaign(tmp_path)
    assert {path.name for path in (tmp_path / "failed").glob(".*")} == {".gitignore", ".ipynb_checkpoints"}


@pytest.mark.parametrize("name", ["lock", "failed", "seeds"])
def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    toy.campaign(tmp_path / "run", runs=16)
    (tmp_path / "run" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    before = {path: path.read_bytes() for path in tmp_path.glob("elsewhere/**/*") if path.is_file()}
    with pytest.raises(dc.FileError, match=f"its {name} is a link to elsewhere"):
        toy.campaign(tmp_path / "run")
    assert {path: path.read_bytes() for path in tmp_path.glob("elsewhere/**/*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE runs RENAME TO x; CREATE VIEW runs AS SELECT * FROM x", "a view or a trigger is in it"),
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "a view or a trigger is in it"),
        ("ALTER TABLE runs ADD COLUMN x AS (zeroblob(1000000000))", "its tables are not those of a campaign"),
    ],
)
def test_a_database_that_does_more_than_to_hold_rows(tmp_path: Path, change: str, message: str) -> None:
    toy.campaign(tmp_path)
    with closing(sqlite3.connect(tmp_path / "campaign.db")) as db:
        db.executescript(change)
    for write in (False, True):
        with pytest.raises(dc.FileError, match=message):
            Store.open(tmp_path, write=write)


def test_a_journal_that_makes_sqlite_delete_a_file_is_refused(tmp_path: Path) -> None:
    toy.campaign(tmp_path / "run")
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run" / "campaign.db-journal").write_bytes(journal_of(tmp_path / "precious"))
    with pytest.raises(dc.FileError, match="would make SQLite delete a file"):
        dc.CampaignRecord.open(tmp_path / "run", mutations=toy.MUTATIONS)
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("value", [b"bytes", np.zeros(0), np.arange(5), "a\udc80b", ("x", 1)])
def test_failing_inputs_of_other_kinds_are_saved_too(tmp_path: Path, value: Any) -> None:
    from deepcruiser.campaign.failed_test import InputFile
    from deepcruiser.campaign.store import _write_failed

    _write_failed(tmp_path / "failed", 3, InputFile.of(value), {"output": "a\udc80b", "number": 3})
    assert json.loads((tmp_path / "failed" / "000003.json").read_text()) == {"output": "a\udc80b", "number": 3}
    if isinstance(value, np.ndarray):
        assert np.array_equal(np.load(tmp_path / "failed" / "000003.npy"), value)


#: First values and gaps: mostly small ones, some at the edges of 63 bits.


def test_looking_at_a_campaign_runs_nothing_that_its_folder_names(tmp_path: Path) -> None:
    """As docs/security.md promises; `replay` loads it, so the folder itself works."""
    folder, ran = tmp_path / "run", tmp_path / "ran"
    toy.campaign(folder)
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(ran)!r})\n")
    with closing(sqlite3.connect(folder / "campaign.db")) as db:
        ((spec,),) = db.execute("SELECT value FROM meta WHERE key = 'spec'").fetchall()
    names = {key: f"evil.py:{key}" for key in ("system", "data", "mutations_source", "oracle_source")}
    place = {"relative": ".", "absolute": str(folder)}
    for key, value in (("spec", {**json.loads(spec), **names}), ("directory", place)):
        with closing(sqlite3.connect(folder / "campaign.db")) as db, db:
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(value), key))
        toy.overwrite(folder / "campaign.db", "meta", "key = key", f"key = '{key}'")
    lookers = ("report", "report --text", "report --json", "status", "history", "findings --shrink 0")
    for words in lookers:
        command, *options = words.split()
        assert CliRunner().invoke(main, [command, str(folder), *options]).exit_code in (0, 1), words
        assert not ran.exists(), words
    CliRunner().invoke(main, ["replay", str(folder)])
    assert ran.exists()
