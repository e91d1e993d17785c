"""The free voices of espeak-ng, flite and festival, each run as a program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deepcruiser.audio import Audio

#: Variants of espeak-ng's formant voices that sound like somebody; the robots and the whisperers stay out.
ESPEAK_VARIANTS = (
    "m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 klatt klatt2 klatt3 klatt4 adam Alex Alicia Andrea Andy Annie anika "
    "antonio aunty belinda benjamin boris caleb david Denis ed edward Gene Hugo iven john linda Marco max Michael Mike "
    "norbert paul quincy rob robert shelby steph travis victor zac"
).split()
ESPEAK_ACCENTS = ("en-us", "en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-gb-x-gbclan", "en-029")
FLITE = ("awb", "rms", "slt", "kal16")
FESTIVAL = ("kal_diphone", "ked_diphone", "cmu_us_slt_arctic_hts")


@dataclass(frozen=True)
class Voice:
    """A voice with its settings: `pace` above 1 is slower, `pitch` in the unit of its program (1 is its own)."""

    program: str
    name: str
    pace: float = 1.0
    pitch: float = 1.0

    def __str__(self) -> str:
        return f"{self.program}:{self.name}"


def draw(rng: np.random.Generator) -> Voice:
    """A voice for training: the recorded ones (flite, festival) more often than the formant ones."""
    pace, pitch = float(rng.uniform(0.85, 1.25)), float(rng.uniform(0.8, 1.25))
    kind = rng.random()
    if kind < 0.50:
        return Voice("flite", FLITE[rng.choice(4, p=[0.28, 0.30, 0.30, 0.12])], pace, pitch)
    if kind < 0.68:
        return Voice("festival", FESTIVAL[rng.choice(3, p=[0.35, 0.35, 0.3])], pace)
    accent, variant = rng.choice(ESPEAK_ACCENTS), rng.choice(ESPEAK_VARIANTS)
    return Voice("espeak", f"{accent}+{variant}", pace, pitch)


def say(voice: Voice, texts: Sequence[str], folder: Path) -> list[Audio | None]:
    """Each text as that voice says it; None if the program failed. `folder` is for its files."""
    paths = [folder / f"{number}.wav" for number in range(len(texts))]
    for path in paths:
        path.unlink(missing_ok=True)
    if voice.program == "festival":
        _run(["festival", "--pipe"], _scheme(voice, texts, paths))
    else:
        for text, path in zip(texts, paths, strict=True):
            _run(_command(voice, text, path))
    return [Audio.read(path) if path.is_file() and path.stat().st_size > 100 else None for path in paths]


def _command(voice: Voice, text: str, path: Path) -> list[str]:
    if voice.program == "flite":
        base = {"awb": 130, "rms": 100, "slt": 170, "kal16": 105}[voice.name]
        features = [f"duration_stretch={voice.pace:.3f}", f"int_f0_target_mean={base * voice.pitch:.1f}"]
        settings = [word for feature in features for word in ("--setf", feature)]
        return ["flite", "-voice", voice.name, *settings, "-t", text, "-o", str(path)]
    pitch = round(np.clip(50 + 120 * (voice.pitch - 1), 10, 90))
    return ["espeak-ng", "-v", voice.name, "-s", str(round(165 / voice.pace)), "-p", str(pitch), "-w", str(path), text]


def _scheme(voice: Voice, texts: Sequence[str], paths: Sequence[Path]) -> str:
    lines = [f"(voice_{voice.name})", f"(Parameter.set 'Duration_Stretch {voice.pace:.3f})"]
    for text, path in zip(texts, paths, strict=True):
        lines.append(f'(utt.save.wave (utt.synth (Utterance Text "{text}")) "{path}" \'riff)')
    return "\n".join(lines)


def _run(command: list[str], written: str = "") -> None:
    """Errors for one text do not stop the rest: its file is then missing."""
    try:
        subprocess.run(command, input=written.encode(), capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        print(f"gave up on {command[0]} after 120 s", flush=True)
