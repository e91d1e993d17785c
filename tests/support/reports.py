"""Small campaigns to make reports of: sounds made here and a real network, the reader of texts, and series."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from click.testing import CliRunner, Result

import deepcruiser as dc
from deepcruiser.cli import main

#: What nobody's page may take for more than text.
NASTY = "<script>alert(1)</script>"
WORDS = ("open", "the", "door", NASTY, "please", "now")


class Listener(torch.nn.Module):
    """A recurrent network that hears words in the loudness of 100 ms of sound at a time."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(6)
        self.lstm, self.out = torch.nn.LSTM(8, 12, batch_first=True), torch.nn.Linear(12, len(WORDS))
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -1.5, 1.5, generator=generator)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.out(self.lstm(frames)[0])
        return scores


def bands(audio: dc.Audio) -> np.ndarray:
    frames = audio.samples[: len(audio) // 800 * 800].reshape(-1, 800)
    energies = np.square(np.abs(np.fft.rfft(frames)[:, 1:])).reshape(len(frames), 8, 50).sum(2)
    loudness: np.ndarray = np.log(energies + 1e-2).astype(np.float32) / 3
    return loudness


def words(scores: torch.Tensor) -> str:
    heard = scores.argmax(-1).tolist()
    return " ".join(WORDS[n] for n, before in zip(heard, [-1, *heard], strict=False) if n != before)


@dataclass(frozen=True)
class Recording:
    id: str
    seed: int

    @property
    def input(self) -> dc.Audio:
        rng = np.random.default_rng(self.seed)
        t = np.arange(8000) / 8000
        voice = sum(np.sin(2 * np.pi * rng.uniform(90, 260) * k * t) / k for k in range(1, 9))
        return dc.Audio(0.08 * voice * np.abs(np.sin(2 * np.pi * rng.uniform(1, 3) * t)), 8000)


def listener() -> dc.TorchSystem:
    return dc.TorchSystem(Listener().eval(), "lstm", features=bands, transcribe=words)


def sound_campaign(folder: Path, **options: Any) -> dc.CampaignRecord:
    """Sounds of one second; the network's answers are full of markup."""
    system = listener()
    seeds = [Recording(f"say-{i}", i) for i in range(6)]
    model = dc.profile(system, [seed.input for seed in seeds], exact=True).abstract(8)
    options = {"oracle": dc.WordErrorRate(above=0.3), "runs": 96, "workers": 0, **options}
    return dc.fuzz(system, model, seeds, folder=folder, **options)


@dataclass(frozen=True)
class Scale:
    factor: float

    def __call__(self, series: np.ndarray) -> np.ndarray:
        return series * self.factor

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        return cls(round(float(rng.uniform(0.2, 3)), 3))


class Integrator:
    """Says whether a leaky sum of a series ever exceeds 1."""

    fingerprint = "integrator"
    state_name = "sum"

    def run(self, batch: Sequence[Any]) -> list[dc.Run]:
        return [self._run(series) for series in batch]

    def _run(self, series: np.ndarray) -> dc.Run:
        states = np.zeros((len(series) + 1, 1))
        for i, value in enumerate(series[:, 0]):
            states[i + 1] = 0.9 * states[i] + 0.1 * value
        return dc.Run("high" if states.max() > 0.5 else "low", dc.Trace(states, series))


def series_campaign(folder: Path) -> dc.CampaignRecord:
    rng = np.random.default_rng(0)
    seeds = [rng.normal(0, 1, (40, 2)).cumsum(0) / 4 for _ in range(5)]
    system = Integrator()
    model = dc.profile(system, seeds, components=1, exact=True).abstract(10)
    mutations = dc.Mutations((Scale,), ((Scale,),), (), lambda seed, mutant: None)
    return dc.fuzz(
        system, model, seeds, folder=folder, oracle=dc.Disagreement(), mutations=mutations, runs=64, workers=0
    )


def failing_campaign(path: Path) -> Path:
    """A campaign on sounds with more than ten failing tests."""
    assert len(sound_campaign(path).failed) > 10
    return path


def report(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def page_data(path: Path) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert match
    data: dict[str, Any] = json.loads(match[1])
    return data
