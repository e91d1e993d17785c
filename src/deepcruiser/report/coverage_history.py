"""The coverage of a campaign over its runs, under any criteria: a fold over its events."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.campaign.events import Event
from deepcruiser.coverage import Coverage
from deepcruiser.criteria import FIVE, Criterion, criterion
from deepcruiser.errors import InputError
from deepcruiser.report.salvage import Record

#: Number of moments at which the coverage of new runs is recorded.
_MOMENTS = 300


class CoverageHistory:
    """What the passing runs of a campaign cover under some criteria. `update` adds the runs read since."""

    def __init__(self, record: Record, criteria: Iterable[Criterion]) -> None:
        self._record = record
        self._read = self._failed = 0
        #: For each moment the number of runs, the time in seconds, the number of failing tests, and the value of each
        #: criterion.
        self.moments: list[dict[str, Any]] = []
        #: Criteria that cannot be measured on the model, and why.
        self.warnings: list[str] = []
        guide = record.spec.guide.parameters.get("criteria", ())
        self._executed: dict[str, Coverage] = {}
        #: The coverage of the queue, under the criteria of the guide.
        self._queue: dict[str, Coverage] = {}
        if record.model is not None:
            self._measure(record.model, criteria, guide)
        self._add(record.seeds)
        self.start = self._values()
        self.update()

    def _measure(self, model: AbstractModel, criteria: Iterable[Criterion], guide: Container[str]) -> None:
        for each in criteria:
            try:
                self._executed[each.name] = Coverage(model, each)
            except InputError as error:  # the grid has no room for the boundary
                self.warnings.append(f"{each.name} cannot be measured: {error}")
                continue
            if each.name in guide:
                self._queue[each.name] = Coverage(model, each)

    def update(self) -> None:
        """Add the runs that the record has read since."""
        runs, last = self._record.runs, self.moments[-1]["runs"] if self.moments else -1
        new = [(number, seconds) for number, seconds in self._record.moments if last < number <= len(runs)]
        step = max(1, len(new) // _MOMENTS)
        for i, (number, seconds) in enumerate(new):
            if i % step == 0 or i == len(new) - 1:
                self._add(runs[self._read : number])
                self._read = number
                self.moments.append(
                    {"runs": number, "seconds": seconds, "failed": self._failed, "values": self._values()}
                )
        self._add(runs[self._read :])  # of a batch whose later runs are damaged
        self._read = len(runs)
        if len(self.moments) > 4 * _MOMENTS:
            self.moments = [*self.moments[:-1:2], self.moments[-1]]

    def after(self, runs: int) -> dict[str, float]:
        """The coverage of the seeds and of the first `runs` runs, by the name of the criterion."""
        if runs == self._read:
            return dict(zip(self.names, self._values(), strict=True))
        result = {}
        for name, whole in self._executed.items():
            coverage = Coverage(whole.model, whole.criterion)
            events: list[Event] = [*self._record.seeds, *self._record.runs[:runs]]
            for event in events:
                if event.visits is not None and event.outcome in ("kept", "dropped"):
                    coverage.add(event.visits)
            result[name] = coverage.value
        return result

    @property
    def names(self) -> list[str]:
        """The names of the criteria, in the order of the values."""
        return list(self._executed)

    def table(self) -> list[dict[str, Any]]:
        """For each criterion the coverage of the seeds, of the queue if it guided the campaign, and of all runs."""
        return [
            {
                "name": name,
                "start": start,
                "queue": self._queue[name].value if name in self._queue else None,
                "executed": coverage.value,
            }
            for (name, coverage), start in zip(self._executed.items(), self.start, strict=True)
        ]

    def _add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._failed += event.outcome == "failed"
            if event.visits is None or event.outcome not in ("kept", "dropped"):
                continue
            for coverage in self._executed.values():
                coverage.add(event.visits)
            for coverage in self._queue.values() if event.outcome == "kept" else ():
                coverage.add(event.visits)

    def _values(self) -> list[float]:
        return [coverage.value for coverage in self._executed.values()]


def criteria_to_show(record: Record, own: Iterable[Criterion]) -> tuple[list[Criterion], list[str]]:
    """The five criteria and those of the guide, and which of the guide's are unknown.

    The folder has only the names of the guide's criteria; those that are not built in are looked up in `own`.
    """
    criteria, warnings, by_name = list(FIVE), [], {each.name: each for each in own}
    for name in record.spec.guide.parameters.get("criteria", ()):
        try:
            criteria.append(by_name.get(name) or criterion(name))
        except InputError:
            warnings.append(f"the guide's criterion {name!r} is not built in: its coverage is not in the folder")
    return list(dict.fromkeys(criteria)), warnings
