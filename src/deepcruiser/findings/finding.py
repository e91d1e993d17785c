"""A finding: several failures with one cause."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.errors import printable
from deepcruiser.findings.kinds import KINDS, Failure
from deepcruiser.findings.phrases import change_of, count_of, name_of, phrase
from deepcruiser.findings.region import Parting, Region
from deepcruiser.findings.shrink import Shrunk
from deepcruiser.notebook import card
from deepcruiser.transformations.severity import severity

#: How wrong a failure is that gives no answer at all; a wrong answer counts by its score, at most 1.
_NO_ANSWER = 2.0

#: The change of a cause if no single change is known to suffice.
SEVERAL = "several changes"
#: An error or a change is in a title if this part of the tests has it, a region or, as "mostly", an error if this has.
_NEARLY_ALL, _MOST = 0.9, 0.5


@dataclass(frozen=True)
class Cause:
    """What the failures of a finding have in common.

    `change` is the change that matters: its name, with a direction if it has two, or `SEVERAL`. `region` is "outside"
    if the cause is that the states leave the training region, whatever the change, the words and the labels: these
    are empty then.
    """

    kind: str
    expected: str
    got: str
    change: str
    region: Region

    @property
    def id(self) -> str:
        """A name that stays, whatever else is found."""
        parts = [self.kind, self.expected, self.got, self.change, self.region]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]

    @property
    def symptom(self) -> tuple[str, str, str, str]:
        """The cause without the region, which another version of the network does not share."""
        return self.kind, self.expected, self.got, self.change

    @property
    def failure(self) -> Failure:
        return Failure(self.kind, self.expected, self.got)


@dataclass(frozen=True, eq=False)
class Member:
    """A failing test of a finding: what kind of failure it is, and its shrunk form where there is one."""

    test: FailedTest
    failure: Failure
    shrunk: Shrunk | None = None
    #: The share of its cells that neither training nor its seed visited.
    new: float = 0.0

    @property
    def recipe(self) -> tuple[Any, ...]:
        """The mildest recipe that is known."""
        return self.test.recipe if self.shrunk is None else self.shrunk.recipe

    @cached_property
    def severity(self) -> float:
        return severity(self.recipe)

    @property
    def wrongness(self) -> float:
        return min(self.test.score, 1.0) if self.test.kind == "wrong" else _NO_ANSWER


@dataclass(frozen=True, eq=False)
class Finding:
    """Failures with one cause, the worst first: the most wrong, then the mildest."""

    cause: Cause
    members: tuple[Member, ...]
    #: Where the worst example parts from its seed, where that was looked at.
    parting: Parting | None = field(default=None)

    @property
    def id(self) -> str:
        return self.cause.id

    @property
    def worst(self) -> Member:
        return self.members[0]

    @cached_property
    def seeds(self) -> tuple[str, ...]:
        """The seeds that it was found with."""
        return tuple(dict.fromkeys(member.test.seed for member in self.members))

    @cached_property
    def mildest(self) -> float:
        """The severity of the mildest recipe."""
        return min(member.severity for member in self.members)

    @property
    def rank(self) -> float:
        """Importance: wrongness times seeds, divided by one plus the severity of the mildest recipe."""
        return self.worst.wrongness * len(self.seeds) / (1 + self.mildest)

    @property
    def error(self) -> Failure:
        """The error of nearly all tests, with the words or labels; if they differ, the kind of error."""
        return self._most if self._is_in(_NEARLY_ALL) else self.cause.failure

    @cached_property
    def _errors(self) -> Counter[Failure]:
        return Counter(replace(member.failure, words=()) for member in self.members)

    @property
    def _most(self) -> Failure:
        """The most frequent error."""
        return self._errors.most_common(1)[0][0]

    def _is_in(self, part: float) -> bool:
        """Whether this part of the tests has the most frequent error."""
        return self._errors[self._most] >= part * len(self.members)

    @property
    def title(self) -> str:
        """The finding in a line."""
        mostly = f" (mostly {self._most})" if self._is_in(_MOST) and any(self._most.key[1:]) else ""
        error = self.error if self.error == self._most else f"{self.error}{mostly}"
        return f"{error}{self._change}{self._region}: {count_of(len(self.seeds), 'seed')}"

    @property
    def _change(self) -> str:
        """The change of the cause, or those changes of the worst test that nearly all tests have."""
        recipe = self.worst.recipe
        names = [set(map(change_of, member.recipe)) for member in self.members]
        common = tuple(
            change for change in recipe if sum(change_of(change) in each for each in names) >= _NEARLY_ALL * len(names)
        )
        if self.cause.change not in ("", SEVERAL):
            common = tuple(change for change in recipe if change_of(change) == self.cause.change)[:1]
        elif self.cause.change == SEVERAL and common != recipe:
            return " when changed in several ways at once"
        return f" when {phrase(common)}" if common else ""

    @property
    def _region(self) -> str:
        if self.cause.region != "outside":
            return ""
        leaves = "" if self.worst.shrunk is None else self.worst.shrunk.leaves
        comma, where = "," * bool(self._change), f", {leaves}" if leaves else ""
        return f"{comma} where the states leave the region that training visited{where}"

    def __repr__(self) -> str:
        return f"{self.id}: {printable(self.title, width=400)}"

    def _repr_html_(self) -> str:
        return card(self.title, [("why", self.explanation)], below=self.worst.test._repr_html_())

    @property
    def explanation(self) -> str:
        """Why these failures belong together, in a sentence."""
        count, cause = count_of(len(self.members), "failing test"), self.cause
        got = f" ({cause.got})" if cause.got else ""
        what = f"{cause.expected!r} is wrong" if cause.expected else f"{KINDS[cause.kind]}{got}"
        if cause.region == "outside":
            why = "some of the states are outside the region that training and the seed visited"
        elif cause.change == SEVERAL:
            why = "no single change is known to cause it"
        else:
            why = f"the change that matters is {cause.change}"
        return f"{count} in which {what} and {why}"

    def counts(self, group_of: Callable[[FailedTest], str] | None = None) -> dict[str, dict[str, int]]:
        """The failing tests by transformation, by word or label that went wrong, and by group, most frequent first."""
        changes = Counter(name for each in self.members for name in {name_of(step) for step in each.recipe})
        words = Counter(
            word
            for each in self.members
            for word in {error.expected or f"+{error.got}" for error in each.failure.words}
        )
        counts = {"transformations": changes, "words": words}
        if labels := Counter(str(each.failure) for each in self.members if each.failure.kind == "label flip"):
            counts["labels"] = labels
        if group_of is not None:
            counts["groups"] = Counter(group_of(each.test) for each in self.members)
        return {name: dict(_most_frequent(counter)) for name, counter in counts.items()}


def _most_frequent(counts: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
