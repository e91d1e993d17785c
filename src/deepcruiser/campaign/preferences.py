"""What a campaign learned to prefer: the kinds of change, their parameters, how many at once, and the seeds.

It is computed from the runs, by comparing the first ones with the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.spec import Component
from deepcruiser.transformations import to_dict
from deepcruiser.transformations.severity import parameters, severity

#: The minimum number of runs for a comparison.
LEAST_RUNS = 64
#: The first quarter of the runs is compared with the last, but never more than this number of runs.
_MOST_RUNS = 1000
#: A share that grew by less than this factor is not a preference.
_GROWN = 1.25
_SEEDS = 3


@dataclass(frozen=True)
class Preference:
    """A kind of change: the share of the mutants that it was added to, at first and lately, and typical parameters."""

    kind: str
    first: float
    last: float
    values: dict[str, tuple[float, float]]


def learns(scheduler: Component) -> bool:
    """Whether the scheduler learns from earlier changes; otherwise, preferences are chance."""
    return scheduler.type == "learned" or scheduler.parameters.get("pick") == "thompson"


@dataclass(frozen=True)
class _Run:
    seed: str
    changes: tuple[Any, ...]
    kinds: tuple[str, ...]
    severity: float


class Preferences:
    """Takes runs in their order. `learns` says whether the scheduler can prefer anything at all."""

    def __init__(self, *, learns: bool = True) -> None:
        self.learns = learns
        self._runs: list[_Run] = []

    def take(self, event: Ran, seed: str, inherited: Sequence[Any]) -> None:
        """A run of a mutant of this seed; `inherited` is the recipe of the test that it was made from."""
        kinds = tuple(to_dict(change)["name"] for change in event.changes)
        self._runs.append(_Run(seed, event.changes, kinds, severity((*inherited, *event.changes))))

    @property
    def known(self) -> bool:
        """Whether there are enough runs to say anything."""
        return len(self._runs) >= LEAST_RUNS

    @property
    def quarters(self) -> tuple[list[_Run], list[_Run]]:
        """The first runs, and the last."""
        size = min(len(self._runs) // 4, _MOST_RUNS)
        return self._runs[:size], self._runs[len(self._runs) - size :]

    @property
    def kinds(self) -> list[Preference]:
        """The kinds of change, those that are preferred lately first."""
        shares = [_shares(runs) for runs in self.quarters]
        names = sorted({*shares[0], *shares[1]}, key=lambda name: (-shares[1].get(name, 0), name))
        before, after = map(_values, self.quarters)
        values = {
            name: {
                each: (before.get((kind, each), value), value) for (kind, each), value in after.items() if kind == name
            }
            for name in names
        }
        return [Preference(name, shares[0].get(name, 0.0), shares[1].get(name, 0.0), values[name]) for name in names]

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON; pairs are of the first and the last runs."""
        first, last = self.quarters
        kinds = [{"kind": p.kind, "share": [p.first, p.last], "values": p.values} for p in self.kinds]
        seeds = Counter(run.seed for run in last).most_common(_SEEDS)
        return {
            "learns": self.learns,
            "kinds": kinds,
            "changes": [fmean(map(_count, runs)) for runs in (first, last)],
            "severity": [fmean(map(_amount, runs)) for runs in (first, last)],
            "seeds": [[seed, count / len(last)] for seed, count in seeds],
            "text": self.text,
        }

    @property
    def short(self) -> str:
        """The most used kinds lately, in a few words; empty if the scheduler does not learn, or after too few runs."""
        if not self.known or not self.learns:
            return ""
        last = self.quarters[1]
        most = sorted(_shares(last).items(), key=lambda item: (-item[1], item[0]))[:3]
        kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in most)
        return f"{kinds}; {fmean(map(_count, last)):.1f} changes at once"

    @property
    def text(self) -> str:
        """The preferences in a sentence or two; empty if there are too few runs."""
        if not self.known:
            return ""
        first, last = self.quarters
        grown = [p for p in self.kinds if p.last > _GROWN * p.first]
        names = [f"{p.kind} ({p.last:.0%} of the mutants, {p.first:.0%} at first)" for p in grown[:3]]
        preferred = (
            f"The scheduler now prefers {', '.join(names)}" if names else "The scheduler prefers no transformation"
        )
        if not self.learns:
            preferred = "The scheduler does not learn which changes to prefer"
        changes, amounts = ([fmean(map(of, runs)) for runs in (first, last)] for of in (_count, _amount))
        often = ", ".join(seed for seed, _ in Counter(run.seed for run in last).most_common(_SEEDS))
        return (
            f"{preferred}. A mutant has {changes[1]:.1f} new changes and a severity of {amounts[1]:.2f} "
            f"({changes[0]:.1f} and {amounts[0]:.2f} at first). Most tried seeds recently: {often}."
        )


def _count(run: _Run) -> int:
    return len(run.changes)


def _amount(run: _Run) -> float:
    return run.severity


def _shares(runs: Sequence[_Run]) -> dict[str, float]:
    counts = Counter(kind for run in runs for kind in run.kinds)
    return {name: count / len(runs) for name, count in counts.items()}


def _values(runs: Sequence[_Run]) -> dict[tuple[str, str], float]:
    """The median of each parameter that says how strong a change is."""
    result: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for kind, change in zip(run.kinds, run.changes, strict=True):
            for name in parameters(type(change)):
                result.setdefault((kind, name), []).append(float(getattr(change, name)))
    return {key: float(f"{median(values):.3g}") for key, values in result.items()}
