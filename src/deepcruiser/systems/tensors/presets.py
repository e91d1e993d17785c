"""Networks that are recognised by the names of their inputs and outputs, and the settings that their files lack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepcruiser.decoding.detection import spans
from deepcruiser.errors import InputError
from deepcruiser.systems.tensors.signature import Port


@dataclass(frozen=True)
class Preset:
    """The settings of a network."""

    rate: int
    chunk: int
    context: int
    constants: Mapping[str, Any] = field(default_factory=dict)
    transcribe: Callable[[Any], Any] | None = None


def find_preset(inputs: Sequence[Port], outputs: Sequence[Port], rate: int | None) -> Preset | None:
    """The preset of the network with these inputs and outputs, at this sample rate."""
    takes, gives = {port.name: port.shape for port in inputs}, {port.name for port in outputs}
    if takes.keys() == {"input", "state", "sr"} and gives == {"output", "stateN"} and takes["state"][-1:] == (128,):
        return silero(16_000 if rate is None else rate, context_seconds=0.004)
    if takes.keys() == {"input", "sr", "h", "c"} and gives == {"output", "hn", "cn"} and takes["h"][-1:] == (64,):
        return silero(16_000 if rate is None else rate, context_seconds=0)
    return None


def silero(rate: int, *, context_seconds: float) -> Preset:
    """Silero's voice activity detector. It reads 32 ms at a time, and its answer is spans of speech.

    From version 5 on, a call also reads the last 4 ms of the previous one.
    """
    if rate not in (8_000, 16_000):
        raise InputError(f"Silero's detector runs at 8,000 or 16,000 Hz, not at {rate:,} Hz")
    chunk = rate * 32 // 1000

    def speech(probabilities: Any) -> list[tuple[float, float]]:
        return spans(probabilities[:, 0], seconds_per_step=chunk / rate)

    return Preset(rate, chunk, round(rate * context_seconds), {"sr": rate}, speech)
