"""Batches in TorchSystem: how inputs are fed together, the outputs, and the network afterwards."""

import copy
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.system import TorchSystem

LENGTHS = (6, 9, 4, 9, 7)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


def sequences(lengths: Any = LENGTHS, size: Any = 3) -> Any:
    return [torch.randn(length, size) for length in lengths]


class Recogniser(nn.Module):
    """Two modules deep, so names have dots; gives `wrap` of logits and states."""

    def __init__(self, wrap: Any = lambda logits, states: logits, bidirectional: bool = False) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"lstm": nn.LSTM(3, 4, 2, batch_first=True, bidirectional=bidirectional)})
        self.decoder = nn.Linear(8 if bidirectional else 4, 5)
        self.wrap = wrap

    def forward(self, x: Any, lengths: Any = None) -> Any:
        if lengths is not None:
            x = pack_padded_sequence(x, lengths.clamp_max(x.shape[1]), batch_first=True)
        out, states = self.encoder["lstm"](x)
        if lengths is not None:
            out, _ = pad_packed_sequence(out, batch_first=True)
        return self.wrap(self.decoder(out), states)


def assert_same(runs: Any, others: Any, atol: Any = 1e-6) -> None:
    for run, other in zip(runs, others, strict=True):
        torch.testing.assert_close(run.trace.states, other.trace.states, rtol=0, atol=atol)
        torch.testing.assert_close(run.trace.inputs, other.trace.inputs, rtol=0, atol=atol)
        np.testing.assert_allclose(run.output, other.output, rtol=0, atol=atol)


def by_hand(net: nn.Module, tensors: Any) -> Any:
    return net(pad_sequence(tensors, batch_first=True), torch.tensor([len(tensor) for tensor in tensors]))


@pytest.mark.parametrize("feed", ["equal", "padded", "lengths", by_hand])
def test_a_batch_gives_what_single_inputs_give_in_the_same_order(feed: Any) -> None:
    net, lengths = Recogniser().eval(), LENGTHS if feed != by_hand else sorted(LENGTHS)[::-1]
    batch = sequences(lengths)
    alone = [run for x in batch for run in TorchSystem(net).run([x])]
    assert [len(run.traced) for run in alone] == list(lengths)
    assert_same(TorchSystem(net, batch=feed).run(batch), alone)


def test_equal_lengths_share_a_forward() -> None:
    net, calls = Recogniser().eval(), []
    net.register_forward_pre_hook(lambda module, args: calls.append(tuple(args[0].shape)))
    TorchSystem(net).run(sequences((6, 9, 6, 9, 4)))
    assert calls == [(2, 6, 3), (2, 9, 3), (1, 4, 3)]


def test_an_empty_batch_is_no_work() -> None:
    assert TorchSystem(Recogniser().eval()).run([]) == []


def test_time_may_come_first() -> None:
    net = nn.GRU(3, 4).eval()
    batch = sequences()
    for feed in ("equal", "padded"):
        for x, run in zip(batch, TorchSystem(net, batch=feed, batch_first=False).run(batch), strict=True):
            want, last = (value.detach() for value in net(x))
            torch.testing.assert_close(run.traced.states[1:], want, rtol=0, atol=1e-6)
            np.testing.assert_allclose(run.output[0], want, rtol=0, atol=1e-6)
            if feed == "equal":
                np.testing.assert_allclose(run.output[1], last, rtol=0, atol=1e-6)


class Subsampled(nn.Module):
    """A convolution that leaves every third step in front of the recurrence; no zeros at its own edges."""

    def __init__(self, bidirectional: bool = False) -> None:
        super().__init__()
        self.front = nn.Conv1d(3, 6, kernel_size=3, stride=3)
        self.gru = nn.GRU(6, 4, batch_first=True, bidirectional=bidirectional)

    def forward(self, x: Any) -> Any:
        return self.gru(self.front(x.transpose(1, 2)).transpose(1, 2))[0]


