"""Runs every Python block and every command of the README and of docs/, in reading order.

The blocks of one file share a namespace and a working folder, in which lies what the examples take for granted: a
recogniser, some speech, and the README's asr.py. A Python block that begins with a comment such as `# asr.py` is also
written to that file. Lines under a command are its output, up to the numbers; `...` stands for any lines.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import deepcruiser as dc
from deepcruiser.cli import main
from tests.support import kaldi_files, keras2, tflite_files
from tests.test_architecture import LAYERS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Results are of experiments that take their time; their commands are not run here.
RUN = [ROOT / "README.md", *(page for page in PAGES if not page.stem.startswith(("found", "results")))]
OTHERS = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")
ALL = [ROOT / "README.md", *PAGES, *(ROOT / name for name in OTHERS)]

#: The packages of extras that a page is about.
NEEDED = {
    "decoding.md": ("flashlight",),
    "onnx.md": ("onnx", "onnxruntime", "ai_edge_litert"),
    "monitor.md": ("fastapi", "httpx"),
}

#: What the examples import as the user's own.
RECOGNISER = '''
import numpy as np
import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(20, 16, batch_first=True)

    def forward(self, frames):
        return self.lstm(frames)[0]


class Recogniser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.out = Encoder(), torch.nn.Linear(16, 27)
        generator = torch.Generator().manual_seed(0)
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -0.5, 0.5, generator=generator)

    def forward(self, frames):
        return self.out(self.encoder(frames))


def log_mel(audio):
    """Not quite mel: the energies of 20 bands, 50 times a second."""
    assert audio.rate == 16_000
    frames = audio.samples[: len(audio) // 320 * 320].reshape(-1, 320)
    energies = np.square(np.abs(np.fft.rfft(frames)[:, 1:])).reshape(len(frames), 20, 8).sum(2)
    return np.log(energies + 1e-6).astype(np.float32)


def greedy(scores):
    letters = scores.argmax(-1).tolist()
    return "".join(" abcdefghijklmnopqrstuvwxyz"[n] for n, before in zip(letters, [-1, *letters]) if n != before)


net = Recogniser()
'''


@dataclass(frozen=True)
class Block:
    """The text between two fences."""

    language: str
    line: int
    text: str


def blocks(path: Path) -> Iterator[Block]:
    language, first, inside = "", 0, list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            inside.append(line)
        elif first:
            yield Block(language, first, "\n".join(inside) + "\n")
            first = 0
        else:
            language, first, inside = line.removeprefix("```"), number + 1, []
    assert not first, f"{path.name}: the fence above line {first} is never closed"


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, with the lines that are shown of its output."""
    first, *rest = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not first.strip(), f"output without a command: {first}"
    for part in rest:
        command, *shown = part.splitlines()
        yield command, shown


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder, in which the examples work."""
    (tmp_path / "recogniser.py").write_text(RECOGNISER)
    (asr,) = [block.text for block in blocks(ROOT / "README.md") if block.text.startswith("# asr.py\n")]
    (tmp_path / "asr.py").write_text(asr)
    if importlib.util.find_spec("ai_edge_litert"):
        tflite_files.lstm_step(tmp_path / "keywords.tflite", torch.nn.LSTM(20, 8), torch.nn.Linear(8, 3))
    rng = np.random.default_rng(0)
    for part, count in (("train", 24), ("test", 8)):
        (tmp_path / "speech" / part).mkdir(parents=True)
        for number in range(count):
            rate = 8_000 if number == 5 else 16_000
            times = np.arange(int(rng.uniform(0.6, 1.4) * rate)) / rate
            hum = np.sin(2 * np.pi * rng.uniform(80, 300) * times) * np.sin(2 * np.pi * rng.uniform(1, 5) * times)
            speech = dc.Audio(0.5 * hum + 0.01 * rng.standard_normal(len(times)), rate)
            speech.write(tmp_path / "speech" / part / f"{number:02}.wav")
    kaldi_files.recogniser(tmp_path)
    if importlib.util.find_spec("h5py"):
        write_keras(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # python is this one
    monkeypatch.setattr("deepcruiser.cli.demo.RUNS", 96)  # of 480: numbers are not compared
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write_keras(folder: Path) -> None:
    """A recogniser as Keras 2 saved it, alone and with a loss in a Lambda layer behind it."""
    rng = np.random.default_rng(0)
    layers = [keras2.rnn("GRU", "gru", 16), keras2.bidirectional(keras2.rnn("LSTM", "lstm", 8), "bidirectional")]
    weights = {
        "gru": keras2.rnn_weights("GRU", 20, 16, rng),
        "bidirectional": [one for _ in range(2) for one in keras2.rnn_weights("LSTM", 16, 8, rng)],
        "softmax": [rng.normal(0, 1, (16, 27)).astype(np.float32), np.zeros(27, np.float32)],
    }
    masking = {"class_name": "Masking", "config": {"name": "masking", "mask_value": 0.0}}
    chain = [keras2.input_layer("frames", [None, None, 20]), masking, *layers, keras2.dense("softmax", 27, "softmax")]
    names = ["frames", "masking", "gru", "bidirectional", "softmax"]
    connected = [(layer, names[i - 1 : i] if i else []) for i, layer in enumerate(chain)]
    keras2.write(folder / "recogniser.h5", keras2.functional(connected, ["frames"], ["softmax"]), weights)
    loss = [(keras2.input_layer("labels", [None, None]), []), (keras2.lambda_layer("ctc"), ["softmax", "labels"])]
    whole = keras2.functional([*connected, *loss], ["frames", "labels"], ["ctc"])
    keras2.write(folder / "with_loss.h5", whole, weights)


@pytest.mark.parametrize("path", RUN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_example_runs(path: Path, folder: Path) -> None:
    if path.stem == "keras" and not importlib.util.find_spec("keras"):
        pytest.skip("pip install 'deepcruiser[keras]'")
    for package in NEEDED.get(path.name, ()):
        pytest.importorskip(package)
    namespace: dict[str, object] = {"__name__": "__docs__"}
    ran = 0
    for block in blocks(path):
        where = f"{path.relative_to(ROOT)}, line {block.line}"
        if block.language == "python":
            if named := re.match(r"# (\w+\.py)\n", block.text):
                (folder / named[1]).write_text(block.text)
            # With the lines that stand above it, so that a traceback names the line of the document.
            exec(compile("\n" * (block.line - 1) + block.text, str(path), "exec", dont_inherit=True), namespace)
            ran += 1
        elif block.language == "console":
            for command, shown in commands(block):
                ran += run(command, shown, where)
        else:
            assert block.language == "text", f"{where}: a block is python, console or text, not {block.language!r}"
    assert ran, f"{path.name} has no examples"


def run(command: str, shown: list[str], where: str) -> bool:
    """Run a command of ours and compare what it prints; of others, which are few, check what they name."""
    program, *arguments = shlex.split(command)
    if program != "deepcruiser":
        check_named(command, where)
        return False
    result = CliRunner().invoke(main, arguments)
    fine = (0, 1) if arguments[0] in ("findings", "fuzz", "replay") else (0,)  # 1: failing tests were found
    assert result.exit_code in fine, f"{where}: {command}\n{result.output}\n{result.exception!r}"
    assert isinstance(result.exception, SystemExit | None), f"{where}: {command}\n{result.exception!r}"
    if shown:
        pattern = "".join(r"(.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in masked(shown))
        printed = "".join(line + "\n" for line in masked(result.stdout.splitlines()))
        assert re.fullmatch(pattern, printed), f"{where}: {command} prints otherwise:\n{result.stdout}"
    return True


def masked(lines: list[str]) -> list[str]:
    """The lines that are not blank, with # for every number and every misheard text, which vary with the machine."""
    variable = re.compile(r"'[^']*' became '[^']*'|\d[\d.,]*")
    return [" ".join(variable.sub("#", line).split()) for line in lines if line.strip()]


