"""A targeted attack by gradients: a quiet disturbance after which a recogniser writes what the attacker wants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from deepcruiser.decoding.greedy import ctc_greedy
from deepcruiser.errors import InputError
from deepcruiser.files import archive

KIND = "attack"
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Victim:
    """A recogniser with gradients: `scores(waves, lengths)` gives [batch, steps, classes] of samples [batch, time].

    The classes are the symbols of `alphabet` and, last, the blank of CTC.
    """

    scores: Callable[[Tensor, Tensor], Tensor]
    alphabet: str
    rate: int
    fingerprint: str

    def read(self, scores: Tensor) -> str:
        """The text of one input's scores [steps, classes]."""
        return str(ctc_greedy(scores, self.alphabet, blank=len(self.alphabet)))


@dataclass(frozen=True)
class Attack:
    """No sample changes by more than `peak` times the greatest sample of the recording.

    Each of `steps` steps moves every sample along the sign of the gradient of the CTC loss of the target, by a tenth of
    the bound. Whenever the target is written, the bound shrinks by `shrink`, and the last success counts.
    """

    peak: float = 0.05
    steps: int = 100
    shrink: float = 0.8

    def __call__(self, victim: Victim, samples: Samples, target: str) -> Adversarial:
        """Attack one recording."""
        if not target or set(target) - set(victim.alphabet):
            raise InputError(f"the target {target!r} must be a text of the letters {victim.alphabet!r}")
        wave = torch.from_numpy(np.ascontiguousarray(samples, np.float32))
        length = torch.tensor([len(wave)])
        symbols = torch.tensor([[victim.alphabet.index(letter) for letter in target]])
        bound = self.peak * float(wave.abs().max())
        noise, best, written = torch.zeros_like(wave), None, ""
        for _ in range(self.steps):
            noise.requires_grad_(True)
            scores = victim.scores((wave + noise)[None], length)[0]
            written = victim.read(scores)
            if written == target:
                best, bound = noise.detach().clone(), bound * self.shrink
            (gradient,) = torch.autograd.grad(_loss(scores, symbols), noise)
            noise = (noise.detach() - 0.1 * bound * gradient.sign()).clamp(-bound, bound)
        chosen = noise if best is None else best
        attacked = (wave + chosen).numpy()
        return Adversarial(attacked, target, best is not None, _decibels(wave, chosen))


@dataclass(frozen=True, eq=False)
class Adversarial:
    """The result of an attack: the samples, whether the target is written, and the signal-to-noise ratio."""

    samples: Samples
    target: str
    success: bool
    snr_db: float


def choose_target(text: str, others: list[str], rng: np.random.Generator) -> str:
    """One of the other texts that shares no word with `text`, drawn from the ten of most similar length."""
    words = set(text.split())
    strange = [other for other in others if other and not words & set(other.split())]
    if not strange:
        raise InputError(f"every other text shares a word with {text!r}: give more recordings to attack")
    close = sorted(strange, key=lambda other: (abs(len(other) - len(text)), other))[:10]
    return close[int(rng.integers(len(close)))]


def _loss(scores: Tensor, symbols: Tensor) -> Tensor:
    logs = scores.log_softmax(-1)[:, None]
    steps, length = torch.tensor([len(scores)]), torch.tensor([symbols.shape[1]])
    return functional.ctc_loss(logs, symbols, steps, length, blank=scores.shape[-1] - 1, zero_infinity=True)


def _decibels(wave: Tensor, noise: Tensor) -> float:
    power, disturbance = float(wave.square().mean()), float(noise.square().mean())
    return float(10 * np.log10(power / disturbance)) if power and disturbance else float("inf")


def attack_once(victim: Victim, attack: Attack, samples: Samples, target: str, *, folder: Path) -> Adversarial:
    """The same attack, cached in `folder`."""
    about = json.dumps([victim.fingerprint, attack.peak, attack.steps, attack.shrink, target])
    digest = hashlib.sha256(about.encode() + np.ascontiguousarray(samples, np.float32).tobytes()).hexdigest()
    path = folder / f"{digest[:32]}.{KIND}"
    if not path.is_file():
        result = attack(victim, samples, target)
        facts: dict[str, Any] = {"target": target, "success": result.success, "snr_db": result.snr_db}
        archive.save(path, KIND, facts, {"samples": result.samples})
    facts, arrays = archive.load(path, KIND)
    return Adversarial(arrays["samples"], facts["target"], facts["success"], facts["snr_db"])
