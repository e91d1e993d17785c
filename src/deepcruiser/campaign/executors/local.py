"""Executing mutants in this process: making them, and running a system that may crash, hang, or answer with NaN."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from types import FrameType
from typing import Any

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.abstraction.visits import Visits
from deepcruiser.campaign.executors.base import Execution, Executor, Problem
from deepcruiser.campaign.scheduler import Mutant
from deepcruiser.campaign.seeds import Inputs
from deepcruiser.errors import DeepCruiserError, InputError, described
from deepcruiser.oracles import is_finite
from deepcruiser.serialise import digest_of, not_storable
from deepcruiser.trace import Run, System, checked_runs

#: Why a mutant of the seed is not valid, or None: `invalid(seed, mutant)`.
Invalid = Callable[[Any, Any], str | None]


@dataclass(frozen=True, eq=False)
class Made:
    """An input that was made, and the reason if it must not be run."""

    value: Any
    digest: str
    invalid: str = ""
    problem: Problem | None = None


class LocalExecutor(Executor):
    """Makes and runs mutants in this process, a batch at a time, when the executions are asked for."""

    def __init__(
        self,
        system: System,
        model: AbstractModel | None,
        inputs: Inputs,
        invalid: Invalid,
        *,
        limit_seconds: float | None = 60.0,
    ) -> None:
        self._system, self._model = system, model
        self._inputs, self._invalid = inputs, invalid
        self._limit_seconds = limit_seconds

    def submit(self, mutants: Sequence[Mutant]) -> Callable[[], list[Execution]]:
        return lambda: self.run(mutants, [self.make(mutant) for mutant in mutants])

    def run(self, mutants: Sequence[Mutant], made: Sequence[Made]) -> list[Execution]:
        """Run the system on inputs that were made."""
        for mutant, each in zip(mutants, made, strict=True):
            self._inputs.note(mutant.seed, mutant.recipe, each.value)
        # Equal inputs, which changes of texts often give, are run once.
        values = {each.digest: each.value for each in made if not each.invalid and each.problem is None}
        runs = run_all(self._system, list(values.values()), limit_seconds=self._limit_seconds)
        executions = dict(zip(values, executions_of(list(values), runs, self._model), strict=True))
        return [
            Execution(each.digest, each.invalid, problem=each.problem)
            if each.invalid or each.problem is not None
            else executions[each.digest]
            for each in made
        ]

    def make(self, mutant: Mutant) -> Made:
        """Make the input of a mutant, or read that of a seed."""
        if not mutant.recipe:
            return read_seed(self._inputs, mutant.seed)
        parent = self._inputs.parent(mutant.seed, mutant.inherited)
        return make(mutant.changes, parent, self._inputs.seeds[mutant.seed], self._invalid)


def read_seed(inputs: Inputs, name: str) -> Made:
    """A seed, or why it cannot be read."""
    try:
        value = inputs.seeds[name]
    except DeepCruiserError as error:
        return Made(None, "", problem=Problem("unreadable", str(error)))
    return Made(value, digest_of(value))


def make(changes: Sequence[Any], value: Any, seed: Any, invalid: Invalid) -> Made:
    """Apply the changes; if one raises an error, the result is invalid and the reason says why."""
    try:
        for change in changes:
            value = change(value)
        return Made(value, digest_of(value), invalid(seed, value) or "")
    except (Exception, SystemExit) as error:
        return Made(None, "", f"not made: {described(error)}")


def executions_of(
    digests: Sequence[str], results: Sequence[Run | Problem], model: AbstractModel | None
) -> list[Execution]:
    """The executions of inputs that were run together: a GPU projects all of them before any is waited for.

    Each is projected by itself, so that what it visits does not depend on the others, to the last bit.
    """
    started = [_start_visits(result, model) for result in results]
    return [
        execution(digest, result, model, visits=visits)
        for digest, result, visits in zip(digests, results, started, strict=True)
    ]


def _start_visits(result: Run | Problem, model: AbstractModel | None) -> Callable[[], Visits] | None:
    if model is None or isinstance(result, Problem) or result.trace is None:
        return None
    with suppress(InputError):  # which `execution` meets again
        return model.start_visits([result.trace], ["the trace"])
    return None


def execution(
    digest: str,
    result: Run | Problem,
    model: AbstractModel | None,
    *,
    visits: Callable[[], Visits] | None = None,
) -> Execution:
    """The execution of an input that was run; `visits` finds what it visits where that has been started."""
    if isinstance(result, Problem):
        return Execution(digest, problem=result)
    if refusal := not_storable(result.output):
        return Execution(digest, problem=Problem("crash", refusal))
    visited, problem = None, None
    trace = result.trace if model is None else result.traced
    try:
        if model is not None and trace is not None and is_finite(result.output):
            visited = model.visits(trace) if visits is None else visits()
        elif trace is not None and not is_finite(trace.states):
            problem = Problem("not finite", "")
    except InputError as error:  # states that are not finite, or so far out that no cell has a number there
        problem = Problem("not finite", str(error))
    return Execution(
        digest, output=result.output, doubt=result.doubt, scores=result.scores, visits=visited, problem=problem
    )


def run_all(system: System, inputs: Sequence[Any], *, limit_seconds: float | None) -> list[Run | Problem]:
    """Run a batch; if it fails as a whole, each input alone, so that one of them does not spoil the others."""
    if not inputs:
        return []
    try:
        with _limit(limit_seconds):
            runs = system.run(inputs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it raises
        late = isinstance(error, TimeoutError | _LateError)
        if len(inputs) == 1:
            return [Problem("time-out" if late else "crash", described(error))]
        results = [run_all(system, [value], limit_seconds=limit_seconds)[0] for value in inputs]
        # A program says on which input it crashed; what it does not do again must not be forgotten.
        position = getattr(error, "position", None)
        if position is not None and not late and isinstance(results[position], Run):
            results[position] = Problem("crash once", described(error))
        return results
    return [*checked_runs(system, runs, len(inputs))]


class _LateError(BaseException):
    """The time is over. Not an `Exception`, which a system may catch and ignore."""


_LateError.__name__ = "TimeoutError"  # as it is shown


@contextmanager
def _limit(seconds: float | None) -> Iterator[None]:
    """Raise an error in the system if the block takes longer, and again if that is caught.

    It uses a signal, so it works in the main thread only, and not while a library computes without ever returning.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    pauses = chain([1.0], repeat(1e-3))  # time to clean up, before it is raised again
    ended, raised = False, False

    def late(signum: int, frame: FrameType | None) -> None:
        nonlocal raised
        if ended:  # it came while the timer was being stopped: started again, it would kill this process
            return
        signal.setitimer(signal.ITIMER_REAL, next(pauses))
        if frame is None or frame.f_code.co_filename not in (__file__, contextlib.__file__):
            if raised:  # and caught: the next line that runs, that of an `except`, raises it once more
                sys.settrace(on_line)
                while frame is not None and frame.f_code.co_filename not in (__file__, contextlib.__file__):
                    frame.f_trace, frame = on_line, frame.f_back
            raised = True
            raise _LateError(f"no answer within {seconds:g} s")

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and not ended:
            raise _LateError(f"no answer within {seconds:g} s")
        return on_line

    traced, before = sys.gettrace(), signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        ended = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if raised:
            sys.settrace(traced)
