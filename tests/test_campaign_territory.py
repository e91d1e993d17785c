"""What a campaign notes of where its runs went, against all runs done again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

import deepcruiser as dc
from deepcruiser.campaign.events import Ran, Seeded
from deepcruiser.campaign.store import MODEL, Store
from tests.support import toy


def test_the_territory_is_what_all_runs_visit_when_they_are_done_again(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, guide=dc.BSCov, runs=192)
    model, system, by_number = toy.model(), toy.Reader(), campaign._by_number
    cells: dict[str, set[tuple[int, ...]]] = {"seeds": set(), "passed": set(), "failed": set()}
    pairs: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for event in campaign.events:
        recipe, root = [], event
        while isinstance(root, Ran):
            recipe.append(root.transformation)
            root = by_number[root.parent]
        if event.outcome == "rejected":
            continue
        assert isinstance(root, Seeded)
        value = campaign.seeds[root.seed]
        for change in reversed(recipe):
            value = change(value)
        states = [tuple(cell) for cell in model.cells(system.run([value])[0].trace)[0].tolist()]
        who = "seeds" if isinstance(event, Seeded) else "failed" if event.outcome == "failed" else "passed"
        cells[who].update(states)
        if who != "failed":
            pairs.update(pairwise(states))
    cells["passed"] -= cells["seeds"]  # each is noted once

    inside = {tuple(cell): number for number, cell in enumerate(model.grid.decode(model.states).tolist())}
    with Store.open(tmp_path, write=False) as store:
        noted = list(store.territory())
    for who, expected in cells.items():
        grounds = [ground for _, by, ground in noted if by == who]
        states = np.concatenate([ground[0] for ground in grounds]).tolist()
        outside = model.grid.decode(np.concatenate([ground[3] for ground in grounds])).tolist()
        assert sorted(states) == sorted(inside[cell] for cell in expected if cell in inside)
        assert sorted(map(tuple, outside)) == sorted(cell for cell in expected if cell not in inside)
        assert expected, f"nothing was visited by {who}: the test would show nothing"
    assert any(cell not in inside for cell in cells["passed"])
    transitions = np.concatenate([ground[1] for _, by, ground in noted if by != "failed"]).tolist()
    sources, targets = np.divmod(model.transitions, len(model.states))
    known = {(source, target): i for i, (source, target) in enumerate(zip(sources, targets, strict=True))}
    expected_pairs = {(inside.get(a), inside.get(b)) for a, b in pairs}
    assert sorted(transitions) == sorted(known[pair] for pair in expected_pairs if pair in known)


def test_the_folder_has_the_model_the_seeds_of_failing_tests_and_why_it_stopped(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path)
    assert dc.AbstractModel.load(tmp_path / MODEL) == toy.model()
    positions = [event.seed for event in campaign.events if isinstance(event, Seeded)]
    kept = {positions[int(path.stem)]: path.read_text() for path in (tmp_path / "seeds").iterdir()}
    assert kept == {test.seed: campaign.seeds[test.seed] for test in campaign.failed}
    with Store.open(tmp_path, write=False) as store:
        assert store.meta("stopped") == "64 runs are done"
