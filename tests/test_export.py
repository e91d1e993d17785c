from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.abstraction.grid import Grid
from deepcruiser.abstraction.origin import Origin
from deepcruiser.abstraction.projection import Projection
from deepcruiser.abstraction.projections import Projections
from deepcruiser.abstraction.transition_counts import Counts
from deepcruiser.export import export, prism, storm
from tests.conftest import walks
from tests.support.plain import Plain

#: What a checker reads: the choices {(state, action): {successor: probability}} and the labels {name: states}.
Choices = dict[tuple[int, str], dict[int, float]]
Labels = dict[str, set[int]]


def by_hand(
    rows: list[tuple[int, int, int, int]],
    initial: list[int],
    *,
    states: int,
    shift: int = 0,
    final: list[int] | None = None,
) -> dc.AbstractModel:
    """A model of one component whose rows are (source, input, target, count); state i is the cell (i,)."""
    grid, input_grid = Grid(np.zeros(1), np.ones(1), states), Grid(np.zeros(1), np.ones(1), 3)
    table = np.array(sorted(rows), np.int64).reshape(-1, 4)
    inputs, action = np.unique(table[:, 1], return_inverse=True)
    counts = Counts(
        states=grid.encode(np.arange(states)[:, None]),
        inputs=input_grid.encode(inputs[:, None] + shift),
        initial=np.array(initial, np.int64),
        final=np.array(sorted(set(range(states)) - {row[0] for row in rows}) if final is None else final, np.int64),
        source=table[:, 0],
        action=action,
        target=table[:, 2],
        count=table[:, 3],
    )
    identity = Projection(np.zeros(1), np.ones((1, 1)), np.ones(1), 1.0)
    origin = Origin(state_name="h", network="", data="", traces=10, steps=int(table[:, 3].sum()), fitted_on=10)
    return dc.AbstractModel(Projections(identity, identity), grid, input_grid, counts, origin)


#: Two ways out of state 0, a way back from 1, and the ends 2 and 4.
ROWS = [(0, 0, 1, 1), (0, 0, 2, 3), (0, 1, 1, 2), (0, 1, 3, 2), (1, 0, 0, 1), (1, 0, 4, 2), (3, 0, 2, 1), (3, 0, 4, 1)]


def read_prism(path: Path) -> tuple[Choices, Labels, list[tuple[int, ...]]]:
    header, *lines = path.with_suffix(".tra").read_text().splitlines()
    choices: Choices = defaultdict(dict)
    numbers: dict[tuple[int, str], int] = {}
    rows = [(int(s), int(i), int(t), float(p), a) for s, i, t, p, a in (line.split(" ") for line in lines)]
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    for s, i, t, p, a in rows:
        assert numbers.setdefault((s, a), i) == i
        assert t not in choices[s, a]
        choices[s, a][t] = p
    for state in {s for s, _ in choices}:
        assert sorted(i for (s, _), i in numbers.items() if s == state) == list(
            range(sum(s == state for s, _ in choices))
        )
    names, *cells = path.with_suffix(".sta").read_text().splitlines()
    states = [tuple(map(int, re.fullmatch(rf"{n}:\((.*)\)", line)[1].split(","))) for n, line in enumerate(cells)]  # type: ignore[index]
    assert names == f"({','.join(f'c{d}' for d in range(len(states[0])))})"
    assert header == f"{len(states)} {len(choices)} {len(rows)}"
    declared, *lines = path.with_suffix(".lab").read_text().splitlines()
    label = dict(re.findall(r'(\d+)="(\w+)"', declared))
    assert list(label) == [str(n) for n in range(len(label))]
    labels: Labels = {name: set() for name in label.values()}
    for line in lines:
        carrier, carried = line.split(": ")
        for number in carried.split(" "):
            labels[label[number]].add(int(carrier))
    return dict(choices), labels, states


