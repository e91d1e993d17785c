"""Oracles for numbers, sounds, slots, another system's answers, and a user's own from a file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser import transformations as changes
from deepcruiser.campaign.executors.local import LocalExecutor
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli import main
from deepcruiser.cli.campaign_options import build_oracle, spec_from
from deepcruiser.findings.shrink import shrink
from tests.support import toy

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=6)


@given(numbers, st.data())
def test_tolerance_is_the_largest_difference(right: list[float], data: st.DataObject) -> None:
    answer = data.draw(st.lists(st.floats(-100, 100), min_size=len(right), max_size=len(right)))
    largest = max(abs(a - b) for a, b in zip(answer, right, strict=True))
    assert dc.Tolerance(0.1).score(np.array(right), np.array(answer)) == pytest.approx(largest)
    size = max(map(abs, right))
    relative = dc.Tolerance(0.05, relative=True)
    score = relative.score(right, answer)
    assert score == pytest.approx(min(1e9, largest / size) if size else 1e9 * bool(largest))
    assert relative.fails(score) == (score > 0.05)


def test_tolerance_takes_labels_as_texts_and_refuses_what_is_no_number() -> None:
    oracle = dc.Tolerance(0.5)
    assert oracle.score(oracle.reference("3.5", 9.0), 3.75) == 0.25
    assert oracle.score(oracle.reference(None, 9.0), 8.0) == 1.0
    with pytest.raises(dc.InputError, match=r"shape \[3\] cannot be compared with one of \[2\]: leave out"):
        oracle.score(np.zeros(2), np.zeros(3))
    with pytest.raises(dc.InputError, match="must be a number or an array of numbers, not 'north'"):
        oracle.score(1.0, "north")
    assert dc.Tolerance(0.05, relative=True).name == "difference above 5 %"


@given(st.floats(-20, 60), st.floats(0.01, 10), st.integers(0, 99))
def test_the_ratio_of_signal_and_distortion_is_that_of_the_definition(
    ratio_db: float, volume: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    clean, noise = rng.standard_normal((2, 4000))
    noise -= clean * (clean @ noise) / (clean @ clean)  # what is left has nothing of the signal
    noise *= np.linalg.norm(clean) / np.linalg.norm(noise) * 10 ** (-ratio_db / 20)
    score = dc.SignalToDistortion().score(clean, volume * (clean + noise))
    assert -20 * math.log10(score) == pytest.approx(ratio_db, abs=1e-6)
    # A limit just below or above the ratio: at the ratio itself, rounding decides.
    assert not dc.SignalToDistortion(ratio_db - 1e-6).fails(score)
    assert dc.SignalToDistortion(ratio_db + 1e-6).fails(score)


class Denoiser:
    """Passes everything through, but breaks off what is loud."""

    def run(self, batch: Sequence[dc.Audio]) -> list[dc.Run]:
        return [dc.Run(np.clip(audio.samples, -0.5, 0.5)) for audio in batch]


def tone(volume: float) -> dc.Audio:
    return dc.Audio((volume * np.sin(np.arange(8000) / 20)).astype(np.float32), 8000)


def test_an_enhancer_is_compared_with_the_clean_sound_after_the_same_changes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for volume in (0.2, 0.3):
        clean = tone(volume)
        noisy = clean.replace(clean.samples + 0.001 * rng.standard_normal(8000).astype(np.float32))
        pairs.append((noisy, clean))
    record = dc.fuzz(
        Denoiser(),
        None,
        dc.samples(pairs),
        folder=tmp_path,
        guide="none",
        oracle=dc.SignalToDistortion(20),
        mutations=dc.Mutations.sound(["ChangeVolume", "AddWhiteNoise"], {"ChangeVolume": {"gain_db": (6, 18)}}),
        validity=False,
        runs=48,
        workers=0,
    )
    assert {event.outcome for event in record.seeds} == {"kept"}
    for event in record.runs:
        position = -1 - event.parent
        clean = tone((0.2, 0.3)[position])
        for step in event.changes:
            clean = step(clean) if isinstance(step, changes.ChangeVolume) else clean
        made = record.inputs.make(str(position), event.changes)
        score = dc.SignalToDistortion(20).score(clean, np.clip(made.samples, -0.5, 0.5))
        assert event.score == pytest.approx(score)
        assert (event.outcome == "failed") == (score > 0.1)
    assert 0 < len(record.failed) < 48
    assert all(test.replay(Denoiser()).fails for test in record.failed[:3])


def test_lengths_of_sounds_must_agree() -> None:
    with pytest.raises(dc.InputError, match="an answer of 50 samples cannot be compared with a clean sound of 100"):
        dc.SignalToDistortion().score(np.ones(100), np.ones(50))
    with pytest.raises(dc.InputError, match=r"must be the clean sound, not NoneType: give pairs of \(noisy, clean\)"):
        dc.SignalToDistortion().reference(None, np.ones(3))


words = st.lists(st.sampled_from(["go", "stop", "turn", "left", "please"]), max_size=8).map(" ".join)


@given(words, words)
def test_only_keywords_count(message: str, heard: str) -> None:
    oracle = dc.Keywords(("stop", "turn left"))
    counts = [
        [
            text.split().count("stop"),
            sum(pair == ("turn", "left") for pair in zip(text.split(), text.split()[1:], strict=False)),
        ]
        for text in (message, heard)
    ]
    wrong = sum(abs(a - b) for a, b in zip(*counts, strict=True))
    assert oracle.score(oracle.reference(message, ""), heard.upper()) == wrong / max(1, sum(counts[0]))
    assert oracle.fails(oracle.score(message, heard)) == (wrong > 0)


def test_slots_count_as_keywords() -> None:
    oracle = dc.Keywords(("city", "day"))
    right = {"city": "rome", "day": 3, "mood": "calm"}
    assert oracle.score(right, {**right, "mood": "angry"}) == 0
    assert oracle.score(right, {**right, "day": 4}) == 0.5
    assert oracle.score(right, {}) == 1
    with pytest.raises(dc.InputError, match="keywords are heard in texts and slots are in dictionaries, not in a int"):
        oracle.score("rome", 3)
    with pytest.raises(dc.InputError, match="one or more words"):
        dc.Keywords(())


class Twin(toy.Reader):
    """The same, but says "low" of every text of more than 15 symbols."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        runs = super().run(batch)
        return [replace(run, output="low") if len(text) > 15 else run for text, run in zip(batch, runs, strict=True)]


