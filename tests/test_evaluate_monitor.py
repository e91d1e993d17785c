"""`evaluate monitor`: its measures against loops, its attack on a small network, and the whole command."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.evaluate.attack import Attack, Victim, attack_once, choose_target
from deepcruiser.evaluate.detectors import auc, recall
from deepcruiser.evaluate.observations import Gaussian, half, items, speaker
from deepcruiser.evaluate.synthetic_sounds import SENTENCES, music, speak
from tests.support.toy import Reader, texts
from tests.test_docs import RECOGNISER

ASR = """
import deepcruiser as dc
from monitored_recogniser import net, log_mel, greedy

system = dc.TorchSystem(net.eval(), state="encoder.lstm", rate=16_000, features=log_mel, transcribe=greedy)
"""


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30))
def test_auc_and_recall_equal_the_loops(cases: list[tuple[bool, int]]) -> None:
    bad = [score for is_bad, score in cases if is_bad]
    good = [score for is_bad, score in cases if not is_bad]
    labels, scores = np.array([float(is_bad) for is_bad, _ in cases]), np.array([float(score) for _, score in cases])
    if not bad or not good:
        assert np.isnan(auc(labels, scores))
        assert np.isnan(recall(labels, scores))
        return
    wins = [(a > b) + (a == b) / 2 for a in bad for b in good]
    assert auc(labels, scores) == pytest.approx(sum(wins) / len(wins))
    thresholds = [t for t in good if sum(b > t for b in good) <= 0.01 * len(good)]
    assert recall(labels, scores) == pytest.approx(sum(a > min(thresholds) for a in bad) / len(bad))


def test_recall_allows_one_false_alarm_in_a_hundred() -> None:
    good = np.arange(200.0)
    labels, scores = np.repeat([1.0, 0.0], [2, 200]), np.concatenate([[197.5, 196.5], good])
    assert recall(labels, scores) == 0.5


def test_the_gaussian_is_the_mahalanobis_distance() -> None:
    from deepcruiser.abstraction.projection import Moments

    rng = np.random.default_rng(0)
    states = rng.normal(0, 1, (500, 3)) @ rng.normal(0, 1, (3, 3)) + 2
    moments = Moments(3)
    moments.add(states)
    inverse = np.linalg.inv(np.cov(states.T, bias=True))
    fresh = rng.normal(0, 1, (7, 3))
    expected = np.mean([(row - states.mean(0)) @ inverse @ (row - states.mean(0)) for row in fresh])
    assert Gaussian(moments)(fresh) == pytest.approx(expected, rel=1e-3)
    assert Gaussian(moments)(torch.from_numpy(states)) == pytest.approx(3, rel=1e-3)


class Letters(torch.nn.Module):
    """Scores of three letters and the blank for every 40 samples."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(40, 4, generator=generator))

    def forward(self, waves: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        steps = waves.shape[1] // 40
        frames = waves[:, : steps * 40].reshape(len(waves), steps, 40)
        scores: torch.Tensor = frames @ self.weight * 20
        return scores


def test_an_attack_writes_its_target_within_its_bound(tmp_path: Path) -> None:
    net = Letters()
    victim = Victim(net, "abc", 16_000, "letters")
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 0.05, 400).astype(np.float32)
    attack = Attack(peak=0.4, steps=100)
    result = attack(victim, samples, "abacab")
    assert result.success
    assert victim.read(net(torch.from_numpy(result.samples)[None], torch.tensor([400]))[0]) == "abacab"
    noise = result.samples - samples
    assert np.abs(noise).max() <= 0.4 * np.abs(samples).max() * (1 + 1e-5)
    assert result.snr_db == pytest.approx(10 * np.log10((samples**2).mean() / (noise**2).mean()), abs=1e-3)
    assert net.weight.grad is None
    first = attack_once(victim, attack, samples, "abacab", folder=tmp_path)
    (file,) = tmp_path.iterdir()
    changed = file.stat().st_mtime_ns
    again = attack_once(victim, attack, samples, "abacab", folder=tmp_path)
    assert file.stat().st_mtime_ns == changed
    assert np.array_equal(first.samples, again.samples)
    assert np.array_equal(first.samples, result.samples)
    assert not Attack(peak=1e-6, steps=3)(victim, samples, "abacab").success
    with pytest.raises(dc.InputError, match="the target 'xyz' must be a text of the letters 'abc'"):
        attack(victim, samples, "xyz")


def test_targets_share_no_word_and_are_of_like_length() -> None:
    others = ["the dog", "a cat", "a very long text of many words", "a bird"]
    assert choose_target("the cat", others, np.random.default_rng(0)) in ("a bird", "a very long text of many words")
    with pytest.raises(dc.InputError, match="every other text shares a word"):
        choose_target("the cat", ["the dog"], np.random.default_rng(0))


