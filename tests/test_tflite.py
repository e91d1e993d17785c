from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import deepcruiser as dc
from tests.support import tflite_files

pytest.importorskip("ai_edge_litert")


@pytest.fixture(scope="module")
def net() -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.LSTM(4, 6, batch_first=True).eval(), nn.Linear(6, 3).eval()


@pytest.fixture(scope="module")
def sequences() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(2)
    return [rng.standard_normal((n, 4)).astype(np.float32) for n in (7, 1, 12)]


@pytest.mark.parametrize("signature", [False, True])
def test_the_trace_is_that_of_the_original(tmp_path: Path, net: Any, sequences: Any, signature: bool) -> None:
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net, signature=signature)
    h, c = ("state_h", "state_c") if signature else ("h", "c")
    runs = dc.TfliteSystem(path).run(sequences)
    for part, name in (("h", h), ("c", c)):
        chosen = dc.TfliteSystem(path, name)
        assert chosen.state_name == f"{name}: carried from call to call"
        expected = dc.TorchSystem(net[0], part=part).run(sequences)  # type: ignore[arg-type]
        for one, other in zip(chosen.run(sequences), expected, strict=True):
            np.testing.assert_allclose(one.traced.states, other.traced.states, atol=1e-5)
            np.testing.assert_allclose(one.traced.inputs, other.traced.inputs, atol=1e-6)
    for run, sequence in zip(runs, sequences, strict=True):
        assert run.traced.states.shape == (len(sequence) + 1, 12)
        with torch.no_grad():
            answer = net[1](net[0](torch.from_numpy(sequence)[None])[0])[0]
        np.testing.assert_allclose(run.output, answer, atol=1e-5)
    assert dc.TfliteSystem(path).run([]) == []


def test_an_initial_state_and_a_transcription(tmp_path: Path, net: Any, sequences: Any) -> None:
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net)
    system = dc.TfliteSystem(
        path, "h", streaming=dc.Streaming(initial={"h": np.full((1, 6), 0.5)}), transcribe=lambda y: int(y[-1].argmax())
    )
    (run,) = system.run(sequences[:1])
    assert run.traced.states[0].tolist() == [0.5] * 6
    assert run.output in (0, 1, 2)
    fingerprints = {dc.TfliteSystem(path, state).fingerprint for state in (None, "h", "c")} | {system.fingerprint}
    assert len(fingerprints) == 4
    copy = tmp_path / "copy.tflite"
    copy.write_bytes(path.read_bytes())
    assert dc.TfliteSystem(copy).fingerprint == dc.TfliteSystem(path).fingerprint


def test_names_that_do_not_tell(tmp_path: Path, net: Any, sequences: Any) -> None:
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net, names="a b d e f g")
    message = r"ambiguous .*: 'b' -> 'f' or 'g'; 'd' -> 'f' or 'g'; give streaming=Streaming\(carry="
    with pytest.raises(dc.InputError, match=message):
        dc.TfliteSystem(path)
    (run,) = dc.TfliteSystem(path, streaming=dc.Streaming(carry={"b": "f", "d": "g"})).run(sequences[:1])
    known = tflite_files.lstm_step(tmp_path / "named.tflite", *net)
    (other,) = dc.TfliteSystem(known).run(sequences[:1])
    assert np.array_equal(run.traced.states, other.traced.states)


def test_it_can_be_profiled_covered_and_fuzzed(tmp_path: Path, net: Any) -> None:
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((int(n), 4)).astype(np.float32) for n in rng.integers(5, 20, 12)]
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net)
    system = dc.TfliteSystem(path, transcribe=lambda y: int(y[-1].argmax()))
    model = dc.profile(system, data[:8], components=2).abstract(partitions=4)
    assert 0 < dc.cover(model, system, data[8:])["BSCov"] <= 1
    campaign = dc.fuzz(
        system,
        model,
        data[8:],
        folder=tmp_path / "run",
        oracle=dc.Disagreement(against="output"),
        mutations=dc.Mutations.series(),
        runs=32,
        workers=0,
    )
    for failed in campaign.failed:
        assert failed.replay(system).output == failed.output


