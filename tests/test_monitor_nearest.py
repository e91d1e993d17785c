"""Which training data? The nearest profiled sequences, against a double loop."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.monitor import nearest as module
from tests.conftest import walks
from tests.support import plain
from tests.support.toy import Reader, texts
from tests.test_monitor_scores import cells


def test_the_nearest_sequences_are_those_of_a_double_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 20)  # so that there are several blocks
    rng = np.random.default_rng(0)
    for _ in range(20):
        profiled = walks(rng, 9)
        profile = dc.Profile.of(profiled, components=2)
        model = profile.abstract(7)
        (trace,) = walks(rng, 1, scale=2.0)
        first, last = sorted(rng.integers(0, len(trace) + 1, 2).tolist())
        visited = cells(model, trace)[0][first : last + 1]
        middle, others = visited[len(visited) // 2], [cells(model, other)[0] for other in profiled]
        distances = [np.mean([min(plain.distance(a, b) for b in other) for a in set(visited)]) for other in others]
        result = dc.nearest(profile, model, trace, steps=(first, last), count=9)
        assert [neighbour.distance for neighbour in result] == pytest.approx(sorted(distances), abs=1e-12)
        for neighbour in result:
            other = others[int(neighbour.name)]
            assert neighbour.distance == pytest.approx(distances[int(neighbour.name)], abs=1e-12)
            to_middle = [plain.distance(middle, cell) for cell in other]
            assert neighbour.step == to_middle.index(min(to_middle))


def test_a_profiled_sequence_is_nearest_to_itself() -> None:
    inputs = texts(40)
    profile = dc.profile(Reader(), inputs, exact=True)
    model = profile.abstract(50)
    (run,) = Reader().run([inputs[17]])
    best = dc.nearest(profile, model, run.traced, count=1)[0]
    assert (best.name, best.distance) == ("17", 0.0)


def test_names_are_kept_in_the_file_and_merged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = dc.Profile.of(walks(rng, 6))
    assert whole.names == ("0", "1", "2", "3", "4", "5")
    whole.save(tmp_path / "a.profile")
    assert dc.Profile.load(tmp_path / "a.profile").names == whole.names
    other = dc.Profile.of(walks(rng, 2), projections=whole.projections)
    assert whole.merge(other).names == (*whole.names, "0", "1")
    assert whole.merge(replace(other, names=())).names == ()


def test_profiles_of_earlier_versions_load_and_say_what_they_lack(tmp_path: Path) -> None:
    traces = walks(np.random.default_rng(0), 6)
    now = dc.Profile.of(traces)
    now.save(tmp_path / "now.profile")
    with zipfile.ZipFile(tmp_path / "now.profile") as new, zipfile.ZipFile(tmp_path / "old.profile", "w") as old:
        for member in new.namelist():
            data = new.read(member)
            if member == "about.json":
                about = json.loads(data)
                del about["names"]  # which version 0.1.0 did not write
                data = json.dumps(about).encode()
            old.writestr(member, data)
    loaded = dc.Profile.load(tmp_path / "old.profile")
    assert loaded == now
    with pytest.raises(dc.InputError, match="does not name its sequences, since an earlier version made it"):
        dc.nearest(loaded, loaded.abstract(5), traces[0])


def test_what_does_not_fit_together_is_refused() -> None:
    rng = np.random.default_rng(0)
    traces = walks(rng, 6)
    profile, other = dc.Profile.of(traces), dc.Profile.of(walks(rng, 6))
    with pytest.raises(dc.InputError, match="was not made from this profile"):
        dc.nearest(other, profile.abstract(5), traces[0])
    with pytest.raises(dc.InputError, match="so none from 99 to 100"):
        dc.nearest(profile, profile.abstract(5), traces[0], steps=(99, 100))
