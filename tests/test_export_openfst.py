"""Transducers in OpenFst's text format, read back by the rules of that format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from tests.conftest import walks

Arc = tuple[int, str, str, int]


def read(path: Path) -> tuple[int, set[Arc], set[int]]:
    """The initial state, the transitions and the final states, with every symbol checked against its table."""
    tables = {}
    for suffix in (".isyms", ".osyms", ".ssyms"):
        rows = [line.split("\t") for line in path.with_suffix(suffix).read_text().splitlines()]
        tables[suffix] = {name: int(number) for name, number in rows}
        assert list(tables[suffix].values()) == list(range(len(rows)))
    assert tables[".isyms"]["<eps>"] == tables[".osyms"]["<eps>"] == 0
    begin, arcs, final = -1, set(), set()
    for line in path.read_text().splitlines():
        fields = line.split("\t")
        begin = int(fields[0]) if begin < 0 else begin
        if len(fields) == 1:
            final.add(int(fields[0]))
        else:
            assert fields[2] in tables[".isyms"]
            assert fields[3] in tables[".osyms"]
            arcs.add((int(fields[0]), fields[2], fields[3], int(fields[1])))
    return begin, arcs, final


def walk(states: list[float], inputs: list[float], outputs: list[str]) -> dc.Trace:
    return dc.Trace(np.array(states, float)[:, None], np.array(inputs, float)[:, None], np.array(outputs, str))


def test_the_two_traces_of_the_paper(tmp_path: Path) -> None:
    first = walk([0, 1, 2, 4], [0, 1, 3], ["y0", "y1", "y2"])
    second = walk([0, 1, 3, 4], [0, 2, 3], ["y0", "y1'", "y2"])
    model = dc.Profile.of([first, second], components=1).abstract(5, input_partitions=4)
    dc.export(dc.Transducer.of([first, second], model), tmp_path / "two.att")
    assert (tmp_path / "two.att").read_text() == (
        "0\t1\tx_0\ty0\n1\t2\tx_1\ty1\n1\t3\tx_2\ty1'\n2\t4\tx_3\ty2\n3\t4\tx_3\ty2\n4\n"
    )
    assert (tmp_path / "two.ssyms").read_text() == "s_0\t0\ns_1\t1\ns_2\t2\ns_3\t3\ns_4\t4\n"


@given(st.integers(0, 2**32), st.booleans())
def test_what_is_read_back_is_the_transducer(tmp_path_factory: pytest.TempPathFactory, seed: int, apart: bool) -> None:
    rng = np.random.default_rng(seed)
    traces = [dc.Trace(t.states, t.inputs, rng.integers(-2, 3, len(t))) for t in walks(rng, 5, size=2)]
    if apart:
        traces.append(dc.Trace(np.array([[7.0, 7.0], [0.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([3])))
    fst = dc.Transducer.of(traces)
    path = tmp_path_factory.mktemp("fst") / "m.att"
    dc.export(fst, path)
    begin, arcs, final = read(path)
    names = {".isyms": fst.inputs, ".osyms": fst.outputs, ".ssyms": fst.states}
    for suffix, values in names.items():
        assert len(path.with_suffix(suffix).read_text().splitlines()) == len(values) + (suffix != ".ssyms" or apart)
    expected = {(s, f"x{x}", f"y_{fst.outputs[y]}".replace("-", "m"), t) for s, x, y, t in fst.transitions.tolist()}
    starts = {(begin, "<eps>", "<eps>", state) for state in fst.initial.tolist()} if apart else set()
    assert begin == (len(fst.states) if apart else fst.initial[0])
    assert arcs == expected | starts
    assert final == set(fst.final.tolist())


@pytest.mark.parametrize("outputs", [["a b", "c"], ["<eps>", "c"], ["", "c"]])
def test_words_that_the_format_cannot_hold_are_numbered(outputs: list[str], tmp_path: Path) -> None:
    dc.export(dc.Transducer.of([walk([0, 1, 0], [0, 0], outputs)]), tmp_path / "m.att")
    assert (tmp_path / "m.osyms").read_text() == "<eps>\t0\ny0\t1\ny1\t2\n"


def test_wrong_suffixes(tmp_path: Path) -> None:
    trace = walk([0, 1], [0], ["a"])
    with pytest.raises(dc.InputError, match=r"a transducer is written as .att, not as '.*m.drn'"):
        dc.export(dc.Transducer.of([trace]), tmp_path / "m.drn")
    with pytest.raises(dc.InputError, match=r"\.att is for transducers, which have outputs: make one with"):
        dc.export(dc.Profile.of([trace], components=1).abstract(2), tmp_path / "m.att")
    assert not list(tmp_path.iterdir())
