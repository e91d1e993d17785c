"""Inputs that were run for the evidence on the monitor, reduced to what the detectors look at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from deepcruiser.abstraction.projection import Moments
from deepcruiser.abstraction.projections import Projections
from deepcruiser.audio import Audio
from deepcruiser.errors import DeepCruiserError
from deepcruiser.monitor.monitor import Monitor
from deepcruiser.monitor.scores import DOUBT
from deepcruiser.monitor.step_monitor import Reading
from deepcruiser.stream import Progress, input_of, named
from deepcruiser.trace import Run, System, Trace

Floats = npt.NDArray[np.float64]
#: Recordings of more than twice as many seconds, such as noises, are cut into pieces of this length.
PIECE_SECONDS = 5.0


@dataclass(frozen=True, eq=False)
class Item:
    """An input with its name, what is said in it, and the cluster (speaker, recording, seed) that it belongs to."""

    name: str
    value: Any
    cluster: str
    text: str = ""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one run left: its answer, the projected trace, and what the baselines make of it."""

    item: Item
    output: Any
    trace: Trace
    doubt: float | None
    #: The mean squared Mahalanobis distance of the states, of which each has `size` numbers; also its expectation.
    gaussian: float
    size: int
    projected_gaussian: float

    def reading(self, monitor: Monitor, *, doubt: bool = False) -> Reading:
        """The scores, by a monitor of a model whose projections are identities; with the doubt on request."""
        reading = monitor.read(Run(self.output, self.trace))
        if doubt and self.doubt is not None:
            reading = replace(reading, scores={**reading.scores, DOUBT: self.doubt})
        return reading

    def baselines(self, seed: int) -> dict[str, float]:
        """What is compared with the monitor."""
        digest = hashlib.blake2b(
            f"random {seed}:{self.item.name}".encode(errors="surrogatepass"), digest_size=8
        ).digest()
        doubt = {} if self.doubt is None else {DOUBT: self.doubt}
        return {
            **doubt,
            "gaussian": self.gaussian,
            "gaussian, two-sided": abs(self.gaussian - self.size),
            "projected gaussian": self.projected_gaussian,
            "random": int.from_bytes(digest) / 2**64,
        }


class Gaussian:
    """The mean over the steps of the squared Mahalanobis distance from the states that were measured."""

    def __init__(self, moments: Moments) -> None:
        covariance = (moments.scatter / moments.count).cpu().numpy()
        ridge = 1e-6 * float(np.trace(covariance)) / moments.size
        self._mean = moments.mean.cpu().numpy()
        self._factor = scipy.linalg.cholesky(covariance + ridge * np.eye(moments.size), lower=True)

    def __call__(self, states: Any) -> float:
        rows = states.detach().cpu().numpy() if isinstance(states, torch.Tensor) else np.asarray(states)
        white = scipy.linalg.solve_triangular(self._factor, (rows - self._mean).T, lower=True)
        return float(np.square(white).sum(0).mean())


def items(data: Iterable[Any], *, longest: float, limit: int, seed: int) -> list[Item]:
    """Readable inputs in an order drawn from the seed, at most `limit`; sounds above `longest` seconds are left out.

    Sounds that are more than twice as long as a piece are not utterances; they are cut into pieces, which come in the
    order of their names.
    """
    result: list[Item] = []
    for sample in sorted(named(data), key=lambda pair: _drawn(pair[0], seed)):
        try:
            pieces = list(_pieces(*sample, longest=longest))
        except DeepCruiserError:
            continue
        result += pieces
        if len(result) >= limit:
            break
    return result[:limit]


def _pieces(name: str, sample: Any, *, longest: float) -> Iterator[Item]:
    value, text = input_of(sample), getattr(sample, "text", None) or ""
    if not isinstance(value, Audio) or value.seconds <= longest:
        yield Item(name, value, speaker(name), text)
    elif not text:
        size = int(PIECE_SECONDS * value.rate)
        for number in range(len(value.samples) // size):
            piece = Audio(value.samples[number * size : (number + 1) * size], value.rate)
            yield Item(f"{name}:{number}", piece, name)


def speaker(name: str) -> str:
    """The speaker, where a name is speaker-chapter-utterance as in LibriSpeech; else the name itself."""
    parts = name.split("-")
    return parts[0] if len(parts) == 3 and all(part.isdecimal() for part in parts) else name


def _drawn(name: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}:{name}".encode(errors="surrogatepass"), digest_size=8).digest()


def half(name: str, seed: int) -> bool:
    """Whether a cluster belongs to the first half, chosen by a hash of its name."""
    return _drawn(f"half {name}", seed)[0] < 128


def observe(
    system: System,
    inputs: Sequence[Item],
    projections: Projections,
    *,
    components: int,
    moments: Moments | None = None,
    gaussian: Gaussian | None = None,
    progress: Progress,
    batch_size: int = 16,
) -> list[Observation]:
    """Run the inputs, those of similar length together, and give them in their order; `moments` take in the states."""
    order = sorted(range(len(inputs)), key=lambda i: (_length(inputs[i].value), i))
    done: dict[int, Observation] = {}
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        for number, run in zip(batch, system.run([inputs[i].value for i in batch]), strict=True):
            trace = run.traced
            if moments is not None:
                moments.add(trace.states)
            (states,), (fed,) = projections.project([trace], [inputs[number].name])
            states, fed = states[:, :components], fed[:, :components]
            variances = projections.states.variances[: states.shape[1]]
            done[number] = Observation(
                inputs[number],
                run.output,
                Trace(states, fed, segments=trace.segments),
                run.doubt,
                float("nan") if gaussian is None else gaussian(trace.states),
                trace.size,
                float((np.square(states.astype(np.float64)) / np.maximum(variances, 1e-12)).sum(1).mean()),
            )
        progress.advance(len(batch), steps=sum(len(done[number].trace) for number in batch))
    return [done[i] for i in range(len(inputs))]


def _length(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else 0
