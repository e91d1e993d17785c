"""Processes that each hold the same things, such as a system and its seeds, and do pieces of work with them."""

from __future__ import annotations

import atexit
import itertools
import multiprocessing
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from types import ModuleType, TracebackType
from typing import Any, Generic, Self, TypeVar

from deepcruiser.errors import DeepCruiserError, FileError, InputError, described, printable_warnings, reason

Held = TypeVar("Held")
Unit = TypeVar("Unit")
Result = TypeVar("Result")
#: How often a piece of work is tried if its worker is lost.
_ATTEMPTS = 3
#: Seconds that a process has to end after it was asked to.
_PATIENCE = 5.0


class WorkerError(DeepCruiserError):
    """Workers were lost again and again before a piece of work was done."""

    def with_remedy(self, workers: int, batch_size: int) -> WorkerError:
        """The same error with advice on using less memory."""
        fewer = f"try --workers {workers // 2} instead of {workers}, or " if workers > 1 else "begin anew with "
        return WorkerError(
            f"{self}; if memory ran out, {fewer}--batch-size {max(1, batch_size // 2)} instead of {batch_size}"
        )


class LostWorkerError(Exception):
    """A worker ended before its work was done; the message says how."""


class Workers(ABC, Generic[Held]):
    """Does pieces of work elsewhere, on `count` workers. A result does not depend on the worker that it comes from.

    A worker that is lost is replaced, and what it was doing is done again, on whichever worker is free first.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._jobs: queue.PriorityQueue[tuple[float, int, Future[Any] | None, Any]] = queue.PriorityQueue()
        self._number = itertools.count()
        self._closed = False
        #: Whether a worker has started, so that a piece of work is done at once.
        self.ready = False
        self._threads = [threading.Thread(target=self._serve, args=(i,), daemon=True) for i in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[Held, Unit], Result], unit: Unit) -> Future[Result]:
        """Start `work(held, unit)` on one of the workers."""
        future: Future[Result] = Future()
        self._jobs.put((next(self._number), 0, future, self._pack(work, unit)))
        return future

    def close(self) -> None:
        """End the workers and drop what they have not finished."""
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._jobs.put((-1 - next(self._number), 0, None, None))  # before all others
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pack(self, work: Any, unit: Any) -> Any:
        """A piece of work in the form for `_do`."""
        return work, unit

    @abstractmethod
    def _start(self, number: int) -> Any:
        """Start a worker, and wait until it has loaded its objects."""

    @abstractmethod
    def _do(self, worker: Any, job: Any) -> tuple[bool, Any]:
        """Let a worker do a piece of work; returns whether it was done, and the result or the error."""

    @abstractmethod
    def _end(self) -> None:
        """End all workers, busy or not."""

    def _serve(self, number: int) -> None:
        """Hand one job after another to a worker."""
        worker = None
        while not self._closed:
            if worker is None:
                worker = self._start(number)
                self.ready = True
            order, tried, future, job = self._jobs.get()
            if future is None or not (tried or future.set_running_or_notify_cancel()):
                continue
            try:
                done, result = self._do(worker, job)
            except LostWorkerError as lost:
                worker, tried = None, tried + 1
                if self._closed:
                    return
                if tried < _ATTEMPTS:
                    self._jobs.put((order, tried, future, job))
                    continue
                done = False
                result = WorkerError(f"a worker was lost {_ATTEMPTS} times before its work was done ({lost})")
            except Exception as error:
                done, result = False, error
            if done:
                future.set_result(result)
            else:
                future.set_exception(result)


class ProcessWorkers(Workers[Held]):
    """`count` processes on this machine. Each calls `load` with its number and holds what that returns.

    `parts` are objects that will be sent: only if one of them is defined in the running script do the processes import
    that script. `preload` names modules that take long to import.
    """

    def __init__(
        self, load: Callable[[int], Held], count: int, *, parts: Sequence[Any] = (), preload: Sequence[str] = ()
    ) -> None:
        self._load, self._parts = self._pack(load, ""), parts
        self._context = _process_context(__name__, *preload)
        self._starting = threading.Lock()
        self._processes: dict[int, Any] = {}
        super().__init__(count)
        atexit.register(self.close)  # otherwise the interpreter would wait for the processes

    def close(self) -> None:
        atexit.unregister(self.close)
        super().close()

    def _pack(self, work: Any, unit: Any) -> bytes:
        try:
            return bytes(ForkingPickler.dumps((work, unit)))
        except Exception as error:  # a user's objects may raise anything
            raise InputError(
                f"{unit!s:.200} cannot be sent to another process ({error}): define "
                "it at the top of a module, or use --workers 0 or workers=0"
            ) from error

    def _start(self, number: int) -> tuple[Any, Connection]:
        ours, its = self._context.Pipe()
        process = self._context.Process(target=_work, args=(number, its))
        with self._starting:  # one at a time, since it replaces __main__ for a moment
            if not self._closed:
                with _without_main(self._parts):
                    process.start()
                self._processes[number] = process
                if self._closed:
                    process.terminate()
        its.close()
        with suppress(EOFError, OSError):  # which the first piece of work will meet as well
            ours.send_bytes(self._load)  # not an argument: a process that gets half of its arguments prints a traceback
            ours.recv_bytes()
        return process, ours

    def _do(self, worker: tuple[Any, Connection], job: bytes) -> tuple[bool, Any]:
        process, connection = worker
        try:
            connection.send_bytes(job)
            answer: tuple[bool, Any] = connection.recv()
            return answer
        except (EOFError, OSError):
            connection.close()
            process.join(_PATIENCE)
            code = process.exitcode
            how = f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit status {code}"
            raise LostWorkerError(how) from None

    def _end(self) -> None:
        for process in list(self._processes.values()):  # a process that is still starting ends when its pipe is closed
            process.terminate()
        for process in list(self._processes.values()):
            process.join(_PATIENCE)
            process.kill()


def _work(number: int, connection: Connection) -> None:
    """The main function of a process: load its objects, then do jobs until the parent closes the pipe."""
    start_worker()
    os.dup2(2, 1)  # output of a system must not mix with the lines of --json
    with suppress(EOFError, OSError):
        load = connection.recv_bytes()
        worker = Worker(lambda number: ForkingPickler.loads(load)[0](number), number)
        connection.send_bytes(b"loaded")
        while True:
            connection.send_bytes(_sendable(_answer(worker, connection.recv_bytes())))


def _answer(worker: Worker, job: bytes) -> tuple[bool, Any]:
    try:
        work, unit = ForkingPickler.loads(job)
    except Exception as error:  # importing a user's objects may raise anything
        message = f"another process cannot load its work ({described(error)}): define it at the top of a module"
        return False, InputError(message)
    return worker.do(work, unit)


class Worker:
    """Holds what `load` returns and does pieces of work with it; errors are results too."""

    def __init__(self, load: Callable[[int], Any], number: int) -> None:
        self._held: Any = None
        self._problem: InputError | None = None
        try:
            self._held = load(number)
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, DeepCruiserError) else described(error)
            self._problem = InputError(f"a worker on {socket.gethostname()} could not start: {why}")

    def started(self) -> bool:
        """Whether its objects could be loaded."""
        return self._problem is None

    def do(self, work: Callable[[Any, Any], Any], unit: Any) -> tuple[bool, Any]:
        """Whether the work was done, and its result, or the error."""
        if self._problem is not None:
            return False, self._problem
        try:
            return True, work(self._held, unit)
        except (Exception, SystemExit) as error:
            if not isinstance(error, DeepCruiserError):
                error.add_note("".join(traceback.format_exception(error)))  # it gets lost on the way
            return False, error


def _sendable(answer: tuple[bool, Any]) -> bytes:
    done, result = answer
    try:
        data = bytes(ForkingPickler.dumps(answer))
        if not done:
            ForkingPickler.loads(data)  # some exceptions can be pickled but not unpickled
        return data
    except Exception as error:
        message = f"it cannot be sent to another process ({described(error)})" if done else described(result)
        return bytes(ForkingPickler.dumps((False, InputError(message))))


def _process_context(*preload: str) -> Any:
    """How processes are started: from a server that has imported the modules of `preload`, where there can be one."""
    if os.name != "posix":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    resource_tracker.ensure_running()  # otherwise it is started with the server, and lets Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for us, and the server imports much
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def start_worker() -> None:
    """Prepare a worker process: it ignores Ctrl-C, which the parent handles, and ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    printable_warnings()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process with its parent; one that is busy would otherwise outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _without_main(parts: Sequence[Any]) -> Iterator[None]:
    """Prevent processes that start now from importing the running script, unless one of the parts is defined there.

    They would run it, campaign and all, if it does not say `if __name__ == "__main__"`.
    """
    main = sys.modules["__main__"]
    if not any(getattr(part, "__module__", "") == "__main__" for part in parts):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def enter(directory: str) -> None:
    """Change to the folder that paths on the command line are relative to, in a worker that may be on another
    machine."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise FileError(f"cannot enter the folder {directory!r}: {reason(error)}") from None


def device_for(device: str, number: int) -> str:
    """The device of worker `number`: for "cuda", the GPUs of the machine in turn."""
    if device != "cuda":
        return device
    import torch

    return f"cuda:{number % max(1, torch.cuda.device_count())}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, as in workers: sums by several threads may differ in their last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
