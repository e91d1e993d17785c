"""Workers on a Ray cluster."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from deepcruiser.errors import InputError
from deepcruiser.workers import Held, LostWorkerError, Worker, Workers

#: Seconds to wait for an answer of a cluster.
_CONNECT_SECONDS = 14
#: Seconds between two looks at whether a worker has started.
_INTERVAL = 0.5


class RayWorkers(Workers[Held]):
    """Actors of a Ray cluster. Each calls `load` with its number and holds what that returns.

    `address` is "auto" for the cluster that this machine belongs to, or HOST:PORT. By default there is a worker for
    each CPU of the cluster; with `on_gpus`, for each CPU of its nodes with GPUs, which their workers share. If a node
    is lost, other workers do its unfinished work again.
    """

    def __init__(
        self, load: Callable[[int], Held], count: int | None = None, *, address: str = "auto", on_gpus: bool = False
    ) -> None:
        self._ray = connect(address)
        resources = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if on_gpus:
            resources = [node for node in resources if node.get("GPU")]
            if not resources:
                self._ray.shutdown()
                raise InputError(f"no node of the Ray cluster at {address!r} has a GPU: leave --device out")
        # A share so small that a node runs out of CPUs before it runs out of GPUs.
        share = min([1.0, *(node["GPU"] / max(1, node.get("CPU", 1)) for node in resources)]) if on_gpus else 0.0
        share = int(share * 10_000) / 10_000
        self._actor = self._ray.remote(num_cpus=1, num_gpus=share, max_restarts=0)(Worker)
        self._load = self._ray.put(load)
        self._actors: dict[int, Any] = {}
        super().__init__(count or max(1, int(sum(node.get("CPU", 0) for node in resources))))

    def _start(self, number: int) -> Any:
        actor = self._actors[number] = self._actor.remote(self._load, number)
        started = actor.started.remote()
        while not self._closed:
            done, _ = self._ray.wait([started], timeout=_INTERVAL)
            if done:
                break
        return actor

    def _do(self, worker: Any, job: Any) -> tuple[bool, Any]:
        try:
            answer: tuple[bool, Any] = self._ray.get(worker.do.remote(*job))
            return answer
        except self._ray.exceptions.RayActorError as error:
            raise LostWorkerError(str(error).partition("\n")[0]) from None

    def _end(self) -> None:
        for actor in list(self._actors.values()):
            self._ray.kill(actor)
        for thread in self._threads:  # no call may be running when Ray shuts down
            thread.join()
        self._ray.shutdown()


def connect(address: str) -> Any:
    """The module `ray`, connected to the cluster at an address."""
    try:
        import ray
    except ImportError:
        raise InputError("a cluster needs Ray: pip install 'deepcruiser[ray]'") from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    connected: Future[None] = Future()

    def init() -> None:
        try:
            if address != "auto":
                host, _, port = address.rpartition(":")
                socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
            connected.set_result(None)
        except Exception as error:
            connected.set_exception(error)

    threading.Thread(target=init, daemon=True).start()  # Ray would try for minutes
    try:
        connected.result(_CONNECT_SECONDS)
    except (OSError, ValueError, RuntimeError) as error:
        message = str(error).partition(". ")[0] or f"nothing within {_CONNECT_SECONDS} s"
        raise InputError(
            f"no Ray cluster answers at {address!r} ({message}): start one with `ray start --head` and give its "
            "address as HOST:PORT, or auto on one of its machines"
        ) from None
    return ray
