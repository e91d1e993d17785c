"""TorchScript files: the states of the original network, answers without states, and damaged files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.systems.by_suffix import adapter_of, system_from_file

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


class Net(nn.Module):
    """A front end, a recurrent stack, scores."""

    def __init__(self, kind: str = "LSTM", *, batch_first: bool = True, ways: int = 1) -> None:
        super().__init__()
        self.front = nn.Linear(5, 6)
        self.rnn = getattr(nn, kind)(6, 7, 2, batch_first=batch_first, bidirectional=ways == 2)
        self.out = nn.Linear(7 * ways, 3)
        generator = torch.Generator().manual_seed(1)
        for weight in self.parameters():
            nn.init.uniform_(weight, -0.6, 0.6, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(self.front(x))
        scores: Tensor = self.out(states)
        return scores


class Cells(nn.Module):
    """A cell in a loop, which the graph of a scripted network does not unroll."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(5, 7), nn.Linear(7, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, c = torch.zeros(x.shape[0], 7), torch.zeros(x.shape[0], 7)
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], (h, c))
        scores: Tensor = self.out(h)
        return scores


class Learned(nn.Module):
    """Starts from a non-zero state."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.start = nn.GRU(5, 4, batch_first=True), nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x, self.start.repeat(1, x.shape[0], 1))
        return torch.log_softmax(states, -1)


def exported(net: nn.Module, path: Path, how: str = "trace", *, time_first: bool = False) -> Path:
    example = torch.zeros(9, 2, 5) if time_first else torch.zeros(2, 9, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit: Any = torch.jit
        jit.save(jit.trace(net.eval(), example) if how == "trace" else jit.script(net.eval()), str(path))
    return path


def inputs() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((length, 5)).astype(np.float32) for length in (6, 9, 6, 4)]


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_states_and_answers_are_those_of_the_original(
    kind: str, ways: int, batch_first: bool, how: str, tmp_path: Path
) -> None:
    net = Net(kind, batch_first=batch_first, ways=ways)
    path = exported(net, tmp_path / "net.pt", how, time_first=not batch_first)
    system = dc.TorchScriptSystem(path, batch_first=batch_first)
    original = dc.TorchSystem(net.eval(), batch_first=batch_first)
    for mine, theirs in zip(system.run(inputs()), original.run(inputs()), strict=True):
        assert np.abs(mine.output - theirs.output).max() < 1e-5
        assert np.abs(np.asarray(mine.traced.states) - np.asarray(theirs.traced.states)).max() < 1e-5
        assert np.abs(np.asarray(mine.traced.inputs) - np.asarray(theirs.traced.inputs)).max() < 1e-5
    assert system.state_name == f"{'RNN_TANH' if kind == 'RNN' else kind}: h" + (
        ", both directions" if ways == 2 else ""
    )


def test_padding_is_not_part_of_a_trace(tmp_path: Path) -> None:
    net = Net()
    padded = dc.TorchScriptSystem(exported(net, tmp_path / "net.pt"), batch="padded")
    for mine, alone in zip(padded.run(inputs()), dc.TorchSystem(net.eval()).run(inputs()), strict=True):
        assert np.allclose(mine.traced.states, alone.traced.states, atol=1e-5)
        assert np.allclose(mine.output, alone.output, atol=1e-5)
    with pytest.raises(dc.InputError, match=r"reads in both directions, so the padding .* use batch='equal'"):
        dc.TorchScriptSystem(exported(Net(ways=2), tmp_path / "b.pt"), batch="padded").run(inputs())


def test_the_state_that_it_starts_from_is_the_first(tmp_path: Path) -> None:
    net = Learned()
    system = dc.TorchScriptSystem(
        exported(net, tmp_path / "net.pt"), transcribe=lambda scores: "abcd"[scores[-1].argmax()]
    )
    for mine, theirs in zip(system.run(inputs()), dc.TorchSystem(net.eval()).run(inputs()), strict=True):
        assert np.allclose(mine.traced.states[0], np.linspace(-1, 1, 4))
        assert np.allclose(mine.traced.states, theirs.traced.states, atol=1e-5)
        assert mine.doubt is not None


def test_a_network_that_shows_no_states_runs_without_and_says_so(tmp_path: Path) -> None:
    net = Cells()
    with pytest.warns(UserWarning, match="runs without states: its graph has no LSTM, GRU or RNN operator"):
        system = dc.TorchScriptSystem(exported(net, tmp_path / "net.pt", "script"))
    assert system.state_name == "no states"
    runs = system.run(inputs())
    assert all(run.trace is None for run in runs)
    with torch.no_grad():
        assert all(
            np.allclose(run.output, net(torch.from_numpy(value)[None])[0], atol=1e-6)
            for run, value in zip(runs, inputs(), strict=True)
        )
    with pytest.raises(dc.InputError, match="an output without states"):
        dc.profile(system, inputs())


def test_errors_are_sentences(tmp_path: Path) -> None:
    path = exported(Net(), tmp_path / "net.pt")
    with pytest.raises(
        dc.InputError, match=r"net.pt cannot be run on inputs of \[6, 4\]: .*; do features= and"
    ) as caught:
        dc.TorchScriptSystem(path).run([np.zeros((6, 4), np.float32)])
    assert "\n" not in str(caught.value)
    with pytest.raises(dc.InputError, match="there is no recurrent operator 3; the graph has 0: LSTM"):
        dc.TorchScriptSystem(path, 3)
    with pytest.raises(dc.FileError, match=r"cannot read '.*none.pt': no such file"):
        dc.TorchScriptSystem(tmp_path / "none.pt")
    for saved in (Net().state_dict(), Net()):
        torch.save(saved, tmp_path / "saved.pt")
        with pytest.raises(dc.FileError, match=r"is not a TorchScript file.* give TorchSystem the module$"):
            dc.TorchScriptSystem(tmp_path / "saved.pt")


def test_a_program_is_not_a_module(tmp_path: Path) -> None:
    load: Any = torch.jit.load
    with pytest.raises(dc.InputError, match=r"net is a TorchScript program.* give TorchScriptSystem the file"):
        dc.TorchSystem(load(str(exported(Net(), tmp_path / "net.pt"))))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_inputs_have_the_precision_of_the_network(tmp_path: Path, dtype: torch.dtype) -> None:
    net = Net().to(dtype)
    system = dc.TorchScriptSystem(
        exported(net, tmp_path / "net.pt", "script"), transcribe=lambda scores: scores.argmax()
    )
    for mine, theirs in zip(system.run(inputs()), dc.TorchSystem(net.eval()).run(inputs()), strict=True):
        assert mine.traced.states.dtype == dtype
        torch.testing.assert_close(mine.traced.states, theirs.traced.states)


def test_the_fingerprint_is_that_of_the_file_and_of_the_state(tmp_path: Path) -> None:
    path = exported(Net(), tmp_path / "net.pt")
    same, other = shutil.copy(path, tmp_path / "copy.pt"), exported(Net("GRU"), tmp_path / "other.pt")
    assert dc.TorchScriptSystem(path).fingerprint == dc.TorchScriptSystem(same).fingerprint
    assert dc.TorchScriptSystem(path).fingerprint != dc.TorchScriptSystem(other).fingerprint


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = exported(Net(), tmp_path / "net.model")
    assert adapter_of(path) == ("torch", "TorchScriptSystem")
    assert isinstance(system_from_file(path), dc.TorchScriptSystem)
    (tmp_path / "data.py").write_text(
        "import numpy as np\ndata = [np.ones((n, 5), np.float32) * n for n in range(3, 40)]\n"
    )
    result = CliRunner().invoke(
        main,
        ["profile", "--system", str(path), "--data", f"{tmp_path / 'data.py'}:data", "-o", str(tmp_path / "p")],
    )
    assert result.exit_code == 0, result.output
    assert "37 traces" in result.output


BEGINNINGS = {
    b"\x89HDF\r\n\x1a\n": "KerasSystem",
    b"\x1c\x00\x00\x00TFL3": "TfliteSystem",
    b"\x08\x08\x12\x07pytorch": "OnnxSystem",
    b"\x00B<Nnet> ": "EesenSystem",
}


@pytest.mark.parametrize("start", BEGINNINGS)
def test_other_files_are_known_by_their_content_too(start: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.net").write_bytes(start + bytes(80))
    assert adapter_of(tmp_path / "model.net")[1] == BEGINNINGS[start]
    (tmp_path / "notes.txt").write_bytes(b"nothing of the kind")
    with pytest.raises(dc.InputError, match="is not a model file"):
        adapter_of(tmp_path / "notes.txt")


CHILD = """
import sys, warnings, resource
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
import numpy as np, torch, deepcruiser as dc
torch.set_num_threads(1)
value, right = np.ones((5, 5), np.float32), np.load(sys.argv[1])
for path in sys.stdin.read().split():
    print(path, flush=True)
    try:
        output = dc.TorchScriptSystem(path).run([value])[0].output
        print("right" if np.array_equal(output, right) else "wrong", flush=True)
    except dc.DeepCruiserError as error:
        assert "\\n" not in str(error) and len(str(error)) < 500, error
        print("refused", flush=True)
