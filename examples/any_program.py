"""Test any program that reads a line of JSON per recording and answers with one, here examples/detector.py.

    python examples/any_program.py speech/

A program that reports no states is fuzzed in the same way, without a profile and a model: dc.fuzz(system, None, seeds,
guide="none", ...).

"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import deepcruiser as dc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder of recordings, or a corpus")
    parser.add_argument("--output", default="runs/any-program", help="folder of the campaigns")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="random seed of the campaign")
    options = parser.parse_args()
    corpus, detector = dc.read_corpus(options.data), Path(__file__).with_name("detector.py")
    profiled, seeds = corpus[:100], corpus[-20:]

    with dc.ProcessSystem([sys.executable, detector], rate=16_000) as system:
        profile = dc.profile(system, profiled, components=2)
        model = profile.abstract(partitions=20)
        print(system, profile, dc.cover(model, system, seeds), sep="\n")
        for name, known, guide in (("guided", model, "2-SBCov"), ("blind", None, "none")):
            campaign = dc.fuzz(
                system,
                known,
                seeds,
                guide=dc.criterion(guide) if known else guide,
                oracle=dc.Disagreement(against="output"),
                runs=options.runs,
                folder=Path(options.output, name),
                seed=options.seed,
            )
            again = [test.replay(system) for test in campaign.failed]
            print(campaign, f"{sum(result.fails for result in again)} of {len(again)} fail again", sep="\n")


if __name__ == "__main__":
    main()