def test_two_systems_are_compared_on_every_mutant(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mutations": toy.MUTATIONS, "runs": 64, "workers": 0, "oracle": dc.Disagreement()}
    record = dc.fuzz(toy.Reader(), toy.model(), toy.seeds(), folder=tmp_path, against=Twin(), **options)
    for event in record.seeds:
        text = {seed.id: seed.value for seed in toy.seeds()}[event.seed]
        differ = toy.Reader().run([text])[0].output != Twin().run([text])[0].output
        assert event.reason == ("failed already" if differ else "")
    assert record.failed
    for test in record.failed:
        (one,), (other,) = toy.Reader().run([test.make()]), Twin().run([test.make()])
        assert (test.output, test.reference) == (one.output, other.output)
        assert one.output != other.output
        assert test.replay(toy.Reader()).fails
    with pytest.raises(dc.MismatchError, match='other system was "reader 0" and is ""'):
        dc.fuzz(toy.Reader(), toy.model(), toy.seeds(), folder=tmp_path, **options)


class Fragile(dc.Disagreement):
    """Cannot judge texts that have grown."""

    def score(self, reference: Any, output: Any) -> float:
        self.judged.append(output)
        if len(self.judged) > 80:
            raise ZeroDivisionError("no such luck")
        return super().score(reference, output)

    judged: list[Any] = []  # noqa: RUF012


def test_an_oracle_that_raises_is_named_with_the_input_and_all_else_is_saved(tmp_path: Path) -> None:
    Fragile.judged.clear()
    message = (
        r"run 2\d \(the seed 't\d+', .*\) cannot be judged, .* Fragile raised ZeroDivisionError: no such luck; what"
    )
    with pytest.raises(dc.InputError, match=message):
        toy.campaign(tmp_path, oracle=Fragile(), runs=64)
    assert len(dc.CampaignRecord.open(tmp_path).runs) == 16
    Fragile.score = dc.Disagreement.score  # type: ignore[method-assign]
    assert len(toy.campaign(tmp_path, oracle=Fragile(), runs=64).runs) == 64


OWN = """
import deepcruiser as dc
from deepcruiser.findings.shrink import shrink
from tests.support import toy

class Louder:
    name = "an answer that is another word"

    def reference(self, text, output):
        return output

    def score(self, reference, output):
        return float(reference != output)

    def fails(self, score):
        return score > 0

system, mutations, half = toy.Reader(), toy.MUTATIONS, 3
seeds = toy.seeds()
"""


def test_an_oracle_from_a_file_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    toy.model().save("m")
    common = ["--system", "own.py:system", "--data", "own.py:seeds", "--mutations", "own.py:mutations", "--model", "m"]
    fuzz = ["fuzz", *common, "--runs", "64", "--workers", "0", "--plain", "-o", "runs/own", "--oracle", "own.py:Louder"]
    result = CliRunner().invoke(main, fuzz)
    assert result.exit_code == 1, result.output
    record = dc.CampaignRecord.open("runs/own")
    assert (record.spec.oracle.type, record.spec.oracle_source) == ("Louder", "own.py:Louder")
    assert "--oracle own.py:Louder" in record.spec.command_line("runs/own")
    assert record.failed
    monkeypatch.chdir("/")
    for command in (["replay"], ["findings", "--shrink", "0"], ["report"]):
        result = CliRunner().invoke(main, [command[0], str(tmp_path / "runs/own"), *command[1:]])
        assert result.exit_code in (0, 1), result.output
        if command == ["replay"]:
            assert f"{len(record.failed)} of {len(record.failed)} fail" in result.output
    result = CliRunner().invoke(main, ["fuzz", *common[:-2], "-o", "x", "--oracle", str(tmp_path / "own.py:half")])
    assert "is a int without name and reference and score and fails: an oracle has name, reference" in result.output


@dataclass(frozen=True)
class Add:
    """Add a letter."""

    letter: str

    def __call__(self, text: str) -> str:
        return text + self.letter

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(str(rng.choice(["x", "y"])))


class Moving(dc.WordErrorRate):
    """Expects a letter more for each that was added; moving the reference twice would expect other letters."""

    def follow(self, reference: str, seed: str, recipe: Sequence[Any], mutant: str) -> str:
        return reference + "".join(step.letter for step in recipe if isinstance(step, Add))


class Deaf:
    """Hears the first two letters."""

    def run(self, batch: Sequence[str]) -> list[dc.Run]:
        return [dc.Run(text[:2]) for text in batch]


def test_a_reference_that_moves_is_moved_once(tmp_path: Path) -> None:
    oracle, mutations = Moving(), dc.Mutations((Add,), ((Add,),), (), lambda seed, mutant: None)
    seeds = [("ab", "ab"), ("cd", "cd")]
    options: dict[str, Any] = {"oracle": oracle, "mutations": mutations, "guide": "none", "workers": 0, "runs": 4}
    campaign = dc.fuzz(Deaf(), None, seeds, folder=tmp_path / "run", **options)
    assert {(test.seed_reference, len(test.reference)) for test in campaign.failed} == {("ab", 3), ("cd", 3)}
    for test in campaign.failed:
        again = test.replay(Deaf())
        assert (again.fails, again.score, again.differences) == (True, test.score, ())
    executor = LocalExecutor(Deaf(), None, campaign.inputs, mutations.invalid)
    for shrunk in shrink(campaign.failed, executor, campaign.inputs, oracle):
        assert (shrunk.status, shrunk.score) == ("shrunk", 1.0)


SPECS: list[tuple[dict[str, Any], Any]] = [
    ({"tolerance": "0.1"}, dc.Tolerance(0.1)),
    ({"tolerance": "5%", "against": "output"}, dc.Tolerance(0.05, True, "output")),
    ({"sdr_below": 12.5}, dc.SignalToDistortion(12.5)),
    ({"keywords": "stop, turn left"}, dc.Keywords(("stop", "turn left"))),
]


@pytest.mark.parametrize(("options", "oracle"), SPECS)
def test_specs_hold_them(options: dict[str, Any], oracle: Any) -> None:
    spec = spec_from(system="a.py:b", **options)
    assert build_oracle(spec) == oracle
    assert CampaignSpec.from_json(json.dumps(spec.to_dict())) == spec
    line = spec.command_line("runs/x")
    for name in options:
        assert f"--{name.replace('_', '-')}" in line
    assert ("%" in line) == (options.get("tolerance") == "5%")


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(dc.InputError, match=r"--tolerance 'small' is not a number; use 0.1, or 5% for a relative one"):
        spec_from(system="a.py:b", tolerance="small")
    result = CliRunner().invoke(main, ["fuzz", "--system", "x", "-o", "y", "--tolerance", "1", "--sdr-below", "3"])
    assert "--tolerance and --sdr-below cannot be combined: give one of --wer-above" in result.output.replace("\n", " ")
