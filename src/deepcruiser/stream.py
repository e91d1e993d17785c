"""Run a system over a data set in batches, with the states of one batch in memory at a time."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

from deepcruiser.corpora.samples import samples
from deepcruiser.errors import DeepCruiserError, InputError, described
from deepcruiser.trace import Run, System, checked_runs
from deepcruiser.workers import WorkerError, Workers

T = TypeVar("T")
#: From the names and runs of a batch to a result for each, or to a function that waits for them: it is called once the
#: next batch has been started, so that a GPU does not wait for what is done with its results.
Reduce = Callable[[list[str], list[Run]], Sequence[T] | Callable[[], Sequence[T]]]
#: What a worker makes of a share of a window: results with their places, the unreadable inputs, the number of steps.
_Share = tuple[list[tuple[int, tuple[str, T]]], dict[str, str], int]
#: The inputs of a window that could be read, the places of those in each batch, and the number of all its inputs.
_Window = tuple[list[tuple[str, Any]], list[list[int]], int]

#: Inputs are read ahead in windows of this many times `batch_size`, and sorted by length.
_BATCHES_PER_WINDOW = 8
#: Inputs, spread evenly over the data, from which the length of a batch is estimated.
_MEASURED = 16


@dataclass
class Progress:
    """The progress of a pass over the data; `watch` is called with it whenever it changes."""

    total: int
    stage: str = ""
    done: int = 0
    steps: int = 0
    #: The first of the chosen inputs whose results have all been given.
    complete: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    watch: Callable[[Progress], None] | None = None

    def advance(self, inputs: int, *, steps: int = 0) -> None:
        self.done += inputs
        self.steps += steps
        if self.watch is not None:
            self.watch(self)


def stream(
    system: System,
    data: Iterable[Any],
    reduce: Reduce[T],
    *,
    progress: Progress,
    batch_size: int = 16,
    chosen: Callable[[str], bool] = lambda _: True,
    workers: Workers[Source] | None = None,
) -> Iterator[tuple[str, T]]:
    """Run every chosen item of `data` and yield its id with what `reduce` made of its run, in the order of the data.

    With `progress.complete` above 0 it goes on from there, in the same batches.

    A batch holds inputs of similar length, as many as fit a budget: `batch_size` inputs of a length that few of the
    data exceed, more of shorter ones, and fewer of longer ones.

    An item is an input, named by its position, or an object with an `id` and an `input` that is read when it is needed
    (see `deepcruiser.corpora.samples`). Items that cannot be read are noted in `progress.skipped` and left out.
    `reduce` gets the runs of one batch; the states that it does not keep are freed before the next batch runs. It gives
    results, or a function that waits for them, which is called when the next batch has been started. With
    `workers`, each of which holds the same system and data, it must be a value that can be sent to them, and so must be
    what it returns; the batches, and with them the results, are the same.
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}")
    budget = _budget(_chosen(data, chosen), progress.total, batch_size)
    if workers is not None:
        yield from _on_workers(workers, data, reduce, batch_size, budget, progress, chosen)
        return
    items = islice(_chosen(data, chosen), progress.complete, None)
    yield from _run(system, _windows(items, batch_size, budget, progress), reduce, progress)


