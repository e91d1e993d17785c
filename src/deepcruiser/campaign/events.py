"""What happens in a campaign, one frozen value for each thing; the state of a campaign is what its events add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.coverage import News

#: kept: entered the queue; dropped: brought nothing new; failed: a failing test; rejected: no valid mutant.
Outcome = Literal["kept", "dropped", "failed", "rejected"]
#: The ways to fail.
KINDS = ("wrong", "crash", "time-out", "not finite")


@dataclass(frozen=True, eq=False)
class Seeded:
    """A seed was run. It is "kept", or set aside for a `reason`: the system fails it already, or it cannot be read."""

    position: int
    seed: str
    outcome: Outcome
    reason: str
    output: Any
    reference: Any
    score: float
    digest: str
    visited: IntArray
    news: tuple[News, ...]


@dataclass(frozen=True, eq=False)
class Ran:
    """A mutant was made and run.

    `reason` is the kind of failure or why the mutant was rejected. `news` is what it added to the coverage of the
    queue, for each guide, and `executed` to that of everything run without failing. `digest` names its samples.
    """

    number: int
    parent: int
    transformation: Any
    outcome: Outcome
    reason: str
    output: Any
    score: float
    digest: str
    visited: IntArray
    news: tuple[News, ...]
    executed: tuple[News, ...]


Event = Seeded | Ran


@dataclass(frozen=True, eq=False)
class Step:
    """The events of one batch, with all that is needed to go on behind it: the next plan and the random state."""

    events: tuple[Event, ...]
    plan: tuple[tuple[int, Any], ...]
    random: dict[str, Any]
    #: The input of each event.
    inputs: tuple[Any, ...]
