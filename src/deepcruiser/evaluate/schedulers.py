"""Which scheduler finds more, at the same severity: distinct failures, severe ones, seeds, coverage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from deepcruiser.campaign.learned import AIMS
from deepcruiser.errors import InputError
from deepcruiser.evaluate.campaign_table import (
    Campaign,
    Campaigns,
    Measure,
    at,
    compare,
    distinct,
    failing_seeds,
    rejected,
)
from deepcruiser.evaluate.campaigns import RUNS, Arm, Budget
from deepcruiser.evaluate.figures import COLOURS, Figure, panels
from deepcruiser.evaluate.pool import Pool
from deepcruiser.evaluate.result import Answer
from deepcruiser.evaluate.statistics import holm
from deepcruiser.evaluate.tables import Table, counts, p_value, shares
from deepcruiser.transformations.severity import budget as severity_budget

#: A failure is severe if its score exceeds this: over 30 % of the words wrong.
SEVERE = 0.3
#: The bins of severity in which failures are counted.
BINS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
LEARNED = "learned"


def known_arms(base: int, severity: str | float) -> dict[str, Arm]:
    """All arms by name; `matched` follows `learned` run by run in severity and number of changes."""
    every = partial(Arm, "BSCov", base, severity=severity)
    learned = every("coverage+distance", LEARNED, aim="balanced")
    aims = {f"{LEARNED}-{aim}": replace(learned, aim=aim) for aim in AIMS if aim != "balanced"}
    return {
        LEARNED: learned,
        **aims,
        "matched": every("none", "chains", matched=learned),
        **{f"matched-{aim}": every("none", "chains", matched=aims[f"{LEARNED}-{aim}"]) for aim in AIMS[1:]},
        "chains": every("none", "chains"),
        "chains-kept": every("coverage", "chains"),
        "one-change": every("none"),
        "one-change-kept": every("coverage"),
        "one-change-keep-random": every("random"),
        "rarity-thompson": every("coverage", "rarity", "thompson"),
        **{f"{LEARNED}-keep-{keep}": replace(learned, keep=keep) for keep in ("coverage", "random", "none")},
        f"{LEARNED}-window-1": replace(learned, window=0),
        f"{LEARNED}-window-16": replace(learned, window=16),
    }


def chosen_arms(names: Sequence[str], base: int, severity: str | float) -> dict[str, Arm]:
    """The arms of these names, the first of which the others are compared with."""
    known = known_arms(base, severity)
    severity_budget(severity)
    for name in names:
        if name not in known:
            raise InputError(f"unknown arm {name!r}; choose from: {', '.join(known)}")
    return {name: known[name] for name in names}


def first_failure(campaign: Campaign) -> float:
    """The number of the first run that failed; if none did, the number of runs plus one."""
    return float(
        next((at for at, run in enumerate(campaign["ran"], 1) if run["outcome"] == "failed"), len(campaign["ran"]) + 1)
    )


def mean(campaign: Campaign, *, what: str) -> float:
    return float(np.mean([run[what] for run in campaign["ran"]]))


def measures(campaigns: Campaigns) -> dict[str, Measure]:
    """The compared measures, by their names in the tables."""
    models = campaigns.experiment.models
    coverage = {
        f"BSCov {models[m].name}": partial(at, place=campaigns.place("BSCov", m), what="executed") for m in models
    }
    return {
        "distinct": distinct,
        "severe": partial(distinct, above=SEVERE),
        "seeds": failing_seeds,
        "first failure": first_failure,
        **coverage,
    }


def schedulers(
    pool: Pool,
    *,
    seeds: int = 100,
    budget: Budget = RUNS,
    campaigns: int = 8,
    base: int = 20,
    arms: Sequence[str],
    severity: str | float,
) -> Answer:
    """Compare the first arm with the others."""
    named = chosen_arms(arms, base, severity)
    result = compare(pool, seeds=seeds, budget=budget, campaigns=campaigns, base=base, every=list(named.values()))
    compared = measures(result)
    rows = [line(result, name, arm, compared) for name, arm in named.items()]
    shown = {**dict.fromkeys(("distinct", "severe", "seeds", "first failure"), counts), "rejected": shares}
    shown |= {name: shares for name in compared if name.startswith("BSCov")}
    tests = comparisons(result, named, compared)
    first = next(iter(named))
    return Answer(
        "schedulers",
        f"Schedulers at severity {severity}",
        (
            Table("schedulers", tuple(rows), shown=shown),
            Table(
                "schedulers-tests",
                tuple(tests),
                f"`{first}` against the others: the ratio of the medians, p corrected by Holm's method, and A.",
                {column: p_value for column in tests[0] if column.startswith("p ")} if tests else {},
            ),
            Table(
                "schedulers-severity",
                tuple(by_severity(result, named)),
                "Distinct failures by the severity of the recipe, mean per campaign (the mildest are worth most):",
            ),
        ),
        data=Table(
            "schedulers-data", tuple(result.each(((arm, {"arm": name}) for name, arm in named.items()), compared))
        ),
        notes=(
            result.how.replace("not corrected for the number of comparisons", "corrected by Holm's method"),
            f"Failures: {result.experiment.oracle.name}. *Distinct* failures differ in their seed or in which word "
            f"became what; *severe* ones have a score above {SEVERE:g}; *seeds* have at least one failure. "
            "*First failure* is the number of the run. *Severity* and *changes* are means over all mutants; no mutant "
            "exceeds the severity in the title. *BSCov* is the coverage of all runs that did not fail. `matched` "
            "repeats the severity and the number of changes of `learned` run by run, with random seeds, kinds and "
            "parameters.",
        ),
        draw=lambda: draw(result, named),
        seconds=result.seconds,
        runs=result.total_runs,
    )


def line(campaigns: Campaigns, name: str, arm: Arm, compared: Mapping[str, Measure]) -> dict[str, Any]:
    of_recipes = {
        what: float(np.mean(campaigns.values(arm, partial(mean, what=what)))) for what in ("severity", "changes")
    }
    medians = {what: campaigns.median(arm, measure) for what, measure in compared.items()}
    return {"arm": name, **of_recipes, "rejected": campaigns.median(arm, rejected), **medians}


def comparisons(
    campaigns: Campaigns, named: Mapping[str, Arm], compared: Mapping[str, Measure]
) -> list[dict[str, Any]]:
    """The first arm against each of the others."""
    (_, first), *others = named.items()
    rows: list[dict[str, Any]] = [{"against": name} for name, _ in others]
    for what, measure in compared.items():
        tests = [campaigns.against(first, arm, measure) for _, arm in others]
        corrected = holm([test.p for test in tests])
        middle = campaigns.median(first, measure).value
        for row, (_, arm), test, p in zip(rows, others, tests, corrected, strict=True):
            other = campaigns.median(arm, measure).value
            row |= {what: middle / other if other else float("nan"), f"p ({what})": p, f"A ({what})": test.superiority}
    return rows


def by_severity(campaigns: Campaigns, named: Mapping[str, Arm]) -> list[dict[str, Any]]:
    return [
        {
            "arm": name,
            **{
                f"{low:g} to {high:g}": float(np.mean(campaigns.values(arm, partial(distinct, least=low, most=high))))
                for low, high in pairwise(BINS)
            },
        }
        for name, arm in named.items()
    ]


def draw(campaigns: Campaigns, named: Mapping[str, Arm]) -> Figure:
    """Distinct failures, severe ones, seeds with a failure, and coverage over the runs: means of the campaigns."""
    place = campaigns.place("BSCov", campaigns.base)
    figure, axes = panels(4, width=3.0)
    for number, (name, arm) in enumerate(named.items()):
        several = campaigns.by_arm[arm]
        points = min(len(campaign["history"]) for campaign in several)
        runs = [point["runs"] for point in several[0]["history"][:points]]
        style = {"color": COLOURS[number % len(COLOURS)], "label": name, "linestyle": "-:"[number >= len(COLOURS)]}
        counted: tuple[Callable[..., float], ...] = distinct, partial(distinct, above=SEVERE), failing_seeds
        for axis, count in zip(axes, counted, strict=False):
            axis.plot(runs, [np.mean([count(campaign, runs=n) for campaign in several]) for n in runs], **style)
        covered = [[100 * c["history"][i]["executed"][place] for c in several] for i in range(points)]
        axes[3].plot(runs, np.mean(covered, axis=1), **style)
    titles = (
        "distinct failures",
        "severe failures",
        "seeds with a failure",
        f"BSCov {campaigns.experiment.models[campaigns.base].name}, %",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel="runs")
        axis.set_xlim(left=0)
    figure.legend(*axes[3].get_legend_handles_labels(), loc="outside right center")
    return figure
