"""The seam between planning and running: a plan in, an `Execution` for each of its mutants out, in the plan's order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.failed_test import InputFile
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.trace import Scores

if TYPE_CHECKING:
    from deepcruiser.campaign.verdict import Verdict


@dataclass(frozen=True)
class Problem:
    """The reason why there is no answer: its kind and a message.

    The kinds are "crash", "crash once" (on an input of a batch, and not again), "time-out", "not finite", "unreadable".
    """

    kind: str
    message: str


@dataclass(frozen=True, eq=False)
class Execution:
    """The result of making and running a mutant: what a verdict needs, without audio and states.

    `invalid` says why the mutant was not run; it is empty if it was run. `visits` is set if there is a model and the
    system returned a trace.
    """

    digest: str
    invalid: str = ""
    output: Any = None
    doubt: float | None = None
    scores: Scores | None = None
    visits: Visits | None = None
    problem: Problem | None = None
    #: If the executor knows the oracle: how it judges the execution.
    verdict: Verdict | None = None


class Executor(ABC):
    """Makes mutants from their recipes and runs the system on them.

    An execution depends on its recipe alone, so it does not matter where and in which order mutants are executed.
    """

    @abstractmethod
    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], Sequence[Execution]]:
        """Start executing a batch, and return a function that returns its executions in the order of the batch."""

    def file(self, seed: str, recipe: tuple[Any, ...]) -> InputFile | None:
        """The file of a failing input, if the executor has made one; it can be fetched once."""
        return None

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Release what the executor has started, such as processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
