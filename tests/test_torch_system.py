"""The states that TorchSystem records, compared with PyTorch's formulas, one step at a time."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

from deepcruiser.systems.torch.system import TorchSystem
from deepcruiser.trace import System

# PyTorch's own word on proj_size, at the network's own call.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")

LENGTHS = (2, 5, 1, 5, 4)  # not sorted, two alike
KINDS = {
    "tanh": lambda **options: nn.RNN(3, 4, **options),
    "relu": lambda **options: nn.RNN(3, 4, nonlinearity="relu", **options),
    "gru": lambda **options: nn.GRU(3, 4, **options),
    "lstm": lambda **options: nn.LSTM(3, 4, **options),
    "proj": lambda **options: nn.LSTM(3, 4, proj_size=2, **options),
}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


def sequences(lengths: Any = LENGTHS, size: Any = 3) -> Any:
    return [torch.randn(length, size) for length in lengths]


def step(module: nn.Module, weights: list[Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of one layer in one direction, as the documentation of nn.RNN, nn.GRU and nn.LSTM writes it."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = rest[:2] if module.bias else (torch.zeros(len(w_ih)), torch.zeros(len(w_hh)))
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    if isinstance(module, nn.LSTM | nn.LSTMCell):
        i, f, g, o = (a + b).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return (weights[-1] @ h if getattr(module, "proj_size", 0) else h), c
    if isinstance(module, nn.GRU | nn.GRUCell):
        (r, z, n), (r2, z2, n2) = a.chunk(3), b.chunk(3)
        r, z = (r + r2).sigmoid(), (z + z2).sigmoid()
        return (1 - z) * (n + r * n2).tanh() + z * h, c
    relu = getattr(module, "mode", "") == "RNN_RELU"
    return ((a + b).relu() if relu else (a + b).tanh()), c


def oracle(module: Any, x: Any, h_0: Any, c_0: Any) -> Any:
    """states[part][layer][way]: [steps + 1, size] in the order of reading; way 0 is forward, 1 backward."""
    ways = 2 if module.bidirectional else 1
    states: dict[str, list[Any]] = {"h": [], "c": []}
    with torch.no_grad():
        for layer in range(module.num_layers):
            pairs = []
            for way in range(ways):
                index = ways * layer + way
                hs, cs = [h_0[index]], [c_0[index]]
                for one in reversed(x) if way else x:
                    h, c = step(module, module.all_weights[index], one, hs[-1], cs[-1])
                    hs.append(h)
                    cs.append(c)
                pairs.append((torch.stack(hs), torch.stack(cs)))
            states["h"].append([h for h, _ in pairs])
            states["c"].append([c for _, c in pairs])
            x = torch.cat([h[1:].flip(0) if way else h[1:] for way, (h, _) in enumerate(pairs)], 1)
    return states, x


def expected(states: Any, part: Any, layer: Any, direction: Any) -> Any:
    layers = states[part] if layer == "all" else [states[part][layer]]
    if direction == "both":
        halves = [(f, torch.cat([b[:1], b[1:].flip(0)])) for f, b in layers]
        return torch.cat([half for pair in halves for half in pair], 1)
    return torch.cat([ways[direction == "backward"] for ways in layers], 1)


class Net(nn.Module):
    """Takes inputs in every form, packs where it gets lengths, and starts from zeros, or from learned states times the
    sum of the first input, so that every sequence has a start of its own."""

    def __init__(self, rnn: Any, learned: bool) -> None:
        super().__init__()
        self.rnn, self.learned = rnn, learned
        depth = rnn.num_layers * (2 if rnn.bidirectional else 1)
        self.h_0 = nn.Parameter(torch.randn(depth, 1, rnn.proj_size or rnn.hidden_size))
        self.c_0 = nn.Parameter(torch.randn(depth, 1, rnn.hidden_size))

    def forward(self, x: Tensor, lengths: Any = None) -> Any:
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, batch_first=self.rnn.batch_first, enforce_sorted=True)  # type: ignore[assignment]
        if not self.learned:
            return self.rnn(x)[0]
        if isinstance(x, PackedSequence):
            first = x.data[: x.batch_sizes[0]]
            first = first if x.unsorted_indices is None else first[x.unsorted_indices]
        else:
            first = x[:, 0] if self.rnn.batch_first else x[0]
        h_0, c_0 = (state * first.sum(1)[:, None] for state in (self.h_0, self.c_0))
        return self.rnn(x, (h_0, c_0) if isinstance(self.rnn, nn.LSTM) else h_0)[0]

    def start(self, x: Tensor) -> Any:
        return [(state * (x[0].sum() if self.learned else 0))[:, 0].detach() for state in (self.h_0, self.c_0)]


def unsorted(net: nn.Module, tensors: Any) -> Any:
    return net(pack_sequence(tensors, enforce_sorted=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_every_choice_of_every_module_is_what_the_formulas_give(
    kind: Any, layers: Any, bidirectional: bool, bias: bool, batch_first: bool
) -> None:
    dropout = 0.5 if layers > 1 else 0.0  # in eval it must play no part
    rnn = KINDS[kind](  # type: ignore[no-untyped-call]
        num_layers=layers, bidirectional=bidirectional, bias=bias, batch_first=batch_first, dropout=dropout
    )
    net = Net(rnn, learned=bias).eval()
    batch = sequences()
    truth = [oracle(rnn, list(x), *net.start(x)) for x in batch]

    parts = ("h", "c") if isinstance(rnn, nn.LSTM) else ("h",)
    feeds = ("equal", "lengths", unsorted) if bidirectional else ("equal", "padded", "lengths", unsorted)
    directions = ("forward", "backward", "both") if bidirectional else ("forward",)
    for feed, part, layer, direction in product(feeds, parts, (0, -1, "all"), directions):
        system = TorchSystem(
            net,
            "rnn",
            part=part,  # type: ignore[arg-type]
            layer=layer,  # type: ignore[arg-type]
            direction=direction,  # type: ignore[arg-type]
            batch=feed,  # type: ignore[arg-type]
            batch_first=batch_first,
        )
        for x, run, (states, out) in zip(batch, system.run(batch), truth, strict=True):
            want = expected(states, part, layer, direction)
            torch.testing.assert_close(run.traced.states, want, rtol=0, atol=1e-5, msg=f"{feed} {system}")
            assert torch.equal(run.traced.inputs, x.flip(0) if direction == "backward" else x), (feed, system)  # type: ignore[arg-type]
            np.testing.assert_allclose(run.output, out, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("proj_size", [0, 2])
def test_the_last_c_and_the_inner_h_are_those_the_module_returned(bidirectional: bool, proj_size: Any) -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, 2, bidirectional=bidirectional, proj_size=proj_size)

        def forward(self, packed: Any) -> Any:
            return self.lstm(packed)

    net, batch = Whole().eval(), sequences()
    for part, layer, way in product((0, 1), (0, 1), (0, 1) if bidirectional else (0,)):
        system = TorchSystem(net, part="hc"[part], layer=layer, direction=("forward", "backward")[way], batch="packed")  # type: ignore[arg-type]
        for run in system.run(batch):
            returned = run.output[1][part][layer * (1 + bidirectional) + way]
            np.testing.assert_allclose(run.traced.states[-1], returned, rtol=0, atol=1e-5)


@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_a_packing_network_gives_each_input_its_own_trace(enforce_sorted: Any) -> None:
    class Packs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, batch_first=True)

        def forward(self, x: Tensor, lengths: Any) -> Any:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=enforce_sorted)
            return pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]

    net, batch = Packs().eval(), sequences()
    for x, run in zip(batch, TorchSystem(net, batch="lengths").run(batch), strict=True):
        alone = net.gru(x[None])[0][0].detach()
        assert len(run.traced) == len(x) == len(run.output)  # the network pads its output: cut again
        torch.testing.assert_close(run.traced.states[1:], alone, rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.output, alone, rtol=0, atol=1e-6)


def test_an_unbatched_call_is_a_batch_of_one() -> None:
    class One(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, 2, bidirectional=True)

        def forward(self, x: Tensor) -> Any:
            h_0 = torch.ones(4, 4)
            return self.lstm(x[0], (h_0, h_0))[0][None]

    net, x = One().eval(), torch.randn(5, 3)
    for part, layer in product("hc", (0, 1)):
        (run,) = TorchSystem(net, part=part, layer=layer).run([x])  # type: ignore[arg-type]
        states, _ = oracle(net.lstm, list(x), torch.ones(4, 4), torch.ones(4, 4))
        torch.testing.assert_close(run.traced.states, expected(states, part, layer, "both"), rtol=0, atol=1e-5)


class Other(nn.Module):
    """A recurrence of its own: a running mean, as a tuple; neither nn.RNN nor a cell."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.mean = Mean(1 if batch_first else 0)

    def forward(self, x: Tensor) -> Any:
        return self.mean(x)[0]


