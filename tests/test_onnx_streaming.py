"""Networks whose state goes in and comes out of every call; and files that are no good."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import deepcruiser as dc
from deepcruiser.cli import main
from tests.test_onnx_equals_torch import LENGTHS, Net, assert_same, data, export, seeded

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


class Stepping(Net):
    """The same network with its state as an input and an output."""

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> Any:
        steps, after = self.stack(torch.tanh(self.front(x)), state if len(state) == 2 else state[0])
        return self.out(steps), *(after if isinstance(after, tuple) else (after,))


def stepping(path: Path, kind: Any, layers: int, names: str, *, steps: int | None = None, both: bool = False) -> Path:
    takes, gives = (words.split(",") for words in names.split(" "))
    net = seeded(lambda: Stepping(kind, layers, both=both))
    state = torch.zeros(layers * (1 + both), 1, 6)
    inputs = dict.fromkeys(takes[1:], state)
    axes = {name: {1: "batch"} for name in takes[1:]} | {
        takes[0]: {0: "batch"} | ({1: "time"} if steps is None else {})
    }
    return export(net, path, {takes[0]: torch.zeros(1, steps or 3, 4), **inputs}, axes, output_names=gives)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("layers", [1, 3])
def test_stepwise_and_whole_execution_give_the_same_trace(tmp_path: Path, kind: Any, layers: int) -> None:
    names = "x,h0,c0 y,hn,cn" if kind is nn.LSTM else "x,h0 y,hn"
    step = stepping(tmp_path / "step.onnx", kind, layers, names)
    net = seeded(lambda: Net(kind, layers, both=False))
    whole = export(net, tmp_path / "whole.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    state = "h0" if layers == 1 else [f"h0[{number}]" for number in range(layers)]
    result = dc.OnnxSystem(step, state).run(data())
    assert_same(result, dc.OnnxSystem(whole, layer="all").run(data()))
    assert_same(result, dc.TorchSystem(net, layer="all").run(data()))
    # The node inside, in pieces of any size: the last one is not full.
    for chunk in (1, 2, 5, 50):
        assert_same(
            dc.OnnxSystem(step, "stack", streaming=dc.Streaming(chunk=chunk)).run(data()),
            dc.OnnxSystem(whole).run(data()),
        )
    if kind is nn.LSTM:
        both = dc.OnnxSystem(step)
        assert both.state_name == "h0, c0: carried from call to call"
        c = dc.TorchSystem(net, part="c", layer="all").run(data())
        for run, h, other in zip(both.run(data()), result, c, strict=True):
            expected = np.concatenate([h.traced.states, other.traced.states], axis=1)
            np.testing.assert_allclose(run.traced.states, expected, atol=1e-4)


def test_chunks_of_a_fixed_length(tmp_path: Path) -> None:
    path = stepping(tmp_path / "four.onnx", nn.GRU, 1, "x,state y,state_out", steps=4)
    net = seeded(lambda: Net(nn.GRU, 1, both=False)).eval()
    expected = dc.TorchSystem(net).run(data())
    carried = dc.OnnxSystem(path).run(data())
    for run, other, length in zip(carried, expected, LENGTHS, strict=True):
        assert len(run.traced) == -(-length // 4)
        assert run.traced.input_size == 16, "what a call reads"
        np.testing.assert_allclose(
            run.traced.states[: length // 4 + 1], other.traced.states[::4][: length // 4 + 1], atol=1e-4
        )
        np.testing.assert_allclose(run.output, other.output, atol=1e-4)
    assert_same(dc.OnnxSystem(path, "stack").run(data()), expected)
    with pytest.raises(dc.InputError, match=r"chunk=3 steps after context=0, but 'x' .* takes 4 steps"):
        dc.OnnxSystem(path, streaming=dc.Streaming(chunk=3)).run(data())


def test_a_network_that_reads_backward_is_run_as_a_whole(tmp_path: Path) -> None:
    path = stepping(tmp_path / "both.onnx", nn.GRU, 2, "x,h0 y,hn", both=True)
    net = seeded(lambda: Net(nn.GRU, 2, both=True)).eval()
    assert_same(dc.OnnxSystem(path).run(data()), dc.TorchSystem(net).run(data()))


def test_pairs_that_names_do_not_tell(tmp_path: Path) -> None:
    path = stepping(tmp_path / "net.onnx", nn.LSTM, 1, "x,p,q y,u,v")
    message = (
        r"ambiguous which output is the next state of which input; by their shapes: 'p' -> 'u' or 'v'; "
        r"'q' -> 'u' or 'v'; give streaming=Streaming\(carry=\{'p': 'u'\}\) with every pair"
    )
    with pytest.raises(dc.InputError, match=message):
        dc.OnnxSystem(path)
    known = stepping(tmp_path / "known.onnx", nn.LSTM, 1, "x,h0,c0 y,hn,cn")
    system = dc.OnnxSystem(path, streaming=dc.Streaming(carry={"p": "u", "q": "v"}))
    assert_same(system.run(data()), dc.OnnxSystem(known).run(data()))
    whole = dc.OnnxSystem(
        path,
        streaming=dc.Streaming(carry={}),
        signal="x",
        constants={"p": np.zeros((1, 1, 6)), "q": np.zeros((1, 1, 6))},
    )
    for run, other in zip(whole.run(data()), dc.OnnxSystem(known, "h0").run(data()), strict=True):
        np.testing.assert_allclose(run.traced.states, other.traced.states, atol=1e-5)
    by_shape = stepping(tmp_path / "shape.onnx", nn.GRU, 1, "x,p y,u")
    assert dc.OnnxSystem(by_shape).state_name == "p: carried from call to call"


def test_several_signals_and_missing_values(tmp_path: Path) -> None:
    path = stepping(tmp_path / "net.onnx", nn.LSTM, 1, "x,p,q y,u,v")
    with pytest.raises(dc.InputError, match=r"several inputs could be the signal: 'x' .*'p' .*'q' .*signal="):
        dc.OnnxSystem(path, streaming=dc.Streaming(carry={}))
    with pytest.raises(dc.InputError, match=r"the input 'p' .* has no value .*constants=\{'p': \.\.\.\}"):
        dc.OnnxSystem(path, streaming=dc.Streaming(carry={}), signal="x")
    with pytest.raises(dc.InputError, match="no input 'z'; its inputs are: 'x'"):
        dc.OnnxSystem(path, signal="z")
    with pytest.raises(dc.InputError, match=r"an input of the shape \(9,\) does not fit .*features="):
        dc.OnnxSystem(path, streaming=dc.Streaming(carry={"p": "u", "q": "v"})).run([np.zeros(9, np.float32)])


@pytest.mark.parametrize("name", ["silero_vad.onnx", "silero_vad_16k_op15.onnx"])
def test_the_detector_that_others_trained(shared: Path, name: str) -> None:
    path = shared / "models" / "silero-vad" / name
    corpus = dc.read_corpus(shared / "speech" / "LibriSpeech" / "test-clean-200")[:5]
    audios = [sample.input for sample in corpus]
    system = dc.OnnxSystem(path, transcribe=lambda probabilities: probabilities)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for audio, run in zip(audios, system.run(audios), strict=True):
        state, context, probabilities, states = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), [], []
        samples = np.pad(audio.samples, (0, -len(audio.samples) % 512))  # type: ignore[union-attr]
        for start in range(0, len(samples), 512):
            chunk = samples[start : start + 512]
            feeds = {"input": np.concatenate([context, chunk])[None], "state": state, "sr": np.array(16_000)}
            output, state = session.run(None, feeds)
            context = chunk[-64:]
            probabilities.append(output[0])
            states.append(state.ravel())
        np.testing.assert_allclose(run.output, probabilities, atol=1e-5)
        np.testing.assert_allclose(run.traced.states[1:], states, atol=1e-4)
        assert not run.traced.states[0].any()
        assert run.traced.inputs.shape == (len(states), 128), "what the LSTM receives, deep inside"
    ((start, end),) = dc.OnnxSystem(path).run(audios[:1])[0].output
    assert 0 <= start < end <= audios[0].seconds + 0.032  # type: ignore[union-attr]
    part = dc.OnnxSystem(path, "state[0]").run(audios[:1])[0]
    assert part.traced.size == 128


class Detector(nn.Module):
    """One LSTM with the inputs and outputs of those Silero files that read 64 samples again and 512 new ones a call."""

    def __init__(self, *, joined: bool) -> None:
        super().__init__()
        self.lstm, self.out, self.joined = nn.LSTM(576, 128), nn.Linear(128, 1), joined

    def forward(self, signal: torch.Tensor, *state: torch.Tensor) -> Any:
        both = (state[0][:1], state[0][1:]) if self.joined else state
        steps, (h, c) = self.lstm(signal[:, None], both)
        scores = self.out(steps).sigmoid().flatten()
        return (scores[:, None], torch.cat([h, c])) if self.joined else (scores, h, c)


@pytest.mark.parametrize("joined", [True, False])
def test_detectors_whose_calls_overlap_are_recognised(tmp_path: Path, joined: bool) -> None:
    net = seeded(lambda: Detector(joined=joined)).eval()
    shapes = {"state": (2, 1, 128)} if joined else {"h": (1, 1, 128), "c": (1, 1, 128)}
    path = export(
        net,
        tmp_path / "net.onnx",
        {"input": torch.zeros(1, 576)} | {name: torch.zeros(shape) for name, shape in shapes.items()},
        {} if joined else {"input": {0: "sequence_length"}},
        output_names=["output", "stateN"] if joined else ["speech_probs", "hn", "cn"],
    )
    samples = np.random.default_rng(0).standard_normal(1300).astype(np.float32)
    (run,) = dc.OnnxSystem(path, transcribe=lambda scores: scores).run([dc.Audio(samples, 16_000)])
    padded = np.pad(samples, (64, 3 * 512 - 1300))
    rows = torch.from_numpy(np.stack([padded[start : start + 576] for start in (0, 512, 1024)]))
    with torch.no_grad():
        scores = [net(rows[: n + 1], *(torch.zeros(shape) for shape in shapes.values())) for n in range(3)]
    np.testing.assert_allclose(np.ravel(run.output), scores[-1][0].ravel(), atol=1e-5)
    states = [np.concatenate([one.ravel() for one in after]) for _, *after in scores]
    np.testing.assert_allclose(run.traced.states, [np.zeros(256), *states], atol=1e-5)
    with pytest.raises(dc.InputError, match="this detector of Silero runs at 16,000 Hz, not at 8,000 Hz"):
        dc.OnnxSystem(path, rate=8_000)
    with pytest.raises(dc.InputError, match=r"no recurrent node 'memory' .*carried from call to call: '(state|h)' \("):
        dc.OnnxSystem(path, "memory")


def test_files_that_are_no_good(tmp_path: Path) -> None:
    text = tmp_path / "text.onnx"
    text.write_text("this is no model")
    with pytest.raises(dc.FileError, match=r"text\.onnx' is not an ONNX file"):
        dc.OnnxSystem(text)
    with pytest.raises(dc.FileError, match="there is no file"):
        dc.OnnxSystem(tmp_path / "nowhere.onnx")
    path = stepping(tmp_path / "net.onnx", nn.GRU, 1, "x,h0 y,hn")
    (tmp_path / "cut.onnx").write_bytes(path.read_bytes()[:900])
    with pytest.raises(dc.FileError, match=r"is not an ONNX file, or it is damaged|cannot be loaded"):
        dc.OnnxSystem(tmp_path / "cut.onnx")
    model = onnx.load(path)
    model.opset_import[0].version = 999
    onnx.save(model, tmp_path / "new.onnx")
    with pytest.raises(dc.FileError, match=r"opset ai\.onnx 999\) cannot be loaded by ONNX Runtime"):
        dc.OnnxSystem(tmp_path / "new.onnx")
    model = onnx.load(path)
    model.graph.node.add(op_type="Strange", domain="their.own", input=["x"], output=["strange"])
    model.opset_import.add(domain="their.own", version=1)
    onnx.save(model, tmp_path / "custom.onnx")
    with pytest.raises(dc.FileError, match=r"operators Strange of 'their\.own'.*custom operators are not loaded"):
        dc.OnnxSystem(tmp_path / "custom.onnx")


def test_a_network_without_recurrent_layers(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    with pytest.raises(dc.InputError, match=r"no recurrent node .*it consists of .*2 MatMul.*takes 'x' \(float32"):
        dc.OnnxSystem(path)


def test_wrong_use(tmp_path: Path) -> None:
    path = stepping(tmp_path / "net.onnx", nn.GRU, 1, "x,h0 y,hn")
    with pytest.raises(dc.InputError, match="device must be 'cpu' or 'cuda', not 'tpu'"):
        dc.OnnxSystem(path, device="tpu")
    with pytest.raises(dc.InputError, match="transcribe must be a function, not 'best'"):
        dc.OnnxSystem(path, transcribe="best")  # type: ignore[arg-type]
    with pytest.raises(dc.InputError, match="initial has 'x', which is not carried from call to call; carried: 'h0'"):
        dc.OnnxSystem(path, streaming=dc.Streaming(initial={"x": 0}))
    with pytest.raises(dc.InputError, match=r"'h0' .* has no part \[3\] along"):
        dc.OnnxSystem(path, "h0[3]")
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        with pytest.raises(dc.InputError, match="install onnxruntime-gpu instead"):
            dc.OnnxSystem(path, device="cuda")


def test_without_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stepping(tmp_path / "net.onnx", nn.GRU, 1, "x,h0 y,hn")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    message = r"OnnxSystem needs the packages onnx and onnxruntime: pip install 'deepcruiser\[onnx\]'"
    with pytest.raises(dc.InputError, match=message):
        dc.OnnxSystem(path)


def test_a_file_on_the_command_line(tmp_path: Path) -> None:
    path = stepping(tmp_path / "net.onnx", nn.GRU, 1, "x,h0 y,hn")
    (tmp_path / "data").mkdir()
    for number, value in enumerate(data()):
        np.save(tmp_path / "data" / f"{number}.npy", value)
    profile = ["profile", "--data", str(tmp_path / "data"), "-o", str(tmp_path / "p"), "--system"]
    result = CliRunner().invoke(main, [*profile, str(path)])
    assert result.exit_code == 0, result.output
    ambiguous = stepping(tmp_path / "ambiguous.onnx", nn.LSTM, 1, "x,p,q y,u,v")
    result = CliRunner().invoke(main, [*profile, str(ambiguous)])
    assert result.exit_code == 2
    assert "--system asr.py:system" in result.output
    assert "system = dc.OnnxSystem(" in result.output


@pytest.mark.cuda
def test_on_a_gpu(tmp_path: Path) -> None:
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        pytest.skip("this onnxruntime cannot use CUDA")
    path = stepping(tmp_path / "net.onnx", nn.GRU, 1, "x,h0 y,hn")
    assert_same(dc.OnnxSystem(path, device="cuda").run(data()), dc.OnnxSystem(path).run(data()))


class Packed(nn.Module):
    """Carries h and c of two layers in one tensor [2, layers, batch, size]."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.LSTM(4, 6, 2, batch_first=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> Any:
        steps, after = self.stack(x, (state[0], state[1]))
        return steps, torch.stack(after)


def test_a_carried_tensor_may_hold_several_states(tmp_path: Path) -> None:
    net = seeded(Packed)
    example = {"x": torch.zeros(1, 1, 4), "state": torch.zeros(2, 2, 1, 6)}
    axes = {"x": {0: "batch"}, "state": {2: "batch"}}
    path = export(net, tmp_path / "packed.onnx", example, axes, output_names=["y", "stateN"])
    values = data()
    for part, first in (("h", 0), ("c", 1)):
        for layer in (0, 1):
            system = dc.OnnxSystem(path, f"state[{first}, {layer}]")
            assert system.state_name == f"state[{first}, {layer}]: carried from call to call"
            original = dc.TorchSystem(net.stack.eval(), part=part, layer=layer)  # type: ignore[arg-type]
            for mine, theirs in zip(system.run(values), original.run(values), strict=True):
                np.testing.assert_allclose(mine.traced.states, theirs.traced.states, atol=1e-5)
    for wrong in ("state[0, 2]", "state[0, 1, 0]"):
        with pytest.raises(dc.InputError, match=r"'state' .* has no part \[0, .*: use 'state', or a part that exists"):
            dc.OnnxSystem(path, wrong)
