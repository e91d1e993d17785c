"""A user's folder for tests of commands: a network and its profile, sounds, and a campaign."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main
from deepcruiser.systems.builtin import brackets

BRACKETS = """
import os
import torch
import deepcruiser as dc
from deepcruiser.systems.builtin import brackets
from changes import mutations

net = brackets.BracketNet()
net.load_state_dict(torch.load(os.path.join(os.path.dirname(__file__), "weights.pt"), weights_only=True))
net.requires_grad_(False).eval()
system = dc.TorchSystem(net, "lstm", features=brackets.encode, batch="padded", transcribe=brackets._answer)


class Newer:
    '''Always right.'''
    fingerprint = "newer"

    def run(self, batch):
        return [dc.Run(brackets.verdict(text), run.trace) for text, run in zip(batch, system.run(batch))]


class Printing:
    fingerprint = system.fingerprint
    state_name = system.state_name

    def run(self, batch):
        print("\\x1b[2Ja system that prints")
        os.write(2, b"and its library\\n")
        return system.run(batch)


class Seed:
    def __init__(self, id, text):
        self.id, self.value, self.text = id, text, brackets.verdict(text)

    @property
    def input(self):
        return self.value


seeds = [Seed(f"t{n}", text) for n, text in enumerate(brackets.ordinary_tests(40))]
few = seeds[:2]
printing = Printing()
nothing = []
"""

CHANGES = """
import deepcruiser as dc
from deepcruiser.systems.builtin import bracket_changes as changes

mutations = dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, changes.too_long)


def local():
    class Local(changes.KINDS[0]):
        pass

    return Local


here_only = dc.Mutations((local_kind := local(),), ((local_kind,),), (), lambda seed, text: None)


def of_its_own(seed, text):
    return "too long" if len(text) > 30 else None


def build():
    return dc.Mutations(changes.KINDS, changes.FAMILIES, changes.UNAFFECTED, of_its_own)
"""

SPEECH = """
import numpy as np
import torch
import deepcruiser as dc


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = torch.nn.GRU(8, 12, batch_first=True), torch.nn.Linear(12, 3)
        generator = torch.Generator().manual_seed(0)
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -0.7, 0.7, generator=generator)

    def forward(self, frames):
        return self.out(self.gru(frames)[0])


def bands(audio):
    frames = audio.samples[: len(audio) // 200 * 200].reshape(-1, 200)
    energies = np.square(np.abs(np.fft.rfft(frames)[:, 1:97])).reshape(len(frames), 8, 12).sum(2)
    return np.log(energies + 1e-4).astype(np.float32)


def words(scores):
    said = scores.argmax(-1).tolist()
    return " ".join(("", "ah", "oh")[n] for n, before in zip(said, [-1, *said]) if n and n != before)


system = dc.TorchSystem(Net().eval(), "gru", rate=8000, features=bands, batch="padded", transcribe=words)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def json_lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def make(folder: Path) -> Path:
    """A user's folder: a network of brackets that was not trained for long, and a small one of sounds."""
    (folder / "net.py").write_text(BRACKETS)
    (folder / "changes.py").write_text(CHANGES)
    (folder / "asr.py").write_text(SPEECH)
    net = brackets.train(steps=200)
    torch.save(net.state_dict(), folder / "weights.pt")
    system = dc.TorchSystem(net, "lstm", features=brackets.encode, batch="padded", transcribe=brackets._answer)
    profile = dc.profile(system, brackets.training_texts(1500), batch_size=256)
    profile.save(folder / "net.profile")
    profile.abstract(20).save(folder / "net.model")
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("speech", 6), ("noise", 2)):
        (folder / part).mkdir()
        for number in range(count):
            times = np.arange(int(rng.uniform(0.4, 0.8) * 8000)) / 8000
            pitch = rng.uniform(100, 200) * np.cumsum(1 + 0.3 * np.sin(2 * np.pi * 3 * times)) / 8000
            sound = sum(np.sin(2 * np.pi * pitch * n) / n for n in range(1, 12)) * np.abs(np.sin(2 * np.pi * 2 * times))
            dc.Audio(0.2 * sound + 0.003 * rng.standard_normal(len(times)), 8000).write(folder / part / f"{number}.wav")
    return folder


MODEL = ("--profile", "net.profile", "--partitions", "20")
BASIC = (
    "fuzz",
    "--system",
    "net.py:system",
    "--data",
    "net.py:seeds",
    "--mutations",
    "net.py:mutations",
    "--disagreement",
)


def fuzz(output: Path | str, *more: str, guide: str = "2-SBCov", workers: str = "0") -> Result:
    return run(*BASIC, *MODEL, "--guide", guide, "--workers", workers, "-o", str(output), *more)


def begin(made: Path) -> Path:
    """A campaign with failing tests, as its folder."""
    before = os.getcwd()
    os.chdir(made)
    try:
        result = fuzz("runs/one", "--runs", "480")
    finally:
        os.chdir(before)
    assert result.exit_code == 1, result.output
    assert "failing tests: " in result.stdout
    return made / "runs" / "one"


def failing(campaign: Path) -> list[int]:
    return sorted(int(path.stem) for path in (campaign / "failed").glob("*.txt"))
