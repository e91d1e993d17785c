"""A running campaign over time: frozen readings of its state, for the screen and the status lines."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from deepcruiser.campaign.events import FAILURE_KINDS, Ran
from deepcruiser.campaign.fuzz import Status
from deepcruiser.campaign.preferences import Preferences
from deepcruiser.errors import printable
from deepcruiser.report.format import clock, counted, failure_text, group_of

#: Points kept for the sparkline; when there are more, every second one is dropped.
_POINTS = 512
#: Seconds over which the speed is measured.
_RECENT_SECONDS = 10.0


@dataclass(frozen=True)
class Point:
    """Coverage of all passing runs at one time, for each criterion of the guide."""

    seconds: float
    executed: tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """How often a transformation was tried, and the outcomes."""

    kind: str
    tried: int
    kept: int
    failed: int
    rejected: int


@dataclass(frozen=True)
class Reading:
    """Everything the screen shows at one moment."""

    seconds: float
    runs: int
    #: Runs per second over the last seconds.
    speed: float
    guide: str
    criteria: tuple[str, ...]
    start: tuple[float, ...]
    queue: tuple[float, ...]
    points: tuple[Point, ...]
    tests: int
    live: int
    seeds: int
    set_aside: Mapping[str, int]
    failed: Mapping[str, int]
    rejected: Mapping[str, int]
    rows: tuple[Row, ...]
    #: The last run that increased coverage, and its time.
    last_new: int
    last_new_seconds: float
    #: The share of the budget that is used, and the seconds that are left of it; None without a budget.
    share: float | None = None
    seconds_left: float | None = None
    last_failure: str = ""
    #: What the campaign came to prefer in this session.
    prefers: str = ""


class History:
    """Makes a reading of each status; `past` are the `CoverageHistory.moments` of a resumed campaign."""

    def __init__(self, past: Sequence[Mapping[str, Any]] = ()) -> None:
        self._points = [Point(row["seconds"], tuple(row["values"])) for row in past]
        self._runs_past = [(int(row["runs"]), float(row["seconds"])) for row in past]
        self._recent: deque[tuple[float, int]] = deque()
        self._rejected: Counter[str] = Counter()
        self._preferences = Preferences()
        self._last_new: tuple[int, float] | None = None
        self._last_failure = ""
        self._first: tuple[float, float] | None = None

    def add(self, status: Status) -> Reading:
        """The reading of a status."""
        state = status.state
        for event in status.events:
            if isinstance(event, Ran):
                parent = state.queue.tests[event.parent]
                self._preferences.take(event, parent.seed, parent.recipe)
            if isinstance(event, Ran) and event.outcome == "failed":
                summary = failure_text(event.reason, parent.reference, event.output)
                self._last_failure = f"{event.number}: {summary}; {parent.seed}"
        if self._last_new is None:
            self._rejected.update(_rejected(state.reasons))
            self._last_new = state.last_new, self._when(state.last_new)
        else:
            self._rejected.update(
                group_of(event.reason)
                for event in status.events
                if isinstance(event, Ran) and event.outcome == "rejected"
            )
        if state.last_new != self._last_new[0]:
            self._last_new = state.last_new, status.seconds
        self._points.append(Point(status.seconds, tuple(coverage.value for coverage in state.executed)))
        if len(self._points) > _POINTS:
            self._points = [*self._points[:-1:2], self._points[-1]]
        return Reading(
            seconds=status.seconds,
            runs=state.runs,
            speed=self._speed(status.seconds, state.runs),
            guide=state.guide.name,
            criteria=tuple(criterion.name for criterion in state.guide.criteria),
            start=tuple(state.start),
            queue=tuple(coverage.value for coverage in state.coverages),
            points=tuple(self._points),
            tests=len(state.queue),
            live=len(state.queue.live),
            seeds=sum(1 for _ in takewhile(lambda number: number < 0, state.queue.tests)),
            set_aside=dict(state.set_aside),
            failed={kind: state.reasons[kind] for kind in FAILURE_KINDS if state.reasons[kind]},
            rejected=dict(self._rejected),
            rows=_rows([kind.__name__ for kind in state.mutations.kinds], state.by_kind),
            last_new=self._last_new[0],
            last_new_seconds=self._last_new[1],
            share=status.share,
            seconds_left=self._seconds_left(status),
            last_failure=self._last_failure,
            prefers=self._preferences.short,
        )

    def _seconds_left(self, status: Status) -> float | None:
        """How long the rest of the budget will take, at the pace of this session."""
        if status.share is None:
            return None
        if self._first is None:
            self._first = status.seconds, status.share
        seconds, share = status.seconds - self._first[0], status.share - self._first[1]
        return seconds / share * (1 - status.share) if share > 0 else None

    def _when(self, run: int) -> float:
        """The time of a run in an earlier session, from the stored history."""
        return next((seconds for runs, seconds in self._runs_past if runs >= run), 0.0)

    def _speed(self, seconds: float, runs: int) -> float:
        self._recent.append((seconds, runs))
        while len(self._recent) > 2 and seconds - self._recent[1][0] >= _RECENT_SECONDS:
            self._recent.popleft()
        since, before = self._recent[0]
        return (runs - before) / (seconds - since) if seconds > since else 0.0


def hint(reading: Reading) -> str:
    """Advice for a campaign that seems stuck; empty if there is none."""
    runs, rejected, failed = reading.runs, sum(reading.rejected.values()), sum(reading.failed.values())
    aside = sum(reading.set_aside.values())
    if runs and not reading.live:
        return (
            "no allowed transformation is left for any test: add seeds, or start another campaign with another --seed"
        )
    if runs >= 200 and rejected > runs / 2:
        most = max(reading.rejected, key=lambda reason: reading.rejected[reason])
        return (
            f"{rejected / runs:.0%} of the mutants are rejected, most for {printable(most, width=40)!r}: "
            "try narrower ranges (--range)"
        )
    if runs >= 200 and failed > runs / 2:
        return (
            f"{failed / runs:.0%} of the mutants fail: look at some of them first; is the oracle too strict? "
            "--severity mild changes less"
        )
    if runs >= 200 and not failed:
        return f"nothing failed in {runs:,} runs: is the oracle too lenient? --severity hard changes more"
    if aside > reading.seeds:
        return (
            f"{aside:,} of {aside + reading.seeds:,} seeds are set aside ({counted(reading.set_aside)}): "
            "--against output compares with the system's own answers to the seeds instead"
        )
    since = runs - reading.last_new
    if reading.criteria and since >= max(1000, runs // 4):
        return f"no new coverage for {since:,} runs: try finer --partitions, more seeds, or another --guide"
    return ""


def budget_text(reading: Reading) -> str:
    """How much of the budget is used, and the time that is left: `52%, 0:00:31 left`."""
    left = "" if reading.seconds_left is None else f", {clock(reading.seconds_left)} left"
    return "" if reading.share is None else f"{reading.share:.0%}{left}"


def _rejected(reasons: Mapping[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        if reason not in FAILURE_KINDS:
            counts[group_of(reason)] += count
    return counts


def _rows(kinds: Sequence[str], by_kind: Mapping[tuple[str, str], int]) -> tuple[Row, ...]:
    rows = []
    for kind in kinds:
        count = {outcome: by_kind.get((kind, outcome), 0) for outcome in ("kept", "dropped", "failed", "rejected")}
        rows.append(Row(kind, sum(count.values()), count["kept"], count["failed"], count["rejected"]))
    return tuple(rows)
