"""The messages of TorchSystem: errors, names of states, and fingerprints."""

import copy
import hashlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.system import TorchSystem


def sequences(lengths: Any) -> Any:
    return [torch.ones(length, 3) for length in lengths]


class Recogniser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"lstm": nn.LSTM(3, 4, 2, batch_first=True)})
        self.decoder = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.decoder(self.encoder["lstm"](x)[0])


@pytest.mark.parametrize(
    ("part", "name"), [(lambda net: net, "Recogniser"), (lambda net: net.decoder, "'decoder' of Recogniser")]
)
def test_training_mode_is_refused_with_the_remedy(part: Any, name: Any) -> None:
    net = Recogniser().eval()
    system = TorchSystem(net)
    part(net).training = True
    with pytest.raises(InputError, match=rf"^{name} is in training mode.*call net\.eval\(\) first"):
        system.run(sequences((4, 4)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TorchSystem(Recogniser(), "lstm"),
            r"^no module 'lstm' in Recogniser; its recurrent modules are: encoder\.lstm$",
        ),
        (
            lambda: TorchSystem(nn.Sequential(nn.Linear(3, 3)), "x"),
            "no module 'x' in Sequential; none is recurrent; its modules are: .*itself.*, 0$",
        ),
        (lambda: TorchSystem(nn.Sequential(nn.Linear(3, 3))), "no recurrent module .* in Sequential.*state=.*: .*, 0$"),
        (lambda: TorchSystem(Recogniser(), 3), "state must be the name of a module.*not a int"),  # type: ignore[arg-type]
        (lambda: TorchSystem("net.pt"), "net must be a torch.nn.Module, not a str"),  # type: ignore[arg-type]
        (lambda: TorchSystem(nn.GRU(3, 4), part="c", batch_first=False), "GRU is a GRU, and only an LSTM has c"),
        (lambda: TorchSystem(Recogniser(), part="x"), "part must be 'h' or 'c', not 'x'"),  # type: ignore[arg-type]
        (lambda: TorchSystem(Recogniser(), layer=2), "no layer 2 in 'encoder.lstm', which has 2: use 0 to 1"),
        (lambda: TorchSystem(Recogniser(), layer="top"), "layer must be a number or 'all', not 'top'"),  # type: ignore[arg-type]
        (lambda: TorchSystem(nn.GRUCell(3, 4), layer=1), "no layer 1 in GRUCell"),
        (
            lambda: TorchSystem(Recogniser(), direction="backward"),
            "reads forward only, so direction='backward' does not exist",
        ),
        (lambda: TorchSystem(Recogniser(), direction="up"), "direction must be .* not 'up'"),  # type: ignore[arg-type]
        (lambda: TorchSystem(Recogniser(), "decoder", part="c"), "'decoder' is a Linear.*leave them out"),
        (lambda: TorchSystem(Recogniser(), "decoder", direction="both"), "'decoder' is a Linear.*leave them out"),
        (lambda: TorchSystem(Recogniser(), batch="all"), "batch must be 'equal'.*not 'all'"),  # type: ignore[arg-type]
        (lambda: TorchSystem(Recogniser(), steps=3), "steps must be a function, not 3"),  # type: ignore[arg-type]
        (lambda: TorchSystem(nn.LSTM(3, 4)), "nn.LSTM with batch_first=False; give batch_first=False here too"),
    ],
)
def test_wrong_use_is_told_at_once(make: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        make()


class Turns(nn.Module):
    def __init__(self, turn: Any) -> None:
        super().__init__()
        self.gru, self.turn, self.flatten = nn.GRU(3, 4, batch_first=True), turn, nn.Flatten()

    def forward(self, x: Any) -> Any:
        return self.turn(self, x)


@pytest.mark.parametrize(
    ("net", "state", "batch", "message"),
    [
        (Turns(lambda net, x: x), "gru", sequences((4, 4)), "the network did not call 'gru' in this run"),
        (
            Turns(lambda net, x: net.gru(x.transpose(0, 1))[0]),
            "gru",
            sequences((4, 4)),
            "'gru' received 4 sequences for a batch of 2 inputs.*batch_first=False",
        ),
        (
            Turns(lambda net, x: net.flatten(x)),
            "flatten",
            sequences((4, 4)),
            r"'flatten' received \[2, 4, 3\] and returned \[2, 12\]; to be the state, both must be \[batch, time",
        ),
        (
            Turns(lambda net, x: net.flatten(net.flatten(x))),
            "",
            sequences((4, 4)),
            r"'Turns' received \[2, 4, 3\] and returned \[2, 12\]",
        ),
        (Recogniser(), None, [torch.randn(3, 3), torch.randn(0, 3)], r"input 1 of the batch has the shape \(0, 3\)"),
        (Recogniser(), None, [torch.randn(3, 3), torch.tensor(1.0)], r"input 1 of the batch has the shape \(\)"),
        (Recogniser(), None, ["text"], "input 0 of the batch is a str, .* give features="),
        (Recogniser(), None, [np.array(["text"])], "input 0 of the batch is a ndarray"),
    ],
)
def test_what_cannot_be_recorded_is_told(net: nn.Module, state: Any, batch: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        TorchSystem(net.eval(), state).run(batch)


def test_two_calls_of_a_module_that_is_not_recurrent_are_refused() -> None:
    net = nn.Sequential(nn.Linear(3, 3))
    net.append(net[0])
    with pytest.raises(InputError, match="'0' was called 2 times in one forward"):
        TorchSystem(net.eval(), "0").run(sequences((4,)))


def test_inputs_that_do_not_go_together_are_told() -> None:
    system = TorchSystem(Recogniser().eval(), batch="padded")
    with pytest.raises(
        InputError, match=r"input 1 of the batch has steps of \(2,\) float32, but input 0 has steps of \(3,\) float32"
    ):
        system.run([torch.randn(4, 3), torch.randn(4, 2)])


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        (nn.LSTM(3, 4, 3, bidirectional=True), {}, "0: h of the last of 3 layers, both directions"),
        (nn.LSTM(3, 4, 3), {"layer": 0, "part": "c"}, "0: c of layer 0 of 3"),
        (nn.GRU(3, 4, 2, bidirectional=True), {"layer": "all"}, "0: h of all 2 layers side by side, both directions"),
        (nn.GRU(3, 4, bidirectional=True), {"direction": "backward"}, "0: h, backward"),
        (nn.LSTMCell(3, 4), {"part": "c"}, "0: c"),
        (nn.Linear(3, 4), {"state": "0"}, "0: output"),
    ],
)
def test_the_state_has_a_name(module: Any, options: Any, words: Any) -> None:
    system = TorchSystem(nn.Sequential(module), **options)
    assert system.state_name == words
    assert repr(system) == f"TorchSystem(Sequential, {words})"


