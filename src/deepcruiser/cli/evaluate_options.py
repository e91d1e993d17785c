"""What `deepcruiser evaluate` is given: loaded here, and again in every process that works for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import click

from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiler import profile as profile_system
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli.campaign_options import judging_options, load_mutations
from deepcruiser.cli.progress import watching
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import InputError
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.trace import System

#: The profile that --train makes, in the folder of the answers.
PROFILE = "train.profile"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options that all questions share; `load` makes an experiment of them."""

    spec: CampaignSpec
    data: tuple[str, ...]
    profile: str | None
    train: str | None
    folder: str
    partitions: tuple[int, ...]
    components: int
    seed: int
    batch_size: int

    def load(self) -> Experiment:
        named = self.data or (() if self.spec.data is None else (self.spec.data,))
        if not named:
            raise click.UsageError("give --data: only a built-in system brings seeds of its own")
        system = system_from(self.spec.system or "")
        return Experiment(
            system,
            self._profile(system),
            Seeds(list(chain.from_iterable(map(data_from, named)))),
            load_mutations(self.spec),
            self.spec.build_oracle(),
            Path(self.folder),
            partitions=self.partitions,
            components=self.components,
            seed=self.seed,
            batch_size=self.batch_size,
            limit_seconds=self.spec.limit_seconds,
        )

    def _profile(self, system: System) -> Profile:
        if (self.profile is None) == (self.train is None):
            raise click.UsageError("give either --profile, or --train with data to profile")
        if self.profile is not None:
            return Profile.load(self.profile)
        path = Path(self.folder, PROFILE)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with watching() as watch:
                made = profile_system(system, data_from(self.train or ""), components=self.components, watch=watch)
            made.save(path)
        return Profile.load(path)


def partitions_from(given: str) -> tuple[int, ...]:
    """The grids that --partitions names: 10,20,50,100."""
    try:
        return tuple(int(number) for number in given.split(","))
    except ValueError:
        raise InputError(f"--partitions {given!r} is no list of whole numbers such as 10,20,50,100") from None


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all questions share."""
    given: list[Callable[..., Any]] = [
        click.option("--system", required=True, metavar="FILE.py:NAME", help="The network, or a built-in one."),
        click.option("--data", multiple=True, metavar="PATH", help="Data to draw seeds from; repeatable."),
        click.option("--profile", metavar="FILE", help="The profile of the network on its training data."),
        click.option("--train", metavar="PATH", help="Or the training data: they are profiled first."),
        click.option("-o", "--output", required=True, metavar="FOLDER", help="Where the answers and the work go."),
        click.option("--partitions", default="10,20,50,100", show_default=True, help="The configurations."),
        click.option("--components", default=3, show_default=True, help="Components of the profile that are used."),
        click.option("--seed", default=0, show_default=True, help="Of all that is drawn."),
        click.option("--batch-size", default=16, show_default=True, help="Inputs run at a time."),
        click.option("--jobs", default=1, show_default=True, help="Processes side by side; the results are the same."),
        judging_options,
        click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON."),
    ]
    for option in reversed(given):
        command = option(command)
    return command
