"""Executing equal mutants once. A short text has few mutants, so a campaign makes many of them again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from deepcruiser.campaign.events import Ran
from deepcruiser.campaign.executors.base import Execution, Executor
from deepcruiser.campaign.mutations import Mutations
from deepcruiser.campaign.queue import Queue
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs, Seeds
from deepcruiser.campaign.verdict import Verdict
from deepcruiser.errors import DeepCruiserError
from deepcruiser.oracles import Oracle
from deepcruiser.serialise import digest_of

#: This many inputs are remembered, the latest ones.
_REMEMBERED = 10_000


def are_shared(seeds: Seeds, mutations: Mutations, oracle: Oracle) -> bool:
    """Whether equal mutants can share an execution: those of texts and series, which are made quickly.

    Where the expected answer follows the changes, it may differ for equal mutants.
    """
    if hasattr(oracle, "follow"):
        return False
    with suppress(DeepCruiserError):  # of a seed that cannot be read
        return mutations.type == "series" or isinstance(seeds[next(iter(seeds), "")], str)
    return False


class Repeats(Executor):
    """Has mutants executed by another executor, except those that equal an earlier mutant of the same seed.

    Which mutants are executed follows from the plans alone. So it does not depend on the number of workers, nor on
    whether the campaign was resumed: `read` passes on the stored events and remembers their inputs.
    """

    def __init__(self, executor: Executor, inputs: Inputs) -> None:
        self._executor, self._inputs = executor, inputs
        #: By seed and digest, the execution; none yet if its batch is being executed.
        self._known: OrderedDict[tuple[str, str], list[Execution]] = OrderedDict()

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        known = [self._look_up(mutant.seed, self._digest(mutant)) for mutant in mutants]
        first = [(mutant, held) for mutant, (held, is_new) in zip(mutants, known, strict=True) if is_new]
        executions = self._executor.submit([mutant for mutant, _ in first]) if first else tuple

        def collect() -> list[Execution]:
            for (_, held), execution in zip(first, executions(), strict=True):
                held.append(execution)
            return [held[0] for held, _ in known]  # earlier batches have been collected by now

        return collect

    def read(self, events: Iterable[Ran], queue: Queue) -> Iterator[Ran]:
        """The stored events, whose inputs are not run again."""
        for event in events:
            held, is_new = self._look_up(queue.parent(event).seed, event.digest)
            if is_new:
                held.append(_execution(event))
            yield event

    def _look_up(self, seed: str, digest: str) -> tuple[list[Execution], bool]:
        """Where the execution of an input is or will be held, and whether the input is new."""
        held = self._known.get((seed, digest))
        if held is not None:
            return held, False
        held = []
        if digest:
            self._known[seed, digest] = held
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return held, True

    def _digest(self, mutant: Mutant) -> str:
        """The digest of the input; empty if it cannot be made."""
        try:
            value = self._inputs.parent(mutant.seed, mutant.inherited)
            for change in mutant.changes:
                value = change(value)
            return digest_of(value)
        except (Exception, SystemExit):  # of a user's transformation: the executor says which
            return ""


def _execution(event: Ran) -> Execution:
    """What an event says of its execution. References are those of the seeds, so another verdict would be the same."""
    if event.outcome == "rejected":
        return Execution(event.digest, event.reason)
    verdict = Verdict(event.reason, event.output, None, event.score, event.distance)
    return Execution(event.digest, output=event.output, doubt=event.doubt, visits=event.visits, verdict=verdict)
