"""A monitor that detects machine faults from vibrations: trained here in seconds, then tested.

    python examples/series_monitor.py --runs 800

The signals are synthetic: two sensors on a rotating shaft that is "fine", has a "worn" bearing (a click in every turn)
or a "loose" foot (the shaking comes and goes). The network, an LSTM, is trained on clean recordings, always at the same
height and without lost samples. That is its weakness. From the command line:


    deepcruiser profile --system examples/series_monitor.py:system --data examples/series_monitor.py:training -o series.profile
    deepcruiser fuzz --system examples/series_monitor.py:system --data examples/series_monitor.py:signals \\
        --profile series.profile --partitions 20 --mutations series --disagreement --runs 800 -o runs/series
"""  # noqa: E501

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import deepcruiser as dc

CONDITIONS = ("fine", "worn", "loose")
STEPS = 96


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A series [time, sensors] with its name and the machine's condition."""

    id: str
    input: npt.NDArray[np.float32]
    text: str


def recording(number: int, *, part: int) -> Recording:
    """One recording; part 0 is for training, part 1 for testing."""
    rng = np.random.default_rng((part, number))
    condition = CONDITIONS[number % 3]
    times, period = np.arange(STEPS), rng.uniform(10, 14)
    turn = 2 * np.pi * (times / period + rng.random())
    shaking = np.stack([np.sin(turn), 0.5 * np.cos(turn)], axis=1)
    if condition == "worn":
        shaking[:, 1] += rng.uniform(0.5, 1.0) * (np.sin(turn) > 0.97)
    if condition == "loose":
        shaking *= 1 - rng.uniform(0.3, 0.7) * (1 + np.sin(2 * np.pi * times / rng.uniform(30, 50))[:, None]) / 2
    series = shaking + 0.05 * rng.standard_normal(shaking.shape)
    return Recording(f"{condition}-{number:03}", series.astype(np.float32), condition)


class Monitor(nn.Module):
    """The scores of the conditions after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 32, batch_first=True)
        nn.init.constant_(self.lstm.get_parameter("bias_ih_l0")[32:64], 2.0)  # it forgets less and so learns faster
        self.out = nn.Linear(32, len(CONDITIONS))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.out(self.lstm(series)[0])
        return scores


def train(seed: int, steps: int) -> Monitor:
    """The same seed and steps give the same weights, and so the same fingerprint, in every process."""
    torch.set_num_threads(1)  # so that sums are always added in the same order
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Monitor()
    rng, data = np.random.default_rng(seed), training()
    series = torch.from_numpy(np.stack([one.input for one in data]))
    wanted = torch.tensor([CONDITIONS.index(one.text) for one in data])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(len(data), size=32))
        scores = net(series[rows])[:, -STEPS // 2 :].flatten(0, 1)  # it should know the answer from the middle on
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, wanted[rows].repeat_interleave(STEPS // 2)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return net.requires_grad_(False).eval()


# What --system and --data name: functions without arguments.


def system(seed: int = 0, steps: int = 300) -> dc.TorchSystem:
    return dc.TorchSystem(
        train(seed, steps),
        "lstm",
        part="c",
        transcribe=lambda scores: CONDITIONS[int(scores[-1].argmax())],
        doubt=lambda scores: dc.doubt_of(scores[-1]),  # the answer depends on the last step alone
    )


def training() -> list[Recording]:
    return [recording(number, part=0) for number in range(240)]


def signals() -> list[Recording]:
    return [recording(number, part=1) for number in range(60)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="random seed of the training and the campaign")
    parser.add_argument("--steps", type=int, default=300, help="number of training steps")
    parser.add_argument("--runs", type=int, default=800, help="number of runs of the campaign")
    parser.add_argument("--output", help="folder of the campaign; a temporary one if left out")
    options = parser.parse_args()

    network, tests = system(options.seed, options.steps), signals()
    answers: list[Any] = [run.output for run in network.run([one.input for one in tests])]
    right = sum(answer == one.text for answer, one in zip(answers, tests, strict=True))
    print(f"{right} of {len(tests)} new recordings are classified correctly")

    model = dc.profile(network, training(), components=3, exact=True).abstract(partitions=20)
    print(model)
    print(dc.cover(model, network, tests))

    with tempfile.TemporaryDirectory() as temporary:
        campaign = dc.fuzz(
            network,
            model,
            tests,
            folder=options.output or temporary,
            guide=dc.BSCov,
            oracle=dc.Disagreement(),
            mutations=dc.Mutations.series(),
            runs=options.runs,
            seed=options.seed,
            workers=0,  # series are changed so fast that worker processes do not pay off
        )
        print(campaign)
        for test in campaign.failed[:5]:
            print(test)
        same = sum(not test.replay(network).differences for test in campaign.failed)
        print(f"{same} of {len(campaign.failed)} failing tests replay exactly")


if __name__ == "__main__":
    main()