def check_named(command: str, where: str) -> None:
    words = command.split()
    if words[0] == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[-1] in targets, f"{where}: the Makefile has no {words[-1]!r}"
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]), f"{where}: there is no module {words[2]}"
    elif words[:3] == ["pip", "install", "-c"]:
        assert (ROOT / words[3]).is_file(), f"{where}: there is no {words[3]}"
    else:
        known = ("git clone <the address of this repository> deepcruiser", "cd deepcruiser")
        assert command in known, f"{where}: nobody checks the command {command!r}"


@pytest.mark.parametrize(
    "path", [path for path in ALL if path not in RUN], ids=lambda path: str(path.relative_to(ROOT))
)
def test_other_commands_name_what_is_there(path: Path) -> None:
    for block in blocks(path):
        where = f"{path.relative_to(ROOT)}, line {block.line}"
        assert block.language in ("console", "text"), f"{where}: {block.language!r} would not be run here"
        for command, _ in commands(block) if block.language == "console" else ():
            check_named(command, where)


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_modules_and_files_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text)):
        if target.startswith("https:"):
            continue
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{path.name} links to {target}#{anchor}"
    for name in re.findall(r"python -m (benchmarks[\w.]*\w)", text):
        assert importlib.util.find_spec(name), f"{path.name} names {name}"
    for name in re.findall(r"\btests/[\w/]+(?:\.py)?", text):
        assert (ROOT / name).exists() or list(ROOT.glob(f"{name}*")), f"{path.name} names {name}"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_layers_are_those_of_the_architecture() -> None:
    """Each line of the list in ARCHITECTURE.md names parts of one layer, from the ground up."""
    rank = {part: level for level, parts in enumerate(LAYERS) for part in parts}
    (listed,) = [block.text for block in blocks(ROOT / "ARCHITECTURE.md") if block.text.startswith("errors ")]
    levels = [{rank[part] for part in re.split(r"  +", line)[0].split(", ")} for line in listed.splitlines()]
    assert [len(level) for level in levels] == [1] * len(levels)
    order = [level.pop() for level in levels]
    assert order == sorted(set(order))
