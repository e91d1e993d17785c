"""What `OnnxSystem` and `TfliteSystem` share: a file with a network whose inputs and outputs are named tensors."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deepcruiser.systems.adapter import Adapter
from deepcruiser.systems.tensors.layout import to_array
from deepcruiser.systems.tensors.signature import Array
from deepcruiser.systems.tensors.streaming import CallRecord, StreamDriver
from deepcruiser.systems.tensors.whole_sequence import SequenceDriver
from deepcruiser.trace import Trace


class TensorSystem(Adapter):
    """An adapter whose network is called by a driver: chunk by chunk, or once for each sequence."""

    #: The batch axes of outputs where they are known.
    _axes: Mapping[str, int | None] = {}

    def __init__(
        self,
        path: str | os.PathLike[str],
        digest: str,
        driver: StreamDriver | SequenceDriver,
        state_name: str,
        **options: Any,
    ) -> None:
        super().__init__(repr(str(path)), state_name, **options)
        self._digest = digest
        self._driver = driver
        self._signature = driver.signature

    def _identity(self) -> Iterator[bytes]:
        """The file, the choice of state, and how the network is fed."""
        driver, signature = self._driver, self._signature
        chunks = (driver.streaming.chunk, driver.streaming.context or 0) if isinstance(driver, StreamDriver) else ()
        values = [
            {name: np.asarray(value).tolist() for name, value in sorted(values.items())}
            for values in (signature.constants, driver.initial)
        ]
        carried = sorted(signature.carried.items())
        parts = (self._digest, self.state_name, self._rate, signature.signal.name, carried, chunks, values)
        yield repr(parts).encode()

    def _read(self, value: Any, position: int) -> Array:
        return to_array(value, position)

    def _forward(self, values: list[Array], positions: list[int]) -> list[tuple[Any, Trace | None]]:
        return [self._result(record) for record in self._driver.run(self._call, values, self._axes)]

    def _result(self, record: CallRecord) -> tuple[Any, Trace | None]:
        trace = self._trace(record)
        steps = 0 if trace is None else len(trace)
        outputs = {name: self._output(record, name, steps) for name in self._signature.answers}
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs, trace

    @abstractmethod
    def _call(self, feeds: dict[str, Array]) -> Mapping[str, Array]:
        """Run the network once, on arrays by the names of its inputs."""

    @abstractmethod
    def _trace(self, record: CallRecord) -> Trace | None:
        """The trace of one input, from the calls made for it; None if the network does not show its states."""

    def _output(self, record: CallRecord, name: str, steps: int) -> Array:
        """One output for one input, without padding."""
        return record.joined(name)