class Mean(nn.Module):
    def __init__(self, axis: Any) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Any:
        if isinstance(x, PackedSequence):
            return PackedSequence(x.data * 2, *x[1:]), None
        return x.cumsum(self.axis), None


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("feed", ["equal", "padded"])
def test_any_other_module_gives_its_output(batch_first: bool, feed: Any) -> None:
    net, batch = Other(batch_first).eval(), sequences()
    system = TorchSystem(net, "mean", batch=feed, batch_first=batch_first)
    for x, run in zip(batch, system.run(batch), strict=True):
        want = torch.cat([torch.zeros(1, 3), x.cumsum(0)])
        torch.testing.assert_close(run.traced.states, want)
        assert torch.equal(run.traced.inputs, x)  # type: ignore[arg-type]


def test_any_other_module_may_be_packed() -> None:
    batch = sequences()
    for x, run in zip(batch, TorchSystem(Other().eval(), "mean", batch="packed").run(batch), strict=True):
        assert torch.equal(run.traced.states, torch.cat([torch.zeros(1, 3), 2 * x]))  # type: ignore[arg-type]
        np.testing.assert_array_equal(run.output, 2 * x)


def test_what_was_recorded_survives_work_in_place() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 3, batch_first=True)

        def forward(self, x: Tensor) -> Any:
            out, _ = self.gru(x)
            x.zero_()
            return out.zero_()

    net, batch = InPlace().eval(), sequences()
    kept = [x.clone() for x in batch]
    for x, y in zip(batch, kept, strict=True):
        for feed in ("equal", lambda net, tensors: net(tensors[0][None])):
            (run,) = TorchSystem(net, batch=feed).run([x])
            assert torch.equal(x, y)
            assert torch.equal(run.traced.inputs, x)  # type: ignore[arg-type]
            assert not run.output.any()
            torch.testing.assert_close(run.traced.states[1:], net.gru(x)[0].detach(), rtol=0, atol=1e-6)


