"""The code that trained the built-in recogniser, on a network and a corpus of a few seconds."""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import deepcruiser as dc
from deepcruiser.decoding.beam import ctc_beam, has_beam_search
from deepcruiser.decoding.language_model import read_language_model
from deepcruiser.evaluate.campaigns import Matched
from deepcruiser.systems.builtin.speech import SEEDS, WEIGHTS
from deepcruiser.systems.builtin.speech.network import ALPHABET, RATE, Recogniser, Shape
from deepcruiser.transformations.severity import severity
from training import eesen, harden, language_model, shapes, synthesise, texts, train, voices
from training.graphs import Graphs, Scores
from training.pool import Pool
from training.prepare import is_held_out, main, pcm, speaker
from training.shards import is_plain, read_shard, spelled, write_shard
from training.sound import EVEN, Sounds

LETTERS = "abc"


def tone(text: str, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A language that can be learnt in seconds: every letter is a tone of its own."""
    parts = [
        np.sin(np.arange(2400) * 2 * np.pi * (400 + 900 * LETTERS.index(letter)) / RATE) * rng.uniform(0.2, 0.5)
        for letter in text
    ]
    return np.concatenate([0.001 * rng.standard_normal(1600), *parts]).astype(np.float32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for share, number, count in (("synthetic", 0, 200), ("synthetic", 1, 100), ("an4-held", 0, 20)):
        rows = []
        for place in range(count):
            text = "".join(rng.choice(list(LETTERS), size=rng.integers(2, 5)))
            rows.append((str(place), text, "a tone", pcm(dc.Audio(tone(text, rng), RATE))))
        write_shard(tmp_path / f"{share}.{number:03}", rows)
    return tmp_path


def test_shards_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [("a", "one", "x", np.arange(5, dtype=np.int16)), ("b", "two", "y", np.arange(3, dtype=np.int16))]
    hours = write_shard(tmp_path / "some.001", rows)
    utterances, samples = read_shard(tmp_path / "some.001.json")
    assert hours == 8 / RATE / 3600
    for (id_, text, voice, sound), each in zip(rows, utterances, strict=True):
        assert (each.id, each.text, each.voice) == (id_, text, voice)
        assert (samples[each.start : each.start + each.samples] == sound).all()


def test_texts_are_spelled_in_the_networks_letters() -> None:
    assert "".join(ALPHABET[number] for number in spelled("it's a test")) == "it's a test"
    assert not is_plain("It")
    assert not is_plain("")


def test_made_up_texts_can_be_spelled_and_said() -> None:
    rng = np.random.default_rng(0)
    made = [texts.made_up(rng, ["river", "stone"]) for _ in range(500)]
    assert all(is_plain(text) and "  " not in text for text in made)
    assert len(set(made)) > 300
    assert texts.spoken("r i v e r two") == "R, I, V, E, R, two"
    assert texts.spoken("i have a river") == "i have a river"


def test_held_out_are_whole_speakers_and_whole_texts() -> None:
    libri = [dc.Sample(f"{who}-100-{n:04}", Path("x.flac"), "a text") for who in range(1000, 2000) for n in range(3)]
    held = {sample.id for sample in libri if is_held_out(sample)}
    assert 0.02 < len(held) / len(libri) < 0.09
    assert all(len({f"{s.id}" for s in libri if speaker(s) == speaker(o)} & held) == 3 for o in libri if o.id in held)
    same = [dc.Sample(f"sample-{n}", Path("x"), "the same text") for n in range(5)]
    assert len({is_held_out(sample) for sample in same}) == 1


def test_prepare_decodes_and_leaves_out_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = []
    for number in range(6):
        dc.Audio(np.full(8000, 0.1, np.float32), 8000).write(corpus / f"{number}.wav")
        lines.append(f"{number}.wav\ttext number {'abcdef'[number]}")
    (corpus / "3.wav").write_bytes(b"broken")
    (corpus / "transcripts.tsv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("sys.argv", ["prepare", f"mine={corpus}", "-o", str(tmp_path / "data"), "--workers", "1"])
    main()
    shards = [read_shard(path)[0] for path in sorted((tmp_path / "data").glob("*.json"))]
    assert sum(map(len, shards)) == 5
    assert all(each.samples == RATE for shard in shards for each in shard)


def test_sounds_keep_lengths_and_depend_on_the_seed() -> None:
    waves = torch.randn(4, 16000, generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([16000, 12000, 800, 400])
    waves = waves * (torch.arange(16000) < lengths[:, None])
    first, second, other = (Sounds(torch.device("cpu"), seed=seed).waves(waves, lengths) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert all((row[length:] == 0).all() for row, length in zip(first, lengths, strict=True))
    frames, counts = Sounds(torch.device("cpu"), seed=3).frames(torch.randn(4, 101, 80), torch.tensor([101, 76, 6, 3]))
    assert (counts >= 1).all()
    assert (counts <= frames.shape[1]).all()
    assert frames.shape[1] % EVEN == 0


def test_a_pool_draws_batches_of_like_length(data: Path) -> None:
    pool = Pool(data, torch.device("cpu"), hours=0.1)
    pool.refresh(limit=1)
    pool.refresh()
    assert {share: len(each) for share, each in pool.shares.items()} == {"an4-held": 20, "synthetic": 300}
    rng = np.random.default_rng(0)
    batches = list(pool.batches({"synthetic": 1.0}, rng, seconds=4.0, most=16, longest=5.0))
    assert all(batch.waves.numel() / RATE <= 4.0 and len(batch.waves) <= 16 for batch in batches)
    assert all(len(batch.waves) == min(16, 4 * RATE // batch.waves.shape[1]) for batch in batches)  # a size each
    batch = batches[0]
    for row, length, each in zip(batch.waves, batch.lengths, batch.utterances, strict=True):
        assert (row[length:] == 0).all()
        assert torch.equal(row[:length], pool.store[each.start : each.start + each.samples].float() / 32768)


def test_training_learns_and_goes_on(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Shape(width=48, layers=2, blocks=1, hidden=48, channels=(4, 8))
    monkeypatch.setitem(shapes.SHAPES, "english", lambda: Recogniser(small))
    monkeypatch.setattr(train, "WARM_STEPS", (10, 10))
    monkeypatch.setattr(train, "RATES", (5e-3, 5e-3))
    clock = itertools.count(step=0.06)  # seconds for each update, however long it takes: 150 of them
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    arguments = argparse.Namespace(
        data=data, output=tmp_path / "run", minutes=0.15, shape="english", noise=None, seed=0, device="cpu", hours=0.1,
        start=None, batch_seconds=12.0, batch_most=32, no_graphs=False,
    )  # fmt: skip
    arguments.output.mkdir()
    first = train.Training(arguments)
    first.go()
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert log[-1]["loss"] < 3.0
    assert "an4-held" in log[-1]
    again = train.Training(arguments)
    assert again.step == first.step > 20
    assert again.progress >= 1
    arguments.start, arguments.output = tmp_path / "run/weights.safetensors", tmp_path / "second"
    arguments.output.mkdir()
    second = train.Training(arguments)
    assert second.stage == 1
    for one, other in zip(second.net.parameters(), first.average.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_a_small_eesen_network_is_trained_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "corpus").mkdir()
    lines = []
    for number in range(120):
        text = "".join(rng.choice(list(LETTERS), size=rng.integers(2, 5)))
        dc.Audio(tone(text, rng), RATE).write(tmp_path / "corpus" / f"an{number}-m{number % 10}-b.wav")
        lines.append(f"an{number}-m{number % 10}-b.wav\t{text}\n")
    (tmp_path / "corpus" / "transcripts.tsv").write_text("".join(lines))
    arguments = f"eesen {tmp_path}/corpus -o {tmp_path}/run --epochs 14 --cells 24 --layers 1".split()
    monkeypatch.setattr("sys.argv", arguments)
    monkeypatch.setattr(eesen, "BATCH", 16)
    eesen.main()
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert log[-1]["cer"] < 0.2
    held, train_list = (dc.read_corpus(tmp_path / "run" / name) for name in ("held", "train"))
    assert len(held) == 12
    assert len(train_list) == 108
    assert not {sample.id.split("-")[1] for sample in held} & {sample.id.split("-")[1] for sample in train_list}
    system = dc.EesenSystem(tmp_path / "run/final.nnet", features="librispeech")
    heard = [run.output for run in system.run([sample.input for sample in held])]
    assert sum(one == sample.text for one, sample in zip(heard, held, strict=True)) > 4


def test_hardening_compares_failing_tests_with_random_mutants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts_of = dict(line.split("\t") for line in (SEEDS / "transcripts.tsv").read_text().splitlines())
    for name, chosen in (("train", sorted(texts_of)[::4]), ("held", sorted(texts_of)[1::12])):
        (tmp_path / name).mkdir()
        for file in chosen:
            shutil.copy(SEEDS / file, tmp_path / name)
        lines = [f"{file}\t{texts_of[file]}\n" for file in chosen]
        (tmp_path / name / "transcripts.tsv").write_text("".join(lines))
    command = ["harden", f"{tmp_path}/train", "--held", f"{tmp_path}/held", "-o", f"{tmp_path}/run"]
    command += "--severity hard --train-runs 64 --updates 2 --batch-seconds 8".split()
    command += "--repeats 1 --seeds 4 --runs 16 --campaigns 1".split()
    monkeypatch.setattr("sys.argv", command)
    harden.main()
    table = capsys.readouterr().out
    result = json.loads((tmp_path / "run/harden.json").read_text())
    assert [row["arm"] for row in result["networks"]] == ["as it is", "random mutants", "failing tests"]
    assert all(f"| {row['arm']} | 1 |" in table for row in result["networks"])
    assert 0 < result["sizes"]["failing tests"] <= 64
    assert result["sizes"]["seeds"] <= 4
    shards = {name: read_shard(tmp_path / f"run/data/{name}.000.json") for name in ("clean", "failing", "random")}
    (failing, failing_sound), (random, random_sound) = shards["failing"], shards["random"]
    assert len(failing) == len(random) == result["sizes"]["failing tests"]
    assert failing_sound.shape != random_sound.shape or (failing_sound != random_sound).any()
    weights = [(tmp_path / f"run/{name}-0.safetensors").read_bytes() for name in ("failing", "random")]
    assert len({*weights, WEIGHTS.read_bytes()}) == 3
    harden.main()  # it goes on where it stopped: at the end
    assert json.loads((tmp_path / "run/harden.json").read_text()) == result


def test_random_mutants_are_as_severe_as_the_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = dc.Sample("a", sorted(SEEDS.glob("*.opus"))[0], "a text")
    recipe = (dc.transformations.PitchShift(2.0), dc.transformations.ChangeSpeed(1.1))
    drawn: list[tuple[Any, ...]] = []
    changes_of = Matched.changes

    def noted(self: Matched, number: int, rng: np.random.Generator) -> tuple[Any, ...]:
        drawn.append(changes_of(self, number, rng))
        return drawn[-1]

    monkeypatch.setattr(Matched, "changes", noted)
    mutants = harden.random_mutants([recipe] * 6, [sample], np.random.default_rng(0))
    assert [text for text, _ in mutants] == ["a text"] * 6
    assert len({audio.samples.tobytes() for _, audio in mutants}) > 1
    assert all(len(changes) == 2 for changes in drawn)
    assert np.allclose([severity(changes) for changes in drawn], severity(recipe), atol=0.15)


@pytest.mark.cuda
def test_graphs_give_the_scores_and_gradients_of_the_network() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    net = Recogniser(Shape(width=128, layers=2, blocks=1, hidden=64, channels=(4, 8))).cuda().train()
    inputs = [(torch.randn(rows, 96 * rows, 80).cuda(), torch.full((rows,), 90 * rows).cuda()) for rows in (4, 6, 4)]
    result = []
    for forward in (Graphs(net), Scores(net)):
        for frames, counts in inputs:
            net.zero_grad(set_to_none=True)
            scores, middle = forward(frames, counts)
            (scores.square().mean() + middle.square().mean()).backward()
            result.append([scores.detach().clone(), *(weight.grad.clone() for weight in net.parameters())])  # type: ignore[union-attr]
            del scores, middle
    for replayed, plain in zip(result[:3], result[3:], strict=True):
        for one, other in zip(replayed, plain, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-2)


def test_the_rate_of_learning_rises_holds_and_falls() -> None:
    assert train.learning(0, 0.0, 0) < train.learning(399, 0.0, 0) == train.RATES[0]
    assert train.learning(5000, train.HOLD[0], 0) == train.RATES[0]
    assert train.learning(5000, 0.9, 0) < 0.1 * train.RATES[0]
    assert train.learning(5000, 1.0, 0) == pytest.approx(0)


def test_the_shape_of_deepspeech() -> None:
    net = shapes.DeepSpeechShape().eval()
    assert net.lstm.hidden_size == 2048
    assert net.dense[0].in_features == 26 * 19
    with torch.no_grad():
        scores, _ = net.scores(torch.randn(2, 30, 80), torch.tensor([30, 21]))
    assert scores.shape == (2, 15, 29)
    assert net.steps_of(torch.tensor([30, 21])).tolist() == [15, 11]


@pytest.mark.skipif(
    not all(map(shutil.which, ("espeak-ng", "flite", "festival"))), reason="espeak-ng, flite and festival are not here"
)
@pytest.mark.parametrize("voice", ["espeak:en-us+m3", "flite:slt", "festival:kal_diphone"])
def test_voices_speak(voice: str, tmp_path: Path) -> None:
    program, _, name = voice.partition(":")
    message = voices.say(voices.Voice(program, name), ["good morning", "the river is deep"], tmp_path)
    assert all(audio is not None and 0.4 < audio.seconds < 4 and audio.rms > 0.005 for audio in message)


def test_texts_of_a_shard_depend_on_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        synthesise, "_lines", [f"sentence {'abcdefghij'[n % 10]} of {'xyz'[n % 3]} {n}" for n in range(3000)]
    )
    monkeypatch.setattr(synthesise, "_words", ["river", "stone"])
    one, same, other = (synthesise.shard_texts(0, number, held=False) for number in (60, 60, 61))
    assert one == same != other
    assert not [text for text in one if texts.is_held_out(text) and text.startswith("sentence")]
    assert all(texts.is_held_out(text) for text in synthesise.shard_texts(0, 8, held=True))


def test_lines_have_todays_spellings(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text("come  to morrow or to day\n\nto day's any things every thing\n")
    assert list(language_model.lines(path)) == ["come tomorrow or today", "to day's any things everything"]
    with lzma.open(tmp_path / "old.txt.xz", "wt") as file:
        file.write("to night")
    assert list(language_model.lines(tmp_path / "old.txt.xz")) == ["tonight"]


def test_the_vocabulary_has_frequent_words_those_of_the_rules_and_letters(tmp_path: Path) -> None:
    read = ["the river is deep", "the stone in the river", "once is not"]
    words = language_model.vocabulary(read, ["erase q", "june third"])
    assert words == sorted({"the", "river", "is", "erase", "june", "third", *"abcdefghijklmnopqrstuvwxyz"})
    path = tmp_path / "books.txt"
    path.write_text("\n".join(read))
    made_up = language_model.by_rule([path], 50, seed=0)
    assert made_up == language_model.by_rule([path], 50, seed=0) != language_model.by_rule([path], 50, seed=1)
    assert all(is_plain(text) for text in made_up)


@pytest.mark.skipif(
    not (shutil.which("lmplz") and shutil.which("build_binary") and has_beam_search()),
    reason="KenLM's programs or flashlight-text are not here",
)
def test_a_language_model_is_built_by_kenlm(tmp_path: Path) -> None:
    sentences = ["the river is deep", "the river is cold", "a stone is cold"] * 4 + ["r i v e r"] * 4
    programs = Path(shutil.which("lmplz") or "").parent
    language_model.build(sentences, [*"the river is deep cold stone".split(), *"river", "a"], programs, tmp_path / "lm")
    model = read_language_model(tmp_path / "lm")
    assert set(model.words) == {"the", "river", "is", "deep", "cold", "stone", "a", *"river"}
    certain = np.eye(28)[["_ abcdefghijklmnopqrstuvwxyz".index(letter) for letter in "the rive_r is cold"]]
    text = ctc_beam(certain * 0.9 + 0.1 / 28, "_ abcdefghijklmnopqrstuvwxyz", blank=0, language_model=model)
    assert text == "the river is cold"