def _chosen(data: Iterable[Any], chosen: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    return ((name, item) for name, item in named(data) if chosen(name))


def _budget(items: Iterator[tuple[str, Any]], total: int, batch_size: int) -> int:
    """The length of a batch: `batch_size` times a length that fewer than an eighth of the measured inputs exceed."""
    inputs, _ = _read(list(islice(items, 0, None, 1 + total // _MEASURED)))
    lengths = sorted(_length(value) for _, value in inputs)
    return batch_size * lengths[7 * len(lengths) // 8] if lengths else batch_size


def _windows(items: Iterator[tuple[str, Any]], batch_size: int, budget: int, progress: Progress) -> Iterator[_Window]:
    """Inputs that were read, a window at a time; the next is read while the network runs on the current one."""
    with ThreadPoolExecutor(1) as reader:
        window = list(islice(items, batch_size * _BATCHES_PER_WINDOW))
        upcoming = reader.submit(_read, window)
        while window:
            size, (inputs, unreadable) = len(window), upcoming.result()
            window = list(islice(items, batch_size * _BATCHES_PER_WINDOW))
            upcoming = reader.submit(_read, window)
            progress.skipped.update(unreadable)
            progress.advance(len(unreadable))
            yield inputs, _batches(inputs, budget), size


@dataclass(frozen=True, eq=False)
class Source:
    """What a worker holds that runs a system over data."""

    system: System
    data: Sequence[Any]


def _on_workers(
    workers: Workers[Source],
    data: Iterable[Any],
    reduce: Reduce[T],
    batch_size: int,
    budget: int,
    progress: Progress,
    chosen: Callable[[str], bool],
) -> Iterator[tuple[str, T]]:
    positions = [position for position, (name, _) in enumerate(named(data)) if chosen(name)][progress.complete :]
    size = batch_size * _BATCHES_PER_WINDOW
    windows = [positions[start : start + size] for start in range(0, len(positions), size)]
    # Few windows are shared by several workers, each of which reads all of its window.
    shares = min(_BATCHES_PER_WINDOW, max(1, workers.count // max(1, len(windows))))
    jobs = ((places, share, shares, reduce, budget) for places in windows for share in range(shares))
    waiting: deque[Future[_Share[T]]] = deque()
    for window in windows:
        waiting.extend(workers.submit(_share, job) for job in islice(jobs, 2 * workers.count - len(waiting)))
        results, unreadable = [], dict[str, str]()
        for _ in range(shares):
            try:
                some, unreadable, steps = waiting.popleft().result()
            except WorkerError as error:
                raise error.with_remedy(workers.count, batch_size) from None
            results += some
            progress.advance(len(some), steps=steps)
        progress.skipped.update(unreadable)
        progress.advance(len(unreadable))
        yield from (result for _, result in sorted(results, key=lambda placed: placed[0]))
        progress.complete += len(window)


def _share(source: Source, job: tuple[list[int], int, int, Reduce[T], int]) -> _Share[T]:
    """The results of a share of the batches of one window, on a worker."""
    positions, share, shares, reduce, budget = job
    items = [(str(getattr(source.data[at], "id", at)), source.data[at]) for at in positions]
    inputs, unreadable = _read(items)
    batches = _batches(inputs, budget)[share::shares]
    progress = Progress(len(inputs))
    results = _run(source.system, [(inputs, batches, len(items))], reduce, progress)
    return list(zip(sorted(chain(*batches)), results, strict=True)), unreadable, progress.steps


def _batches(inputs: list[tuple[str, Any]], budget: int) -> list[list[int]]:
    """The places of the inputs of each batch: the longest that are left, as many as fit the budget at the length of
    the first of them, but at least one."""
    lengths = [_length(value) for _, value in inputs]
    order = sorted(range(len(inputs)), key=lambda place: -lengths[place])
    batches: list[list[int]] = []
    while order:
        size = max(1, budget // lengths[order[0]])
        batches.append(order[:size])
        order = order[size:]
    return batches


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch that was started: its places in its window, and what waits for its results."""

    inputs: list[tuple[str, Any]]
    positions: list[int]
    #: With the last batch of a window: the number of inputs that are complete then.
    completes: int
    results: dict[int, Any]
    wait: Callable[[], Sequence[Any]]
    steps: int


def _run(
    system: System,
    windows: Iterable[_Window],
    reduce: Reduce[T],
    progress: Progress,
) -> Iterator[tuple[str, T]]:
    """The results of the batches of each window, in the order of its inputs."""
    before: _Batch | None = None
    size = 0
    for inputs, batches, number in windows:
        results: dict[int, T] = {}
        size += number
        for positions in batches:
            last = positions is batches[-1]
            batch = _start(system, inputs, positions, reduce, size if last else 0, results)
            size = 0 if last else size
            if before is not None:
                yield from _finish(before, progress)
            before = batch
    if before is not None:
        yield from _finish(before, progress)


def _start(
    system: System,
    inputs: list[tuple[str, Any]],
    positions: list[int],
    reduce: Reduce[T],
    completes: int,
    results: dict[int, T],
) -> _Batch:
    try:
        runs = checked_runs(system, system.run([inputs[i][1] for i in positions]), len(positions))
    except SystemExit as error:
        raise InputError(f"{system!r} called sys.exit({error.code!r}): remove that call") from error
    reduced = reduce([inputs[i][0] for i in positions], runs)
    steps = sum(len(run.traced) for run in runs)
    return _Batch(inputs, positions, completes, results, reduced if callable(reduced) else lambda: reduced, steps)


def _finish(batch: _Batch, progress: Progress) -> Iterator[tuple[str, Any]]:
    """Wait for the results of a batch; yield those of its window with the last batch of it."""
    batch.results.update(zip(batch.positions, batch.wait(), strict=True))
    progress.advance(len(batch.positions), steps=batch.steps)
    if batch.completes:
        yield from ((batch.inputs[i][0], result) for i, result in sorted(batch.results.items()))
        progress.complete += batch.completes


def _read(window: list[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    inputs: list[tuple[str, Any]] = []
    unreadable: dict[str, str] = {}
    for name, item in window:
        try:
            inputs.append((name, input_of(item)))
        except DeepCruiserError as error:
            unreadable[name] = str(error)
    return inputs, unreadable


def input_of(item: Any) -> Any:
    """The `input` of an item, which may be read only now; the item itself if it has none."""
    # hasattr(item, ...) would read a property twice, and take an AttributeError in it for its absence.
    if not (hasattr(type(item), "input") or "input" in getattr(item, "__dict__", ())):
        return item
    with reading("the input"):
        return item.input


def named(data: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each item with its name: its `id`, or its position if it has none."""
    for position, item in enumerate(data):
        with reading(f"the id of item {position}"):
            name = str(getattr(item, "id", position))
        yield name, item


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever an item of a user raises while a field of it is read, as a clear error."""
    try:
        yield
    except DeepCruiserError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{what} cannot be read: {described(error)}") from error


def _length(value: Any) -> int:
    return max(1, len(value)) if hasattr(value, "__len__") else 1


def require_sized(data: Any) -> tuple[Iterable[Any], int]:
    """The samples of some data, which must be readable more than once, and their number."""
    items = samples(data)
    if not isinstance(items, Sized) or isinstance(items, Iterator):
        raise InputError(
            f"the data must be a list, a corpus or another sequence, because they are read more than once; "
            f"{type(items).__name__} has no length"
        )
    size = len(items)
    if size == 0:
        raise InputError("the data set is empty: at least one input is needed")
    return items, size


def nothing_read(progress: Progress) -> InputError:
    """The error for a data set of which no input could be read."""
    name, reason = next(iter(progress.skipped.items()))
    return InputError(f"none of the {progress.total:,} inputs could be read; the first, {name!r}: {reason}")


def in_share(name: str, *, share: float, seed: int) -> bool:
    """Whether the sequence `name` belongs to the random share; depends on the name and the seed alone."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64
