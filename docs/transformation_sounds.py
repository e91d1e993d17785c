"""The sound and spectrogram of a sentence after each transformation: python -m docs.transformation_sounds

Writes docs/sounds/NAME.ogg and NAME.png for a recording of the built-in recogniser.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import soundfile as sf

import deepcruiser as dc
from deepcruiser import transformations as t
from deepcruiser.systems.builtin.speech import SEEDS
from deepcruiser.transformations import EXTRA, PAPER

HERE = Path(__file__).parent / "sounds"
SAMPLE = 90
#: The strongest change that a campaign draws, or near to it.
CHANGES = (
    t.ChangeVolume(gain_db=-10),
    t.LowPassFilter(cutoff_hz=3400),
    t.HighPassFilter(cutoff_hz=300),
    t.PitchShift(semitones=2),
    t.ChangeSpeed(factor=1.15),
    t.AddWhiteNoise(snr_db=30, seed=0),
    t.ExtractHarmonic(amount=0.7),
    t.DRC(threshold_db=-25, ratio=3),
    t.Trim(top_db=30),
    t.Telephone(low_hz=300, high_hz=3300),
    t.Reverb(rt60_seconds=0.3, direct_db=10, seed=0),
)
LARGEST = 25_000


def main() -> None:
    HERE.mkdir(exist_ok=True)
    sample = dc.read_corpus(SEEDS)[SAMPLE]
    audio = sample.input
    assert isinstance(audio, dc.Audio)
    print(f"{sample.id}: {sample.text}")
    top = _spectrogram(audio).max()
    for name, sound in {"original": audio, **{type(change).__name__: change(audio) for change in CHANGES}}.items():
        sf.write(HERE / f"{name}.ogg", sound.samples, sound.rate, format="OGG", subtype="VORBIS")
        _draw(sound, HERE / f"{name}.png", top, longest=audio.seconds)
        for path in (HERE / f"{name}.ogg", HERE / f"{name}.png"):
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
            assert path.stat().st_size < LARGEST


def _spectrogram(audio: dc.Audio) -> np.ndarray:
    """Levels in dB: [frequencies, times]."""
    size, step = 512, 160
    frames = np.lib.stride_tricks.sliding_window_view(audio.samples, size)[::step] * np.hanning(size)
    return 20 * np.log10(np.abs(np.fft.rfft(frames)).T + 1e-3)


def _draw(audio: dc.Audio, path: Path, top: float, *, longest: float) -> None:
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(4, 1.4), dpi=60, layout="constrained")
    ax = figure.add_subplot()
    extent = (0, audio.seconds, 0, audio.rate / 2000)
    colours = colormaps["magma"].resampled(12)  # fewer colours make smaller files
    ax.imshow(_spectrogram(audio), origin="lower", aspect="auto", extent=extent, vmin=top - 60, vmax=top, cmap=colours)
    ax.set(xlim=(0, longest), xlabel="s", ylabel="kHz")
    ax.tick_params(labelsize=7)
    drawn = BytesIO()
    figure.savefig(drawn)
    Image.open(drawn).convert("RGB").quantize(24).save(path, optimize=True)


assert {type(change) for change in CHANGES} == {*PAPER, *EXTRA} - {t.AddBackgroundNoise}

if __name__ == "__main__":
    main()
