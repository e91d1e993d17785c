from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.export import export
from tests.conftest import walks
from tests.test_export import ROWS, by_hand


def test_a_picture_shows_states_steps_and_where_traces_begin_and_end(tmp_path: Path) -> None:
    rows = [*ROWS, (1, 1, 4, 1), (1, 2, 4, 5), (1, -1, 4, 1)]
    export(by_hand(rows, [0], states=5, final=[1, 2, 4]), tmp_path / "m.dot")
    text = (tmp_path / "m.dot").read_text(encoding="utf-8")
    assert re.search(r'^  s0 \[label="\(0\)\\n11×", .*penwidth', text, re.M), "ten traces begin, one step comes back"
    assert re.findall(r"^  begin(\d) -> s(\d)", text, re.M) == [("0", "0")]
    assert re.findall(r"^  s(\d) \[.*peripheries=2", text, re.M) == ["1", "2", "4"]
    assert re.findall(r"^  s(\d) \[.*dashed", text, re.M) == ["2", "4"]
    edges = dict(re.findall(r'^  (s\d -> s\d) \[label="(.*?)"', text, re.M))
    assert set(edges) == {f"s{s} -> s{t}" for s, _, t, _ in rows}
    assert edges["s0 -> s1"] == r"38%, 3×\n(1): 0.50\n(0): 0.25"
    assert edges["s1 -> s4"] == r"90%, 9×\n(2): 1.00\n(0): 0.67\n(1): 1.00\nand 1 more"


@pytest.mark.parametrize("components", [1, 2, 3])
def test_no_two_states_of_a_larger_picture_lie_on_top_of_each_other(components: int, tmp_path: Path) -> None:
    profile = dc.Profile.of(walks(np.random.default_rng(7), 60), components=components)
    model = profile.abstract({1: 40, 2: 10, 3: 5}[components])
    export(model, tmp_path / "m.dot")
    places = re.findall(r'^  s\d+ \[.*pos="(.*?),(.*?)!"', (tmp_path / "m.dot").read_text(encoding="utf-8"), re.M)
    where = np.array(places, float)
    assert len(where) == len(model.states)
    apart = np.abs(where[:, None] - where[None])
    assert ((apart[..., 0] > 0.7) | (apart[..., 1] > 0.4) | np.eye(len(where), dtype=bool)).all()


def test_too_large_a_picture_is_refused(tmp_path: Path) -> None:
    model = by_hand([(s, 0, s + 1, 1) for s in range(200)], [0], states=201)
    with pytest.raises(dc.InputError, match=r"201 states .*at most 200.*fewer partitions.*\.graphml"):
        export(model, tmp_path / "m.dot")
    assert not list(tmp_path.iterdir())
    export(by_hand([(s, 0, s + 1, 1) for s in range(199)], [0], states=200), tmp_path / "m.dot")
