"""The options of `deepcruiser evaluate`, and the experiment they describe."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from deepcruiser.abstraction.profile import Profile
from deepcruiser.abstraction.profiler import profile as profile_system
from deepcruiser.campaign.mutations import never_invalid
from deepcruiser.campaign.seeds import Seeds
from deepcruiser.campaign.spec import CampaignSpec
from deepcruiser.cli import options
from deepcruiser.cli.campaign_options import PAPER_NORMALISE, judging_options, judging_oracle, load_mutations, spec_from
from deepcruiser.cli.output import say
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import InputError
from deepcruiser.evaluate.experiment import Experiment
from deepcruiser.progress import watching
from deepcruiser.trace import System
from deepcruiser.workers import device_for

if TYPE_CHECKING:  # imported when a question is asked
    from deepcruiser.evaluate.result import Answer

#: The file name of the profile that --train makes, in the folder of the results.
PROFILE = "train.profile"


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The options of every question. `load` makes the experiment, in this process or in the worker of a number."""

    spec: CampaignSpec
    data: tuple[str, ...]
    profile: str | None
    train: str | None
    folder: Path
    partitions: tuple[int, ...]
    input_partitions: int | None
    components: int
    seed: int
    batch_size: int
    device: str
    paper: bool

    @classmethod
    def of(cls, ctx: click.Context, values: dict[str, Any]) -> EvaluateOptions:
        """The options as they were typed, with what --paper sets."""
        values |= paper_experiment(ctx) if values["paper"] else {}
        own = [each.name for each in fields(cls) if each.name in values]
        common = {name: values.pop(name) for name in own}
        common["partitions"] = partitions_from(common["partitions"])
        folder = values.pop("output")
        return cls(spec=spec_from(**values), folder=folder, **common)

    def load(self, worker: int | None = None) -> Experiment:
        named = self.data or (() if self.spec.data is None else (self.spec.data,))
        if not named:
            raise click.UsageError("give --data: only built-in systems have their own seeds")
        device = self.device if worker is None else device_for(self.device, worker)
        system, mutations = system_from(self.spec.system or "", device=device), load_mutations(self.spec)
        return Experiment(
            system,
            self._profile(system),
            Seeds(list(chain.from_iterable(map(data_from, named)))),
            replace(mutations, invalid=never_invalid) if self.paper else mutations,
            judging_oracle(self.spec),
            self.folder,
            partitions=self.partitions,
            input_partitions=self.input_partitions,
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
        path = self.folder / PROFILE
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with watching() as watch:
                result = profile_system(
                    system, data_from(self.train or ""), components=self.components, exact=self.paper, watch=watch
                )
            result.save(path)
        return Profile.load(path)


def partitions_from(text: str) -> tuple[int, ...]:
    """The numbers in --partitions: 10,20,50,100."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"--partitions {text!r} is not a list of whole numbers such as 10,20,50,100") from None


def paper_experiment(ctx: click.Context) -> dict[str, Any]:
    """The settings of --paper that were not typed; another batch size contradicts it."""
    typed = {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if "batch_size" in typed and ctx.params["batch_size"] != 1:
        raise click.UsageError(
            f"--paper cannot be combined with --batch-size {ctx.params['batch_size']}: leave one out, or use 1"
        )
    preset = {"batch_size": 1, "input_partitions": None, "normalise": PAPER_NORMALISE}
    return {name: value for name, value in preset.items() if name not in typed}


#: The options of every question.
shared = options.together(
    options.system,
    options.data("Data to draw seeds from; repeatable.", required=False, multiple=True),
    click.option("--profile", metavar="FILE", help="The profile of the network on its training data."),
    click.option("--train", metavar="PATH", help="Training data to profile first, instead of --profile."),
    options.output("Folder for the results and the cached runs.", metavar="FOLDER"),
    click.option(
        "--partitions", default="10,20,50,100", show_default=True, help="Numbers of partitions, separated by commas."
    ),
    options.input_partitions(", for every number of partitions"),
    click.option("--components", default=3, show_default=True, help="Number of components of the profile to use."),
    options.seed,
    options.batch_size,
    options.device,
    click.option(
        "--paper",
        is_flag=True,
        help="Batches and a window of one run, no validity gate, inputs on as fine a grid as the states, error rates "
        "that count differences in spacing.",
    ),
    click.option(
        "--jobs",
        default=1,
        show_default=True,
        help="Number of processes to run at once; the results do not depend on it.",
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on a Ray cluster whose machines share the folder of the results: HOST:PORT, or auto on one of them. "
        "--jobs then defaults to the number of its CPUs.",
    ),
    judging_options,
    options.json_output("Print the tables as JSON."),
)

#: Their names.
SHARED = frozenset(option.name for option in click.command()(shared(lambda: None)).params)


def show_answer(answer: Answer, path: Path, *, as_json: bool) -> None:
    """Print the tables of an answer, and say where it was written."""
    from deepcruiser.evaluate.tables import as_json as tables_as_json

    if as_json:
        say(json.dumps({"question": answer.name, **tables_as_json(answer.tables)}, indent=2))
        return
    for table in answer.tables:
        say(f"{table.caption}\n{table.markdown()}".lstrip())
    say(f"Saved {path}, with the tables (.csv) and the figure (.svg, .png) beside it")
