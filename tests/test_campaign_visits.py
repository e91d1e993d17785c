"""What a run visited is stored once, in its event: against all runs done again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign import database
from deepcruiser.campaign.events import Event
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.store import MODEL, Store
from deepcruiser.criteria import FIVE
from tests.support import toy

Cell = tuple[int, ...]
RUNS = 192


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    toy.campaign(folder, guide=dc.BSCov, runs=RUNS)
    return folder


def opened(folder: Path) -> dc.CampaignRecord:
    """The campaign as another process finds it, with the model of its folder."""
    return dc.CampaignRecord.open(folder, mutations=toy.MUTATIONS)


def events_of(campaign: dc.CampaignRecord) -> list[Event]:
    return [*campaign.seeds, *campaign.runs]


def traces(campaign: dc.CampaignRecord) -> dict[int, dc.Trace]:
    """The trace of each test that was run, made again: from the seeds down, change by change."""
    reader = toy.Reader()
    texts = {event.number: seed.value for event, seed in zip(campaign.seeds, toy.seeds(), strict=True)}
    for event in campaign.runs:
        texts[event.number] = texts[event.parent]
        for change in event.changes:
            texts[event.number] = change(texts[event.number])
    run = [event.number for event in events_of(campaign) if event.outcome != "rejected"]
    result = {}
    for number in run:
        trace = reader.run([texts[number]])[0].trace
        assert trace is not None
        result[number] = trace
    return result


def rows_of(numbers: Iterable[int], *cells: np.ndarray) -> list[tuple[Cell, ...]]:
    """The cells with these numbers in each of the arrays."""
    return [tuple(tuple(array[number].tolist()) for array in cells) for number in numbers]


def test_the_visits_of_each_event_are_those_of_its_run_done_again(folder: Path) -> None:
    campaign, model = opened(folder), toy.model()
    again = traces(campaign)
    assert len(again) > RUNS / 2
    outside = 0
    for event in events_of(campaign):
        if event.outcome == "rejected":
            assert event.visits is None
            continue
        assert event.visits is not None
        assert event.visits.model is campaign.model
        expected = model.visits(again[event.number])
        for stored, now in zip(event.visits.arrays, expected.arrays, strict=True):
            assert stored.dtype == now.dtype
            assert stored.tolist() == now.tolist()
        outside += len(event.visits.outside)
    assert outside > 0
    outcomes = {event.outcome for event in campaign.runs if event.visits is not None}
    assert outcomes == {"kept", "dropped", "failed"}


def test_the_visits_name_the_cells_that_the_trace_went_through(folder: Path) -> None:
    """Once without numbers: cells, pairs of cells, and cells with inputs, in sets."""
    campaign, model = opened(folder), toy.model()
    names = {
        "states": set(rows_of(range(len(model.states)), *model.cells_of_states().values())),
        "transitions": set(rows_of(range(len(model.transitions)), *model.cells_of_transitions().values())),
        "choices": set(rows_of(range(len(model.choices)), *model.cells_of_choices().values())),
    }
    again, seen = traces(campaign), dict.fromkeys((*names, "outside"), 0)
    for event in events_of(campaign):
        if event.visits is None:
            continue
        states, inputs = ([tuple(cell) for cell in cells.tolist()] for cells in model.cells(again[event.number]))
        visited: dict[str, set[tuple[Cell, ...]]] = {
            "states": {(cell,) for cell in states},
            "transitions": set(pairwise(states)),
            "choices": set(zip(states, inputs, strict=False)),
        }
        stored = {
            "states": rows_of(event.visits.states, *model.cells_of_states().values()),
            "transitions": rows_of(event.visits.transitions, *model.cells_of_transitions().values()),
            "choices": rows_of(event.visits.choices, *model.cells_of_choices().values()),
        }
        for name, known in names.items():
            assert sorted(stored[name]) == sorted(visited[name] & known)
            seen[name] += len(stored[name])
        outside = {cell for cell in states if (cell,) not in names["states"]}
        assert sorted(map(tuple, model.grid.decode(event.visits.outside).tolist())) == sorted(outside)
        seen["outside"] += len(outside)
    assert min(seen.values()) > 0, f"nothing was visited of some kind, so the test would show nothing: {seen}"


@pytest.mark.parametrize("criterion", [*FIVE, dc.SBCov(1)], ids=str)
def test_every_criterion_follows_from_the_visits_whichever_was_the_guide(folder: Path, criterion: dc.Criterion) -> None:
    campaign, model = opened(folder), toy.model()
    again = traces(campaign)
    outcomes = {event.number: event.outcome for event in events_of(campaign)}
    passed = [trace for number, trace in again.items() if outcomes[number] in ("kept", "dropped")]
    queue = [trace for number, trace in again.items() if outcomes[number] == "kept"]
    assert len(queue) < len(passed) < len(again)
    assert campaign.coverage(criterion).value == pytest.approx(criterion(model, passed), abs=1e-12)
    assert campaign.coverage(criterion, queue=True).value == pytest.approx(criterion(model, queue), abs=1e-12)


def test_the_stored_coverage_is_that_of_the_campaign_while_it_ran(tmp_path: Path) -> None:
    seen: list[Status] = []
    values: list[tuple[list[float], list[float]]] = []

    def watch(status: Status) -> None:
        seen.append(status)
        values.append(([c.value for c in status.state.coverages], [c.value for c in status.state.executed]))

    guide = (dc.BTCov, dc.SBCov(2), dc.WICov)
    campaign = toy.campaign(tmp_path, guide=guide, watch=watch)
    assert [runs for runs, _ in campaign.moments] == [0, 16, 32, 48, 64]
    assert campaign.moments == [(16 * n, round(status.seconds, 3)) for n, status in enumerate(seen)]
    assert campaign.seconds == campaign.moments[-1][1]
    last = values[-1]
    assert [campaign.coverage(each, queue=True).value for each in guide] == pytest.approx(last[0], abs=1e-12)
    assert [campaign.coverage(each).value for each in guide] == pytest.approx(last[1], abs=1e-12)
    for runs, (queue, executed) in zip((0, 16, 32, 48), values, strict=False):
        events = [event for event in events_of(campaign) if event.number <= runs and event.visits is not None]
        for outcomes, expected in ((("kept",), queue), (("kept", "dropped"), executed)):
            visits = [event.visits for event in events if event.outcome in outcomes]
            result = [each.of(toy.model(), [visit for visit in visits if visit is not None]) for each in guide]
            assert result == pytest.approx(expected, abs=1e-12)


def test_visits_are_stored_once(folder: Path) -> None:
    """One column of blobs holds them, and it takes few bytes for each run."""
    with closing(sqlite3.connect(folder / "campaign.db")) as db:
        blobs = {
            (table, name)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall()
            if kind == "BLOB" and name != "digest"
        }
        sizes = [size for (size,) in db.execute("SELECT length(visits) FROM runs WHERE visits IS NOT NULL").fetchall()]
    assert blobs == {("seeds", "visits"), ("runs", "visits")}
    visits = [event.visits for event in opened(folder).runs if event.visits is not None]
    assert len(sizes) == len(visits)
    assert 3 * sum(sizes) < sum(array.nbytes for each in visits for array in each.arrays)


@pytest.mark.parametrize("case", ["gone", "another", "damaged"])
def test_without_the_model_there_are_no_visits_and_it_is_said_why(tmp_path: Path, case: str) -> None:
    whole = toy.campaign(tmp_path)
    model: dc.AbstractModel | None = None
    if case == "gone":
        (tmp_path / MODEL).unlink()
        message = f"there is no abstract.model in '{tmp_path}'"
    elif case == "another":
        model, message = toy.model(1), "the model is not the campaign's own"
    else:
        (tmp_path / MODEL).write_bytes(b"no model")
        message = "abstract.model"
    campaign = dc.CampaignRecord.open(tmp_path, model=model, mutations=toy.MUTATIONS)
    assert campaign.model is None
    assert message in campaign.model_problem
    assert campaign.problem == ""
    assert {event.visits for event in events_of(campaign)} == {None}
    assert [str(test) for test in campaign.failed] == [str(test) for test in whole.failed]
    with pytest.raises(dc.InputError, match="there is no model to measure BSCov on: ") as caught:
        campaign.coverage(dc.BSCov)
    assert message in str(caught.value)


def test_a_system_without_states_visits_nothing(tmp_path: Path) -> None:
    class Silent(toy.Reader):
        def run(self, batch: Any) -> list[dc.Run]:
            return [dc.Run(run.output) for run in super().run(batch)]

    arguments: dict[str, Any] = {
        "oracle": dc.Disagreement(),
        "mutations": toy.MUTATIONS,
        "workers": 0,
        "runs": 48,
        "guide": "random",
    }
    campaign = dc.fuzz(Silent(), None, toy.seeds(), folder=tmp_path, **arguments)
    assert {event.visits for event in events_of(campaign)} == {None}
    assert (campaign.model, campaign.model_problem, campaign.problem) == (None, "", "")
    assert not (tmp_path / MODEL).exists()
    with pytest.raises(dc.InputError, match="there is no model to measure BSCov on: none was used"):
        campaign.coverage(dc.BSCov)


def test_the_folder_has_the_model_the_seeds_of_failing_tests_and_why_it_stopped(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    assert dc.AbstractModel.load(tmp_path / MODEL) == toy.model()
    positions = [event.seed for event in campaign.seeds]
    kept = {positions[int(path.stem)]: path.read_text() for path in (tmp_path / "seeds").iterdir()}
    assert kept == {test.seed: campaign.inputs.seeds[test.seed] for test in campaign.failed}
    assert kept.keys() == {positions[test.position] for test in campaign.failed}
    with Store.open(tmp_path, write=False) as store:
        assert store.meta("stopped") == "64 runs are done"
    assert (campaign.stopped, campaign.state) == ("64 runs are done", "finished")


def test_the_size_of_the_pieces_in_which_visits_are_unpacked_does_not_matter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = opened(folder).events
    assert any(event.visits is not None and len(event.visits.states) for event in events)
    for size in (1, 200, 10**9):
        monkeypatch.setattr(database, "_TOGETHER", size)
        again = opened(folder).events
        assert [toy.event_fields(event) for event in again] == [toy.event_fields(event) for event in events]
