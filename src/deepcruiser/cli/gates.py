"""Gates for CI: when a campaign counts as failed."""

from __future__ import annotations

import click

from deepcruiser.campaign.record import CampaignRecord
from deepcruiser.cli.options import Fraction, together
from deepcruiser.cli.output import WRONG_SEEDS

#: The default of --max-wrong-seeds if no test fails.
_USUAL = 0.5


#: `max_findings` and `max_wrong_seeds`
gate_options = together(
    click.option(
        "--max-findings",
        type=click.IntRange(min=0),
        help="Exit with status 0 if there are at most this many findings, even if tests fail.",
    ),
    click.option(
        "--max-wrong-seeds",
        type=Fraction(),
        show_default=False,
        help="Exit with status 4 if the system gets more than this fraction of the seeds wrong.  [default: 50%, "
        "if there is no failing test]",
    ),
)


def spacing_line(count: int) -> str:
    """The line about answers that are right except for their spaces."""
    return f"{count:,} answers differ from the expected ones only in spacing; they count as right"


def wrong_seeds(record: CampaignRecord) -> float:
    """The fraction of the seeds that could be read and that the system gets wrong by itself."""
    run = [seed for seed in record.seeds if seed.reason != "unreadable"]
    return sum(seed.outcome != "kept" for seed in run) / len(run) if run else 0.0


def exit_status(
    record: CampaignRecord, findings: int, *, max_findings: int | None, max_wrong_seeds: float | None
) -> tuple[int, str]:
    """0 passed, 1 failing tests, 4 too many wrong seeds; and the gate that it did not pass, in a line.

    `findings` is their number, which only `max_findings` needs.
    """
    limit = _USUAL if max_wrong_seeds is None and not record.failed else max_wrong_seeds
    wrong = wrong_seeds(record)
    if limit is not None and wrong > limit:
        return WRONG_SEEDS, (
            f"the system gets {wrong:.0%} of the unchanged seeds wrong, more than {limit:.0%}: fix that first, "
            "or give seeds that it gets right"
        )
    if max_findings is None:
        return (1 if record.failed else 0), ""
    return (1, f"{findings:,} findings, more than {max_findings:,}") if findings > max_findings else (0, "")
