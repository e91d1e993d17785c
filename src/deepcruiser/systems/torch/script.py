"""TorchScript files: networks that PyTorch exported with `torch.jit`, without their Python code."""

from __future__ import annotations

import hashlib
import os
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.adapter import Adapter, check_functions
from deepcruiser.systems.torch.batching import Splitter, feed, groups, own_steps, to_tensor
from deepcruiser.trace import Trace

#: The operators of PyTorch that compute the states of a whole sequence.
OPERATORS = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu")


class TorchScriptSystem(Adapter):
    """A TorchScript file under test: its answer to every input, and its states where the graph shows them.

        system = TorchScriptSystem("recogniser.pt", features=log_mel, transcribe=greedy)

    The state is h of the last layer of an LSTM, GRU or RNN operator: the last one of the graph, or the one with the
    number `state`. The graph shows neither c nor inner layers, and nothing of cells that are called in a loop, of
    packed sequences, or of operators in a branch: such a network runs without states, with a warning. `batch`, `steps`
    and `batch_first` are those of `TorchSystem`; `options` are `features`, `rate`, `transcribe`, `doubt`, `classes` and
    `blank`, as for every adapter.

    PyTorch runs the program in the file. It is not Python, but open only files from people you trust.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        state: int = -1,
        *,
        batch: Literal["equal", "padded", "lengths"] = "equal",
        steps: Callable[[int], int] | None = None,
        batch_first: bool = True,
        **options: Any,
    ) -> None:
        if batch not in ("equal", "padded", "lengths"):
            raise InputError(f"batch must be 'equal', 'padded' or 'lengths', not {batch!r}")
        check_functions(steps=steps)
        net, self._dtype, self._digest = _load(path)
        self._graph = _StateGraph.of(net, state)
        if self._graph.states is None:
            warnings.warn(f"{str(path)!r} runs without states: {self._graph.why}", UserWarning, stacklevel=2)
        self._batch: Any = batch
        self._steps = steps
        self._batch_first = batch_first
        super().__init__(os.path.basename(os.fspath(path)), self._graph.words, **options)

    def _identity(self) -> Iterator[bytes]:
        yield f"{self._digest} {self.state_name}".encode()

    @contextmanager
    def _running(self) -> Iterator[None]:
        with torch.no_grad():
            yield

    def _read(self, value: Any, position: int) -> Tensor:
        return to_tensor(value, position, self._dtype)

    def _groups(self, values: Sequence[Tensor]) -> Iterable[list[int]]:
        return groups(values, self._batch)

    def _forward(self, values: list[Tensor], positions: list[int]) -> list[tuple[Any, Trace | None]]:
        lengths, call = [len(tensor) for tensor in values], _Call(self._graph)
        try:
            output = feed(call, values, self._batch, batch_first=self._batch_first, device=torch.device("cpu"))
        except RuntimeError as error:  # their message is a traceback through the program
            shapes = ", ".join(sorted({str(list(tensor.shape)) for tensor in values}))
            lines = [line for line in str(error).splitlines() if line.strip()] or ["unknown reason"]
            raise InputError(
                f"{self.label} cannot be run on inputs of {shapes}: {lines[-1].strip()[:200]}; "
                "do features= and batch= give what the network reads?"
            ) from None
        cuts = {max(lengths): lengths}
        traces: list[Trace | None] = [None] * len(values)
        if call.states is not None and call.inputs is not None:
            traces, steps = self._traces(call.states, call.inputs, lengths, positions)
            cuts[call.inputs.shape[1]] = steps
        split = Splitter(len(values), self._batch_first, cuts, (), to_numpy=self._transcribe is None)
        return list(zip(split(output), traces, strict=True))

    def _traces(
        self, states: Tensor, inputs: Tensor, lengths: list[int], positions: list[int]
    ) -> tuple[list[Trace | None], list[int]]:
        rows, made = inputs.shape[:2]
        if rows != len(lengths):
            raise InputError(
                f"the recurrent operator of {self.label} received {rows} sequences for a batch of {len(lengths)} "
                "inputs, but must receive one for each (one that takes [time, batch, ...] needs batch_first=False)"
            )
        if self._graph.both and len(set(lengths)) > 1:
            raise InputError(
                f"{self.label} reads in both directions, so the padding of shorter inputs would change its states; use "
                "batch='equal'"
            )
        steps = own_steps(
            lengths, positions, made=made, padded_to=max(lengths), steps=self._steps, label="the recurrent operator"
        )
        return [Trace(states[row, : n + 1], inputs[row, :n]) for row, n in enumerate(steps)], steps


class _Call(nn.Module):
    """One call of the network, and what it showed: states [rows, steps + 1, size], inputs [rows, steps, size]."""

    def __init__(self, graph: _StateGraph) -> None:
        super().__init__()
        self._graph = graph
        self.states: Tensor | None = None
        self.inputs: Tensor | None = None

    def forward(self, *arguments: Any) -> Any:
        graph = self._graph
        if graph.states is None:
            return graph.net(*arguments)
        output, x, h, hx = graph.states(*arguments)
        if not graph.batch_first:
            x, h = x.transpose(0, 1), h.transpose(0, 1)
        first = hx[0] if isinstance(hx, list | tuple) else hx  # [layers * ways, rows, size]
        start = torch.cat(list(first[-2:]), -1) if graph.both else first[-1]
        self.states, self.inputs = torch.cat([start[:, None], h], 1), x
        return output


@dataclass(frozen=True, eq=False)
class _StateGraph:
    """A network as a function that also returns what one recurrent operator received and gave, if it can be shown."""

    net: Any
    words: str
    states: Callable[..., Any] | None = None
    batch_first: bool = True
    both: bool = False
    why: str = ""

    @classmethod
    def of(cls, net: Any, state: int) -> _StateGraph:
        graph = net.graph.copy()
        nodes = [node for node in graph.nodes() if node.kind() in OPERATORS]
        shown = [node for node in nodes if "batch_sizes" not in node.schema()]
        if not shown:
            why = "its graph has no LSTM, GRU or RNN operator outside of loops, branches and packed sequences"
            return cls(net, "no states", why=why)
        if not -len(shown) <= state < len(shown):
            kinds = ", ".join(f"{number}: {_kind(node)}" for number, node in enumerate(shown))
            raise InputError(f"there is no recurrent operator {state}; the graph has {kinds}")
        node = shown[state]
        values = list(node.inputs())
        both, batch_first = values[-2].toIValue(), values[-1].toIValue()
        receiver = next(iter(graph.inputs()))
        if both is None or batch_first is None or receiver.uses():
            return cls(net, "no states", why="its graph cannot be taken apart; export it with torch.jit.trace")
        results = [*graph.outputs(), values[0], next(iter(node.outputs())), values[1]]
        joined = graph.create("prim::TupleConstruct", results, 1)
        joined.output().setType(torch._C.TupleType([value.type() for value in results]))
        graph.appendNode(joined)
        graph.eraseOutput(0)
        graph.registerOutput(joined.output())
        graph.eraseInput(0)
        words = f"{_kind(node)} {state % len(shown)} of {len(shown)}: h" if len(shown) > 1 else f"{_kind(node)}: h"
        words += ", both directions" if both else ""
        function = torch._C._create_function_from_graph("with_states", graph)
        return cls(net, words, function, bool(batch_first), bool(both))


_read: Callable[[str], Any] = torch.jit.load


def _load(path: str | os.PathLike[str]) -> tuple[Any, torch.dtype, str]:
    """The network of a file, with its weights in its graph, the precision of its inputs, and the file's digest."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if not any(name.endswith("/constants.pkl") for name in archive.namelist()):
                raise FileError(
                    f"{str(path)!r} is not a TorchScript file, which torch.jit.save writes: if it holds weights or a "
                    "module (torch.save), load it in Python and give TorchSystem the module"
                )
            if (member := archive.testzip()) is not None:  # PyTorch does not check checksums
                raise ValueError(f"the checksum of {member} differs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript is deprecated
            net = _read(str(path)).eval()
            dtype = next((weight.dtype for weight in net.parameters() if weight.is_floating_point()), torch.float32)
            net = torch.jit.freeze(net, optimize_numerics=False)
    except FileError:
        raise
    except Exception as error:  # torch raises errors of many kinds for damaged files
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise FileError(
            f"{str(path)!r} is damaged, or not a TorchScript file that PyTorch {torch.__version__} can read: "
            f"{lines[0].strip()[:200]}"
        ) from None
    return net, dtype, hashlib.sha256(content).hexdigest()


def _kind(node: Any) -> str:
    return str(node.kind()).removeprefix("aten::").upper()
