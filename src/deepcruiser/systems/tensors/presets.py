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
    both, wide = (8_000, 16_000), takes.get("input", ())[-1:] == (64 + 512,)
    if takes.keys() == {"input", "state", "sr"} and gives == {"output", "stateN"} and takes["state"][-1:] == (128,):
        return silero(rate, context_seconds=0.004, rates=both)
    if takes.keys() == {"input", "state"} and gives == {"output", "stateN"} and wide:
        return silero(rate, context_seconds=0.004, rates=both[1:])
    if takes.keys() == {"input", "h", "c"} and gives == {"speech_probs", "hn", "cn"} and wide:
        return silero(rate, context_seconds=0.004, rates=both[1:])
    if takes.keys() == {"input", "sr", "h", "c"} and gives == {"output", "hn", "cn"} and takes["h"][-1:] == (64,):
        return silero(rate, context_seconds=0, rates=both)
    return None


def silero(rate: int | None, *, context_seconds: float, rates: Sequence[int]) -> Preset:
    """Silero's voice activity detector. It reads 32 ms at a time, and its answer is spans of speech.

    From version 5 on, a call also reads the last 4 ms of the previous one. Some of its files read one rate alone.
    """
    rate = 16_000 if rate is None else rate
    if rate not in rates:
        raise InputError(
            f"this detector of Silero runs at {' or '.join(f'{n:,}' for n in rates)} Hz, not at {rate:,} Hz"
        )
    chunk = rate * 32 // 1000

    def speech(probabilities: Any) -> list[tuple[float, float]]:
        return spans(probabilities.ravel(), seconds_per_step=chunk / rate)

    constants = {"sr": rate} if len(rates) > 1 else {}
    return Preset(rate, chunk, round(rate * context_seconds), constants, speech)
