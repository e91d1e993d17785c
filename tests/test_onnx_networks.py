"""Networks of many kinds: words, waves, convolutions, 8 bits; and names of states as exporters write them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import deepcruiser as dc
from deepcruiser.systems.tensors.presets import find_preset
from deepcruiser.systems.tensors.signature import Port, Signature
from tests.test_onnx_equals_torch import Net, data, export, seeded

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.gru, self.out = nn.Embedding(50, 8), nn.GRU(8, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.out(self.gru(self.embedding(tokens))[1][-1])


class Wave(nn.Module):
    """Samples in, a step for every 160 of them."""

    def __init__(self) -> None:
        super().__init__()
        self.front, self.gru = nn.Conv1d(1, 8, 400, 160), nn.GRU(8, 6, batch_first=True, bidirectional=True)

    def forward(self, samples: torch.Tensor) -> Any:
        return self.gru(self.front(samples[:, None]).transpose(1, 2))[0]


class TimeLast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 6, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.gru(x.transpose(1, 2))[0]


def same(result: list[dc.Run], expected: list[dc.Run]) -> None:
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one.traced.states, other.traced.states, atol=1e-4)
        np.testing.assert_allclose(one.traced.inputs, other.traced.inputs, atol=1e-4)
        np.testing.assert_allclose(one.output, other.output, atol=1e-4)


def test_words(tmp_path: Path) -> None:
    net = seeded(Words)
    tokens = {"tokens": torch.zeros(1, 7, dtype=torch.long)}
    path = export(net, tmp_path / "net.onnx", tokens, {"tokens": {0: "batch", 1: "time"}})

    def numbered(text: str) -> Any:
        return np.array([ord(letter) % 50 for letter in text])

    texts = ["abc", "hello", "cab"]
    same(dc.OnnxSystem(path, features=numbered).run(texts), dc.TorchSystem(net, features=numbered).run(texts))


def test_waves(tmp_path: Path) -> None:
    net, rng = seeded(Wave), np.random.default_rng(0)
    path = export(net, tmp_path / "net.onnx", {"samples": torch.zeros(1, 4_000)}, {"samples": {0: "batch", 1: "time"}})
    audios = [dc.Audio(rng.standard_normal(n).astype(np.float32) * 0.1, 8_000) for n in (3_000, 2_000, 3_000)]
    runs = dc.OnnxSystem(path, rate=16_000).run(audios)
    same(runs, dc.TorchSystem(net, rate=16_000).run(audios))
    assert len(runs[0].traced) == (6_000 - 400) // 160 + 1


def test_time_as_the_last_axis(tmp_path: Path) -> None:
    net = seeded(TimeLast)
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 8, 11)}, {"x": {0: "batch", 2: "time"}})
    runs = dc.OnnxSystem(path).run(data(8))
    expected = dc.TorchSystem(net.gru).run(data(8))
    for one, other in zip(runs, expected, strict=True):
        np.testing.assert_allclose(one.traced.states, other.traced.states, atol=1e-4)


def test_as_many_inputs_as_steps(tmp_path: Path) -> None:
    net = seeded(lambda: Net(nn.GRU, 1, both=False))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    nine = data(lengths=(9,) * 9)
    same(dc.OnnxSystem(path).run(nine), dc.TorchSystem(net).run(nine))


def test_an_lstm_in_8_bits(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    net = seeded(lambda: Net(nn.LSTM, 1, both=False))
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 4)}, {"x": {0: "batch", 1: "time"}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_dynamic(str(path), str(tmp_path / "small.onnx"), op_types_to_quantize=["LSTM"])
    small = dc.OnnxSystem(tmp_path / "small.onnx")
    assert small._recorders[0].choice.stack.kind == "DynamicQuantizeLSTM"
    for one, other in zip(small.run(data()), dc.TorchSystem(net).run(data()), strict=True):
        np.testing.assert_allclose(one.traced.states, other.traced.states, atol=0.02)
    with pytest.raises(dc.InputError, match="c of 'stack' cannot be computed, as its weights have 8 bits"):
        dc.OnnxSystem(tmp_path / "small.onnx", part="c")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state", "stateN"),
        ("h0 c0", "hn cn"),
        ("h_0 c_0", "h_n c_n"),
        ("h c", "h_out c_out"),
        ("hx cx", "hy cy"),
        ("prev_h prev_c", "new_h new_c"),
        ("previous_state_c previous_state_h", "new_state_c new_state_h"),
        ("state_in_0 state_in_1", "state_out_0 state_out_1"),
        ("hidden_state cell_state", "hidden_state_out cell_state_out"),
        ("in_cache0 in_cache1", "out_cache0 out_cache1"),
        ("state_h state_c", "new_h new_c"),
        ("serving_default_h:0 serving_default_c:0", "h_out:0 c_out:0"),
        ("one", "two"),  # by their shapes
    ],
)
def test_names_of_states(before: str, after: str) -> None:
    float32 = np.dtype(np.float32)
    takes = [Port(name, float32, (1, "batch", 6)) for name in before.split()]
    gives = [Port(name, float32, (1, "batch", 6)) for name in reversed(after.split())]
    signal, answer = Port("x", float32, ("batch", "time", 4)), Port("y", float32, ("batch", "time", 4))
    result = Signature.of([signal, *takes], [answer, *gives], signal=None, carry=None, constants={}, rate=None)
    assert result.carried == dict(zip(before.split(), after.split(), strict=True))
    assert result.signal is signal
    assert result.answers == ["y"]


def test_a_filter_is_no_state() -> None:
    float32 = np.dtype(np.float32)
    x, y = Port("audio_in", float32, (1, 512)), Port("audio_out", float32, (1, 512))
    assert not Signature.of([x], [y], signal=None, carry=None, constants={}, rate=None).carried
    noisy, clean = Port("a", float32, (1, 1, 257)), Port("b", float32, (1, 1, 257))
    state, after = Port("p", float32, (1, 2, 128)), Port("q", float32, (1, 2, 128))
    with pytest.raises(dc.InputError, match="ambiguous"):
        Signature.of([noisy, state], [clean, after], signal=None, carry=None, constants={}, rate=None)
    result = Signature.of([noisy, state], [clean, after], signal="a", carry=None, constants={}, rate=None)
    assert result.carried == {"p": "q"}


def test_a_rate_that_the_network_wants_to_know() -> None:
    ports = [Port("x", np.dtype(np.float32), ("batch", "time")), Port("sr", np.dtype(np.int64), ())]
    result = Signature.of(ports, ports[:1], signal=None, carry={}, constants={}, rate=8_000)
    assert result.constants == {"sr": 8_000}
    with pytest.raises(dc.InputError, match=r"the input 'sr' .* has no value"):
        Signature.of(ports, ports[:1], signal=None, carry={}, constants={}, rate=None)


def test_detectors_that_are_known() -> None:
    def ports(names: str, **shapes: Any) -> list[Port]:
        return [Port(name, np.dtype(np.float32), shapes.get(name, ("batch", "time"))) for name in names.split()]

    for names, outputs, state, context in (
        ("input state sr", "output stateN", {"state": (2, "batch", 128)}, 64),
        ("input sr h c", "output hn cn", {"h": (2, "batch", 64), "c": (2, "batch", 64)}, 0),
    ):
        result = find_preset(ports(names, **state), ports(outputs), None)
        assert result is not None
        assert (result.rate, result.chunk, result.context, result.constants) == (16_000, 512, context, {"sr": 16_000})
        slow = find_preset(ports(names, **state), ports(outputs), 8_000)
        assert slow is not None
        assert (slow.chunk, slow.context) == (256, context // 2)
        with pytest.raises(dc.InputError, match="runs at 8,000 or 16,000 Hz, not at 44,100"):
            find_preset(ports(names, **state), ports(outputs), 44_100)
    assert find_preset(ports("input state"), ports("output stateN"), None) is None
