"""The built-in recogniser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from string import ascii_lowercase

import jiwer
import numpy as np
import pytest
import torch
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import builtin, main
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.systems.builtin.speech import LANGUAGE_MODEL, SEEDS, WEIGHTS, recogniser
from deepcruiser.systems.builtin.speech.network import ALPHABET, RATE, Recogniser, front
from deepcruiser.systems.builtin.speech.recogniser import English

needs_beam_search = pytest.mark.skipif(not has_beam_search(), reason="flashlight-text is not installed")


@pytest.fixture(scope="module")
def english() -> English:
    return English()


@pytest.fixture(scope="module")
def seeds() -> list[dc.Sample]:
    return list(dc.read_corpus(SEEDS))[::4][:32]


def test_a_batch_of_32_and_one_by_one_agree(english: English, seeds: list[dc.Sample]) -> None:
    inputs = [sample.input for sample in seeds]
    together = english.run(inputs)
    for one, run in zip(inputs, together, strict=True):
        (alone,) = english.run([one])
        assert alone.output == run.output
        assert len(alone.traced) == len(run.traced) == Recogniser.steps(len(one.resample(RATE)))  # type: ignore[union-attr]
        # Sums in single precision, in another order. A recording in which a state turns quickly reaches 2.3e-4 for a
        # moment, all others 2e-5; in the mean the differences are below 1e-6.
        for one_way, other_way in ((alone.traced.states, run.traced.states), (alone.traced.inputs, run.traced.inputs)):
            difference = np.abs(np.asarray(one_way) - np.asarray(other_way))
            assert difference.mean() < 5e-6
            assert np.percentile(difference, 99.9) < 1e-4
            assert difference.max() < 1e-3


def test_it_is_trained(english: English, seeds: list[dc.Sample]) -> None:
    heard = [run.output for run in english.run([sample.input for sample in seeds])]
    assert jiwer.wer([sample.text for sample in seeds], heard) < 0.2
    assert set("".join(heard)) <= set(ALPHABET)


def test_any_rate(english: English, seeds: list[dc.Sample]) -> None:
    audio = [sample.input for sample in seeds[:8]]
    at_48000 = english.run([each.resample(48_000) for each in audio])  # type: ignore[union-attr]
    same = [a.output == b.output for a, b in zip(english.run(audio), at_48000, strict=True)]
    assert sum(same) >= 7


def sounds() -> dict[str, dc.Audio]:
    rng = np.random.default_rng(0)
    return {
        "empty": dc.Audio(np.zeros(0, np.float32), RATE),
        "silent": dc.Audio(np.zeros(RATE, np.float32), RATE),
        "one sample": dc.Audio(np.ones(1, np.float32), RATE),
        "20 ms": dc.Audio(rng.standard_normal(320).astype(np.float32) * 0.1, RATE),
        "20 ms at 8 kHz": dc.Audio(rng.standard_normal(160).astype(np.float32) * 0.1, 8000),
        "clipped": dc.Audio(np.sign(rng.standard_normal(RATE)).astype(np.float32), RATE),
        "beyond full scale": dc.Audio(rng.standard_normal(RATE).astype(np.float32) * 1e6, RATE),
        "noise": dc.Audio(rng.standard_normal(3 * RATE).astype(np.float32) * 0.1, RATE),
        "a tone": dc.Audio(np.sin(np.arange(2 * RATE) * 0.2).astype(np.float32), RATE),
    }


@pytest.mark.parametrize("name", sounds())
def test_sounds_that_are_no_speech_give_a_text(english: English, name: str) -> None:
    (run,) = english.run([sounds()[name]])
    assert isinstance(run.output, str)
    assert np.isfinite(np.asarray(run.traced.states)).all()


def test_ten_minutes(english: English, seeds: list[dc.Sample]) -> None:
    speech = np.concatenate([sample.input.resample(RATE).samples for sample in seeds])  # type: ignore[union-attr]
    audio = dc.Audio(np.resize(speech, 600 * RATE), RATE)
    (run,) = english.run([audio])
    assert len(run.traced) == Recogniser.steps(len(audio))
    assert len(run.output) > 1000


def test_nothing_but_audio_is_taken(english: English) -> None:
    with pytest.raises(dc.InputError, match="takes Audio"):
        english.run([np.zeros(10, np.float32)])


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match="there is no weights file"):
        English(weights=tmp_path / "none.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(WEIGHTS.read_bytes()[:1000])
    with pytest.raises(dc.FileError, match="not a safetensors file"):
        English(weights=tmp_path / "cut.safetensors")


def test_the_network_is_small_and_reads_forward_only() -> None:
    net = Recogniser()
    assert sum(weight.numel() for weight in net.parameters()) <= 12e6
    assert WEIGHTS.stat().st_size <= 25e6
    assert not any(module.bidirectional for module in net.modules() if isinstance(module, torch.nn.LSTM))


def test_loudness_changes_nothing(english: English, seeds: list[dc.Sample]) -> None:
    audio = seeds[0].input
    assert isinstance(audio, dc.Audio)
    loud, soft = (english.run([audio.replace(audio.samples * gain)])[0].output for gain in (1.0, 0.2))
    assert loud == soft


@pytest.mark.cuda
def test_features_on_cuda_are_those_of_the_cpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    waves = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 8000)).astype(np.float32))
    lengths = torch.tensor([8000, 5000, 320])
    cpu = front(waves, lengths)[0]
    cuda = front(waves.cuda(), lengths.cuda())[0].cpu()
    assert (cpu - cuda).abs().max() < 1e-4


def test_importing_the_package_loads_no_weights() -> None:
    heavy = ("safetensors", "deepcruiser.systems.builtin.speech")
    code = f"import sys, deepcruiser; sys.exit(any(name.startswith({heavy}) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_beam_search
def test_english_is_written_in_known_words_alone_and_in_a_batch(seeds: list[dc.Sample]) -> None:
    system = dc.load_system("english")
    assert repr(system) == "English recogniser of words (lstms.3: h)"
    inputs = [sample.input for sample in seeds]
    heard = [run.output for run in system.run(inputs)]
    assert heard == [system.run([each])[0].output for each in inputs]
    assert heard == [run.output for run in dc.load_system("english").run(inputs)]
    assert jiwer.wer([str(sample.text) for sample in seeds], heard) < 0.1
    known = set(dc.read_language_model(LANGUAGE_MODEL).words)
    assert {word for text in heard for word in text.split()} <= known
    assert known.issuperset(ascii_lowercase)  # what is spelled consists of letters


@needs_beam_search
def test_noise_gives_known_words_too() -> None:
    known = set(dc.read_language_model(LANGUAGE_MODEL).words)
    for run in dc.load_system("english").run(list(sounds().values())):
        assert set(run.output.split()) <= known


def test_without_flashlight_it_decodes_letters_and_says_so(
    english: English, seeds: list[dc.Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recogniser, "has_beam_search", lambda: False)
    with pytest.warns(UserWarning, match="flashlight-text is not installed .* decodes letter by letter"):
        system = dc.load_system("english")
    assert repr(system) == "English recogniser of letters (lstms.3: h)"
    assert system.run([seeds[0].input])[0].output == english.run([seeds[0].input])[0].output
    builtin.system.cache_clear()
    result = CliRunner().invoke(main, ["transcribe", str(seeds[0].path)])
    builtin.system.cache_clear()
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("note: the package flashlight-text is not installed")


def test_transcribe(seeds: list[dc.Sample], tmp_path: Path) -> None:
    run = CliRunner().invoke
    (tmp_path / "broken.wav").write_bytes(b"RIFF and no more")
    result = run(main, ["transcribe", "--greedy", str(seeds[0].path)])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().replace(" ", "").isalpha()
    options = [
        "transcribe",
        "--json",
        str(seeds[0].path),
        str(tmp_path / "broken.wav"),
        "no-such.flac",
        str(seeds[1].path),
    ]
    result = run(main, options)
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.count("error: cannot read") == 2
