"""What lets a mutant into the queue: criteria, or one of the two baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from deepcruiser.criteria import BSCov, Criterion
from deepcruiser.errors import InputError

Keep = Literal["guided", "random", "none"]
BASELINES = tuple(word for word in get_args(Keep) if word != "guided")


@dataclass(frozen=True)
class Guide:
    """The criteria of a campaign, and what they decide.

    `keep` is "guided": keep a mutant that increases one of the criteria; "random": keep any mutant, with the
    probability that one increases them; "none": keep nothing, so that every mutant is made from a seed. The last two
    are baselines, and the criteria are only measured.
    """

    criteria: tuple[Criterion, ...] = (BSCov,)
    keep: Keep = "guided"

    @classmethod
    def of(cls, guide: Guide | Criterion | Sequence[Criterion] | str) -> Guide:
        """A guide from a criterion, several criteria, or the word "random" or "none"."""
        if isinstance(guide, Guide):
            return guide
        if isinstance(guide, Criterion):
            return cls((guide,))
        if guide == "random":
            return cls(keep="random")
        if guide == "none":
            return cls(keep="none")
        if isinstance(guide, str) or not guide or not all(isinstance(each, Criterion) for each in guide):
            raise InputError(f"expected a criterion, several criteria, 'random' or 'none' as the guide, got {guide!r}")
        return cls(tuple(guide))

    @property
    def name(self) -> str:
        """The guide in words: "BSCov, 2-SBCov", or "random (BSCov measured)"."""
        if not self.criteria:
            return self.keep
        criteria = ", ".join(criterion.name for criterion in self.criteria)
        return criteria if self.keep == "guided" else f"{self.keep} ({criteria} measured)"

    def without_model(self) -> Guide:
        """The same guide for a system that shows no states: nothing is measured."""
        if self.keep == "guided" or self.criteria not in ((), (BSCov,)):
            raise InputError(
                f"the guide {self.name!r} needs a model of the system's states: profile the system and pass the "
                "model; for a system that shows no states, use guide='none' or 'random'"
            )
        return replace(self, criteria=())
