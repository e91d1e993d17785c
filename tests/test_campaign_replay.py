"""A replayed failing test is the same, bit for bit, or the difference is named."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import deepcruiser as dc
from deepcruiser.campaign.spec import Component
from deepcruiser.serialise import digest_of
from deepcruiser.systems.builtin import bracket_changes
from deepcruiser.transformations import PAPER
from tests.support import toy


def opened(folder: Path, **options: Any) -> dc.CampaignRecord:
    """A campaign as another process finds it."""
    settings = {"seeds": toy.seeds(), "model": toy.model(), "oracle": dc.Disagreement(), "mutations": toy.MUTATIONS}
    return dc.CampaignRecord.open(folder, **{**settings, **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    toy.campaign(folder, runs=2000)
    return folder


def test_every_failure_of_2000_runs_gives_the_same_again(folder: Path) -> None:
    campaign, reader = opened(folder), toy.Reader()
    assert len(campaign.runs) == 2000
    assert len(campaign.failed) > 100
    for test in campaign.failed:
        again = test.replay(reader)
        assert again.differences == ()
        assert (again.output, again.fails, again.score) == (test.output, True, 1.0)
        assert again.value == test.make() == (folder / "failed" / f"{test.number:06}.txt").read_text()
        assert str(again) == f"{test.number}: same input, same answer, same states"


def test_the_worst_come_first(tmp_path: Path) -> None:
    class Spells(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            pairs = zip(batch, super().run(batch), strict=True)
            return [replace(run, output=" ".join(text.replace("()", "").replace("[]", ""))) for text, run in pairs]

    campaign = toy.campaign(tmp_path, system=Spells(), oracle=dc.WordErrorRate(above=0.1), runs=200)
    order = [(-test.score, test.number) for test in campaign.failed]
    assert order == sorted(order)
    assert len({score for score, _ in order}) > 5
    assert opened(tmp_path).failed[0].number == campaign.failed[0].number
    assert campaign.failed[0].replay(Spells()).score == campaign.failed[0].score
    first = campaign.failed[0]
    assert str(first).splitlines()[0] == (f"{first.reference!r} became {first.output!r} ({first.score:.0%})")


def a_failure(folder: Path, kind: type | None = None, **options: Any) -> dc.FailedTest:
    failed = opened(folder, **options).failed
    return next(test for test in failed if kind is None or type(test.recipe[-1]) is kind)


def test_another_system_is_named(folder: Path) -> None:
    result = Counter[str]()
    for test in opened(folder).failed[:40]:
        again = test.replay(toy.Reader(1))
        assert again.differences[0] == "the system is another one (reader 1 instead of reader 0)"
        result.update(again.differences[1:])
        assert again.fails == (again.output != test.reference)
        answer = f"the answer is {again.output!r} instead of {test.output!r}"
        assert (answer in again.differences) == (again.output != test.output)
    assert any(difference.endswith("states of the model differ") for difference in result)
    assert any(difference.startswith("the answer is") for difference in result)


def test_other_answers_of_the_same_system_are_told(folder: Path) -> None:
    class Mended(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            return [replace(run, output="fine") for run in super().run(batch)]

    test = a_failure(folder)
    again = test.replay(Mended())
    assert again.differences == (f"the answer is 'fine' instead of {test.output!r}",)
    assert str(again) == f"{test.number}: {again.differences[0]}"
    assert again.fails, "it is another answer than the reference, still"


def test_a_failure_that_passes_now(folder: Path) -> None:
    test = a_failure(folder)

    class Mended(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            return [replace(run, output=test.reference) for run in super().run(batch)]

    again = test.replay(Mended())
    assert (again.fails, again.score) == (False, 0.0)
    assert again.differences == (f"the answer is {test.reference!r} instead of {test.output!r}",)


def test_a_crash_where_there_was_an_answer(folder: Path) -> None:
    class Broken(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            raise OSError("no such device")

    test = a_failure(folder)
    again = test.replay(Broken())
    assert again.differences == (f"crash (OSError: no such device) instead of wrong ({test.output})",)
    assert again.fails


def test_other_states_alone(folder: Path) -> None:
    class Elsewhere(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            return [dc.Run(run.output, dc.Trace(-run.traced.states, run.traced.inputs)) for run in super().run(batch)]

    (difference,) = a_failure(folder).replay(Elsewhere()).differences
    assert difference.endswith("states of the model differ")


def test_a_changed_seed_is_named(folder: Path) -> None:
    test = a_failure(folder)
    seeds = [replace(seed, value=seed.value + "a") if seed.id == test.seed else seed for seed in toy.seeds()]
    again = opened(folder, seeds=seeds)[test.number].replay(toy.Reader())
    assert again.differences[0] == f"the input differs: the seed {test.seed!r} has changed"


def test_a_changed_library_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = a_failure(folder, bracket_changes.InsertRound)
    monkeypatch.setattr(bracket_changes, "_insert", lambda text, where, new: text + new + "a")
    (*_, first) = sorted(test.replay(toy.Reader()).differences, key=lambda message: message.startswith("the input"))
    assert first == "the input differs: neither the seed nor the versions changed, so it may be the machine"
    assert test.record is not None
    now = test.record.versions
    old = {**now, "scipy": "0.9.1", "tea": "1"}
    del old["torch"]
    monkeypatch.setattr(test.record, "versions", old)
    message = test.replay(toy.Reader()).differences[0]
    assert message == (
        f"the input differs: scipy was 0.9.1 and is now {now['scipy']}, tea was 1 and is now not installed, "
        f"torch was not installed and is now {now['torch']}"
    )


def test_seeds_are_needed_and_the_right_ones(folder: Path) -> None:
    test = a_failure(folder, seeds=None)
    with pytest.raises(dc.InputError, match=r"the seeds are needed.*: CampaignRecord.open\(folder, seeds=...\)"):
        test.replay(toy.Reader())
    with pytest.raises(dc.InputError, match="the seeds are needed"):
        test.make()
    assert opened(folder)[test.number].make() == (folder / "failed" / f"{test.number:06}.txt").read_text()
    with pytest.raises(dc.InputError, match=f"there is no seed '{test.seed}' among the 1 given"):
        a_failure(folder, seeds=[toy.Text("x", "ab")]).make()


def test_without_oracle_and_model_the_answer_is_compared(folder: Path) -> None:
    test = a_failure(folder, model=None, oracle=None)
    again = test.replay(toy.Reader())
    assert (again.differences, again.fails, again.score) == ((), True, 1.0)
    assert test.replay(toy.Reader(), model=toy.model()).differences == ()

    class Mended(toy.Reader):
        def run(self, batch):  # type: ignore[no-untyped-def]
            return [replace(run, output="fine") for run in super().run(batch)]

    again = test.replay(Mended())
    assert (len(again.differences), again.fails) == (1, False)


RATE = 8000
#: The scheduler that tries all kinds alike.
UNIFORM = Component("rarity", {"pick": "uniform"})


def sound(seed: int) -> dc.Audio:
    """Half a second to a second of tones and bursts of noise."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(rng.integers(4, 7)):
        t = np.arange(rng.integers(1000, 1600)) / RATE
        tone = np.sin(2 * np.pi * rng.uniform(200, 1500) * t) + 0.5 * np.sin(2 * np.pi * rng.uniform(200, 2500) * t)
        noise = rng.normal(0, 0.5, len(t))
        parts.append((tone if rng.random() < 0.7 else noise) * np.hanning(len(t)) * rng.uniform(0.1, 0.3))
    return dc.Audio(np.concatenate(parts).astype(np.float32), RATE)