def test_the_fingerprint_tells_networks_and_states_apart() -> None:
    net = Recogniser()
    first = TorchSystem(net).fingerprint
    assert len(first) == len(hashlib.sha256().hexdigest())
    same = [TorchSystem(copy.deepcopy(net)), TorchSystem(net, "encoder.lstm", layer=1, direction="forward")]
    assert {system.fingerprint for system in same} == {first}
    changed = copy.deepcopy(net)
    changed.decoder.bias.data[0] += 1
    others = [
        TorchSystem(changed),
        TorchSystem(net, part="c"),
        TorchSystem(net, layer=0),
        TorchSystem(net, layer="all"),
        TorchSystem(net, "decoder"),
        TorchSystem(copy.deepcopy(net).double()),
        TorchSystem(type("Other", (Recogniser,), {})()),
    ]
    assert len({first, *(system.fingerprint for system in others)}) == len(others) + 1


def test_a_network_that_cannot_read_its_input_is_quoted_with_what_it_got() -> None:
    net = nn.LSTM(5, 4, batch_first=True).eval()
    with pytest.raises(RuntimeError) as caught:
        TorchSystem(net).run([np.zeros((7, 3), np.float32)])
    assert caught.value.__notes__ == [
        "while TorchSystem(LSTM, LSTM: h) ran inputs of (7, 3): does features= return what the network reads?"
    ]
