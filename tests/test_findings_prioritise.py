"""An order of a pool in which failures come first."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.findings.prioritise import Priorities, Ranked, prioritise
from tests.support.toy import Reader, Text, model, texts


class Unsure(Reader):
    """A reader with more doubt for longer texts."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [
            dc.Run(run.output, run.trace, doubt=len(text)) for run, text in zip(super().run(batch), batch, strict=True)
        ]


POOL = [Text(f"t{i}", text, "high") for i, text in enumerate(texts(40, seed=7, longest=30))]


def novelty(text: str) -> float:
    """The share of the distinct cells of a text's states that profiling never visited."""
    (run,) = Reader().run([text])
    states, _ = model().cells(run.traced)
    known = set(map(tuple, model().cells_of_states()["state"].tolist()))
    cells = set(map(tuple, states.tolist()))
    return len(cells - known) / len(cells)


def test_by_doubt_and_by_novelty() -> None:
    by_doubt = prioritise(None, Unsure(), POOL, by="doubt")
    lengths = [each.doubt for each in by_doubt.order]
    assert lengths == sorted((float(len(each.value)) for each in POOL), reverse=True)
    by_novelty = prioritise(model(), Reader(), POOL, by="novelty")
    values = {each.id: novelty(each.value) for each in POOL}
    assert [each.novelty for each in by_novelty.order] == sorted(values.values(), reverse=True)
    assert all(each.novelty == values[each.id] for each in by_novelty.order)
    assert by_novelty.order[0].novelty, "the pool has texts longer than those profiled"


def test_by_both_is_by_the_mean_rank() -> None:
    order = prioritise(model(), Unsure(), POOL, by="both").order
    doubts, values = [float(len(each.value)) for each in POOL], [novelty(each.value) for each in POOL]

    def rank(value: float, among: list[float]) -> float:
        return sum(other < value for other in among) + sum(other == value for other in among) / 2

    ranks = {
        each.id: rank(doubt, doubts) + rank(value, values)
        for each, doubt, value in zip(POOL, doubts, values, strict=True)
    }
    assert [ranks[each.id] for each in order] == sorted(ranks.values(), reverse=True)


def test_labels_judge_but_never_order() -> None:
    judged = prioritise(model(), Unsure(), POOL, by="both", oracle=dc.Disagreement("text"))
    blind = prioritise(
        model(), Unsure(), [Text(each.id, each.value) for each in POOL], by="both", oracle=dc.Disagreement()
    )
    assert [each.id for each in judged.order] == [each.id for each in blind.order]
    assert all(each.fails is None for each in blind.order)
    assert blind.curve == []
    assert blind.area is None
    answers = {each.id: run.output for each, run in zip(POOL, Reader().run([e.value for e in POOL]), strict=True)}
    assert [each.fails for each in judged.order] == [answers[each.id] != "high" for each in judged.order]
    assert judged.curve == np.cumsum([each.fails for each in judged.order]).tolist()


def test_a_random_order_has_half_the_area_on_average() -> None:
    fails = [True, False, False, True, False]

    def area(order: Sequence[bool]) -> float:
        result = Priorities("doubt", tuple(Ranked(str(i), 0.0, None, fail) for i, fail in enumerate(order))).area
        assert result is not None
        return result

    assert mean(area(order) for order in itertools.permutations(fails)) == pytest.approx(0.5)
    assert area(sorted(fails, reverse=True)) == max(area(order) for order in itertools.permutations(fails))


def test_wrong_use() -> None:
    with pytest.raises(dc.InputError, match="by must be 'doubt', 'novelty' or 'both', not 'length'"):
        prioritise(model(), Reader(), POOL, by="length")  # type: ignore[arg-type]
    with pytest.raises(dc.InputError, match="ordering by both needs a model"):
        prioritise(None, Reader(), POOL, by="both")
    with pytest.raises(dc.InputError, match="needs a system that says how unsure it is of an answer: order by novelty"):
        prioritise(model(), Reader(), POOL, by="both")


def test_the_command(tmp_path: Path) -> None:
    system = dc.load_system("brackets")
    dc.profile(system, texts(50, seed=3), components=2, exact=True).abstract(5).save(tmp_path / "b.model")
    command = f"prioritise --system brackets --data brackets --model {tmp_path}/b.model --by novelty --disagreement"
    result = CliRunner().invoke(main, [*command.split(), "--json"])
    assert result.exit_code == 0, result.output
    outcome: dict[str, Any] = json.loads(result.stdout)
    assert outcome["by"] == "novelty"
    assert len(outcome["order"]) == len(outcome["curve"]) == 50
    values = [each["novelty"] for each in outcome["order"]]
    assert values == sorted(values, reverse=True)
    plain = CliRunner().invoke(main, command.split())
    assert plain.exit_code == 0
    assert len(plain.stdout.splitlines()) == 50
    wrong = CliRunner().invoke(main, [*command.split(), "--wer-above", "0.3"])
    assert wrong.exit_code == 2
    assert "give one of --wer-above and --disagreement" in wrong.output
