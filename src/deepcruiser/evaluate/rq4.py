"""RQ4: do guided campaigns find more failures?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepcruiser.evaluate.campaign_table import Campaign, Campaigns, Measure, compare, distinct, failing_seeds, rejected
from deepcruiser.evaluate.campaigns import RUNS, Arm, Budget
from deepcruiser.evaluate.figures import COLOURS, Figure, panels
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.tables import Table, counts, p_value, shares


def rq4(pool: Pool, *, seeds: int = 100, budget: Budget = RUNS, campaigns: int = 5, base: int = 20) -> Answer:
    """Error rates and failures of the campaigns of RQ3."""
    result = compare(pool, seeds=seeds, budget=budget, campaigns=campaigns, base=base)
    rows = tuple(line(result, arm) for arm in result.by_arm)
    shown = {**dict.fromkeys(("mean error rate", "rejected"), shares)}
    shown |= dict.fromkeys(("failures", "distinct", "failing seeds"), counts)
    shown |= {column: p_value for column in rows[0] if column.startswith("p ")}
    return Answer(
        "rq4",
        "RQ4: failures found",
        (Table("rq4", rows, shown=shown),),
        data=Table("rq4-data", tuple(result.each(((arm, arm.columns) for arm in result.by_arm), MEASURES))),
        notes=(
            result.how,
            f"Failures: {result.experiment.oracle.name}. *Distinct* failures differ in their seed or in the words "
            "that changed; *failing seeds* have at least one failure. *Mean error rate* is the mean of all mutants "
            "that ran. *Rejected* is the share of the mutants that the validity gate rejected.",
            *_best(rows),
        ),
        draw=lambda: draw(result),
        seconds=result.seconds,
        runs=result.total_runs,
    )


def mean_score(campaign: Campaign) -> float:
    """The mean error rate of the mutants that ran."""
    scores = [run["score"] for run in campaign["ran"] if run["outcome"] != "rejected"]
    return float(np.mean(scores)) if scores else float("nan")


def failures(campaign: Campaign) -> float:
    return float(sum(run["outcome"] == "failed" for run in campaign["ran"]))


MEASURES: Mapping[str, Measure] = {
    "mean error rate": mean_score,
    "failures": failures,
    "distinct": distinct,
    "failing seeds": failing_seeds,
    "rejected": rejected,
}


def line(campaigns: Campaigns, arm: Arm) -> dict[str, Any]:
    model = campaigns.experiment.models[arm.partitions]
    errors, failed = (
        campaigns.against(arm, campaigns.none, MEASURES[name]) for name in ("mean error rate", "distinct")
    )
    alone = arm == campaigns.none
    return {
        "guide": arm.guide,
        "configuration": "" if arm.keep == "none" else model.name,
        "select, pick": arm.choice,
        **{name: campaigns.median(arm, measure) for name, measure in MEASURES.items()},
        "p (mean error rate, none)": None if alone else errors.p,
        "p (distinct, none)": None if alone else failed.p,
        "A (distinct, none)": None if alone else failed.superiority,
    }


def _best(rows: tuple[dict[str, Any], ...]) -> list[str]:
    """The guides that find significantly more distinct failures than no guide, and those that find fewer."""
    words = []
    for how, sign in (("more", 1), ("fewer", -1)):
        names = [
            f"{row['guide']} {row['configuration']} ({row['select, pick']})"
            for row in rows
            if (row["p (distinct, none)"] or 1) < 0.05 and sign * (row["A (distinct, none)"] - 0.5) > 0
        ]
        words.append(
            f"Significantly {how} distinct failures than without a guide (p < 0.05): {', '.join(names) or 'none'}."
        )
    return words


def draw(campaigns: Campaigns) -> Figure:
    """A line per arm: every campaign, their range and their median."""
    arms = list(campaigns.by_arm)
    figure, axes = panels(2, width=4.0, height=0.24 * len(arms) + 1, sharey=True)
    names = [_named(campaigns, arm) for arm in arms]
    for axis, name in zip(axes, ("mean error rate", "distinct"), strict=True):
        factor = 100 if name == "mean error rate" else 1
        for place, arm in enumerate(arms):
            values = factor * np.array(campaigns.values(arm, MEASURES[name]))
            colour = COLOURS[0] if arm.keep == "coverage" else COLOURS[1]
            axis.plot([values.min(), values.max()], [place, place], color=colour, alpha=0.4)
            axis.plot(values, [place] * len(values), ".", color=colour, alpha=0.4, markersize=4)
            axis.plot(np.median(values), place, "o", color=colour, markersize=6)
        axis.axvline(
            factor * np.median(campaigns.values(campaigns.none, MEASURES[name])), color=COLOURS[3], linestyle=":"
        )
        axis.set_xlabel("mean error rate, %" if factor == 100 else "distinct failures")
    axes[0].set_yticks(range(len(arms)), names)
    axes[0].invert_yaxis()
    return figure


def _named(campaigns: Campaigns, arm: Arm) -> str:
    where = "" if arm.keep == "none" else f" {campaigns.experiment.models[arm.partitions].name}"
    way = "" if arm.choice == "uniform, uniform" else f", {arm.choice}"
    return f"{arm.guide}{where}{way}"