def test_it_is_a_system_and_traces_carry_no_gradients() -> None:
    system = TorchSystem(nn.LSTM(3, 4, batch_first=True).eval())
    assert isinstance(system, System)
    (run,) = system.run([torch.randn(5, 3, requires_grad=True)])
    assert not run.traced.states.requires_grad  # type: ignore[union-attr]
    assert not run.traced.inputs.requires_grad  # type: ignore[union-attr]
    assert repr(run.trace) == "Trace of 5 steps (states of 4, inputs of 3)"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feed", ["equal", "lengths", "packed"])
def test_a_device_gives_the_same_traces(kind: Any, feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # 10 bits of mantissa, cuDNN's default, would not do
    rnn = KINDS[kind](num_layers=2, bidirectional=True, batch_first=True)  # type: ignore[no-untyped-call]
    net, batch = Net(rnn, learned=True).eval(), sequences()
    parts = "hc" if isinstance(rnn, nn.LSTM) else "h"
    choices = list(product(parts, (0, -1, "all"), ("forward", "backward", "both")))
    systems = [TorchSystem(net, "rnn", part=p, layer=n, direction=d, batch=feed) for p, n, d in choices]  # type: ignore[arg-type]
    fingerprint, want = systems[0].fingerprint, [system.run(batch) for system in systems]
    net.cuda()
    for system, runs in zip(systems, want, strict=True):
        for run, slow in zip(system.run(batch), runs, strict=True):
            assert run.traced.states.is_cuda  # type: ignore[union-attr]
            assert run.traced.inputs.is_cuda  # type: ignore[union-attr]
            torch.testing.assert_close(run.traced.states.cpu(), slow.traced.states, rtol=0, atol=1e-5)  # type: ignore[union-attr]
            np.testing.assert_allclose(run.output, slow.output, rtol=0, atol=1e-5)
    assert TorchSystem(net, "rnn", layer=0, direction="forward").fingerprint == fingerprint
