"""deepcruiser prioritise: order a pool so that failures are likely to come first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.cli import options
from deepcruiser.cli.output import print_skipped, say
from deepcruiser.cli.resolve import data_from, system_from
from deepcruiser.errors import printable
from deepcruiser.findings.prioritise import Priorities
from deepcruiser.findings.prioritise import prioritise as prioritise_data
from deepcruiser.oracles import Disagreement, Oracle, WordErrorRate
from deepcruiser.progress import watching

#: The parts of the pool at which the curve is shown.
PARTS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


@click.command()
@options.system
@options.data("The pool: a corpus on disk, or FILE.py:NAME.")
@click.option("--model", type=click.Path(path_type=Path), help="The model of the network; novelty needs it.")
@click.option(
    "--by",
    default="doubt",
    show_default=True,
    type=click.Choice(["doubt", "novelty", "both"]),
    help="Order by how unsure the system is, by how new its states are, or by both.",
)
@click.option("--wer-above", type=float, help="Judge labelled inputs: fail if the word error rate exceeds this.")
@click.option("--disagreement", is_flag=True, help="Judge labelled inputs: fail if the answer differs from the label.")
@options.batch_size_by_length
@options.device
@options.json_output()
def prioritise(
    system: str,
    data: str,
    model: Path | None,
    by: Literal["doubt", "novelty", "both"],
    wer_above: float | None,
    disagreement: bool,
    batch_size: int,
    device: str,
    as_json: bool,
) -> None:
    """Order a pool of inputs so that failures come first.

    \b
    deepcruiser prioritise --system asr.py:system --data pool/
    deepcruiser prioritise --system asr.py:system --data labelled/ --by both --model asr.model --wer-above 0.3

    Labels are not needed and never change the order. If the inputs have labels, --wer-above or --disagreement judges
    the answers and shows how many failures come early, compared with a random order.
    """
    if wer_above is not None and disagreement:
        raise click.UsageError("give one of --wer-above and --disagreement")
    oracle: Oracle | None = Disagreement("text") if disagreement else None
    if wer_above is not None:
        oracle = WordErrorRate(wer_above, "text")
    with watching() as watch:
        result = prioritise_data(
            AbstractModel.load(model) if model is not None else None,
            system_from(system, device=device),
            data_from(data),
            by=by,
            oracle=oracle,
            batch_size=batch_size,
            watch=watch,
        )
    if as_json:
        say(json.dumps(as_dict(result), indent=2))
    else:
        for each in result.order:
            doubt = "" if each.doubt is None else f"{each.doubt:8.3f}"
            novelty = "" if each.novelty is None else f"{each.novelty:7.1%}"
            verdict = {None: "", True: "fails", False: "right"}[each.fails]
            say(f"{doubt:>8} {novelty:>7}  {verdict:5}  {printable(each.id)}")
        for line in _curve(result):
            say(line, err=True)
    print_skipped(result.skipped)


def as_dict(result: Priorities) -> dict[str, Any]:
    """The result as JSON."""
    order = [
        {"id": each.id, "doubt": each.doubt, "novelty": each.novelty, "fails": each.fails} for each in result.order
    ]
    return {"by": result.by, "order": order, "curve": result.curve, "area": result.area, "skipped": result.skipped}


def _curve(result: Priorities) -> list[str]:
    curve, area = result.curve, result.area
    if not curve:
        return []
    if area is None:
        return [f"none of the {len(curve):,} labelled inputs fails"]
    lines = [f"{curve[-1]:,} of {len(curve):,} labelled inputs fail; found in the first part of the pool:"]
    for part in PARTS:
        count = max(1, round(part * len(curve)))
        share = curve[count - 1] / curve[-1]
        lines.append(f"  {count:6,} inputs {share:7.1%} of the failures; in a random order {count / len(curve):7.1%}")
    return [*lines, f"area under the curve: {area:.3f}; in a random order 0.5"]
