"""Failures with one cause are grouped, and the groups are in order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.abstraction.visits import Visits
from deepcruiser.findings.cluster import Findings, find
from deepcruiser.findings.groups import group_by
from deepcruiser.findings.phrases import phrase
from deepcruiser.findings.region import new_share, parting, usual_share
from deepcruiser.findings.shrink import Shrunk
from deepcruiser.transformations import PAPER, AddWhiteNoise, ChangeSpeed, HighPassFilter, LowPassFilter, Trim
from deepcruiser.transformations.beyond_paper import AddBackgroundNoise, Reverb, Telephone
from deepcruiser.transformations.recipe import UnknownChange
from tests.support.failures import Record, failed_test, random_failures
from tests.support.toy import Reader, model, texts


def grouped(record: Record, shrunk: Any = None) -> Findings:
    return find(record, shrunk)  # type: ignore[arg-type]


LAY = [
    failed_test(i, f"s{i % 7}", (Trim(40), HighPassFilter(180 + 10 * i)), "please play it", "please lay it")
    for i in range(1, 10)
]
DOOR = [failed_test(20 + i, f"t{i}", (ChangeSpeed(1.1),), "open the door", "open door") for i in range(3)]


def test_one_cause_one_finding() -> None:
    found = grouped(Record([*LAY, *DOOR]))
    lay, door = found.findings
    assert [member.test.number for member in door.members] == [20, 21, 22]
    assert lay.title == "'play' heard as 'lay' when high-passed at 190 Hz: 7 seeds"
    assert door.title == "'the' not heard when sped up to 1.1 x: 3 seeds"
    assert lay.explanation == "9 failing tests in which 'play' is wrong and the change that matters is HighPassFilter"
    assert lay.counts() == {"transformations": {"HighPassFilter": 9, "Trim": 9}, "words": {"play": 9}}
    assert found.failing_tests == 12


def test_labels_are_one_finding_that_counts_them() -> None:
    labels = [("yes", "no"), ("yes", "no"), ("up", "down")]
    tests = [failed_test(i, f"s{i}", (LowPassFilter(3000 + i),), *pair) for i, pair in enumerate(labels)]
    (finding,) = grouped(Record(tests, dc.Disagreement())).findings
    assert finding.title == "wrong label (mostly 'yes' became 'no') when low-passed at 3,002 Hz: 3 seeds"
    assert finding.counts()["labels"] == {"'yes' became 'no'": 2, "'up' became 'down'": 1}


def test_every_failure_is_in_one_finding_and_stays_there() -> None:
    tests = random_failures(3000)
    before = grouped(Record(tests[:2900]))
    after = grouped(Record(tests))

    def places(found: Findings) -> dict[int, str]:
        numbers = [member.test.number for finding in found.findings for member in finding.members]
        assert len(numbers) == len(set(numbers)), "in one finding only"
        return {member.test.number: finding.id for finding in found.findings for member in finding.members}

    was, now = places(before), places(after)
    assert was.keys() == set(range(1, 2901))
    assert now.keys() == set(range(1, 3001))
    assert {number: now[number] for number in was} == was
    assert len({finding.id for finding in after.findings}) == len(after.findings)


def test_what_matters_most_comes_first() -> None:
    """More seeds, a worse answer, a milder change: each alone decides."""
    base = {"reference": "open the door", "output": "open door"}
    for better, worse in [
        ([failed_test(i, f"s{i}", (Trim(40),), **base) for i in range(3)], [failed_test(9, "s9", (Trim(40),), **base)]),
        ([failed_test(1, "s", (Trim(40),), "open", "")], [failed_test(2, "s", (Trim(40),), "open it", "open")]),
        ([failed_test(1, "s", (ChangeSpeed(1.01),), **base)], [failed_test(2, "s", (ChangeSpeed(1.15),), **base)]),
    ]:
        other = [
            replace(test, recipe=(*test.recipe[:-1], AddWhiteNoise(30, 1)), number=50 + i)
            for i, test in enumerate(worse)
        ]
        if type(better[0].recipe[-1]) is not ChangeSpeed:
            better = [replace(test, recipe=(HighPassFilter(300),)) for test in better]
        first, second = grouped(Record([*other, *better])).findings
        assert [member.test.number for member in first.members] == [test.number for test in better]
        assert first.rank > second.rank
    crash = failed_test(1, "s", (Trim(40),), "open", "ValueError: no", kind="crash", score=0.0)
    wrong = failed_test(2, "s", (Trim(40),), "open", "shut")
    assert grouped(Record([wrong, crash])).findings[0].cause.kind == "crash"


def test_shrinking_names_the_change_that_is_left() -> None:
    test = failed_test(1, "s", (LowPassFilter(4000), ChangeSpeed(1.1), Trim(40)), "open the door", "open door")
    left = Shrunk(1, "shrunk", (LowPassFilter(4800),), (), 9, 1, "open door", 1 / 3, "")
    (finding,) = grouped(Record([test]), {1: left}).findings
    assert finding.title == "'the' not heard when low-passed at 4,800 Hz: 1 seed"
    assert finding.cause.change == "LowPassFilter"
    assert "the change that matters is LowPassFilter" in finding.explanation


def test_what_does_not_fail_any_more_is_kept_apart() -> None:
    gone = Shrunk(LAY[0].number, "no longer fails", LAY[0].recipe, (), 5, 0, None, 0.0, "")
    found = grouped(Record([*LAY, *DOOR]), {LAY[0].number: gone})
    assert [(test.number, each.status) for test, each in found.apart] == [(1, "no longer fails")]
    assert found.failing_tests == 11


def test_spacing_is_counted_apart() -> None:
    oracle = dc.WordErrorRate(normalise=("case", "spacing"))
    runs = [
        SimpleNamespace(outcome=outcome, parent=-1, output=output)
        for outcome, output in [
            ("kept", "the sun set"), ("dropped", "the sunset"), ("dropped", "thesun set"), ("failed", "the sun sat"),
            ("rejected", None),
        ]
    ]  # fmt: skip
    tests = {-1: SimpleNamespace(reference="the sunset")}
    assert grouped(Record([], oracle, runs=runs, tests=tests)).spacing == 2
    assert grouped(Record([], dc.WordErrorRate(), runs=runs, tests=tests)).spacing == 0, "there they fail"
    assert grouped(Record([])).findings == ()


def _visits(text: str) -> Visits:
    (run,) = Reader().run([text])
    return model().visits(run.traced)


def test_new_cells_are_those_that_neither_training_nor_the_seed_visited() -> None:
    known = set(map(tuple, model().cells_of_states()["state"].tolist()))

    def cells(text: str) -> set[tuple[int, ...]]:
        (run,) = Reader().run([text])
        return {tuple(cell) for cell in model().cells(run.traced)[0].tolist()}

    seeds = texts(60, seed=1)
    shares = [len(cells(text) - known) / len(cells(text)) for text in seeds]
    usual = usual_share(map(_visits, seeds))
    assert 0.05 <= usual < max(shares)
    assert np.mean(np.array(shares) <= usual) == pytest.approx(0.95)
    assert usual_share([]) == usual_share([_visits("ab")]) == 0.05
    found = set()
    for seed, text in zip(seeds, texts(60, seed=2), strict=True):
        found.add(expected := len(cells(text) - cells(seed) - known) / len(cells(text)))
        assert new_share(_visits(seed), _visits(text)) == expected
    assert min(found) == 0 < max(found), "the test sees both"
    assert new_share(None, _visits("ab")) == new_share(_visits("ab"), None) == 0


def test_a_word_that_is_wrong_in_several_seeds_is_part_of_the_cause() -> None:
    lay, door = grouped(Record([*LAY, *DOOR])).findings
    assert (lay.cause.expected, door.cause.expected) == ("play", "the")
    one, other = LAY[0], replace(LAY[1], seed=LAY[0].seed)
    (single,) = grouped(Record([one, other])).findings
    assert single.cause.expected == "", "one seed is no pattern"
    trimmed = replace(LAY[1], recipe=(Trim(40),))
    apart = grouped(Record([LAY[0], trimmed])).findings
    assert [finding.cause.expected for finding in apart] == ["", ""], "nor is one seed for each change"
    assert (
        single.explanation == "2 failing tests in which words are wrong and the change that matters is HighPassFilter"
    )


def test_of_several_changes_the_one_that_suffices_alone_in_others_matters() -> None:
    both = failed_test(1, "s", (Trim(40), HighPassFilter(200)), "open the door", "open door", added=2)
    alone = [failed_test(2, "t", (HighPassFilter(300),), "open the door", "the door")]
    (unknown,) = grouped(Record([both])).findings
    assert (
        unknown.title
        == "'the' not heard when trimmed at both ends 40 dB below the peak and high-passed at 200 Hz: 1 seed"
    )
    assert unknown.explanation == "1 failing test in which words are wrong and no single change is known to cause it"
    (known,) = grouped(Record([both, *alone])).findings
    assert known.cause.change == "HighPassFilter"
    assert known.title.startswith("wrong words (mostly 'the' not heard) when high-passed at ")
    several = Shrunk(1, "shrunk", both.recipe, (), 9, 1, "open door", 1 / 3, "")
    changes = {finding.cause.change for finding in grouped(Record([both, *alone]), {1: several}).findings}
    assert changes == {"HighPassFilter", "several changes"}, "after shrinking, both are needed"


def _run(number: int, visits: Visits, outcome: str, *changes: Any) -> Any:
    return SimpleNamespace(number=number, parent=-1, visits=visits, outcome=outcome, changes=changes, output=None)


def test_states_that_leave_what_training_visited_are_the_cause() -> None:
    """If tests fail there more often than others with the same changes; whatever the words."""
    near = _visits("ab")
    far = next(each for each in map(_visits, texts(99, seed=2)) if new_share(near, each))
    seeds = [SimpleNamespace(position=0, visits=near, outcome="kept", reference=None)]
    words = ["open", "open door", "the door"]
    changes: list[Any] = [Trim(40) if i % 3 else HighPassFilter(200 + i) for i in range(9)]

    def record(changes: list[Any], *others: Any) -> Record:
        tests = [
            failed_test(100 + i, f"s{i}", (change,), "open the door", words[i % 3], visits=far)
            for i, change in enumerate(changes)
        ]
        failed = [_run(test.number, far, "failed", *test.recipe) for test in tests]
        return Record(tests, seeds=seeds, runs=[*others, *failed], tests={-1: SimpleNamespace(position=0)})

    def passed(visits: Visits, change: Any, count: int) -> list[Any]:
        return [_run(i, visits, "dropped", change) for i in range(count)]

    inside = [*passed(near, Trim(40), 9), *passed(near, HighPassFilter(100), 9)]
    both = record(changes, *inside)
    (mixed,) = grouped(both).findings
    assert mixed.title == "wrong words where the states leave the region that training visited: 9 seeds"
    assert (mixed.cause.kind, mixed.cause.region, mixed.cause.symptom[1:]) == ("wrong words", "outside", ("",) * 3)
    assert mixed.explanation == (
        "9 failing tests in which words are wrong and some of the states are outside the region that training and the "
        "seed visited"
    )
    worst = mixed.worst.test.number
    left = Shrunk(worst, "shrunk", (Trim(41),), (), 9, 1, "open", 2 / 3, "", "after 'b'")
    (named,) = grouped(both, {worst: left}).findings
    assert named.title == "wrong words where the states leave the region that training visited, after 'b': 9 seeds"
    assert named.id == mixed.id

    (one,) = grouped(record(changes[::3], *passed(near, Trim(40), 9), *passed(far, Trim(40), 1))).findings
    assert one.cause.change == "HighPassFilter", "all tests with that change fail, and not all with new states"
    assert re.fullmatch(r"wrong words when high-passed at 20\d Hz: 3 seeds", one.title)
    shared = record([Trim(40)] * 9, *passed(near, Trim(40), 40), *passed(far, Trim(40), 9))
    (same,) = grouped(shared).findings
    assert same.cause.region == "outside", "with the same change, tests fail there only"
    assert same.title == (
        "wrong words when trimmed at both ends 40 dB below the peak, "
        "where the states leave the region that training visited: 9 seeds"
    )
    less = record([Trim(40)] * 9, *passed(near, Trim(40), 9), *passed(far, Trim(40), 27))
    assert {finding.cause.region for finding in grouped(less).findings} == {""}, "few passed elsewhere: chance"
    fails_inside = [_run(20 + i, near, "failed", Trim(40)) for i in range(9)]
    mixed_up = grouped(record(changes, *inside, *fails_inside)).findings
    assert {finding.cause.region for finding in mixed_up} == {""}, "tests fail inside too"


def test_parting() -> None:
    """Two texts part at the beginning of the longest stretch in which their cells differ."""
    one, other = Reader().run(["ab(ab(ab", "ab()][ab"])
    found = parting(model(), one.traced, other.traced)
    a, b = (model().cells(run.traced)[0].tolist() for run in (one, other))
    assert found is not None
    differs = [x != y for x, y in zip(a, b, strict=True)]
    stretches = ["".join("01"[different] for different in differs[i:]).partition("0")[0] for i in range(len(differs))]
    assert found.step == max(range(len(differs)), key=lambda i: (len(stretches[i]), -i))
    assert 0 < len(stretches[found.step]) < len(differs)
    assert found.cell == tuple(b[found.step])
    known = set(map(tuple, model().cells_of_states()["state"].tolist()))
    assert found.known is (found.cell in known)
    assert f"diverge at step {found.step} " in str(found)
    assert parting(model(), one.traced, one.traced) is None


def test_parting_of_a_longer_test_goes_by_the_share_of_its_length() -> None:
    (short,) = Reader().run(["abab"])
    slow = dc.Trace(np.repeat(np.asarray(short.traced.states), 2, axis=0)[1:-1], np.zeros((7, 6)))
    found = parting(model(), short.traced, slow)
    assert found is None or found.step > 0, "the same way, half as fast, is hardly another one"


@pytest.mark.parametrize(
    ("rule", "group"),
    [("label", "open the door"), ("length", "3 words"), (r"^(\w+)-\d", "anna"), (r"\d+", "17"), ("x", "")],
)
def test_groups(rule: str, group: str) -> None:
    assert group_by(rule)(failed_test(1, "anna-17", (Trim(40),), "open the door", "open")) == group


def test_groups_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "voices.csv"
    table.write_text("id,voice,room\nanna-17,Anna,kitchen\n")
    test = failed_test(1, "anna-17", (Trim(40),), "open the door", "open")
    group_of = group_by(f"{table}:room")
    assert group_of(test) == "kitchen"
    assert group_of(replace(test, seed="ben-3")) == ""
    (finding,) = grouped(Record([test, replace(test, seed="ben-3", number=2)])).findings
    assert finding.counts(group_of)["groups"] == {"": 1, "kitchen": 1}
    with pytest.raises(dc.FileError, match=r"no column 'city' in .* after the ids it has: voice, room"):
        group_by(f"{table}:city")
    with pytest.raises(dc.FileError, match="cannot read"):
        group_by(f"{tmp_path}/none.csv:city")
    with pytest.raises(dc.InputError, match="nor a regular expression"):
        group_by("(")


def test_every_transformation_has_a_phrase() -> None:
    rng = np.random.default_rng(0)
    changes: list[Any] = [kind.draw(rng) for kind in (*PAPER, Reverb, Telephone)]  # type: ignore[attr-defined]
    changes.append(AddBackgroundNoise("cafe.wav", 0.1, 31.0))
    for change in changes:
        assert "changed by" not in phrase([change])
    assert phrase([ChangeSpeed(0.9), AddWhiteNoise(31.25, 1)]) == (
        "slowed down to 0.9 x and mixed with white noise at 31.2 dB SNR"
    )
    assert phrase([UnknownChange("Own", {"by": 3})]) == "changed by Own"
