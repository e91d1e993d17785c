"""Systems that crash, hang or answer with NaN; seeds and mutants that cannot be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.systems.builtin import bracket_changes
from tests.support import toy

#: What the systems below cannot stand; no seed contains it, but some mutants do.
BAD = "()()"
SEEDS = [toy.Text(f"t{i}", text.replace(BAD, "ab")) for i, text in enumerate(toy.texts(12, seed=1))]


class Weak(toy.Reader):
    """Misbehaves on texts that contain the bad part."""

    def __init__(self, bad: Callable[[dc.Run], dc.Run], *, part: str = BAD) -> None:
        super().__init__()
        self.bad, self.part = bad, part
        self.calls: list[int] = []

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        self.calls.append(len(batch))
        result = zip(batch, super().run(batch), strict=True)
        return [self.bad(run) if self.part in text else run for text, run in result]


def crash(run: dc.Run) -> dc.Run:
    raise ValueError("no brackets like these")


def hang(run: dc.Run) -> dc.Run:
    time.sleep(60)
    return run


def with_states(run: dc.Run, value: float) -> dc.Run:
    states = np.array(run.traced.states)
    states[1:] = value
    return dc.Run(run.output, dc.Trace(states, run.traced.inputs))


#: How the bad part is met, the kind of failure that this is, and what is stored as the answer.
PROBLEMS: dict[str, tuple[Callable[[dc.Run], dc.Run], str, Any]] = {
    "crash": (crash, "crash", "ValueError: no brackets like these"),
    "time-out": (hang, "time-out", "TimeoutError: no answer within 0.25 s"),
    "nan": (lambda run: replace(run, output=np.array([0.5, np.nan])), "not finite", [0.5, "nan"]),
    "infinite tensor": (
        lambda run: replace(run, output={"x": torch.tensor([torch.inf])}),
        "not finite",
        {"x": ["inf"]},
    ),
    "nan states": (lambda run: with_states(run, np.nan), "not finite", None),
    "far states": (lambda run: with_states(run, 1e300), "not finite", None),
}


@pytest.mark.parametrize(
    ("problem", "batch_size"),
    [(name, size) for name in PROBLEMS for size in (1, 16) if (name, size) != ("time-out", 1)],
)
def test_problems_are_failures_of_their_own_kinds_that_replay(tmp_path: Path, problem: str, batch_size: int) -> None:
    bad, kind, message = PROBLEMS[problem]
    limit_seconds = 0.25 if problem == "time-out" else None
    system = Weak(bad)
    campaign = toy.campaign(tmp_path, SEEDS, system=system, batch_size=batch_size, limit_seconds=limit_seconds)
    met = {test.number for test in campaign.failed if BAD in test.make()}
    assert met
    assert met == {test.number for test in campaign.failed if test.kind == kind}
    kept = [event for event in campaign.runs if event.outcome == "kept"]
    assert len(kept) > 10, "one bad input spoiled the others of its batch"
    assert all(event.visits is not None for event in kept)
    assert all(event.visits is None for event in campaign.runs if event.number in met), "nobody judged them"
    for number in sorted(met)[:2]:
        test = campaign[number]
        again = test.replay(system, limit_seconds=limit_seconds)
        assert (again.differences, again.fails) == ((), True)
        assert (test.output == message) if message is not None else (test.output in ("high", "low"))
        assert str(test).startswith(f"{kind}: ")
        assert (tmp_path / "failed" / f"{number:06}.txt").read_text() == test.make()
        (difference,) = test.replay(toy.Reader()).differences
        assert f"instead of {kind}" in difference or f"instead of {message}" in difference


def test_the_same_campaign_whatever_the_others_of_a_batch_do(tmp_path: Path) -> None:
    """After a crash, the inputs of the batch run one by one, so events do not depend on how batches are formed."""
    # A scheduler that does not learn from how a test failed.
    toy.campaign(tmp_path / "weak", SEEDS, system=Weak(crash), select="rarity")
    toy.campaign(tmp_path / "wrong", SEEDS, system=Weak(lambda run: replace(run, output="none")), select="rarity")
    crashed, wrong = (toy.rows(tmp_path / name)["runs"] for name in ("weak", "wrong"))
    parents = [[row[:4] for row in rows] for rows in (crashed, wrong)]
    assert parents[0] == parents[1]


def test_systems_that_give_too_few_answers(tmp_path: Path) -> None:
    system = toy.Reader()
    run, system.run = system.run, lambda batch: run(batch)[:-1]  # type: ignore[method-assign]
    with pytest.raises(dc.InputError, match="returned 11 runs for a batch of 12 inputs, not one per input"):
        toy.campaign(tmp_path, system=system)


@dataclass(frozen=True)
class Explode:
    """A transformation that cannot cope with square brackets."""

    where: float

    def __call__(self, text: str) -> str:
        if "[" in text:
            raise RuntimeError("square")
        return text + "a"

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(float(rng.random()))


@pytest.mark.parametrize("workers", [0, 1])
def test_transformations_that_raise_are_rejected_and_counted(tmp_path: Path, workers: int) -> None:
    mutations = dc.Mutations((Explode,), ((Explode,),), (), bracket_changes.too_long)
    seen: list[Status] = []
    campaign = toy.campaign(tmp_path, mutations=mutations, runs=48, workers=workers, watch=seen.append)
    rejected = [event for event in campaign.runs if event.outcome == "rejected"]
    assert 10 < len(rejected) < 48
    assert {(event.output, event.score, event.visits, event.digest) for event in rejected} == {(None, 0.0, None, "")}
    assert {event.reason for event in rejected} == {"not made: RuntimeError: square"}
    assert seen[-1].state.reasons["not made: RuntimeError: square"] == len(rejected)
    assert seen[-1].state.by_kind["Explode", "rejected"] == seen[-1].state.outcomes["rejected"] == len(rejected)


class Unreadable(toy.Text):
    @property
    def input(self) -> str:
        raise dc.FileError(f"cannot read {self.id}.wav: it is empty")


def mixed() -> list[toy.Text]:
    """Seeds of which some cannot be used, for different reasons."""
    known = {seed.id: run.output for seed, run in zip(SEEDS, toy.Reader().run([s.value for s in SEEDS]), strict=True)}
    labelled = [replace(seed, text=known[seed.id]) for seed in SEEDS]
    wrong = [replace(labelled[0], id="wrong", text={"high": "low", "low": "high"}[known["t0"]])]
    return [Unreadable("gone", ""), *labelled[:6], *wrong, toy.Text("bad", "a" + BAD), *labelled[6:]]


def test_seeds_that_cannot_be_used_are_set_aside_and_counted(tmp_path: Path) -> None:
    seen: list[Status] = []
    campaign = toy.campaign(tmp_path, mixed(), system=Weak(crash), watch=seen.append)
    events = {event.seed: event for event in campaign.seeds}
    assert [*events] == [seed.id for seed in mixed()]
    aside = {name: (event.reason, event.output) for name, event in events.items() if event.outcome != "kept"}
    assert aside == {
        "gone": ("unreadable", "cannot read gone.wav: it is empty"),
        "wrong": ("failed already", events["t0"].output),
        "bad": ("crash", "ValueError: no brackets like these"),
    }
    assert seen[0].state.set_aside == {"unreadable": 1, "failed already": 1, "crash": 1}
    numbers = {-1 - events[name].position for name in aside}
    assert numbers == {events[name].number for name in aside}
    assert not numbers & {event.parent for event in campaign.runs}
    assert not numbers & set(campaign.tests)
    assert {(events[name].visits, events[name].digest) for name in aside} == {(None, "")}
    model, reader = toy.model(), toy.Reader()
    used = [seed.input for seed in mixed() if seed.id not in aside]
    assert seen[0].state.start == [dc.BSCov(model, [run.traced for run in reader.run(used)])]
    assert [events[name].visits is None for name in events] == [name in aside for name in events]
    assert len(toy.campaign(tmp_path, mixed(), system=Weak(crash), runs=80).runs) == 80  # and again when it is resumed


@pytest.mark.parametrize("problem", ["nan", "nan states", "far states"])
def test_seeds_without_finite_answers_or_states_are_set_aside(tmp_path: Path, problem: str) -> None:
    campaign = toy.campaign(tmp_path, mixed(), system=Weak(PROBLEMS[problem][0]))
    assert {event.seed: event.reason for event in campaign.seeds}["bad"] == "not finite"


@pytest.mark.parametrize(
    ("seeds", "system", "message"),
    [
        (
            [Unreadable("gone", "")],
            toy.Reader(),
            r"none of the 1 seeds can be used \(1 unreadable\); the first, 'gone': unreadable \(cannot read gone.wav",
        ),
        (
            SEEDS,
            Weak(crash, part=""),
            r"none of the 12 seeds .* \(12 crash\); the first, 't0': crash \(ValueError: no brackets like these\)",
        ),
        (
            [replace(seed, text="neither") for seed in SEEDS],
            toy.Reader(),
            r"\(12 failed already\); the first, 't0': failed already \(expected 'neither', got '(high|low)'\); do rate",
        ),
        (
            SEEDS,
            Weak(lambda run: dc.Run(run.output, dc.Trace(run.traced.states[:, :3], run.traced.inputs)), part=""),
            r"the first, 't0': not finite \(the states of sequence .* have 3 numbers and those profiled 4",
        ),
        (SEEDS, Weak(lambda run: with_states(run, 99.0), part=""), "no state of the model but the initial one"),
        ([], toy.Reader(), "the data set is empty"),
        ([SEEDS[0], SEEDS[1], SEEDS[0]], toy.Reader(), "two seeds have the id 't0': ids must be unique"),
        (
            [replace(SEEDS[0], id="1", text="a"), toy.Text("2", "ab")],
            Weak(lambda run: replace(run, output=object()), part=""),
            "an answer of the type object cannot be stored to compare with: answers and labels are texts, numbers",
        ),
    ],
    ids=["unreadable", "crash", "failed already", "other states", "far away", "empty", "twice", "strange answers"],
)
def test_nothing_to_begin_with(tmp_path: Path, seeds: list[toy.Text], system: toy.Reader, message: str) -> None:
    arguments: dict[str, Any] = {"oracle": dc.Disagreement(), "mutations": toy.MUTATIONS, "workers": 0, "runs": 16}
    unprobed = replace(toy.model(), probes=())  # as models were before 0.2
    with pytest.raises(dc.InputError, match=message):
        dc.fuzz(system, unprobed, seeds, folder=tmp_path / "c", **arguments)
    # and after that nothing is in the way of a better beginning
    assert len(dc.fuzz(toy.Reader(), toy.model(), SEEDS, folder=tmp_path / "c", **arguments).runs) == 16


def test_a_generator_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match="read more than once; generator has no length"):
        dc.fuzz(toy.Reader(), toy.model(), (seed for seed in SEEDS), folder=tmp_path)


def test_a_model_of_one_state_is_no_reason_to_refuse(tmp_path: Path) -> None:
    tiny = dc.profile(toy.Reader(), toy.texts(50), exact=True).abstract(1)
    assert len(tiny.states) == 1
    assert len(toy.campaign(tmp_path, model=tiny, guide=dc.SBCov(1)).runs) == 64


def test_texts_are_needed_only_where_they_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(dc.InputError, match="a seed has no text to compare with"):
        toy.campaign(tmp_path, oracle=dc.Disagreement("text"))
    assert len(toy.campaign(tmp_path, oracle=dc.Disagreement("output")).runs) == 64


def test_an_oracle_that_does_not_fit_says_so(tmp_path: Path) -> None:
    system = Weak(lambda run: replace(run, output=3), part="")
    with pytest.raises(dc.InputError, match="compares texts, but the system returned a value of the type int"):
        toy.campaign(tmp_path, system=system, oracle=dc.WordErrorRate(above=0.3))


class Scores:
    """An oracle whose scores are of a kind of number."""

    name = "scores"

    def __init__(self, number: Callable[[bool], Any]) -> None:
        self._number = number

    def reference(self, text: Any, output: Any) -> Any:
        return output

    def score(self, reference: Any, output: Any) -> Any:
        return self._number(reference != output)

    def fails(self, score: float) -> bool:
        return score > 0.5


def test_the_scores_of_an_oracle_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    campaign = toy.campaign(tmp_path, oracle=Scores(np.float32))
    assert {test.score for test in campaign.failed} == {1.0}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_must_be_finite(tmp_path: Path, value: float) -> None:
    with pytest.raises(dc.InputError, match=f"returned the score {value}, not a finite number"):
        toy.campaign(tmp_path, oracle=Scores(lambda wrong: value if wrong else 0.0))


def test_a_guide_that_requires_nothing_says_so(tmp_path: Path) -> None:
    empty = dc.Criterion("Empty", lambda M: np.zeros(0), lambda T: (T.states[:0],), lambda M: {})
    with pytest.warns(RuntimeWarning, match=r"^Empty requires nothing of M\{3,12\}, so no mutant increases it: choose"):
        campaign = toy.campaign(tmp_path / "coverage", guide=empty)
    assert {event.outcome for event in campaign.runs} <= {"dropped", "failed", "rejected"}
    toy.campaign(tmp_path / "random", guide=dc.Guide((empty,), "random"))  # which keeps mutants all the same