def read_drn(path: Path) -> tuple[Choices, Labels]:
    head, body = path.read_text().split("@model\n")
    keys = re.fullmatch(r"@type: MDP\n@parameters\n\n@reward_models\n\n@nr_states\n(\d+)\n@nr_choices\n(\d+)\n", head)
    assert keys
    choices: Choices = {}
    labels: Labels = defaultdict(set)
    state, action = -1, ""
    for line in body.splitlines():
        if line.startswith("state "):
            _, number, *names = line.split(" ")
            state += 1
            assert int(number) == state
            for name in names:
                labels[name].add(state)
        elif line.startswith("\taction "):
            action = line.removeprefix("\taction ")
            assert (state, action) not in choices
            choices[state, action] = {}
        else:
            target, probability = line.strip().split(" : ")
            choices[state, action][int(target)] = float(probability)
    assert [int(n) for n in keys.groups()] == [state + 1, len(choices)]
    return choices, dict(labels)


def read_graphml(path: Path) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, dict[str, str]]]]:
    space = "{http://graphml.graphdrawing.org/xmlns}"
    graph = ET.parse(path).getroot().find(f"{space}graph")
    assert graph is not None

    def data(element: ET.Element) -> dict[str, str]:
        return {d.attrib["key"]: d.text or "" for d in element.iter(f"{space}data")}

    nodes = {node.attrib["id"]: data(node) for node in graph.iter(f"{space}node")}
    return nodes, [(e.attrib["source"], e.attrib["target"], data(e)) for e in graph.iter(f"{space}edge")]


def action(cell: tuple[int, ...]) -> str:
    return "x_" + "_".join(map(str, cell)).replace("-", "m")


@pytest.mark.parametrize("seed", range(5))
def test_every_format_says_what_the_traces_did(seed: int, tmp_path: Path) -> None:
    traces = walks(np.random.default_rng(seed), 30)
    if seed % 2:  # begin in several states
        traces += [dc.Trace(t.states + 1, t.inputs) for t in walks(np.random.default_rng(100 + seed), 10)]
    model = dc.Profile.of(traces, components=2).abstract(5, input_partitions=3)
    cells = [tuple([tuple(c) for c in part.tolist()] for part in model.cells(trace)) for trace in traces]
    plain = Plain.of(cells)  # type: ignore[arg-type]
    assert (len(plain.initial) > 1) == bool(seed % 2)
    for name in ("m.tra", "m.drn", "m.graphml"):
        export(model, tmp_path / name)

    choices, labels, states = read_prism(tmp_path / "m.tra")
    number = {cell: n for n, cell in enumerate(states)}
    assert set(states) == plain.states
    expected: Choices = defaultdict(dict)
    for s, x, t in plain.counts:
        expected[number[s], action(x)][number[t]] = plain.probability(s, x, t)
    ends = {number[s] for s in plain.states if not plain.inputs[s]}
    expected.update({(s, "end"): {s: 1.0} for s in ends})
    assert choices == expected
    assert all(abs(sum(successors.values()) - 1) < 1e-12 for successors in choices.values())
    visits = [sum(states_of.count(cell) for states_of, _ in cells) for cell in states]
    once = {n for n, times in enumerate(visits) if times == 1}
    initial = {number[s] for s in plain.initial}
    assert labels["init"] == initial
    last = {number[tuple(states_of[-1])] for states_of, _ in cells}
    assert (labels["end"], labels["no_way_out"], labels["deadlock"]) == (last, ends, set())
    assert ends < last
    assert labels["once"] - initial == once - initial

    drn_choices, drn_labels = read_drn(tmp_path / "m.drn")
    assert drn_choices == choices
    for d in range(2):
        for index in {cell[d] for cell in states}:
            assert drn_labels.pop(f"c{d}_{index}") == {n for n, cell in enumerate(states) if cell[d] == index}
    assert drn_labels == {name: carriers for name, carriers in labels.items() if carriers}

    nodes, edges = read_graphml(tmp_path / "m.graphml")
    assert [nodes[f"s{n}"]["cell"] for n in range(len(states))] == [str(cell) for cell in states]
    assert {n for n in range(len(states)) if nodes[f"s{n}"]["initial"] == "true"} == initial
    assert {n for n in range(len(states)) if nodes[f"s{n}"]["end"] == "true"} == last
    assert {n for n in range(len(states)) if nodes[f"s{n}"]["no_way_out"] == "true"} == ends
    for n, times in enumerate(visits):
        reported = int(nodes[f"s{n}"]["visits"])
        assert 1 <= reported <= times if n in initial and len(initial) > 1 else reported == times
    assert len(edges) == len(plain.counts)
    for (s, x, t), count in plain.counts.items():
        wanted = {"input": str(x), "count": str(count), "probability": repr(choices[number[s], action(x)][number[t]])}
        assert (f"s{number[s]}", f"s{number[t]}", wanted) in edges


