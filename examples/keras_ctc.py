"""A pretrained letter recogniser in Keras 2 (two GRU layers, CTC): profiled, covered, fuzzed and replayed.

    python examples/keras_ctc.py gru_2x200_spectrogram.h5 LibriSpeech/dev-clean

The file ends in a Lambda layer that computes the loss. That layer contains code and is not run: output="softmax" ends
the network before it. The recogniser reads a log spectrogram whose bins are normalised with its training data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import deepcruiser as dc

ALPHABET = ["'", " ", *"abcdefghijklmnopqrstuvwxyz"]


def recogniser(model: str, training: dc.Corpus) -> dc.KerasSystem:
    """The recogniser, with its features and its decoder."""
    spectrogram = dc.LogSpectrogram.ba_dls()
    frames = np.concatenate([spectrogram(sample.input) for sample in training])
    mean, deviation = frames.mean(0), frames.std(0)
    return dc.KerasSystem(
        model,
        output="softmax",
        rate=16_000,
        features=lambda audio: (spectrogram(audio) - mean) / deviation,
        batch="padded",
        transcribe=lambda scores: dc.ctc_greedy(scores, ALPHABET, blank=28),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="gru_2x200_spectrogram.h5")
    parser.add_argument("data", help="a corpus of speech with texts, such as LibriSpeech's dev-clean")
    parser.add_argument("--output", default="runs/keras-ctc", help="folder of the campaign")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="random seed of the campaign")
    options = parser.parse_args()
    corpus = dc.read_corpus(options.data)
    every = max(1, len(corpus) // 100)
    training, tests = corpus[::every][:100], corpus[every // 2 :: every][:50]

    system = recogniser(options.model, training)
    print(system)
    rate = dc.CharacterErrorRate()
    outputs = [system.run([sample.input])[0].output for sample in tests]
    scores = [rate.score(str(sample.text), output) for sample, output in zip(tests, outputs, strict=True)]
    print(f"character error rate {np.mean(scores):.1%} on {len(tests)} utterances; the first: {outputs[0]!r}")

    profile = dc.profile(system, training, components=3)
    model = profile.abstract(partitions=20)
    print(profile, model, dc.cover(model, system, tests), sep="\n")

    seeds = sorted(tests, key=lambda sample: len(sample.input))[:25]
    # Compare with its own answers: half of the letters are wrong before anything is changed.

    oracle = dc.CharacterErrorRate(above=0.4, against="output")
    campaign = dc.fuzz(
        system,
        model,
        seeds,
        guide=dc.BSCov,
        oracle=oracle,
        runs=options.runs,
        folder=Path(options.output),
        seed=options.seed,
    )
    print(campaign, f"BSCov of the queue {campaign.coverage(dc.BSCov, queue=True).value:.1%}", sep="\n")
    if campaign.failed:
        print(campaign.failed[0])
    again = [test.replay(system) for test in campaign.failed]
    print(f"{sum(result.fails for result in again)} of {len(again)} failing tests fail again")
    for result in again:
        if result.differences:
            print(" ", result)


if __name__ == "__main__":
    main()
