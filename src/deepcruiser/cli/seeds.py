"""deepcruiser seeds: list seeds to choose from, by quality and by how near they are to a failure."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.mutations import never_invalid
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.campaign.verdict import seed_reference, verdict
from deepcruiser.cli import options
from deepcruiser.cli.campaign_options import judging_oracle, load_data, moving_options, oracle_options, spec_from
from deepcruiser.cli.output import output_for, say
from deepcruiser.cli.project import ProjectCommand
from deepcruiser.cli.resolve import system_from
from deepcruiser.errors import DeepCruiserError, FileError
from deepcruiser.oracles import Oracle
from deepcruiser.progress import watching
from deepcruiser.serialise import summarise
from deepcruiser.stream import Progress

if TYPE_CHECKING:
    from deepcruiser.report.seed_listing import ListedSeed


@click.command(cls=ProjectCommand, context_settings={"show_default": True})
@options.system
@click.option("--data", metavar="PATH", help="The seeds: a corpus on disk, or FILE.py:NAME.")
@click.option("-o", "--output", required=True, metavar="PAGE.html", type=click.Path(path_type=Path), help="The page.")
@oracle_options
@moving_options
@click.option(
    "--sounds", default=300, type=click.IntRange(min=0), help="Number of recordings that can be played on the page."
)
@options.batch_size
@options.device
@click.option("--json", "as_json", is_flag=True, show_default=False, help="Print the listing as JSON.")
def seeds(system: str, output: Path, sounds: int, batch_size: int, device: str, as_json: bool, **settings: Any) -> None:
    """List seeds to choose from, before a campaign.

    \b
    deepcruiser seeds --system asr.py:system --data seeds/ -o seeds.html
    deepcruiser fuzz  --system asr.py:system --data seeds/ --leave-out leave-out.txt ...

    Runs the system on every seed and writes a page and, beside it, a table (.csv): level, noise, clipping and length of
    each recording, the answer, its score, the system's doubt, and its distance to failure (greater is nearer). On
    the page you can listen, mark what is not good enough, and save your choice; short, quiet, noisy and clipped
    recordings are marked already. In the table, the column "leave out" does the same. `fuzz --leave-out` takes either
    file.
    """
    from deepcruiser.campaign.executors.local import LocalExecutor
    from deepcruiser.report.seed_listing import order, write_page, write_table

    if output.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"the page {str(output)!r} must end in .html")
    if not output.parent.is_dir():
        raise FileError(f"cannot write {str(output)!r}: there is no folder {str(output.parent)!r}")
    with output_for(as_json):
        spec = spec_from(system=system, **settings)
        inputs = Seeds(load_data(spec))
        executor = LocalExecutor(
            system_from(system, device=device), None, Inputs(inputs), never_invalid, limit_seconds=spec.limit_seconds
        )
        with watching() as watch:
            progress = Progress(len(inputs), stage="running seeds", watch=watch)
            listed = order(list(_list(executor, inputs, judging_oracle(spec, device=device), batch_size, progress)))
    write_page(listed, output, read=inputs.__getitem__, sounds=sounds)
    write_table(listed, output.with_suffix(".csv"))
    if as_json:
        say(json.dumps([seed.row() for seed in listed], indent=2))
        return
    reasons = Counter(reason for seed in listed for reason in seed.doubtful)
    doubtful = sum(bool(seed.doubtful) for seed in listed)
    words = f" ({', '.join(f'{count:,} {reason}' for reason, count in reasons.items())})" if reasons else ""
    failing = sum(seed.result != "passes" for seed in listed)
    say(f"{len(listed):,} seeds: {failing:,} fail already, {doubtful:,} are doubtful recordings{words}")
    say(f"Saved {output} and {output.with_suffix('.csv')}")


def _list(
    executor: Executor, inputs: Seeds, oracle: Oracle, batch_size: int, progress: Progress
) -> Iterator[ListedSeed]:
    names = list(inputs)
    for start in range(0, len(names), batch_size):
        batch = names[start : start + batch_size]
        mutants = [Mutant.of_seed(start + i, name) for i, name in enumerate(batch)]
        for name, execution in zip(batch, executor.submit(mutants)(), strict=True):
            yield _listed(name, execution, inputs, oracle)
        progress.advance(len(batch))


def _listed(name: str, execution: Execution, inputs: Seeds, oracle: Oracle) -> ListedSeed:
    from deepcruiser.report.seed_listing import ListedSeed, quality_of
    from deepcruiser.transformations.quality import QualityLimits

    result = verdict(execution, oracle, partial(seed_reference, oracle, inputs, name))
    distance = result.distance
    try:
        quality, doubtful = quality_of(inputs[name], QualityLimits())
    except DeepCruiserError:  # the answer of an unreadable seed is the reason
        quality, doubtful = None, ()
    return ListedSeed(
        name=name,
        result=result.kind or "passes",
        expected=_text(result.reference),
        answer=_text(result.output),
        score=result.score if result.judged else None,
        doubt=execution.doubt,
        distance=distance if distance is not None and math.isfinite(distance) else None,
        quality=quality,
        doubtful=doubtful,
    )


def _text(value: Any) -> str:
    """An answer in a cell of the table."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(summarise(value), ensure_ascii=False)
