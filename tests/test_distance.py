"""The distance to failure: losses against all alignments written out, and which oracle gives what."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.campaign.events import Ran
from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.decoding.scores import loss_of, scores_of
from deepcruiser.oracles import distance
from deepcruiser.trace import Scores
from tests.support import toy

CLASSES = ("a", "b", "")


def plain_loss(scores: Scores, text: str) -> float:
    """-log of the sum over every path that reads as the text, divided by its length."""
    values, total = scores.values.astype(float), 0.0
    for path in itertools.product(range(len(CLASSES)), repeat=len(values)):
        read = [symbol for symbol, _ in itertools.groupby(path)]
        if "".join(CLASSES[symbol] for symbol in read) == text:
            total += math.exp(sum(values[step, symbol] for step, symbol in enumerate(path)))
    return -math.log(total) / len(text) if total else math.inf


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.text("ab", min_size=1, max_size=4))
def test_the_loss_of_a_text_is_that_of_all_its_alignments(seed: int, steps: int, text: str) -> None:
    scores = scores_of(np.random.default_rng(seed).normal(size=(steps, 3)) * 2, CLASSES, blank=2)
    assert scores is not None
    loss, plain = loss_of(scores, text), plain_loss(scores, text)
    assert (loss is None) == math.isinf(plain), "no alignment fits into the steps"
    assert loss is None or loss == pytest.approx(plain, rel=1e-6)


def test_the_loss_of_a_label_is_minus_the_logarithm_of_its_probability() -> None:
    scores = scores_of(np.array([0.5, 0.25, 0.25]), ("yes", "no", "maybe"), blank=None)
    assert scores is not None
    assert loss_of(scores, "no") == pytest.approx(-math.log(0.25), abs=1e-3)
    assert loss_of(scores, "never") is None
    assert scores_of(np.array([1, 2]), ("yes", "no"), blank=None) is None, "whole numbers are no scores"


@dataclass(frozen=True)
class Own:
    """An oracle with a distance of its own."""

    value: Any = 0.123456789

    name = "own"

    def reference(self, text: str | None, output: Any) -> Any:
        return output

    def score(self, reference: Any, output: Any) -> float:
        return float(reference != output)

    def fails(self, score: float) -> bool:
        return score > 0

    def distance(self, reference: Any, run: dc.Run) -> Any:
        return self.value


def test_the_distance_is_that_of_the_scores_or_the_doubt_or_the_score() -> None:
    oracle, scores = dc.WordErrorRate(), scores_of(np.eye(3)[[0, 2, 1]] * 5, CLASSES, blank=2)
    assert scores is not None
    run = dc.Run("ab", doubt=0.3, scores=scores)
    assert distance(oracle, "ab", run) == pytest.approx(loss_of(scores, "ab"), rel=1e-5)
    assert distance(oracle, "b", run) > distance(oracle, "ab", run)  # type: ignore[operator]
    assert distance(oracle, "7", run) == 0.3, "the alphabet cannot spell it"
    assert distance(oracle, "one two", dc.Run("one")) == 0.5, "its own score"
    assert distance(Own(), "x", run) == 0.123457, "its own distance, six digits of it"


def test_a_network_with_classes_gives_scores() -> None:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = torch.nn.RNN(2, 3, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            return self.rnn(x)[0]

    torch.manual_seed(0)
    system = dc.TorchSystem(Net().eval(), transcribe=lambda out: ctc_greedy(out, "ab", blank=2), classes="ab", blank=2)
    (run,) = system.run([np.ones((4, 2), np.float32)])
    assert run.scores is not None
    assert run.scores.classes == CLASSES
    assert np.exp(run.scores.values.astype(float)).sum(1) == pytest.approx([1] * 4, abs=1e-2)


def test_a_campaign_stores_distances_and_goes_on_without_those_that_are_no_numbers(tmp_path: Path) -> None:
    record = toy.campaign(tmp_path / "own", oracle=Own(), runs=32)
    assert {event.distance for event in record.events if event.outcome != "rejected"} == {0.123457}
    with pytest.warns(RuntimeWarning, match="the distance of t0 to failure is nan"):
        record = toy.campaign(tmp_path / "nan", oracle=Own(float("nan")), runs=32)
    assert {event.distance for event in record.events} == {None}
    with pytest.raises(dc.InputError, match=r"the distance .* must be a number, not 'far'"):
        toy.campaign(tmp_path / "far", oracle=Own("far"), runs=32)


class Unsure(toy.Reader):
    """Less sure of its answer the longer the text is."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [replace(run, doubt=len(text)) for run, text in zip(super().run(batch), batch, strict=True)]


def test_a_mutant_that_comes_nearer_to_failing_than_its_parent_is_kept(tmp_path: Path) -> None:
    guide = dc.Guide((dc.BSCov,), "coverage+distance")
    record = toy.campaign(tmp_path, system=Unsure(), guide=guide, batch_size=1, runs=200)
    coverage, distances, seen = dc.Coverage(toy.model(), dc.BSCov), dict[int, float](), Counter[tuple[bool, bool]]()
    for event in record.events:
        if isinstance(event, Ran) and event.outcome in ("kept", "dropped"):
            assert event.visits is not None
            assert event.distance is not None
            reasons = coverage.gain(event.visits) > 0, event.distance > 1.02 * distances[event.parent]
            assert event.outcome == ("kept" if any(reasons) else "dropped")
            seen[reasons] += 1
        if event.outcome == "kept":
            coverage.add(event.visits)  # type: ignore[arg-type]
            distances[event.number] = event.distance  # type: ignore[assignment]
    assert len(seen) == 4, "neither reason, one of them, and both"
