"""Recording one module of a network: from its calls to the states and inputs of each sequence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.module_choice import ModuleChoice
from deepcruiser.systems.torch.stack_states import BatchLayout, StackCall


@dataclass(frozen=True)
class ModuleCall:
    """One call of the module: states [rows, steps + 1, size], inputs [rows, steps, input size]."""

    states: Tensor
    inputs: Tensor
    lengths: Tensor | None  # the steps of each sequence, known only if it was packed


@dataclass(frozen=True)
class Recording:
    """The states s_0..s_N and the inputs of every row; `exact` if none of them is padding."""

    rows: list[tuple[Tensor, Tensor]]
    exact: bool


class ModuleRecorder:
    """Records the states and inputs of every call of the chosen module."""

    def __init__(self, choice: ModuleChoice) -> None:
        self.choice = choice
        self.calls: list[ModuleCall] = []
        #: The states that the last call returned. If the network returns them too, their axes are known.
        self.last_states: list[Tensor] = []
        self._versions: list[int | None] = []

    def record(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """The forward hook. It keeps copies, because the network may change the tensors in place after the call."""
        if self.choice.kind == "output":
            self.calls.append(self._output(args, output))
            return
        x: Any = args[0] if args else kwargs.get("input")
        hx = args[1] if len(args) > 1 else kwargs.get("hx")
        if isinstance(module, nn.RNNBase):
            out, states = output
            stack = StackCall.of(module, x, hx, out)
            call = ModuleCall(stack.states(self.choice), stack.inputs(self.choice), stack.layout.lengths)
        else:
            states = output
            call = self._step(x, hx, output)
        if self.calls:
            self._check_continues(call, hx)
        self.calls.append(call)
        self.last_states = _tensors(states)
        self._versions = [_version(state) for state in self.last_states]

    def recording(self, rows: int) -> Recording:
        """All calls of one forward pass, joined; `rows` is the number of inputs in the batch."""
        label = self.choice.label
        if not self.calls:
            raise InputError(
                f"the network did not call '{label}' in this run, so there is nothing to record: "
                "is it unused, called through its .forward, or compiled or scripted?"
            )
        received = len(self.calls[0].inputs)
        if received != rows:
            raise InputError(
                f"'{label}' received {received} sequences for a batch of {rows} inputs, but must receive one for each "
                "(a network that takes [time, batch, ...] needs batch_first=False)"
            )
        if len(self.calls) > 1 and self.choice.kind == "output":
            raise InputError(
                f"'{label}' was called {len(self.calls)} times in one forward pass, and only the calls of PyTorch's "
                "own recurrent modules can be joined: name a module that is called once"
            )
        if all(call.lengths is None for call in self.calls):
            states, inputs = _join([call.states for call in self.calls], [call.inputs for call in self.calls])
            return Recording(list(zip(states.unbind(), inputs.unbind(), strict=True)), exact=False)
        parts = zip(*(_cut(call) for call in self.calls), strict=True)  # for each row, its part of every call
        joined = [_join([states for states, _ in row], [inputs for _, inputs in row], axis=0) for row in parts]
        return Recording(joined, exact=all(call.lengths is not None for call in self.calls))

    def _step(self, x: Tensor, hx: Any, output: Any) -> ModuleCall:
        """One call of a cell: one step of every row."""
        index = 0 if self.choice.part == "h" else 1
        after = _tensors(output)[index]
        before = torch.zeros_like(after) if hx is None else _tensors(hx)[index]
        if x.dim() == 1:
            x, before, after = x[None], before.reshape(1, -1), after[None]
        return ModuleCall(torch.stack((before, after), 1), x[:, None].clone(), None)

    def _output(self, args: tuple[Any, ...], output: Any) -> ModuleCall:
        """One call of any other module: its output is the sequence of states."""
        label, batch_first = self.choice.label, self.choice.batch_first
        x: Any = args[0] if args else None
        if not isinstance(output, Tensor | PackedSequence) and isinstance(output, tuple | list):
            output = next((one for one in output if isinstance(one, Tensor | PackedSequence)), None)
        if isinstance(x, PackedSequence) and isinstance(output, PackedSequence):
            layout, x, output, fits = BatchLayout.of(x, batch_first), x.data, output.data, True
        else:
            fits = isinstance(x, Tensor) and isinstance(output, Tensor) and x.dim() == output.dim() == 3
            layout = BatchLayout.of(x, batch_first) if fits else BatchLayout(0, 0, batch_first)
        if not fits or x.shape[:-1] != output.shape[:-1]:
            needed = "[batch, time, size]" if batch_first else "[time, batch, size]"
            raise InputError(
                f"'{label}' received {_shape(x)} and returned {_shape(output)}; to be the state, both must be {needed} "
                "with the same batch and time"
            )
        states = layout.unfold(output, output.new_zeros(layout.rows, output.shape[-1]))
        return ModuleCall(states, layout.unfold(x), layout.lengths)

    def _check_continues(self, call: ModuleCall, hx: Any) -> None:
        """Several calls are one sequence only if each starts from the state that the previous call returned."""
        rows, before = len(call.inputs), len(self.calls[-1].inputs)
        if rows != before:
            raise InputError(
                f"'{self.choice.label}' was called with {before} rows and then with {rows} in one forward pass, so its "
                "rows are not sequences; run inputs of equal length together, with batch='equal'"
            )
        initial = [] if hx is None else _tensors(hx)
        continues = len(initial) == len(self.last_states) and all(
            # The same unchanged tensor is not compared, because that would wait for the device.
            _version(last) == version and (one is last or _same(one, last))
            for one, last, version in zip(initial, self.last_states, self._versions, strict=True)
        )
        if not continues:
            count = len(self.calls)
            raise InputError(
                f"call {count + 1} of '{self.choice.label}' in one forward pass does not start from the state that "
                f"call {count} returned, so the calls are not one sequence; name a module that reads each input once"
            )


@contextmanager
def recording(net: nn.Module, choice: ModuleChoice, *, padded: bool) -> Iterator[ModuleRecorder]:
    """Record the chosen module while the network runs; `padded` says that the inputs differ in length."""
    recorder = ModuleRecorder(choice)
    handles = []
    try:
        handles.append(choice.module.register_forward_hook(recorder.record, with_kwargs=True))
        for name, module in net.named_modules() if padded else ():
            if isinstance(module, nn.RNNBase) and module.bidirectional:
                refuse = partial(_refuse_padding, recorder, name or type(module).__name__)
                handles.append(module.register_forward_pre_hook(refuse, with_kwargs=True))
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def _refuse_padding(
    recorder: ModuleRecorder, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Refuse to read a padded sequence backwards, because it would start with its padding; later modules may do so."""
    x = args[0] if args else kwargs.get("input")
    if not recorder.calls and not isinstance(x, PackedSequence):
        raise InputError(
            f"'{name}' reads in both directions and received padded inputs of different lengths, so padding would "
            "change its states; use batch='packed', pack the inputs in the network, or use batch='equal'"
        )


def _cut(call: ModuleCall) -> list[tuple[Tensor, Tensor]]:
    rows, steps = call.inputs.shape[:2]
    lengths = [steps] * rows if call.lengths is None else call.lengths.tolist()
    return [(call.states[row, : n + 1], call.inputs[row, :n]) for row, n in enumerate(lengths)]


def _join(states: list[Tensor], inputs: list[Tensor], axis: int = 1) -> tuple[Tensor, Tensor]:
    """The calls one after the other: s_0 of the first, then the steps of all."""
    if len(states) == 1:
        return states[0], inputs[0]
    later = [one.narrow(axis, 1, one.shape[axis] - 1) for one in states[1:]]
    return torch.cat([states[0], *later], axis), torch.cat(inputs, axis)


def _tensors(states: Any) -> list[Tensor]:
    return list(states) if isinstance(states, tuple | list) else [states]


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _version(tensor: Tensor) -> int | None:
    """A number that grows with every change in place; inference tensors have none."""
    return None if tensor.is_inference() else tensor._version


def _shape(value: Any) -> str:
    if isinstance(value, PackedSequence):
        return "a PackedSequence"
    return str(list(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"