def frames(audio: dc.Audio) -> torch.Tensor:
    """The logarithm of the power in 8 bands, every 20 ms."""
    cut = audio.samples[: len(audio) // 160 * 160].reshape(-1, 160)
    bands = np.square(np.abs(np.fft.rfft(cut * np.hanning(160)))).astype(np.float32)[:, 1:].reshape(-1, 8, 10).sum(2)
    return torch.from_numpy(np.log(bands + 1e-4))


class Listener(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.gru, self.label = nn.GRU(8, 10, batch_first=True), nn.Linear(10, 5)
        for weight in self.parameters():
            nn.init.uniform_(weight, -0.7, 0.7, generator=generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(x)
        scores: torch.Tensor = self.label(states)
        return scores


def heard(scores: torch.Tensor) -> str:
    return " ".join("abcde"[label] for label in torch.unique_consecutive(scores.argmax(-1)).tolist())


def test_every_failure_of_an_audio_campaign_gives_the_same_again(tmp_path: Path) -> None:
    """Made in two other processes and in this one; run in batches and alone."""
    system = dc.TorchSystem(Listener().eval(), "gru", features=frames, rate=RATE, batch="padded", transcribe=heard)
    sounds = [sound(i) for i in range(12)]
    model = dc.profile(system, [sound(100 + i) for i in range(30)], exact=True).abstract(12)
    oracle = dc.WordErrorRate(above=0.2)
    campaign = dc.fuzz(system, model, sounds, folder=tmp_path, oracle=oracle, runs=192, workers=2, scheduler=UNIFORM)
    assert len(campaign.runs) == 192
    assert 10 < len(campaign.failed) < 150
    assert {type(change) for test in campaign.failed for change in test.recipe} > {*PAPER[:2]}
    for test in campaign.failed:
        again = test.replay(system)
        assert again.differences == ()
        assert (again.output, again.score, again.fails) == (test.output, test.score, True)
        written = dc.Audio.read(tmp_path / "failed" / f"{test.number:06}.flac")
        assert written.rate == RATE
        assert np.abs(written.samples - again.value.samples).max() < 2**-22
    # and so does everything else that was kept
    recipes: dict[int, dc.Audio] = {-1 - i: audio for i, audio in enumerate(sounds)}
    for event in campaign.runs:
        if event.outcome == "kept":
            (change,) = event.changes
            recipes[event.number] = change(recipes[event.parent])
            kept = campaign.tests[event.number]
            made = campaign.inputs.make(kept.seed, kept.recipe)
            assert made.samples.tobytes() == recipes[event.number].samples.tobytes()
            assert digest_of(recipes[event.number]) == event.digest
    assert len(recipes) > 30