def test_steps_says_where_padding_begins_behind_a_subsampling_front() -> None:
    net, batch = Subsampled().eval(), sequences()
    alone = TorchSystem(net).run(batch)
    assert [len(run.traced) for run in alone] == [2, 3, 1, 3, 2]
    assert_same(TorchSystem(net, batch="padded", steps=lambda length: length // 3).run(batch), alone)
    with pytest.raises(
        InputError, match=r"'gru' made 3 steps from inputs padded to 9.*give steps=.*or use batch='equal'"
    ):
        TorchSystem(net, batch="padded").run(batch)
    wrong = r"steps\(9\) is 4 for input 1 of the batch, but 'gru' made 3 steps from a batch of length 9"
    with pytest.raises(InputError, match=wrong):
        TorchSystem(net, batch="padded", steps=lambda length: length // 2).run(batch)
    with pytest.raises(InputError, match=r"steps\(9\) is 2 for input 1 of the batch"):
        TorchSystem(net, batch="padded", steps=lambda length: (length - 1) // 3).run(batch)
    with pytest.raises(InputError, match=r"steps\(4\) is 0 for input 2 of the batch"):
        TorchSystem(net, batch="padded", steps=lambda length: 0 if length == 4 else length // 3).run(batch)


class Deep(nn.Module):
    """A bidirectional layer before the recorded one, and one after it, which does not matter."""

    def __init__(self, in_front: Any) -> None:
        super().__init__()
        self.first = nn.GRU(3, 4, batch_first=True, bidirectional=in_front)
        self.named = nn.GRU(8 if in_front else 4, 4, batch_first=True)
        self.last = nn.GRU(4, 4, batch_first=True, bidirectional=True)

    def forward(self, x: Any) -> Any:
        return self.last(self.named(self.first(x)[0])[0])[0]


def test_padding_never_flows_backwards_into_a_trace() -> None:
    batch, match = sequences(), "reads in both directions and received padded inputs of different lengths.*'packed'"
    for part in ({"layer": 0, "direction": "forward"}, {"layer": -1}):
        with pytest.raises(InputError, match=f"'encoder.lstm' {match}"):
            TorchSystem(Recogniser(bidirectional=True).eval(), batch="padded", **part).run(batch)
    with pytest.raises(InputError, match=f"'first' {match}"):
        TorchSystem(Deep(in_front=True).eval(), "named", batch="padded").run(batch)
    net = Deep(in_front=False).eval()
    runs = TorchSystem(net, "named", batch="padded").run(batch)
    for run, alone in zip(runs, TorchSystem(net, "named").run(batch), strict=True):
        torch.testing.assert_close(run.traced.states, alone.traced.states, rtol=0, atol=1e-6)
    padded = TorchSystem(Recogniser(bidirectional=True).eval(), batch="padded")
    assert len(padded.run(sequences((5, 5)))) == 2  # nothing is padded here


def test_text() -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 3)
            self.gru = nn.GRU(3, 4, batch_first=True)
            self.tags = nn.Linear(4, 6)

        def forward(self, ids: Any) -> Any:
            assert ids.dtype == torch.int64
            return self.tags(self.gru(self.embedding(ids))[0]).argmax(-1)

    net, texts = Tagger().eval(), [np.array([1, 2, 3], np.int32), torch.tensor([4, 5]), np.array([6, 7, 8])]
    for feed in ("equal", "padded"):
        for ids, run in zip(texts, TorchSystem(net, batch=feed).run(texts), strict=True):
            ids = torch.as_tensor(ids).long()
            torch.testing.assert_close(run.traced.inputs, net.embedding(ids).detach())
            assert run.output.tolist() == net(ids[None])[0].tolist()
    words = TorchSystem(net, features=lambda text: np.array([len(word) for word in text.split()]))
    assert len(words.run(["a text of five words"])[0].traced) == 5


@dataclass
class Sound:
    samples: np.ndarray
    rate: int

    def resample(self, rate: Any) -> Any:
        return Sound(self.samples[:: self.rate // rate], rate)


def test_sound_becomes_its_samples_at_the_networks_rate() -> None:
    class Listens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(1, 2, batch_first=True)

        def forward(self, samples: Any) -> Any:
            return self.gru(samples[..., None])[0]

    net, samples = Listens().eval(), np.arange(8, dtype=np.float64)
    samples.flags.writeable = False
    inputs = [Sound(samples, 16), Sound(samples, 8), samples[::-1]]
    traces = [run.traced.inputs[:, 0] for run in TorchSystem(net, rate=8).run(inputs)]
    assert [trace.tolist() for trace in traces] == [samples[::2].tolist(), samples.tolist(), samples[::-1].tolist()]
    assert traces[0].dtype == torch.float32
    (run,) = TorchSystem(net, rate=8, features=lambda sound: sound.samples / sound.rate).run(inputs[:1])
    assert run.traced.inputs[:, 0].tolist() == (samples[::2] / 8).tolist()
    assert TorchSystem(copy.deepcopy(net).double()).run(inputs[1:2])[0].traced.states.dtype == torch.float64


Answer = namedtuple("Answer", "logits states")


def test_outputs_are_split_leaf_by_leaf() -> None:
    def wrap(logits: Any, states: Any) -> Any:
        return Answer({"logits": logits, "mean": logits.mean(1)}, (states, [logits.shape[0], None]))

    batch = sequences((6, 6))  # as many inputs as layers: [2, 2, 4] is still split along the axis of the batch
    net = Recogniser(wrap).eval()
    for x, run in zip(batch, TorchSystem(net).run(batch), strict=True):
        out, (h, c) = net.encoder["lstm"](x)
        logits = net.decoder(out).detach()
        assert isinstance(run.output, Answer)
        assert isinstance(run.output.logits["logits"], np.ndarray)
        np.testing.assert_allclose(run.output.logits["logits"], logits, rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.output.logits["mean"], logits.mean(0), rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.output.states[0][0], h.detach(), rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.output.states[0][1], c.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("wrap", "want"),
    [
        (lambda logits, states: [f"text {i}" for i in range(len(logits))], ["text 0", "text 1", "text 2"]),
        (lambda logits, states: [torch.full((2,), i) for i in range(len(logits))], [[0, 0], [1, 1], [2, 2]]),
        (lambda logits, states: torch.arange(len(logits)), [0, 1, 2]),
        (lambda logits, states: torch.arange(4), [[0, 1, 2, 3]] * 3),
        (lambda logits, states: "one for all", ["one for all"] * 3),
        (lambda logits, states: torch.arange(3).bfloat16(), [0.0, 1.0, 2.0]),
        (lambda logits, states: (), [(), (), ()]),
    ],
)
def test_what_goes_whole_and_what_goes_apart(wrap: Any, want: Any) -> None:
    runs = TorchSystem(Recogniser(wrap).eval()).run(sequences((6, 6, 6)))
    assert [run.output.tolist() if isinstance(run.output, np.ndarray) else run.output for run in runs] == want


def test_an_output_as_long_as_the_padded_inputs_is_cut_too() -> None:
    class Whole(Subsampled):
        def forward(self, x: Any) -> Any:
            return super().forward(x), x * 2

    net, batch = Whole().eval(), sequences()
    for x, run in zip(
        batch, TorchSystem(net, batch="padded", steps=lambda length: length // 3).run(batch), strict=True
    ):
        assert len(run.output[0]) == len(run.traced)
        np.testing.assert_array_equal(run.output[1], x * 2)


def test_transcribe_gets_each_inputs_own_tensors() -> None:
    net, batch, seen = Recogniser().eval(), sequences(), []

    def transcribe(logits: Any) -> Any:
        seen.append(logits)
        return "".join("abcde"[i] for i in logits.argmax(-1))

    runs = TorchSystem(net, batch="lengths", transcribe=transcribe).run(batch)
    assert all(isinstance(logits, torch.Tensor) for logits in seen)
    for x, run in zip(batch, runs, strict=True):
        assert run.output == "".join("abcde"[i] for i in net(x[None])[0].argmax(-1))


def test_an_output_does_not_change_when_the_network_runs_again() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, batch_first=True)
            self.register_buffer("kept", torch.zeros(1, 5, 4), persistent=False)

        def forward(self, x: Any) -> Any:
            return self.kept.copy_(self.gru(x)[0])  # type: ignore[operator]

    system = TorchSystem(Keeps().eval())
    (first,) = system.run(sequences((5,)))
    before = first.output.copy()
    system.run(sequences((5,)))
    np.testing.assert_array_equal(first.output, before)


def snapshot(net: nn.Module) -> Any:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")
    return (
        {name: value.clone() for name, value in net.state_dict().items()},
        [dict(getattr(module, hook)) for module in net.modules() for hook in hooks],
        [module.training for module in net.modules()],
        [(weight.requires_grad, weight.grad is None) for weight in net.parameters()],
        torch.get_rng_state().tolist(),
        torch.is_grad_enabled(),
    )


def fail(logits: Any, states: Any) -> None:
    raise RuntimeError("the network's own trouble")


@pytest.mark.parametrize("wrap", [lambda logits, states: logits, fail])
@pytest.mark.parametrize("feed", ["equal", "lengths"])
@pytest.mark.parametrize("choice", [{}, {"part": "c", "layer": "all"}])
def test_the_network_is_left_as_it_was_found(wrap: Any, feed: Any, choice: Any) -> None:
    net = Recogniser(wrap, bidirectional=True).eval()
    net.decoder.bias.requires_grad_(False)
    net.decoder.register_forward_hook(lambda module, args, output: None)  # the user's own file stays
    batch = sequences()
    before = snapshot(net)
    system = TorchSystem(net, batch=feed, **choice)
    if wrap is fail:
        with pytest.raises(RuntimeError, match="the network's own trouble"):
            system.run(batch)
    else:
        system.run(batch)
    after = snapshot(net)
    assert all(torch.equal(before[0][name], after[0][name]) for name in before[0])
    assert before[1:] == after[1:]
    assert any(before[1])


@pytest.mark.parametrize("count", [1, 3, 16])
def test_a_cells_own_state_is_split_by_input(count: int) -> None:
    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = torch.nn.GRUCell(8, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(len(x), 16)
            for step in x.unbind(1):
                h = self.cell(step, h)
            return h

    net = Loop().eval()
    inputs = [torch.randn(5, 8, generator=torch.Generator().manual_seed(i)) for i in range(count)]
    runs = TorchSystem(net, "cell").run(inputs)
    with torch.no_grad():
        expected = net(torch.stack(inputs))
    for run, row in zip(runs, expected, strict=True):
        assert torch.equal(torch.from_numpy(run.output), row)
        assert torch.equal(run.traced.states[-1], row)


def test_the_last_layer_of_a_stack_is_read_off_and_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a layer was computed again")

    monkeypatch.setattr("deepcruiser.systems.torch.stack_states.StackCall._run", fail)
    net = torch.nn.LSTM(3, 4, num_layers=3, batch_first=True).eval()
    (run,) = TorchSystem(net, "").run([torch.ones(5, 3)])
    assert run.traced.states.shape == (6, 4)
    with pytest.raises(AssertionError, match="computed again"):
        TorchSystem(net, "", layer=1).run([torch.ones(5, 3)])
