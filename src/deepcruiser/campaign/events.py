"""The events of a campaign, as frozen values; they add up to the state of the campaign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from deepcruiser.abstraction.visits import Visits

#: kept: entered the queue; dropped: passed and brought nothing new; failed: a failing test; rejected: not run.
Outcome = Literal["kept", "dropped", "failed", "rejected"]
#: The kinds of failure.
FAILURE_KINDS = ("wrong", "crash", "crash once", "time-out", "not finite")


@dataclass(frozen=True, eq=False)
class Seeded:
    """A seed was run.

    It is "kept", or "rejected" for a `reason`: the system fails it already, or it cannot be read or run.
    """

    position: int
    seed: str
    outcome: Outcome
    reason: str
    output: Any
    reference: Any
    score: float
    doubt: float | None
    digest: str
    visits: Visits | None
    distance: float | None = None

    @property
    def number(self) -> int:
        """The number that the seed has as a test."""
        return -1 - self.position


@dataclass(frozen=True, eq=False)
class Ran:
    """A mutant was made and run.

    `changes` were applied to the test `parent`. `reason` is the kind of failure, or why the mutant was rejected.
    `digest` is the SHA-256 of the input, and `distance` how near the answer is to failing, the greater the nearer.
    """

    number: int
    parent: int
    changes: tuple[Any, ...]
    outcome: Outcome
    reason: str
    output: Any
    score: float
    doubt: float | None
    digest: str
    visits: Visits | None
    distance: float | None = None
    #: What a failing answer was compared with, if that is not the reference of the seed.
    reference: Any = None


Event = Seeded | Ran
