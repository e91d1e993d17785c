"""The quality of transformed speech for listeners: PESQ and STOI of real speech at the ends of every range.

    python -m benchmarks.listening ../shared/speech/LibriSpeech/test-clean-200 --noise ../shared/speech/noise

writes the Markdown tables of docs/transformations.md. It needs the packages pesq and pystoi. Both measures compare
samples that lie side by side, so tempo and pitch are changed there and back: what is left is what the processing
spoiled, twice.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from pesq import pesq
from pystoi import stoi
from scipy import stats

from deepcruiser.audio import Audio
from deepcruiser.corpora.read import read_corpus
from deepcruiser.transformations import (
    CLEARNESS,
    DRC,
    EXTRA,
    PAPER,
    VOLUME,
    AddBackgroundNoise,
    AddWhiteNoise,
    ChangeSpeed,
    ChangeVolume,
    ExtractHarmonic,
    HighPassFilter,
    LowPassFilter,
    PitchShift,
    Reverb,
    Transformation,
    Trim,
    Validity,
    allowed,
    apply,
)
from deepcruiser.transformations.severity import severity
from deepcruiser.transformations.validity import distance_db

Change = Callable[[Audio], Audio]
RATE = 16000


def ends(kind: type[Transformation]) -> Iterator[Transformation]:
    """All corners of the ranges of a transformation."""
    seed = {"seed": 1} if "seed" in kind.__dataclass_fields__ else {}
    for values in itertools.product(*kind.RANGES.values()):
        yield kind(**dict(zip(kind.RANGES, values, strict=True)), **seed)


def background(folder: Path, snr_db: float) -> Change:
    """Background noise from another recording and position for every audio."""
    rng = np.random.default_rng(0)
    return lambda audio: AddBackgroundNoise.draw(rng, folder=folder, snr_db=(snr_db, snr_db))(audio)


def there_and_back(change: Transformation) -> Change:
    if isinstance(change, PitchShift):
        return lambda audio: PitchShift(-change.semitones)(change(audio))
    assert isinstance(change, ChangeSpeed)
    return lambda audio: ChangeSpeed(1 / change.factor)(change(audio))


def steady() -> Change:
    """Three transformations in random order that keep the length: one of volume, one of clearness, and DRC."""
    rng = np.random.default_rng(0)

    def change(audio: Audio) -> Audio:
        kinds = [VOLUME[rng.integers(len(VOLUME))], CLEARNESS[rng.integers(len(CLEARNESS))], DRC]
        return apply([kinds[i].draw(rng) for i in rng.permutation(3)], audio)

    return change


def spent() -> Change:
    """Random allowed transformations, until none is allowed."""
    rng = np.random.default_rng(0)

    def change(audio: Audio) -> Audio:
        applied: list[Transformation] = []
        while kinds := allowed(applied):
            applied.append(kinds[rng.integers(len(kinds))].draw(rng))
        return apply(applied, audio)

    return change


def measures(speech: Sequence[Audio], change: Change) -> str:
    """PESQ and STOI: the mean and, in brackets, the 5 % quantile."""
    pairs = [(audio.samples, change(audio).samples) for audio in speech]
    cut = [(a[: len(b)], b[: len(a)]) for a, b in pairs]  # there and back may end a sample apart
    quality = [pesq(RATE, a, b, "wb") for a, b in cut]
    clarity = [stoi(a, b, RATE) for a, b in cut]
    return (
        f"{np.mean(quality):.2f} ({np.percentile(quality, 5):.2f}) | "
        f"{np.mean(clarity):.3f} ({np.percentile(clarity, 5):.3f})"
    )


def gate(speech: Sequence[Audio], change: Change, rejected: Counter[str]) -> str:
    """The median and maximum distance of the validity gate, and the number of mutants it rejects."""
    distances, count = [], 0
    for audio in speech:
        mutant = change(audio)
        distances.append(distance_db(audio, mutant))
        if reason := Validity().reason(audio, mutant):
            rejected[reason.split(":")[0]] += 1
            count += 1
    return f"{np.median(distances):.1f} ({max(distances):.1f}) | {count}"


def severities(speech: Sequence[Audio], count: int) -> None:
    """PESQ and STOI of recipes of one to three changes that keep the length, by the severity of the recipe."""
    rng = np.random.default_rng(0)
    drawn: list[tuple[float, float, float]] = []
    for number in range(count):
        groups: list[tuple[type[Transformation], ...]] = [VOLUME, CLEARNESS, (DRC,)]
        chosen = [groups[i] for i in rng.permutation(3)[: rng.integers(1, 4)]]
        recipe = [kinds[rng.integers(len(kinds))].draw(rng) for kinds in chosen]
        audio = speech[number % len(speech)]
        mutant = apply(recipe, audio)
        quality, clarity = pesq(RATE, audio.samples, mutant.samples, "wb"), stoi(audio.samples, mutant.samples, RATE)
        drawn.append((severity(recipe), quality, clarity))
    amounts, quality, clarity = np.array(drawn).T
    row("severity", "recipes", "PESQ, mean (5 %)", "STOI, mean (5 %)")
    row("---", "---:", "---:", "---:")
    for low, high in itertools.pairwise((0, 0.25, 0.5, 0.75, 1, 1.5, 2.5)):
        inside = (amounts >= low) & (amounts < high)
        if inside.any():
            means = [
                f"{some[inside].mean():.{digits}f} ({np.percentile(some[inside], 5):.{digits}f})"
                for some, digits in ((quality, 2), (clarity, 3))
            ]
            row(f"{low:g} to {high:g}", str(inside.sum()), *means)
    lost = (4.644 - quality) / 1.86 + (1 - clarity) / 0.058  # the losses of the strongest of the nine
    result = (stats.spearmanr(amounts, loss).statistic for loss in (4.644 - quality, 1 - clarity, lost))
    print(
        "\nrank correlation of severity with the loss of PESQ, of STOI, of both: "
        + ", ".join(f"{r:.2f}" for r in result)
    )


def stopped(speech: Sequence[Audio]) -> None:
    """The share of changed utterances that the validity gate rejects."""
    following = dict(zip(map(id, speech), [*speech[1:], speech[0]], strict=True))
    spoiled: dict[str, Change] = {
        "another utterance": lambda audio: following[id(audio)],
        "another utterance, as long": lambda audio: audio.replace(np.resize(following[id(audio)].samples, len(audio))),
        "backwards": lambda audio: audio.replace(audio.samples[::-1]),
        "the first half": lambda audio: audio.replace(audio.samples[: len(audio) // 2]),
        "cut off 20 dB below its peak": lambda audio: audio.replace(
            np.clip(audio.samples / np.abs(audio.samples).max() * 10, -1, 1)
        ),
    }
    changes = [AddWhiteNoise(10, 1), AddWhiteNoise(5, 1), AddWhiteNoise(0, 1), HighPassFilter(1000), LowPassFilter(600)]
    changes += [
        ChangeSpeed(2),
        ChangeSpeed(0.5),
        PitchShift(7),
        ChangeVolume(-30),
        ExtractHarmonic(1),
        Reverb(3, -10, 1),
    ]
    spoiled |= {f"`{change}`": change for change in changes}
    row("what was done", "distance in dB, median (max)", "rejected")
    row("---", "---:", "---:")
    for name, change in spoiled.items():
        row(name, gate(speech, change, Counter()))


def row(name: str, *cells: str) -> None:
    print("|", " | ".join((name, *cells)), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--noise", type=Path, help="a folder of recordings for AddBackgroundNoise")
    parser.add_argument("--count", type=int, default=40, help="utterances, spread evenly over the corpus (default: 40)")
    options = parser.parse_args()
    samples = read_corpus(options.corpus).samples
    chosen = [samples[i * len(samples) // options.count] for i in range(min(options.count, len(samples)))]
    speech = [sample.input.resample(RATE) for sample in chosen]
    print(f"{len(speech)} of {len(samples)} utterances of {Path(options.corpus).name}, {RATE} Hz\n")
    row("transformation", "PESQ, mean (5 %)", "STOI, mean (5 %)", "distance in dB, median (max)", "rejected")
    row("---", "---:", "---:", "---:", "---:")
    rejected: Counter[str] = Counter()
    for kind in PAPER + EXTRA:
        if kind is AddBackgroundNoise:
            for snr_db in kind.RANGES["snr_db"] if options.noise else ():
                change = background(options.noise, snr_db)
                row(
                    f"`AddBackgroundNoise(..., snr_db={snr_db})`",
                    measures(speech, change),
                    gate(speech, change, rejected),
                )
            continue
        for end in ends(kind):
            steady_length = kind not in (PitchShift, ChangeSpeed, Trim)
            row(f"`{end}`", measures(speech, end) if steady_length else "- | -", gate(speech, end, rejected))
            if kind in (PitchShift, ChangeSpeed):
                row("... there and back", measures(speech, there_and_back(end)), "- | -")
    row("volume, clearness and DRC, drawn", measures(speech, steady()), gate(speech, steady(), rejected))
    row("drawn until the test is spent", "- | -", gate(speech, spent(), rejected))
    print(f"\nrejected: {dict(rejected) or 'none'}")
    for beyond in (AddWhiteNoise(20, 1), ExtractHarmonic(1)):
        print(f"beyond the ranges: {beyond} has", measures(speech, beyond))
    for trim in ends(Trim):
        cut = [audio.seconds - trim(audio).seconds for audio in speech]
        print(
            f"{trim} cuts {np.mean(cut):.2f} s ({max(cut):.2f} at most) of {np.mean([a.seconds for a in speech]):.2f} s"
        )
    print()
    stopped(speech)
    print()
    severities(speech, 5 * len(speech))


if __name__ == "__main__":
    main()