def reach(choices: Choices, goal: int, best: Callable[[list[float]], float]) -> dict[int, float]:
    """The probability of reaching `goal` from each state, when inputs are chosen for the most or the least of it."""
    value = {s: float(s == goal) for s, _ in choices}
    for _ in range(200):
        for state in value.keys() - {goal}:
            ways = [sum(p * value[t] for t, p in to.items()) for (s, _), to in choices.items() if s == state]
            value[state] = best(ways)
    return value


def test_the_exported_process_has_the_probabilities_computed_by_hand(tmp_path: Path) -> None:
    export(by_hand(ROWS, [0], states=5), tmp_path / "m.tra")
    export(by_hand(ROWS, [0], states=5), tmp_path / "m.drn")
    choices, labels, _ = read_prism(tmp_path / "m.tra")
    assert read_drn(tmp_path / "m.drn")[0] == choices
    # p = 1/2 (p/3 + 2/3) + 1/2 * 1/2 with the second input, p = 1/4 (p/3 + 2/3) with the first
    assert reach(choices, 4, max)[0] == pytest.approx(0.7)
    assert reach(choices, 4, min)[0] == pytest.approx(2 / 11)
    assert labels == {"init": {0}, "deadlock": set(), "end": {2, 4}, "no_way_out": {2, 4}, "once": set()}


def test_the_files_to_the_letter(tmp_path: Path) -> None:
    model = by_hand([(0, 0, 0, 1), (0, 0, 1, 2), (0, 2, 0, 1)], [0, 1], states=2, shift=-1, final=[0, 1])
    export(model, tmp_path / "m.lab")
    export(model, tmp_path / "m.drn")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.drn", "m.lab", "m.sta", "m.tra"]
    assert (tmp_path / "m.tra").read_text() == (
        "2 3 4\n0 0 0 0.3333333333333333 x_m1\n0 0 1 0.6666666666666666 x_m1\n0 1 0 1.0 x_1\n1 0 1 1.0 end\n"
    )
    assert (tmp_path / "m.sta").read_text() == "(c0)\n0:(0)\n1:(1)\n"
    assert (tmp_path / "m.lab").read_text() == (
        '0="init" 1="deadlock" 2="end" 3="no_way_out" 4="once"\n0: 0 2\n1: 0 2 3\n'
    )
    assert (tmp_path / "m.drn").read_text() == (
        "@type: MDP\n@parameters\n\n@reward_models\n\n@nr_states\n2\n@nr_choices\n3\n@model\n"
        "state 0 init end c0_0\n\taction x_m1\n\t\t0 : 0.3333333333333333\n\t\t1 : 0.6666666666666666\n"
        "\taction x_1\n\t\t0 : 1.0\nstate 1 init end no_way_out c0_1\n\taction end\n\t\t1 : 1.0\n"
    )


def test_many_successors_of_one_choice_still_sum_to_one(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).integers(1, 10**9, 500).tolist()
    export(by_hand([(0, 0, t, count) for t, count in enumerate(weights)], [0], states=500), tmp_path / "m.tra")
    choices = read_prism(tmp_path / "m.tra")[0]
    assert abs(sum(choices[0, "x_0"].values()) - 1) < 1e-12


def test_a_name_without_a_known_end_is_refused(tmp_path: Path) -> None:
    for name in ("m.png", "m"):
        with pytest.raises(dc.InputError, match=rf"{name}'.*\.tra, \.sta, \.lab, \.drn, \.dot, \.graphml"):
            export(by_hand(ROWS, [0], states=5), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "module", "part"), [("m.tra", prism, "_lab"), ("m.drn", storm, "_drn")])
def test_a_failure_leaves_nothing_behind(
    name: str, module: ModuleType, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("what was there before")

    def broken(*_: object) -> None:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(module, part, broken)
    with pytest.raises(RuntimeError, match="out of ideas"):
        export(by_hand(ROWS, [0], states=5), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "what was there before"


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match="there is no folder"):
        export(by_hand(ROWS, [0], states=5), tmp_path / "nowhere" / "m.drn")
