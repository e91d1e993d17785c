"""What all adapters share: the steps from an input to its `Run`.

    input -> resample to `rate` -> `features` -> `windows` -> the network -> `transcribe` -> Run(output, trace, doubt)

`Adapter` takes these steps for every framework. The adapter of a framework adds which inputs run together, and how the
network runs.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, TypedDict, TypeVar

import numpy as np

from deepcruiser.decoding.scores import doubt_of, is_scores, scores_of
from deepcruiser.errors import InputError
from deepcruiser.trace import Run, Trace, is_tensor

T = TypeVar("T")


class Options(TypedDict, total=False):
    """What every adapter takes; `Adapter` says what it means."""

    rate: int | None
    features: Callable[[Any], Any] | None
    windows: Callable[[Any], Sequence[Any]] | None
    transcribe: Callable[[Any], Any] | None
    doubt: Callable[[Any], float | None] | None
    classes: Sequence[str]
    blank: int | None


class Adapter(ABC):
    """A network of some framework as a `System`.

    * `rate`: audio at another sample rate is resampled first.
    * `features`: a function from an input to what the network reads; without it, `Audio` becomes its samples.
    * `windows`: a function from what the network reads of an input to several parts of it, each of which the network
      reads from its initial state. The trace has a segment for each, and the output is a list of their outputs.
    * `transcribe`: a function from the network's output for one input to the answer; without it, the output is the
      answer.
    * `doubt`: a function from the same output to a number, higher when the network is less sure. Without it, the doubt
      is that of the scores (see `deepcruiser.decoding.scores`) where `transcribe` makes a text of floating-point scores
      [steps, classes] or [classes], and None elsewhere.
    * `classes`: the symbols or labels of these classes, and `blank` the class that says nothing. They tell a campaign
      how near the right answer is, which is how it finds failures where they are rare.
    """

    def __init__(
        self,
        label: str,
        state_name: str,
        *,
        rate: int | None = None,
        features: Callable[[Any], Any] | None = None,
        windows: Callable[[Any], Sequence[Any]] | None = None,
        transcribe: Callable[[Any], Any] | None = None,
        doubt: Callable[[Any], float | None] | None = None,
        classes: Sequence[str] = (),
        blank: int | None = None,
    ) -> None:
        check_functions(features=features, windows=windows, transcribe=transcribe, doubt=doubt)
        #: The network, for people: its class or its file.
        self.label = label
        #: A description of the vector that is the state.
        self.state_name = state_name
        self._rate = rate
        self._features = features
        self._windows = windows
        self._transcribe = transcribe
        self._doubt = doubt
        self._classes, self._blank = tuple(classes), blank

    @abstractmethod
    def _identity(self) -> Iterable[bytes | memoryview]:
        """All that the states depend on, for the fingerprint: the network and the choice of its state."""

    def _read(self, value: Any, position: int) -> Any:
        """What the network reads of one input, in the framework's own form."""
        return value

    def _groups(self, values: Sequence[Any]) -> Iterable[list[int]]:
        """Which inputs run together, by their positions."""
        return [list(range(len(values)))]

    @abstractmethod
    def _forward(self, values: list[Any], positions: list[int]) -> Sequence[tuple[Any, Trace | None]]:
        """Run one group: the output and the trace of each input, None if the network does not show its states."""

    def _running(self) -> AbstractContextManager[Any]:
        """Entered while inputs are read and run."""
        return nullcontext()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}, {self.state_name})"

    @property
    def transcribe(self) -> Callable[[Any], Any] | None:
        """What makes the answer of the network's output; of the output's first steps, the answer so far."""
        return self._transcribe

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the network or the choice of its state; computed once, when first needed."""
        sha = hashlib.sha256()
        for part in self._identity():
            sha.update(part)
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        if len(batch) == 0:
            return []
        with self._running():
            parts = [self._parts(self._prepare(value, i), i) for i, value in enumerate(batch)]
            values = [part for several in parts for part in several]
            results = iter(run_groups(self._groups(values), lambda positions: self._forward_at(values, positions)))
            return [self._decode(*self._joined([next(results) for _ in several])) for several in parts]

    def _prepare(self, value: Any, position: int) -> Any:
        """The input at the network's rate, and its features."""
        if self._rate is not None and hasattr(value, "rate") and value.rate != self._rate:
            value = value.resample(self._rate)
        if self._features is not None:
            return self._features(value)
        return value.samples if hasattr(value, "samples") and hasattr(value, "rate") else value

    def _parts(self, value: Any, position: int) -> list[Any]:
        """What the network reads of one input: the windows, or else the whole."""
        if self._windows is None:
            return [self._read(value, position)]
        windows = self._windows(value)
        parts = list(windows) if isinstance(windows, Iterable) else None
        if not parts:
            returned = "no window" if parts is not None else f"a {type(windows).__name__}"
            raise InputError(
                f"windows= returned {returned} for input {position} of the batch; it must return at least one"
            )
        return [self._read(part, position) for part in parts]

    def _forward_at(self, values: list[Any], positions: list[int]) -> Sequence[tuple[Any, Trace | None]]:
        return self._forward([values[position] for position in positions], positions)

    def _joined(self, results: Sequence[tuple[Any, Trace | None]]) -> tuple[Any, Trace | None]:
        """The output and the trace of one input, from those of its windows."""
        if self._windows is None:
            return results[0]
        traces = [trace.with_outputs(output) for output, trace in results if trace is not None]
        return [output for output, _ in results], Trace.joined(traces) if len(traces) == len(results) else None

    def _decode(self, output: Any, trace: Trace | None) -> Run:
        """The answer and the doubt of one output; rows of numbers, one for each step, are the trace's outputs."""
        trace = None if trace is None else trace.with_outputs(output)
        answer = output if self._transcribe is None else self._transcribe(output)
        decoded = self._transcribe is not None and isinstance(answer, str)
        if self._doubt is not None:
            doubt = self._doubt(output)
        else:
            doubt = doubt_of(output) if decoded and is_scores(output) else None
        scores = scores_of(output, self._classes, blank=self._blank) if self._classes else None
        return Run(answer, trace, doubt, scores)


def run_groups(groups: Iterable[list[int]], run: Callable[[list[int]], Iterable[T]]) -> list[T]:
    """Run groups of positions one after the other; the results are in the order of the positions."""
    results: dict[int, T] = {}
    for positions in groups:
        results.update(zip(positions, run(positions), strict=True))
    return [results[position] for position in range(len(results))]


def group_alike(keys: Iterable[Hashable]) -> list[list[int]]:
    """The positions of equal keys, together."""
    groups: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def check_array(value: Any, position: int, *, kinds: str = "biuf") -> None:
    """Refuse an input that is not an array of numbers, or a tensor, [time, ...] with at least one step."""
    if not is_tensor(value) and not (isinstance(value, np.ndarray) and value.dtype.kind in kinds):
        raise InputError(
            f"input {position} of the batch is a {type(value).__name__}, but must be Audio, a numpy array or a tensor: "
            "give features=, a function that makes one from it"
        )
    if value.ndim == 0 or len(value) == 0:
        raise InputError(
            f"input {position} of the batch has the shape {tuple(value.shape)}, but must be [time, ...] with at least "
            "one step; remove it"
        )


def check_functions(**arguments: Any) -> None:
    """Refuse arguments that are neither a function nor None."""
    for name, function in arguments.items():
        if function is not None and not callable(function):
            raise InputError(f"{name} must be a function, not {function!r}")
