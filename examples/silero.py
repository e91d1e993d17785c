"""Test Silero's voice activity detector: does it still find the speech after the audio is changed?

    python examples/silero.py silero_vad.onnx LibriSpeech/dev-clean --noise noises/

The model is profiled on three quarters of the recordings and covered with the others, some of which are the seeds of a
campaign. A mutant fails if the spans of speech found in it overlap too little with those found in its seed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import deepcruiser as dc
from deepcruiser.transformations import PAPER, AddBackgroundNoise, Validity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="silero_vad.onnx or silero_vad_16k_op15.onnx")
    parser.add_argument("data", help="a corpus, such as a folder of recordings")
    parser.add_argument("--limit", type=int, default=400, help="number of recordings to use")
    parser.add_argument("--noise", help="a folder of noise recordings to mix in")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--spans-below", type=float, default=0.9, help="fail if the spans overlap by less than this")
    parser.add_argument("--output", help="folder for the campaign (default: a temporary folder)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    system = dc.OnnxSystem(options.model)  # this network is recognised by its inputs; it answers with spans of speech

    corpus = dc.read_corpus(options.data)[: options.limit]
    cut = len(corpus) * 3 // 4
    train, test = corpus[:cut], corpus[cut:]

    began = time.perf_counter()
    model = dc.profile(system, train, components=3).abstract(partitions=20)
    print(f"{model}\n  ({time.perf_counter() - began:.0f} s; the state is {system.state_name})")

    began = time.perf_counter()
    print(dc.cover(model, system, test))
    print(f"  ({time.perf_counter() - began:.0f} s)")

    # A detector should work in noise where recognisers fail, so the noise may be louder than the default.
    kinds, ranges = PAPER, {"AddWhiteNoise": {"snr_db": (0, 15)}}
    if options.noise:
        kinds += (AddBackgroundNoise,)
        ranges["AddBackgroundNoise"] = {"folder": options.noise, "snr_db": (0, 15)}
    mutations = dc.Mutations(kinds, ranges=ranges, invalid=Validity(max_distance_db=20).reason)
    folder = options.output or Path(tempfile.mkdtemp(), "silero")
    began = time.perf_counter()
    campaign = dc.fuzz(
        system,
        model,
        test[:50],
        folder=folder,
        oracle=dc.SpanDisagreement(below=options.spans_below),
        mutations=mutations,
        runs=options.runs,
        seed=options.seed,
    )
    print(f"{campaign}\n  ({time.perf_counter() - began:.0f} s; in {folder})")
    replays = [failed.replay(system) for failed in campaign.failed]
    same = sum(not replay.differences for replay in replays)
    print(f"{same} of {len(replays)} failing tests replay exactly: the same input, answer and states")
    for failed in campaign.failed[:5]:
        print(failed)


if __name__ == "__main__":
    main()
