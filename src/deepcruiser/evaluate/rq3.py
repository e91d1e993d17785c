"""RQ3: do campaigns guided by coverage reach more of the model?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from deepcruiser.criteria import FIVE, BSCov
from deepcruiser.evaluate.campaign_table import Campaigns, Measure, at, compare
from deepcruiser.evaluate.campaigns import RUNS, Arm, Budget, strategies
from deepcruiser.evaluate.figures import GUIDED, NONE, RANDOM, Figure, panels
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.tables import Table, p_value, shares

SHARES = ("start", "queue", "increase", "all runs")
P, A = "p (guided against it)", "A (guided against it)"


def rq3(pool: Pool, *, seeds: int = 100, budget: Budget = RUNS, campaigns: int = 5, base: int = 20) -> Answer:
    """Coverage at the start and the end of guided and unguided campaigns."""
    result = compare(pool, seeds=seeds, budget=budget, campaigns=campaigns, base=base)
    grids = [row for m in result.experiment.partitions for row in lines(result, Arm("BSCov", m))]
    criteria = [row for each in FIVE if each is not BSCov for row in lines(result, Arm(each.name, base))]
    ways = [strategy_line(result, arm) for arm in strategies(base)]
    name = result.experiment.models[base].name
    shown = {**dict.fromkeys(SHARES, shares), **dict.fromkeys((P, "p (against the first)"), p_value)}
    return Answer(
        "rq3",
        "RQ3: coverage of campaigns",
        (
            Table("rq3", tuple(grids), "BSCov under each configuration:", shown),
            Table("rq3-criteria", tuple(criteria), f"The other criteria, on {name}:", shown),
            Table("rq3-strategies", tuple(ways), f"Selection strategies, guided by BSCov on {name}:", shown),
        ),
        data=curves(result),
        notes=(
            result.how,
            "*Queue* is probably the coverage that the paper reports (it does not say); it grows by construction, "
            "because only mutants that increase it are kept. *All runs* is the coverage of all runs that did not fail. "
            "It can be compared between guides, and p and A refer to it. For a guided campaign the two are equal.",
            "`learned` stands for the defaults of `fuzz`: it also keeps mutants that come nearer to failing, may add "
            "several changes at once, and bounds their severity.",
            *verdicts([*grids, *criteria]),
        ),
        draw=lambda: draw(result),
        seconds=result.seconds,
        runs=result.total_runs,
    )


def lines(campaigns: Campaigns, guided: Arm) -> list[dict[str, Any]]:
    """One criterion on one grid: the coverage of campaigns guided by it, and of the baselines."""
    place = campaigns.place(guided.criterion, guided.partitions)
    executed: Measure = partial(at, place=place, what="executed")
    rows = []
    for arm in (guided, campaigns.random(guided.partitions), campaigns.none):
        start = at(campaigns.by_arm[arm][0], place=place, what="queue", step=0)
        queue = campaigns.median(arm, partial(at, place=place, what="queue"))
        test = None if arm == guided else campaigns.against(guided, arm, executed)
        rows.append(
            {
                "configuration": campaigns.experiment.models[guided.partitions].name,
                "criterion": guided.criterion,
                "guide": "itself" if arm == guided else arm.guide,
                "start": start,
                "queue": queue,
                "increase": queue.value / start - 1 if start else float("nan"),
                "all runs": campaigns.median(arm, executed),
                P: test and test.p,
                A: test and test.superiority,
            }
        )
    return rows


def strategy_line(campaigns: Campaigns, arm: Arm) -> dict[str, Any]:
    place, first = campaigns.place(arm.criterion, arm.partitions), strategies(campaigns.base)[0]
    executed: Measure = partial(at, place=place, what="executed")
    test = None if arm == first else campaigns.against(arm, first, executed)
    return {
        "select, pick": arm.choice,
        "all runs": campaigns.median(arm, executed),
        "p (against the first)": test and test.p,
        "A (against the first)": test and test.superiority,
    }


def verdicts(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences that say where guided campaigns cover more or less than the baselines."""
    sentences = []
    for other in ("none", "random"):
        of = [row for row in rows if row["guide"] == other]
        names = {how: list[str]() for how in ("higher for", "lower for", "no significant difference for")}
        higher, lower, same = names.values()
        for row in of:
            where = same if row[P] >= 0.05 else higher if row[A] > 0.5 else lower
            where.append(f"{row['criterion']} {row['configuration']}")
        parts = [f"{how} {', '.join(some)}" for how, some in names.items() if some]
        sentences.append(f"Coverage of guided campaigns compared with {other} (p < 0.05): {'; '.join(parts)}.")
    return sentences


def curves(campaigns: Campaigns) -> Table:
    """Every coverage of every campaign over its runs."""
    names = [(BSCov.name, m) for m in campaigns.experiment.partitions]
    names += [(each.name, campaigns.base) for each in FIVE if each is not BSCov]
    rows = []
    for arm, several in campaigns.by_arm.items():
        for number, campaign in enumerate(several):
            for point in campaign["history"]:
                row = {**arm.columns, "campaign": number, "runs": point["runs"]}
                for what in ("queue", "executed"):
                    row |= {
                        f"{what} {each} {campaigns.experiment.models[m].name}": value
                        for (each, m), value in zip(names, point[what], strict=True)
                    }
                rows.append(row)
    return Table("rq3-data", tuple(rows))


def draw(campaigns: Campaigns) -> Figure:
    """Coverage of all runs over the number of runs: the median, and the range of the campaigns."""
    partitions = campaigns.experiment.partitions
    figure, axes = panels(len(partitions))
    for axis, m in zip(axes, partitions, strict=True):
        place = campaigns.place("BSCov", m)
        arms = (
            (Arm("BSCov", m), GUIDED, "BSCov"),
            (campaigns.random(m), RANDOM, "random"),
            (campaigns.none, NONE, "none"),
        )
        for arm, colour, label in arms:
            several = campaigns.by_arm[arm]
            points = min(len(campaign["history"]) for campaign in several)
            runs = [point["runs"] for point in several[0]["history"][:points]]
            values = np.array([[p["executed"][place] for p in c["history"][:points]] for c in several]) * 100
            axis.fill_between(runs, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
            axis.plot(runs, np.median(values, axis=0), color=colour, label=label)
        axis.set(title=campaigns.experiment.title(m), xlabel="runs")
        axis.set_xlim(left=0)
    axes[0].set_ylabel("BSCov of all runs, %")
    axes[0].legend(loc="lower right", title="guide")
    return figure