"""


def damaged(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Cut short, a byte changed, a stretch of zeros, four bytes of 255 as a forged size, a stretch repeated."""
    while True:
        at, other = sorted(int(n) for n in rng.integers(0, len(content), 2))
        yield content[:at]
        yield content[:at] + bytes([content[at] ^ int(rng.integers(1, 256))]) + content[at + 1 :]
        yield content[:at] + bytes(other - at) + content[other:]
        yield content[:at] + b"\xff" * 4 + content[at + 4 :]
        yield content[:other] + content[at:other] + content[other:]


def test_damaged_files_are_refused_or_run_as_before(tmp_path: Path) -> None:
    path = exported(Net(), tmp_path / "net.pt")
    np.save(tmp_path / "right.npy", dc.TorchScriptSystem(path).run([np.ones((5, 5), np.float32)])[0].output)
    files = []
    for number, content in zip(range(300), damaged(path.read_bytes(), np.random.default_rng(0)), strict=False):
        files.append(tmp_path / f"{number}.pt")
        files[-1].write_bytes(content)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "right.npy")],
        input="\n".join(map(str, files)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    results = child.stdout.split()[1::2]
    assert child.returncode == 0, (child.stdout.split()[-1:], child.stderr[-2000:])
    assert len(results) == 300
    assert set(results) <= {"refused", "right"}
    assert results.count("refused") > 200
