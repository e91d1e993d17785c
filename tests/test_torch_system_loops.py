"""States of cells in a loop of the network's own, and of modules that are called several times in one forward."""

from typing import Any

import pytest
import torch
from torch import nn

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.system import TorchSystem
from tests.test_torch_system import sequences, step

# PyTorch's own word on proj_size, at the network's own call.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


class Cells(nn.Module):
    def __init__(self, cell: Any, learned: bool = False) -> None:
        super().__init__()
        self.cell, self.learned = cell, learned

    def forward(self, x: Any) -> Any:
        is_lstm = isinstance(self.cell, nn.LSTMCell)
        state = torch.ones(len(x), 4) if self.learned else None
        state = (state, state) if is_lstm and self.learned else state  # type: ignore[assignment]
        outputs = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            outputs.append((state[0] if is_lstm else state).clone())
            x[:, t] = 0  # the recording must not depend on it
        return torch.stack(outputs, 1)


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("feed", ["equal", "padded"])
def test_cells_in_the_networks_own_loop(cell: Any, learned: bool, feed: Any) -> None:
    net, batch = Cells(cell(3, 4), learned).eval(), sequences()
    for part in "hc" if cell is nn.LSTMCell else "h":
        system = TorchSystem(net, "cell", part=part, batch=feed)  # type: ignore[arg-type]
        for x, run in zip(batch, system.run(batch), strict=True):
            h = c = torch.full((4,), float(learned))
            want = [(h, c)]
            for one in x:
                h, c = step(net.cell, list(net.cell.parameters()), one, h, c)
                want.append((h, c))
            want = torch.stack([pair["hc".index(part)] for pair in want]).detach()  # type: ignore[assignment]
            torch.testing.assert_close(run.traced.states, want, rtol=0, atol=1e-5)
            assert torch.equal(run.traced.inputs, x)  # type: ignore[arg-type]


class Streams(nn.Module):
    """Reads its input in pieces; `between` changes the state between two pieces."""

    def __init__(self, pieces: Any, between: Any, **options: Any) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, 2, batch_first=True, **options)
        self.pieces, self.between = pieces, between

    def forward(self, x: Any) -> Any:
        state, outputs = None, []
        for piece in x.split(self.pieces, 1):
            out, state = self.lstm(input=piece, hx=state)
            outputs.append(out)
            state = self.between(state)
        return torch.cat(outputs, 1)


@pytest.mark.parametrize("pieces", [1, 2, 9])
@pytest.mark.parametrize("feed", ["equal", "padded"])
@pytest.mark.parametrize("part", ["h", "c"])
@pytest.mark.parametrize("between", [lambda state: state, lambda state: tuple(s.clone() for s in state)])
def test_calls_that_hand_the_state_on_are_one_trace(pieces: Any, feed: Any, part: Any, between: Any) -> None:
    net, batch = Streams(pieces, between).eval(), sequences()
    whole = TorchSystem(net.lstm, part=part, layer="all").run(batch)
    for run, want in zip(TorchSystem(net, part=part, layer="all", batch=feed).run(batch), whole, strict=True):
        torch.testing.assert_close(run.traced.states, want.traced.states, rtol=0, atol=1e-6)
        assert torch.equal(run.traced.inputs, want.traced.inputs)  # type: ignore[arg-type]


def test_packed_pieces_are_joined_sequence_by_sequence() -> None:
    class Pieces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4)

        def forward(self, packed: Any) -> Any:
            _, state = self.gru(packed)
            return self.gru(packed, state)[0]

    net, batch = Pieces().eval(), sequences()
    for x, run in zip(batch, TorchSystem(net, batch="packed").run(batch), strict=True):
        twice = torch.cat([x, x])
        assert torch.equal(run.traced.inputs, twice)  # type: ignore[arg-type]
        torch.testing.assert_close(run.traced.states[1:], net.gru(twice)[0].detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "between",
    [
        lambda state: None,
        lambda state: tuple(s * 0.5 for s in state),
        lambda state: tuple(s.mul_(0.5) for s in state),
        lambda state: (state[0], torch.zeros_like(state[1])),
    ],
)
def test_calls_that_do_not_hand_the_state_on_are_refused(between: Any) -> None:
    with pytest.raises(
        InputError, match="call 2 of 'lstm' in one forward pass does not start from the state that call 1"
    ):
        TorchSystem(Streams(2, between).eval()).run(sequences())


def test_a_state_of_nan_is_handed_on_too() -> None:
    net = Streams(1, lambda state: tuple(s.clone() for s in state)).eval()
    (run,) = TorchSystem(net).run([torch.full((3, 3), float("nan"))])
    assert run.traced.states[1:].isnan().all()  # type: ignore[union-attr]


def test_rows_that_come_and_go_are_refused() -> None:
    class Shrinks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(3, 4)

        def forward(self, x: Any) -> Any:
            h = self.cell(x[:, 0])
            return self.cell(x[:1, 1], h[:1])

    with pytest.raises(InputError, match=r"'cell' was called with 2 rows and then with 1 in one forward pass"):
        TorchSystem(Shrinks().eval()).run(sequences((3, 3)))