def test_items_are_drawn_by_name_and_long_recordings_cut() -> None:
    class Named:
        def __init__(self, name: str, seconds: float, text: str = "") -> None:
            self.id, self.text = name, text
            self.input = dc.Audio(np.zeros(int(seconds * 16_000), np.float32), 16_000)

    data = [Named("noise", 17), Named("a", 3), Named("b", 9, "too long"), Named("c", 1)]
    result = items(data, longest=7, limit=99, seed=0)
    assert {item.name for item in result} == {"noise:0", "noise:1", "noise:2", "a", "c"}
    assert {item.cluster for item in result} == {"noise", "a", "c"}
    assert [item.name for item in items(data[::-1], longest=7, limit=99, seed=0)] == [item.name for item in result]
    assert len(items(data, longest=7, limit=2, seed=0)) == 2
    assert speaker("1272-128104-0003") == "1272"
    assert speaker("sample-000003") == "sample-000003"
    assert 40 < sum(half(str(number), 0) for number in range(100)) < 60


def test_music_is_the_same_for_the_same_seed_and_speech_is_spoken() -> None:
    one, same, other = (music(np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one.samples, same.samples)
    assert not np.array_equal(one.samples, other.samples)
    assert one.seconds == 5
    if shutil.which("espeak-ng"):
        speech = [speak(texts[0], voice) for voice, texts in SENTENCES.items()]
        assert all(1 < audio.seconds < 8 for audio in speech)
        with pytest.raises(dc.InputError, match="espeak-ng could not read 'hello' in the voice 'klingonish'"):
            speak("hello", "klingonish")


def test_without_espeak_nothing_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(dc.InputError, match="espeak-ng, which is not installed"):
        speak("hello")


def test_the_command_writes_its_tables_and_repeats_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("deepcruiser.evaluate.monitor_sets.MUSIC", 4)
    monkeypatch.setattr("deepcruiser.evaluate.monitor_sets.has_espeak", lambda: False)
    (tmp_path / "monitored_recogniser.py").write_text(RECOGNISER)
    (tmp_path / "monitored.py").write_text(ASR)
    rng = np.random.default_rng(0)
    for part, count in (("train", 20), ("clean", 30), ("test", 12), ("far", 5)):
        (tmp_path / part).mkdir()
        for number in range(count):
            times = np.arange(int(rng.uniform(0.4, 0.8) * 16_000)) / 16_000
            hum = np.sin(2 * np.pi * rng.uniform(80, 300) * times) * np.sin(2 * np.pi * rng.uniform(1, 5) * times)
            loud = 0.5 if part != "far" else 0.01
            sound = dc.Audio(loud * hum + 0.01 * rng.standard_normal(len(times)), 16_000)
            sound.write(tmp_path / part / f"{number:02}.wav")
    sounds = [sample.input for sample in dc.read_corpus("test")]
    ran = CliRunner().invoke(main, "profile --system monitored.py:system --data train -o a.profile".split())
    assert ran.exit_code == 0, ran.output
    from monitored import system as network  # type: ignore[import-not-found]

    answers = [run.output for run in network.run(sounds)]
    lines = [f"{n:02}.wav\t{text if n % 2 else 'nobody says this'}" for n, text in enumerate(answers)]
    (tmp_path / "test" / "transcripts.tsv").write_text("\n".join(lines) + "\n")
    line = (
        "evaluate monitor --system monitored.py:system --profile a.profile --clean clean --data test --far quiet=far "
        "--partitions 5,10 --input-partitions 7 --inputs 20 --json"
    )
    results = [CliRunner().invoke(main, [*line.split(), "-o", folder]) for folder in ("one", "two")]
    assert results[0].exit_code == 0, results[0].output
    assert results[0].stdout == results[1].stdout
    for name in ("monitor", "monitor-recall", "monitor-scores", "monitor-grids", "monitor-alarms", "monitor-data"):
        assert (tmp_path / "one" / f"{name}.csv").read_bytes() == (tmp_path / "two" / f"{name}.csv").read_bytes()
    tables = json.loads(results[0].stdout)
    assert {"M{3,5} with inputs {3,7}", "M{3,10} with inputs {3,7}"} < tables["monitor-grids"][0].keys()
    detected = {row["detected"]: row for row in tables["monitor"]}
    assert set(detected) >= {"answers with more than 30.0 % wrong words", "quiet", "music"}
    assert detected["answers with more than 30.0 % wrong words"]["inputs"] == "6 against 6"
    assert detected["quiet"]["monitor low"] <= detected["quiet"]["monitor"] <= detected["quiet"]["monitor high"]
    with open(tmp_path / "one" / "monitor-data.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] in ("tests", "quiet")]
    far = [float(row["monitor"]) for row in rows if row["set"] == "quiet"]
    near = [float(row["monitor"]) for row in rows if row["set"] == "tests"]
    wins = [(a > b) + (a == b) / 2 for a in far for b in near]
    assert detected["quiet"]["monitor"] == pytest.approx(sum(wins) / len(wins))
    assert "calibrated on" in (tmp_path / "one" / "monitor.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--far x -o out", "--far 'x' is not a name and a path; use noise=recordings/noise"),
        ("-o file/out", "cannot write to the folder 'file/out': not a directory"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    dc.profile(Reader(), texts(30), exact=True).save("a.profile")
    line = f"evaluate monitor --system english --profile a.profile --clean english --data english {options}"
    ran = CliRunner().invoke(main, line.split())
    assert ran.exit_code == 2
    assert message in ran.output
