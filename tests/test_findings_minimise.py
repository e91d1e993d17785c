"""A small part of a test set that covers as much."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.criteria import FIVE
from deepcruiser.findings.minimise import minimise, minimise_visits, smallest_cover
from tests.support.toy import Reader, Text, model, texts

sets = st.lists(st.frozensets(st.integers(0, 15), max_size=8), max_size=14)


def plain_greedy(tests: list[frozenset[int]]) -> list[int]:
    """Always the first test that adds most, until nothing is added."""
    covered: set[int] = set()
    chosen: list[int] = []
    while True:
        gains = [len(test - covered) for test in tests]
        if not any(gains):
            return chosen
        chosen.append(gains.index(max(gains)))
        covered |= tests[chosen[-1]]


@given(sets)
def test_never_more_than_plain_greedy_set_cover(tests: list[frozenset[int]]) -> None:
    arrays = [np.array(sorted(test), np.int64) for test in tests]
    chosen = smallest_cover(arrays, 16)
    assert len(chosen) <= len(plain_greedy(tests))
    assert len(set(chosen)) == len(chosen)
    everything = frozenset[int]().union(*tests)
    assert frozenset[int]().union(*(tests[i] for i in chosen)) == everything
    for left_out in chosen:
        rest = frozenset[int]().union(*(tests[i] for i in chosen if i != left_out))
        assert rest != everything, "every one of them is needed"
    # in the order in which they add coverage
    covered: set[int] = set()
    gains = []
    for i in chosen:
        gains.append(len(tests[i] - covered))
        covered |= tests[i]
    assert gains == sorted(gains, reverse=True)


def test_a_redundant_choice_of_the_greedy_is_removed() -> None:
    """The greatest set comes first, and the two after it make it superfluous."""
    tests = [{0, 1, 2, 3}, {0, 1, 4}, {2, 3, 5}]
    arrays = [np.array(sorted(test), np.int64) for test in tests]
    assert plain_greedy([frozenset(test) for test in tests]) == [0, 1, 2]
    assert smallest_cover(arrays, 6) == [1, 2]


@pytest.mark.parametrize("criteria", [(each,) for each in FIVE] + [(dc.BSCov, dc.BTCov), FIVE])
def test_covers_exactly_as_much_as_the_whole(criteria: tuple[dc.Criterion, ...]) -> None:
    data = [Text(f"t{i}", text) for i, text in enumerate(texts(60, seed=5) * 2)]
    result = minimise(model(), Reader(), data, criteria=criteria)
    whole = dc.cover(model(), Reader(), data, criteria=criteria)
    part = dc.cover(model(), Reader(), [each for each in data if each.id in result.tests], criteria=criteria)
    values = [whole[each] for each in criteria]
    assert [part[each] for each in criteria] == values
    assert list(result.coverage[-1]) == values
    assert 0 < len(result.tests) <= 60 < result.of == 120
    runs = Reader().run([each.value for each in data])
    visits = [(each.id, model().visits(run.traced)) for each, run in zip(data, runs, strict=True)]
    assert minimise_visits(model(), visits, criteria=criteria).tests == result.tests


def test_coverage_is_that_of_the_tests_so_far() -> None:
    data = [Text(f"t{i}", text) for i, text in enumerate(texts(30, seed=6))]
    result = minimise(model(), Reader(), data, criteria=FIVE)
    by_id = {each.id: each for each in data}
    for count, values in enumerate(result.coverage, 1):
        part = dc.cover(model(), Reader(), [by_id[name] for name in result.tests[:count]])
        assert list(values) == pytest.approx([part[each] for each in FIVE])


def test_nothing_to_cover_with() -> None:
    with pytest.raises(dc.InputError, match="needs at least one criterion"):
        minimise(model(), Reader(), texts(3), criteria=())
    empty = minimise_visits(model(), [])
    assert empty.tests == ()
    assert str(empty) == "0 of 0 tests cover as much as all of them: BSCov 0.00%"


def test_the_command(tmp_path: Path) -> None:
    """On the built-in recogniser: any four of its recordings, and a list of files that reads back."""
    runner = CliRunner()
    corpus = dc.read_corpus(_recordings(tmp_path / "tests"))
    system = dc.load_system("english")
    dc.profile(system, corpus, components=2, exact=True).abstract(5).save(tmp_path / "asr.model")
    command = ["minimise", "--system", "english", "--data", str(tmp_path / "tests")]
    command += ["--model", str(tmp_path / "asr.model"), "--criterion", "BSCov,BTCov"]
    result = runner.invoke(main, [*command, "-o", str(tmp_path / "few.jsonl"), "--json"])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    chosen = [each["id"] for each in outcome["tests"]]
    assert outcome["of"] == 4
    assert outcome["tests"][-1]["coverage"] == {"BSCov": 1.0, "BTCov": 1.0}, "they are what the model was made of"
    assert [sample.path.stem for sample in dc.read_corpus(tmp_path / "few.jsonl")] == chosen
    plain = runner.invoke(main, command)
    assert plain.exit_code == 0
    assert f"{len(chosen)} of 4 tests cover as much as all of them: BSCov 100.00%, BTCov 100.00%" in plain.stdout


def test_a_list_of_what_is_no_file(tmp_path: Path) -> None:
    system = dc.load_system("brackets")
    data = texts(20, seed=3)
    dc.profile(system, data, components=2, exact=True).abstract(5).save(tmp_path / "b.model")
    command = f"minimise --system brackets --data brackets --model {tmp_path}/b.model -o {tmp_path}/few.jsonl"
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2
    assert "only a corpus of files can be written as a list" in result.output
    assert not (tmp_path / "few.jsonl").exists()


def _recordings(folder: Path) -> Path:
    folder.mkdir()
    samples: Any = dc.read_corpus(Path(dc.__file__).parent / "systems/builtin/speech/data/demo")[:4]
    for number, sample in enumerate(samples):
        sample.input.write(folder / f"r{number}.flac")
    return folder
