"""DeepSpeech's files: against the same network in numpy, step by step, and against the client's way with audio."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import deepcruiser as dc
from deepcruiser.decoding.beam import has_beam_search
from deepcruiser.systems.deepspeech.system import Steps, read_alphabet, unpacked_alphabet
from tests.support import deepspeech_files as files

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")

NAMES = ("old.pb", "new.pb", "old.pbmm", "new.pbmm", "new.tflite")
HIDDEN = 24


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow, which makes the files."""
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'deepcruiser[deepspeech]'")
    return pytest.importorskip(
        "tensorflow", reason="needs tensorflow-cpu (1.4 GB) to make and run frozen graphs: deepcruiser[deepspeech-tf]"
    )


@pytest.fixture(scope="module")
def made(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a file of every kind, and the weights in all of them."""
    folder = tmp_path_factory.mktemp("deepspeech")
    return folder, files.write_all(folder, hidden=HIDDEN)


def opened(folder: Path, name: str, **options: Any) -> dc.DeepSpeechSystem:
    alphabet = folder / "alphabet.txt" if name.startswith("old") else None
    return dc.DeepSpeechSystem(folder / name, alphabet, **options)


def sound(samples: int, seed: int = 0) -> dc.Audio:
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 16000
    tone = np.sin(2 * np.pi * (200 + 2000 * np.abs(np.sin(2 * t))) * t)
    return dc.Audio((0.2 * tone + 0.02 * rng.standard_normal(samples)).astype(np.float32), 16000)


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_that_of_the_network_in_numpy(made: tuple[Path, dict[str, Any]], name: str) -> None:
    folder, w = made
    system = opened(folder, name, part="both")
    for audio in (sound(30000), sound(16 * 320 + 300, 1), sound(200, 2)):
        windows = system.windows(audio)
        probabilities, c, h, x = files.plain(w, windows.reshape(len(windows), -1))
        run = system.run([audio])[0]
        assert run.traced.states.shape == (len(windows) + 1, 2 * HIDDEN)
        assert not np.asarray(run.traced.states[0]).any()
        np.testing.assert_allclose(run.traced.states[1:], np.concatenate([c, h], axis=1), atol=1e-4)
        np.testing.assert_allclose(run.traced.inputs, x, atol=1e-4)
        assert run.output == dc.ctc_greedy(probabilities, files.ALPHABET, blank=-1)
    for part, expected in (("c", c), ("h", h)):
        again = opened(folder, name, part=part).run([sound(200, 2)])[0]
        np.testing.assert_allclose(again.traced.states[1:], expected, atol=1e-4)


def test_all_files_from_06_on_agree_and_batches_change_nothing(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    sounds = [sound(20000, seed) for seed in range(3)]
    runs = [opened(folder, name).run(sounds) for name in ("new.pb", "new.pbmm", "new.tflite")]
    assert len({run.output for run in runs[0]}) == 3
    for others in runs[1:]:
        for one, two in zip(runs[0], others, strict=True):
            assert one.output == two.output
            np.testing.assert_allclose(one.traced.states, two.traced.states, atol=1e-4)
    alone = opened(folder, "old.pb")
    assert [alone.run([one])[0].output for one in sounds] == [run.output for run in alone.run(sounds)]


@pytest.mark.parametrize("samples", [0, 1, 319, 511, 512, 513, 831, 832, 833, 5120, 9000])
def test_windows_are_the_clients(tf: Any, made: tuple[Path, dict[str, Any]], samples: int) -> None:
    """Its buffers, as they fill and empty, and the features that the graph itself computes."""
    folder, _ = made
    audio = sound(samples)
    graph = tf.compat.v1.GraphDef.FromString((folder / "new.pb").read_bytes())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        frames = [np.zeros(26)] * 9
        waiting: list[Any] = []

        def features() -> Any:
            frame = np.zeros(512, np.float32)
            frame[: len(waiting)] = waiting
            return session.run("mfccs:0", {"input_samples:0": frame})[0]

        for sample in audio.samples:
            waiting.append(sample)
            if len(waiting) == 512:
                frames.append(features())
                waiting = waiting[320:]
        frames.append(features())
        frames += [np.zeros(26)] * 9
    expected = np.stack([frames[first : first + 19] for first in range(len(frames) - 18)])
    result = opened(folder, "new.tflite").windows(audio)
    np.testing.assert_allclose(result, expected, atol=2e-4)


def test_audio_at_another_rate_and_old_features(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    audio = dc.Audio(sound(8000).samples, 8000)
    new, old = opened(folder, "new.tflite"), opened(folder, "old.pb")
    np.testing.assert_array_equal(new.windows(audio), new.windows(audio.resample(16000)))
    front = dc.MFCC.speech_features(window_ms=32, step_ms=20, coefficients=26, taper="hamming-symmetric")
    samples = np.append(sound(9000).samples, np.float32(0)) * 32768
    np.testing.assert_allclose(old.windows(sound(9000))[:, 9], front(samples), atol=1e-4)


def test_quantised_files_as_the_projects_ship_them(made: tuple[Path, dict[str, Any]]) -> None:
    folder, w = made
    files.write_tflite(folder / "small.tflite", w, quantised=True)
    one, two = (opened(folder, name).run([sound(20000)])[0] for name in ("new.tflite", "small.tflite"))
    assert "third dense layer" in opened(folder, "small.tflite").state_name
    assert np.corrcoef(np.ravel(one.traced.states), np.ravel(two.traced.states))[0, 1] > 0.9


@pytest.mark.skipif(not has_beam_search(), reason="flashlight-text is not installed")
def test_beam_search_with_a_language_model(made: tuple[Path, dict[str, Any]]) -> None:
    folder, w = made
    audio = sound(20000)
    windows = opened(folder, "new.tflite").windows(audio)
    probabilities = files.plain(w, windows.reshape(len(windows), -1))[0]
    path = Path(__file__).parent / "data" / "tiny.kenlm"
    model = dc.read_language_model(path)
    expected = dc.ctc_beam(probabilities, files.ALPHABET, blank=-1, language_model=model, alpha=0.1, beta=3, width=9)
    for language_model in (model, path, str(path)):
        system = opened(folder, "new.tflite", language_model=language_model, alpha=0.1, beta=3, width=9)
        assert system.run([audio])[0].output == expected
    assert expected
    assert set(expected.split()) <= set(model.words)
    assert expected != opened(folder, "new.tflite").run([audio])[0].output


def test_profile_and_cover(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    system = opened(folder, "new.tflite")
    sounds = [sound(6000, seed) for seed in range(4)]
    profile = dc.profile(system, sounds, components=2)
    model = profile.abstract(5)
    assert dc.BSCov(model, [run.traced for run in system.run(sounds)]) == 1.0
    assert system.fingerprint == opened(folder, "new.tflite").fingerprint != opened(folder, "new.pb").fingerprint


def test_what_cannot_be_is_refused(tf: Any, made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    with pytest.raises(
        dc.InputError, match=r"old\.pb contains no alphabet: give the path of its alphabet\.txt too, system ="
    ):
        dc.DeepSpeechSystem(folder / "old.pb")
    (tmp_path / "short.txt").write_text("a\nb\n")
    with pytest.raises(dc.InputError, match=r"the alphabet has 2 symbols, but new\.tflite gives 29 scores"):
        dc.DeepSpeechSystem(folder / "new.tflite", tmp_path / "short.txt").run([sound(900)])
    with pytest.raises(dc.InputError, match="part must be 'h', 'c' or 'both', not 'x'"):
        opened(folder, "new.tflite", part="x")
    with pytest.raises(dc.InputError, match="input 0 of the batch is a ndarray, but DeepSpeech reads Audio"):
        opened(folder, "new.tflite").run([np.zeros(99)])
    for name in NAMES:
        broken = tmp_path / f"broken-{name}"
        data = (folder / name).read_bytes()
        for content in (data[: len(data) // 2], b"nonsense" * 50, b""):
            broken.write_bytes(content)
            with pytest.raises(dc.DeepCruiserError, match="broken-"):
                dc.DeepSpeechSystem(broken)
    with tf.Graph().as_default() as graph:
        v1 = tf.compat.v1
        fed = v1.placeholder(tf.float32, [1, 16, 19, 26], "input_node")
        v1.placeholder(tf.int32, [1], "input_lengths")
        for part in "ch":
            v1.placeholder(tf.float32, [1, 8], f"previous_state_{part}")
        tf.identity(fed, name="logits")
        (tmp_path / "dense.pb").write_bytes(graph.as_graph_def().SerializeToString())
        tf.raw_ops.ReadFile(filename="secret")
        (tmp_path / "reader.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(dc.InputError, match=r"dense\.pb must have one BlockLSTM, but has nothing recurrent"):
        dc.DeepSpeechSystem(tmp_path / "dense.pb")
    with pytest.raises(dc.InputError, match=r"reader\.pb is refused, as .*\(ReadFile\)"):
        dc.DeepSpeechSystem(tmp_path / "reader.pb")


def test_wrong_paths(tmp_path: Path) -> None:
    with pytest.raises(dc.FileError, match=r"there is no file '.*none\.pb'"):
        dc.DeepSpeechSystem(tmp_path / "none.pb")
    (tmp_path / "model.zip").write_bytes(b"")
    with pytest.raises(dc.InputError, match=r"must end in \.pb, \.pbmm or \.tflite"):
        dc.DeepSpeechSystem(tmp_path / "model.zip")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("a.pb", "tensorflow", "deepspeech-tf"), ("a.tflite", "ai_edge_litert.interpreter", "deepspeech")],
)
def test_missing_packages(tmp_path: Path, monkeypatch: Any, name: str, package: str, extra: str) -> None:
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dc.InputError, match=rf"{name}.* pip install 'deepcruiser\[{extra}\]'"):
        dc.DeepSpeechSystem(tmp_path / name)


def test_alphabets(tmp_path: Path) -> None:
    files.write_alphabet(tmp_path / "a.txt")
    assert "".join(read_alphabet(tmp_path / "a.txt")) == files.ALPHABET
    (tmp_path / "b.txt").write_bytes(b"# comment\r\n \r\n\\#\r\n\xc3\xa4\r\n\r\n")
    assert read_alphabet(tmp_path / "b.txt") == [" ", "#", "ä"]
    assert unpacked_alphabet(files.serialised("ab ä"), tmp_path) == ["a", "b", " ", "ä"]
    for data in (b"", b"\x05\x00\x01", files.serialised("abc")[:-3]):
        with pytest.raises(dc.FileError, match=r"the alphabet in .* cannot be read"):
            unpacked_alphabet(data, tmp_path)
    (tmp_path / "c.txt").write_text("# nothing\n")
    with pytest.raises(dc.FileError, match="has no symbols; it needs one on each line"):
        read_alphabet(tmp_path / "c.txt")
    with pytest.raises(dc.FileError, match=r"cannot read '.*none\.txt': no such file"):
        read_alphabet(tmp_path / "none.txt")


class Recurrence:
    """A network in numpy, in place of a file."""

    steps, window, features, size, inputs_name, own_features = 4, 3, 26, 5, "windows of features", True
    metadata: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.read = 0.05 * rng.standard_normal((3 * 26, 5)).astype(np.float32)
        self.write = rng.standard_normal((5, 4)).astype(np.float32)

    def start(self) -> None:
        self.calls = 0

    def run(self, windows: Any, c: Any, h: Any) -> Steps:
        assert len(windows) <= self.steps
        self.calls += 1
        cs, hs = [], []
        for window in windows:
            c = np.tanh(window.ravel() @ self.read + h)
            h = np.tanh(c) / 2
            cs.append(c)
            hs.append(h)
        states = np.stack(hs)
        return Steps(states @ self.write, np.stack(cs), states, windows.reshape(len(windows), -1))


@pytest.mark.parametrize("options", [{}, {"part": "both"}])
def test_the_doubt_is_that_of_the_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr("deepcruiser.systems.deepspeech.system.load", lambda path: Recurrence())
    (tmp_path / "alphabet.txt").write_text("a\nb\nc\n")
    (tmp_path / "net.tflite").write_bytes(b"")
    system = dc.DeepSpeechSystem(tmp_path / "net.tflite", tmp_path / "alphabet.txt", **options)
    for run, audio in zip(system.run([sound(9000), sound(3000, 1)]), (sound(9000), sound(3000, 1)), strict=True):
        windows, network = system.windows(audio), Recurrence()
        network.start()
        network.steps = len(windows)
        steps = network.run(windows, np.zeros(5), np.zeros(5))
        h = run.traced.states[1:, -5:]
        np.testing.assert_allclose(h, steps.h, atol=1e-6)
        best = [math.log(max(np.exp(row) / np.exp(row).sum())) for row in steps.scores.astype(float)]
        assert run.doubt == pytest.approx(-sum(best) / len(best), rel=1e-5)
