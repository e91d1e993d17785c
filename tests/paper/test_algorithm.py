"""Algorithm 1 once more, line by line with lists and sets, against campaigns of the preset `paper`.

The recomputation shares with the campaign the network, the transformations and the random numbers, in the order in
which the algorithm needs them; the queue, the rule, the coverage and the loop are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.campaign.spec import Component
from deepcruiser.transformations import CLEARNESS, PAPER, SPEED, UNAFFECTED, VOLUME
from tests.support import toy

RUNS = 300
Cells = set[Any]


class Listener:
    """A recurrent network that hears eight bands and writes a word whenever its answer changes."""

    state_name = "h"
    fingerprint = "listener"

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self._keep, self._hear, self._say = (
            rng.normal(0, 0.5, (6, 6)),
            rng.normal(0, 0.5, (8, 6)),
            rng.normal(size=(6, 3)),
        )

    def run(self, batch: Sequence[dc.Audio]) -> list[dc.Run]:
        return [self._run(audio) for audio in batch]

    def _run(self, audio: dc.Audio) -> dc.Run:
        frames = audio.samples[: len(audio) // 200 * 200].reshape(-1, 200)
        bands = np.square(np.abs(np.fft.rfft(frames)[:, 1:97])).reshape(len(frames), 8, 12).sum(2)
        inputs = (np.log(bands + 1e-4) / 4).astype(np.float64)
        states = [np.zeros(6)]
        for frame in inputs:
            states.append(np.tanh(states[-1] @ self._keep + frame @ self._hear))
        words = (np.array(states[1:]) @ self._say).argmax(1).tolist()
        message = [("ah", "oh", "")[word] for word, last in zip(words, [-1, *words], strict=False) if word != last]
        return dc.Run(" ".join(filter(None, message)), dc.Trace(np.array(states), inputs))


@dataclass(frozen=True)
class Recording:
    id: str
    audio: dc.Audio
    text: str | None = None

    @property
    def input(self) -> dc.Audio:
        return self.audio


def recordings(count: int, *, seed: int) -> list[Recording]:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        times = np.arange(int(rng.uniform(0.4, 0.8) * 8000)) / 8000
        phase = rng.uniform(100, 200) * np.cumsum(1 + 0.3 * np.sin(2 * np.pi * 3 * times)) / 8000
        sound = sum(np.sin(2 * np.pi * phase * n) / n for n in range(1, 12)) * np.abs(np.sin(2 * np.pi * 2 * times))
        samples = 0.2 * sound + 0.003 * rng.standard_normal(len(times))
        made.append(Recording(f"r{number}", dc.Audio(samples.astype(np.float32), 8000)))
    return made


def rule(applied: Sequence[Any], families: Sequence[tuple[Any, ...]], unaffected: tuple[Any, ...]) -> set[Any]:
    """{ t in S u UAT | ({t} u S) n T = {} } over the families S, as it is printed."""
    T = {type(change) for change in applied}
    return {t for S in families for t in {*S, *unaffected} if not ({t} | set(S)) & T}


@dataclass
class Entry:
    """A test of Q."""

    number: int
    seed: int
    recipe: tuple[Any, ...]
    picked: int = 0


def visited(model: dc.AbstractModel, trace: dc.Trace | None, what: str) -> Cells:
    assert trace is not None
    states = [tuple(cell) for cell in model.cells(trace)[0].tolist()]
    return set(states) if what == "BSCov" else set(pairwise(states))


def recompute(
    system: dc.System,
    model: dc.AbstractModel,
    trained: Sequence[Any],
    seeds: Sequence[Any],
    oracle: Any,
    mutations: dc.Mutations,
    *,
    guide: str,
    select: str,
    seed: int,
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    required: Cells = set()
    for run in system.run(trained):
        required |= visited(model, run.trace, guide)
    answers = [system.run([each.input])[0] for each in seeds]
    references = [oracle.reference(each.text, run.output) for each, run in zip(seeds, answers, strict=True)]
    queue = [Entry(-1 - i, i, ()) for i in range(len(seeds))]
    covered: Cells = set()
    for run in answers:
        covered |= visited(model, run.trace, guide) & required
    events: list[dict[str, Any]] = []
    for number in range(1, RUNS + 1):
        live = [test for test in queue if rule(test.recipe, mutations.families, mutations.unaffected)]
        test = live[rng.integers(len(live))]
        while select == "decay" and rng.random() >= max(0.3, 0.8 - test.picked / 5):
            test = live[rng.integers(len(live))]
        test.picked += 1
        allowed = rule(test.recipe, mutations.families, mutations.unaffected)
        kinds = [kind for kind in mutations.kinds if kind in allowed]
        recipe = (*test.recipe, mutations.draw(kinds[rng.integers(len(kinds))], rng))
        value = seeds[test.seed].input
        for change in recipe:
            value = change(value)
        run = system.run([value])[0]
        score = oracle.score(references[test.seed], run.output)
        outcome = "failed" if oracle.fails(score) else "dropped"
        new = (visited(model, run.trace, guide) & required) - covered
        if outcome != "failed" and new:
            outcome = "kept"
            queue.append(Entry(number, test.seed, recipe))
            covered |= new
        events.append(
            {
                "parent": test.number,
                "changes": recipe[-1:],
                "outcome": outcome,
                "output": run.output,
                "score": score,
                "coverage": len(covered) / len(required),
            }
        )
    return events


@dataclass(frozen=True)
class Case:
    """A system, its training data, seeds that it partly fails, an oracle and mutations."""

    system: Any
    trained: Sequence[Any]
    seeds: Sequence[Any]
    oracle: Any
    mutations: dc.Mutations


def reader() -> Case:
    seeds = [toy.Text(f"t{i}", text, "high" if i % 5 == 0 else None) for i, text in enumerate(toy.texts(12, seed=1))]
    return Case(toy.Reader(), toy.texts(300, longest=12), seeds, dc.Disagreement(), toy.MUTATIONS)


def listener() -> Case:
    trained = [each.audio for each in recordings(60, seed=5)]
    system, seeds = Listener(), recordings(8, seed=1)
    seeds[2] = Recording(seeds[2].id, seeds[2].audio, "something else that nobody said")
    mutations = dc.Mutations()
    assert mutations.families[1] == SPEED
    assert (mutations.kinds, mutations.unaffected) == (PAPER, UNAFFECTED)
    paper = dc.Mutations(PAPER, (VOLUME, SPEED, CLEARNESS), UNAFFECTED, mutations.invalid)
    return Case(system, trained, seeds, dc.WordErrorRate(0.3), paper)


@pytest.mark.parametrize("make", [reader, listener])
@pytest.mark.parametrize("select", ["uniform", "decay"])
@pytest.mark.parametrize("guide", ["BSCov", "BTCov"])
def test_a_campaign_is_algorithm_1_to_the_letter(make: Any, select: str, guide: str, tmp_path: Path) -> None:
    case = make()
    model = dc.profile(case.system, case.trained, exact=True).abstract(8, input_partitions=8)
    record = dc.fuzz(
        case.system,
        model,
        case.seeds,
        folder=tmp_path,
        guide=dc.Guide((dc.criterion(guide),), "coverage"),
        severity="unlimited",
        oracle=case.oracle,
        mutations=case.mutations,
        scheduler=Component(select, {"pick": "uniform"}),
        batch_size=1,
        window=1,
        validity=False,
        keep_failing_seeds=True,
        seed=4,
        runs=RUNS,
        workers=0,
    )
    expected = recompute(
        case.system,
        model,
        case.trained,
        case.seeds,
        case.oracle,
        case.mutations,
        guide=guide,
        select=select,
        seed=4,
    )
    coverage = dc.Coverage(model, dc.criterion(guide))
    for seed in record.seeds:
        assert (seed.outcome, seed.visits is not None) == ("kept", True)
        coverage.add(seed.visits)  # type: ignore[arg-type]
    assert any(seed.reason == "failed already" for seed in record.seeds), "or nothing would be tested of those"
    assert len(record.runs) == len(expected) == RUNS
    for ran, right in zip(record.runs, expected, strict=True):
        if ran.outcome == "kept" and ran.visits is not None:
            coverage.add(ran.visits)
        result = {
            "parent": ran.parent,
            "changes": ran.changes,
            "outcome": ran.outcome,
            "output": ran.output,
            "score": ran.score,
            "coverage": coverage.value,
        }
        assert result == right, f"run {ran.number}"
    outcomes = {ran.outcome for ran in record.runs}
    assert outcomes == {"kept", "dropped", "failed"}
    assert max(len(record.tests[ran.parent].recipe) for ran in record.runs) >= 2, "chains of three are made"
