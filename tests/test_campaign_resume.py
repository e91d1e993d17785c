"""Same seed, same campaign: whatever the number of workers, and however often it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.scheduler import SELECT
from tests.support import toy

GUIDES = {
    "BSCov": dc.BSCov,
    "2-SBCov": dc.SBCov(2),
    "BTCov": dc.BTCov,
    "ISCov": dc.ISCov,
    "WICov": dc.WICov,
    "several": (dc.BTCov, dc.SBCov(2), dc.WICov),
    "random": "random",
    "random by two": dc.Guide((dc.WICov, dc.SBCov(1)), "random"),
    "none": "none",
}
#: Every guide, every way to select with both ways to pick: each with some of the others, for all would take a minute.
PICKS = ("thompson", "uniform")
CASES = [(guide, [*SELECT][i % 4], PICKS[i % 2]) for i, guide in enumerate(GUIDES)]
CASES += [("random", select, pick) for select in SELECT for pick in PICKS if ("random", select, pick) not in CASES]


class Enough(Exception):  # noqa: N818
    """Ends a campaign from outside, just after something was saved."""


def ended_after(batches: int) -> Callable[[Status], None]:
    left = batches

    def watch(status: Status) -> None:
        nonlocal left
        left -= bool(status.events)
        if left < 0:
            raise Enough

    return watch


def interrupted(folder: Path, rng: np.random.Generator, *, runs: int, batch_size: int, **options: Any) -> int:
    """Run a campaign with many interruptions: raised from outside, or by a smaller number of runs."""
    ends = done = 0
    while done < runs:
        some = int(rng.integers(0, 5) if batch_size > 1 else rng.geometric(0.06))
        try:
            if rng.random() < 0.5:
                stop = min(runs, done + some * batch_size + int(rng.integers(batch_size)))  # also within a batch
                done = len(toy.campaign(folder, batch_size=batch_size, **{**options, "runs": stop}).runs)
            else:
                watch = ended_after(some)
                options = {**options, "runs": runs, "watch": watch}
                done = len(toy.campaign(folder, batch_size=batch_size, **options).runs)
        except Enough:
            pass
        ends += 1
    return ends


@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize(("guide", "select", "pick"), CASES, ids=[" ".join(case) for case in CASES])
def test_an_interrupted_campaign_is_the_uninterrupted_one(
    tmp_path: Path, guide: str, select: str, pick: str, batch_size: int
) -> None:
    runs = 80 if batch_size > 1 else 30
    options: dict[str, Any] = {
        "guide": GUIDES[guide],
        "select": select,
        "pick": pick,
        "batch_size": batch_size,
        "runs": runs,
        "seed": 7,
    }
    whole = toy.campaign(tmp_path / "whole", **options)
    rng = np.random.default_rng([batch_size, CASES.index((guide, select, pick))])
    ends = interrupted(tmp_path / "parts", rng, **options)
    assert ends > 1
    assert len(whole.runs) == runs
    parts, uninterrupted = toy.rows(tmp_path / "parts"), toy.rows(tmp_path / "whole")
    assert set(parts.pop("moments")) >= set(uninterrupted.pop("moments")), "with more where a batch was cut"
    assert parts == uninterrupted
    files = [
        {file.name: file.read_bytes() for file in (tmp_path / name / "failed").iterdir()} for name in ("whole", "parts")
    ]
    assert files[0] == files[1]
    assert len(files[0]) == 2 * len(whole.failed) > 0


@pytest.mark.parametrize(
    ("guide", "pick", "batch_size"), [("several", "thompson", 16), ("random", "uniform", 16), ("WICov", "thompson", 1)]
)
def test_the_number_of_workers_changes_nothing(tmp_path: Path, guide: str, pick: str, batch_size: int) -> None:
    options: dict[str, Any] = {
        "guide": GUIDES[guide],
        "pick": pick,
        "batch_size": batch_size,
        "runs": 48 if batch_size > 1 else 16,
    }
    for workers in (0, 1, 2):
        toy.campaign(tmp_path / str(workers), workers=workers, **options)
    assert toy.rows(tmp_path / "0") == toy.rows(tmp_path / "1") == toy.rows(tmp_path / "2")


def test_workers_and_ends_together(tmp_path: Path) -> None:
    for workers, runs in ((2, 32), (0, 80), (1, 112)):
        toy.campaign(tmp_path / "parts", workers=workers, runs=runs)
    toy.campaign(tmp_path / "whole", runs=112)
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")


def test_another_seed_is_another_campaign(tmp_path: Path) -> None:
    for seed in (0, 1):
        toy.campaign(tmp_path / str(seed), seed=seed)
    assert toy.rows(tmp_path / "0")["runs"] != toy.rows(tmp_path / "1")["runs"]


def test_nobody_elses_random_numbers_are_used(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("other", 2)):
        np.random.seed(seed)  # noqa: NPY002
        toy.campaign(tmp_path / name)
    assert toy.rows(tmp_path / "one") == toy.rows(tmp_path / "other")


def test_inputs_that_are_no_longer_at_hand_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.campaign(tmp_path / "whole", runs=128)
    monkeypatch.setattr("deepcruiser.campaign.seeds._TESTS_HELD", 2)
    monkeypatch.setattr("deepcruiser.campaign.seeds._SEEDS_HELD", 2)
    toy.campaign(tmp_path / "forgetful", runs=128)
    assert toy.rows(tmp_path / "forgetful") == toy.rows(tmp_path / "whole")


def test_the_state_after_a_resume_is_the_state_before(tmp_path: Path) -> None:
    """Counts, queue and coverages, including everything that the strategies use."""
    seen: list[dict[str, Any]] = []

    def watch(status: Status) -> None:
        state = status.state
        seen.append(
            {
                "resumed": status.resumed,
                "runs": state.runs,
                "counts": (state.outcomes, state.reasons, state.by_kind, state.set_aside, state.last_new, state.start),
                "tests": [(t.number, t.seed, t.recipe, t.parent, t.picked, t.kept) for t in state.queue.tests.values()],
                "live": [test.number for test in state.queue.live],
                "next plan": state.scheduler.plan(deepcopy(state.queue), 1, 50, np.random.default_rng(1)),
                "coverages": [c.covered.tolist() for c in (*state.coverages, *state.executed)],
            }
        )

    options: dict[str, Any] = {"guide": (dc.BSCov, dc.WICov), "watch": watch}
    toy.campaign(tmp_path, runs=64, **options)
    toy.campaign(tmp_path, runs=64, **options)
    before, after = seen[-2:]
    assert not before.pop("resumed")
    assert after.pop("resumed")
    assert before == after


@pytest.mark.parametrize(
    "answer",
    [
        lambda word, states: (states[:, 0] > 0).astype(np.int64),
        lambda word, states: np.repeat(states[:, 0] > 0, 100),  # more than a database holds as they are
        lambda word, states: (word, [1, 2]),
        lambda word, states: {0: word, "of": (1, np.float32(0.5))},
        lambda word, states: np.int64(len(word)),
    ],
    ids=["array", "large array", "tuple", "dictionary", "number"],
)
def test_answers_of_all_kinds_are_compared_alike_after_a_resume(tmp_path: Path, answer: Callable[..., Any]) -> None:
    class Answers(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            return [dc.Run(answer(run.output, run.traced.states[-3:]), run.traced) for run in super().run(batch)]

    system = Answers()
    toy.campaign(tmp_path / "whole", system=system, runs=48)
    for runs in (16, 32, 48):
        toy.campaign(tmp_path / "parts", system=system, runs=runs)
    assert toy.rows(tmp_path / "parts") == toy.rows(tmp_path / "whole")
    outcomes = [row[3] for row in toy.rows(tmp_path / "whole")["runs"]]
    assert "failed" in outcomes
    assert "kept" in outcomes
