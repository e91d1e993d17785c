"""A finding: several failures with one cause."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deepcruiser.campaign.failed_test import FailedTest
from deepcruiser.findings.kinds import KINDS, Failure
from deepcruiser.findings.phrases import count_of, name_of, phrase
from deepcruiser.findings.region import REGIONS, Parting, Region
from deepcruiser.findings.shrink import Shrunk
from deepcruiser.notebook import card
from deepcruiser.transformations.severity import severity

#: How wrong a failure is that gives no answer at all; a wrong answer counts by its score, at most 1.
_NO_ANSWER = 2.0

#: The change is in the title of a finding whose states leave what training visited if this part of its tests has it.
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Cause:
    """What the failures of a finding have in common.

    If the states leave what training visited, that is the cause, whatever word, label or change it was: these are
    empty then. Otherwise, `change` is the last change of the recipe, which made a test fail that passed without it; of
    a shrunk test, the last one that is left.
    """

    kind: str
    expected: str
    got: str
    change: str
    region: Region

    @classmethod
    def of(cls, member: Member, region: Region) -> Cause:
        if region == "outside":
            return cls(*member.failure.general.key, "", region)
        return cls(*member.failure.key, name_of(member.recipe[-1]), region)

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
        """How much it matters: wrongness times seeds, divided by one plus the severity of the mildest recipe."""
        return self.worst.wrongness * len(self.seeds) / (1 + self.mildest)

    @property
    def title(self) -> str:
        """The finding in a line."""
        count = count_of(len(self.seeds), "seed")
        worst = self.worst
        recipe = worst.recipe if worst.shrunk is not None else worst.recipe[-1:]
        when = f" when {phrase(recipe)}"
        if self.cause.region != "outside":
            return f"{self.cause.failure}{when}: {count}"
        keys = {member.failure.key for member in self.members}
        what = worst.failure if len(keys) == 1 else self.cause.failure
        same = sum(name_of(member.recipe[-1]) == name_of(recipe[-1]) for member in self.members)
        if same < _NEARLY_ALL * len(self.members):
            when = ""
        leaves = f", {worst.shrunk.leaves}" if worst.shrunk is not None and worst.shrunk.leaves else ""
        return f"{what}{when}{',' * bool(when)} where the states leave what training visited{leaves}: {count}"

    def _repr_html_(self) -> str:
        return card(self.title, [("why", self.explanation)], below=self.worst.test._repr_html_())

    @property
    def explanation(self) -> str:
        """Why these failures belong together, in a sentence."""
        count = count_of(len(self.members), "failing test")
        reasons = [f"{KINDS[self.cause.kind]}", REGIONS[self.cause.region]]
        if self.cause.expected or self.cause.got:
            reasons[0] += f" ({self.cause.failure})"
        if self.cause.change:
            last = "left after shrinking" if self.worst.shrunk is not None else "of the recipe"
            reasons.insert(1, f"the last change {last} is {self.cause.change}")
        return f"{count} in which {', '.join(reasons[:-1])}{',' * (len(reasons) > 2)} and {reasons[-1]}"

    def counts(self, group_of: Callable[[FailedTest], str] | None = None) -> dict[str, dict[str, int]]:
        """The failing tests by transformation, by word that went wrong, and by group, the most frequent first."""
        changes = Counter(name for each in self.members for name in {name_of(step) for step in each.recipe})
        words = Counter(
            word
            for each in self.members
            for word in {error.expected or f"+{error.got}" for error in each.failure.words}
        )
        counts = {"transformations": changes, "words": words}
        if group_of is not None:
            counts["groups"] = Counter(group_of(each.test) for each in self.members)
        return {name: dict(_most_frequent(found)) for name, found in counts.items()}


def _most_frequent(counts: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
