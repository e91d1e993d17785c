"""The shell around all networks: rate, features, order, transcription, fingerprint and doubt."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import deepcruiser as dc
from deepcruiser.systems.adapter import Adapter, group_alike, run_groups

ALPHABET = "ab "
LABELS = ("yes", "no", "neither", "both")


class Doubler(Adapter):
    """Twice the input, in groups of equal length, the groups in reverse order."""

    def __init__(self, **options: Any) -> None:
        super().__init__("doubler", "twice the input", **options)
        self.identified = 0
        self.groups: list[list[int]] = []

    def _identity(self) -> Iterable[bytes]:
        self.identified += 1
        return [b"doub", b"ler"]

    def _groups(self, values: Sequence[Any]) -> Iterable[list[int]]:
        return group_alike(len(value) for value in values)[::-1]

    def _forward(self, values: list[Any], positions: list[int]) -> list[tuple[Any, dc.Trace]]:
        self.groups.append(positions)
        return [(2 * value, dc.Trace(np.zeros((len(value) + 1, 1)), value[:, None])) for value in values]


def test_results_are_in_the_order_of_the_batch() -> None:
    system = Doubler()
    batch = [np.arange(float(n)) for n in (2, 5, 2, 1, 5)]
    for run, value in zip(system.run(batch), batch, strict=True):
        np.testing.assert_array_equal(run.output, 2 * value)
        assert len(run.traced) == len(value)
        assert run.doubt is None
    assert system.groups == [[3], [1, 4], [0, 2]]
    assert system.run([]) == []


def test_groups() -> None:
    assert group_alike("abacb") == [[0, 2], [1, 4], [3]]
    assert group_alike([]) == []
    assert run_groups([[2], [0, 1]], lambda group: [10 * i for i in group]) == [0, 10, 20]
    with pytest.raises(ValueError, match="shorter"):
        run_groups([[0, 1]], lambda group: [0])


def test_the_way_of_an_input() -> None:
    seen: list[Any] = []

    def features(audio: dc.Audio) -> Any:
        seen.append(audio.rate)
        return audio.samples[:3]

    system = Doubler(rate=8000, features=features, transcribe=lambda output: f"{output.shape}")
    runs = system.run([dc.Audio(np.ones(1600, np.float32), 16000), dc.Audio(np.ones(800, np.float32), 8000)])
    assert seen == [8000, 8000]
    assert [run.output for run in runs] == ["(3,)", "(3,)"]
    (run,) = Doubler().run([dc.Audio(np.ones(4, np.float32), 8000)])
    assert run.output.tolist() == [2.0] * 4, "without features, audio becomes its samples"


def test_the_fingerprint_is_computed_once() -> None:
    import hashlib

    system = Doubler()
    assert system.fingerprint == system.fingerprint == hashlib.sha256(b"doubler").hexdigest()
    assert system.identified == 1
    assert repr(system) == "Doubler(doubler, twice the input)"
    assert isinstance(system, dc.System)


@pytest.mark.parametrize("name", ["features", "transcribe", "doubt"])
def test_what_must_be_a_function(name: str) -> None:
    with pytest.raises(dc.InputError, match=f"{name} must be a function, not 3"):
        Doubler(**{name: 3})


def plain_doubt(scores: Any) -> float:
    """The mean over the steps of -log of the best probability of logits, in a loop."""
    rows = np.atleast_2d(np.asarray(scores, float)).tolist()
    return sum(-math.log(max(map(math.exp, row)) / sum(map(math.exp, row))) for row in rows) / len(rows)


@pytest.fixture(scope="module")
def net() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.out = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 4)

        def forward(self, x: torch.Tensor) -> Any:
            return 10 * self.out(self.gru(x)[0])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Net().eval()


def sequences() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((n, 3)).astype(np.float32) for n in (6, 4, 6, 1)]


@pytest.mark.parametrize("batch", ["equal", "padded"])
@pytest.mark.parametrize(
    "decode",
    [
        lambda scores: dc.ctc_greedy(scores, ALPHABET, blank=3),
        lambda scores: dc.ctc_beam(scores.log_softmax(-1), ALPHABET, blank=3, words=["a", "b", "ab"]),
    ],
)
def test_decoded_scores_have_a_doubt(net: nn.Module, batch: Any, decode: Any) -> None:
    scores = [run.output for run in dc.TorchSystem(net, batch=batch).run(sequences())]
    runs = dc.TorchSystem(net, batch=batch, transcribe=decode).run(sequences())
    for run, one in zip(runs, scores, strict=True):
        assert run.doubt == pytest.approx(plain_doubt(one), rel=1e-5)
    assert len({run.doubt for run in runs}) == 4


def test_classified_scores_have_a_doubt(net: nn.Module) -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> Any:
            return self.net(x)[:, -1].softmax(-1)

    scores = [run.output for run in dc.TorchSystem(net).run(sequences())]
    runs = dc.TorchSystem(Last().eval(), transcribe=lambda one: dc.classify(one, LABELS)).run(sequences())
    for run, one in zip(runs, scores, strict=True):
        assert run.output in LABELS
        assert run.doubt == pytest.approx(plain_doubt(one[-1]), rel=1e-4)


def test_only_texts_made_from_scores_have_a_doubt(net: nn.Module) -> None:
    assert dc.TorchSystem(net).run(sequences())[0].doubt is None, "nothing was decoded"
    for transcribe in (lambda scores: int(scores[-1].argmax()), lambda scores: scores.numpy()):
        assert dc.TorchSystem(net, transcribe=transcribe).run(sequences())[0].doubt is None
    several = nn.GRU(3, 5, batch_first=True).eval()  # gives a tuple
    assert dc.TorchSystem(several, transcribe=lambda output: "text").run(sequences())[0].doubt is None
    one_class = dc.TorchSystem(net, transcribe=lambda scores: "text")
    with torch.no_grad():
        assert one_class._decode(torch.zeros(5, 1), dc.Trace(np.zeros((2, 1)), np.zeros((1, 1)))).doubt is None
        assert one_class._decode(torch.zeros(5, 2).long(), dc.Trace(np.zeros((2, 1)), np.zeros((1, 1)))).doubt is None


def test_a_doubt_of_the_users(net: nn.Module) -> None:
    runs = dc.TorchSystem(net, doubt=lambda scores: dc.doubt_of(scores[-1])).run(sequences())
    for run in runs:
        assert run.doubt == pytest.approx(plain_doubt(run.output[-1]), rel=1e-5)
    runs = dc.TorchSystem(net, transcribe=lambda scores: "text", doubt=lambda scores: math.nan).run(sequences())
    assert [run.doubt for run in runs] == [None] * 4


def test_doubt_of_a_file(net: nn.Module, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from tests.test_onnx_equals_torch import export

    axes = {"x": {0: "batch", 1: "time"}}
    path = export(net, tmp_path / "net.onnx", {"x": torch.zeros(1, 7, 3)}, axes)
    decode: dict[str, Any] = {"transcribe": lambda scores: dc.ctc_greedy(scores, ALPHABET, blank=3)}
    original = dc.TorchSystem(net, **decode).run(sequences())
    for one, other in zip(dc.OnnxSystem(path, **decode).run(sequences()), original, strict=True):
        assert one.doubt == pytest.approx(other.doubt, rel=1e-4)
        assert one.output == other.output
    (run,) = dc.OnnxSystem(path, doubt=lambda scores: 7).run(sequences()[:1])
    assert run.doubt == 7


def test_doubt_of_the_built_in_networks() -> None:
    from deepcruiser.systems.builtin import brackets

    texts = brackets.ordinary_tests(20)
    system = dc.load_system("brackets")
    scores = dc.TorchSystem(system.net, "lstm", features=brackets.encode, batch="padded").run(texts)  # type: ignore[attr-defined]
    for run, one in zip(system.run(texts), scores, strict=True):
        assert run.doubt == pytest.approx(plain_doubt(one.output[-1]), abs=1e-5)


def test_doubt_of_the_recogniser() -> None:
    system = dc.load_system("english")
    rng = np.random.default_rng(0)
    quiet, noise = (dc.Audio((scale * rng.standard_normal(16000)).astype(np.float32), 16000) for scale in (1e-4, 0.3))
    for run in system.run([quiet, noise]):
        assert run.doubt is not None
        assert 0 < run.doubt < math.log(29)


STUB = """
import sys, types
package = types.ModuleType("deepcruiser")  # the package without its __init__, which imports all of it
package.__path__ = [sys.argv[1]]
sys.modules["deepcruiser"] = package
import deepcruiser.systems, deepcruiser.systems.by_suffix, deepcruiser.trace
print(sorted({"torch", "onnx", "onnxruntime", "keras", "tensorflow", "ai_edge_litert"} & set(sys.modules)))
import deepcruiser.systems.process.system, deepcruiser.systems.onnx.system, deepcruiser.systems.tflite.system
import deepcruiser.systems.deepspeech.system, deepcruiser.systems.keras.system
print(sorted({"onnx", "onnxruntime", "keras", "tensorflow", "ai_edge_litert"} & set(sys.modules)))
"""


def test_frameworks_are_imported_when_they_are_used() -> None:
    folder = str(Path(dc.__file__).parent)
    result = subprocess.run([sys.executable, "-c", STUB, folder], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n") == ["[]", "[]", ""]
