"""Which mutants enter the queue: those chosen by criteria, or by one of the two baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from deepcruiser.criteria import BSCov, Criterion
from deepcruiser.errors import InputError

Keep = Literal["coverage+distance", "coverage", "random", "none"]
KEEP: tuple[str, ...] = get_args(Keep)
#: A mutant comes nearer to failing if its distance is this many times that of its parent.
NEARER = 1.02


@dataclass(frozen=True)
class Guide:
    """The criteria of a campaign, and what they decide.

    `keep` is "coverage+distance": keep a mutant that increases one of the criteria, or that comes nearer to failing
    than its parent; "coverage": keep what increases the criteria; "random": keep any mutant, with the probability that
    one increases them; "none": keep nothing, so that every mutant is made from a seed. The last two are baselines, and
    the criteria are only measured.
    """

    criteria: tuple[Criterion, ...] = (BSCov,)
    keep: Keep = "coverage+distance"

    @classmethod
    def of(cls, guide: Guide | Criterion | Sequence[Criterion] | str) -> Guide:
        """A guide from a criterion, several criteria, or the word "random" or "none"."""
        if isinstance(guide, Guide):
            return guide
        if isinstance(guide, Criterion):
            return cls((guide,))
        if guide in ("random", "none"):
            return cls(keep=guide)  # type: ignore[arg-type]
        if isinstance(guide, str) or not guide or not all(isinstance(each, Criterion) for each in guide):
            raise InputError(f"expected a criterion, several criteria, 'random' or 'none' as the guide, got {guide!r}")
        return cls(tuple(guide))

    @property
    def needs_model(self) -> bool:
        """Whether it keeps mutants that increase coverage."""
        return self.keep.startswith("coverage")

    @property
    def name(self) -> str:
        """The guide in words: "BSCov, 2-SBCov or distance", or "random (BSCov measured)"."""
        if not self.criteria:
            return self.keep
        criteria = ", ".join(criterion.name for criterion in self.criteria)
        if self.needs_model:
            return criteria if self.keep == "coverage" else f"{criteria} or distance"
        return f"{self.keep} ({criteria} measured)"

    def without_model(self) -> Guide:
        """The same guide for a system that reports no states: nothing is measured."""
        if self.needs_model or self.criteria not in ((), (BSCov,)):
            raise InputError(
                f"the guide {self.name!r} needs a model of the system's states: profile the system and pass the "
                "model; for a system that reports no states, use guide='none' or 'random'"
            )
        return replace(self, criteria=())