def test_bad_files(tmp_path: Path, net: Any) -> None:
    text = tmp_path / "text.tflite"
    text.write_text("this is no model")
    with pytest.raises(dc.FileError, match="is not a TensorFlow Lite file"):
        dc.TfliteSystem(text)
    with pytest.raises(dc.FileError, match=r"there is no file .*nowhere\.tflite"):
        dc.TfliteSystem(tmp_path / "nowhere.tflite")
    whole = tflite_files.lstm_step(tmp_path / "step.tflite", *net).read_bytes()
    (tmp_path / "cut.tflite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(dc.FileError, match="cannot be loaded by TensorFlow Lite"):
        dc.TfliteSystem(tmp_path / "cut.tflite")
    with pytest.raises(dc.FileError, match=r"Strange.*custom operators are not loaded"):
        dc.TfliteSystem(tflite_files.custom(tmp_path / "custom.tflite"))
    with pytest.raises(
        dc.InputError, match=r"has no state that goes in and comes out: it takes 'x' .*gives 'y' .*carry="
    ):
        dc.TfliteSystem(tflite_files.stateless(tmp_path / "stateless.tflite"))
    with pytest.warns(UserWarning, match="runs without states: to see them, convert one step"):
        system = dc.TfliteSystem(tmp_path / "stateless.tflite", streaming=dc.Streaming(carry={}))
    (run,) = system.run([np.ones((1, 4), np.float32)])
    assert run.trace is None
    np.testing.assert_allclose(run.output, np.tanh(np.ones((1, 4))), atol=1e-5)


def test_wrong_use(tmp_path: Path, net: Any) -> None:
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net)
    with pytest.raises(
        dc.InputError, match=r"'q' is not carried from call to call; carried: 'h' .*, 'c' .*'name\[0, 1\]'"
    ):
        dc.TfliteSystem(path, "q")
    with pytest.raises(dc.InputError, match=r"has no input 'z'; its inputs are: 'x' \(float32 \[1, 4\]\)"):
        dc.TfliteSystem(path, signal="z")
    with pytest.raises(dc.InputError, match=r"\(float32 \[1, 3\]\) does not fit .*\[1, 6\]"):
        dc.TfliteSystem(path, streaming=dc.Streaming(carry={"h": "y"}))
    with pytest.raises(dc.InputError, match="no signature 'other'"):
        dc.TfliteSystem(path, signature="other")
    with pytest.raises(dc.InputError, match=r"makes a tensor of the shape \[1, 9\]"):
        dc.TfliteSystem(path).run([np.zeros((3, 9), np.float32)])
    with pytest.raises(dc.InputError, match="input 0 of the batch is a str"):
        dc.TfliteSystem(path).run(["text"])


def test_without_the_package(tmp_path: Path, net: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tflite_files.lstm_step(tmp_path / "step.tflite", *net)
    monkeypatch.setitem(__import__("sys").modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(
        dc.InputError, match=r"step.tflite' needs the package ai-edge-litert: pip install 'deepcruiser\[tflite\]'"
    ):
        dc.TfliteSystem(path)


def test_a_fused_lstm_runs_without_states_and_says_how_to_convert_it(tmp_path: Path) -> None:
    lstm = torch.nn.LSTM(4, 6, batch_first=True)
    path = tflite_files.fused_lstm(tmp_path / "fused.tflite", lstm, 7)
    with pytest.warns(UserWarning, match="without states, as UNIDIRECTIONAL_SEQUENCE_LSTM keeps them .* one step of"):
        system = dc.TfliteSystem(path)
    values = [np.random.default_rng(seed).standard_normal((7, 4)).astype(np.float32) for seed in range(3)]
    for value, run in zip(values, system.run(values), strict=True):  # each from the initial state
        with torch.no_grad():
            right = lstm(torch.from_numpy(value)[None])[0][0]
        assert run.trace is None
        np.testing.assert_allclose(run.output, right, atol=1e-5)
    assert system.state_name == "no states"
