"""Listening to one module of a network: from its calls to the states and inputs of each sequence."""

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
from deepcruiser.systems.torch.stack_states import Layout, StackCall
from deepcruiser.systems.torch.state_choice import Choice


@dataclass(frozen=True)
class Call:
    """One call of the module: states [rows, steps + 1, size], inputs [rows, steps, input size]."""

    states: Tensor
    inputs: Tensor
    lengths: Tensor | None  # each sequence's own steps, where the call said so by packing


@dataclass(frozen=True)
class Recording:
    """The states s_0..s_N and the inputs of every row; `exact` where the module got them without padding."""

    rows: list[tuple[Tensor, Tensor]]
    exact: bool


class Recorder:
    """Hears every call of the chosen module and keeps what belongs to its traces."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.calls: list[Call] = []
        #: The states the module returned, which a network often returns too: [layers, batch, size] is then certain.
        self.left: list[Tensor] = []
        self._versions: list[int | None] = []

    def hear(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """The forward hook. It copies what it keeps: the network may work in place on it after the call."""
        if self.choice.kind == "output":
            self.calls.append(self._output(args, output))
            return
        x: Any = args[0] if args else kwargs.get("input")
        hx = args[1] if len(args) > 1 else kwargs.get("hx")
        if isinstance(module, nn.RNNBase):
            out, left = output
            stack = StackCall.of(module, x, hx, out)
            call = Call(stack.states(self.choice), stack.inputs(self.choice), stack.layout.lengths)
        else:
            left = output
            call = self._step(x, hx, output)
        if self.calls:
            self._check_continues(call, hx)
        self.calls.append(call)
        self.left = _tensors(left)
        self._versions = [_version(state) for state in self.left]

    def recording(self, rows: int) -> Recording:
        """All calls of one forward as one; `rows` is the number of inputs they should be for."""
        label = self.choice.label
        if not self.calls:
            raise InputError(
                f"the network never called '{label}' in this run, so there is nothing to record: "
                "is it unused, called through its .forward, or compiled or scripted?"
            )
        heard = len(self.calls[0].inputs)
        if heard != rows:
            raise InputError(
                f"'{label}' received {heard} sequences for a batch of {rows} inputs; one each was needed "
                "(a network that takes [time, batch, ...] needs batch_first=False)"
            )
        if len(self.calls) > 1 and self.choice.kind == "output":
            raise InputError(
                f"'{label}' was called {len(self.calls)} times in one forward; as it is no recurrent module of "
                "PyTorch, its calls cannot be put together: name a module that is called once"
            )
        if all(call.lengths is None for call in self.calls):
            states, inputs = _join([call.states for call in self.calls], [call.inputs for call in self.calls])
            return Recording(list(zip(states.unbind(), inputs.unbind(), strict=True)), exact=False)
        parts = zip(*(_cut(call) for call in self.calls), strict=True)  # for each row, its piece of every call
        joined = [_join([states for states, _ in row], [inputs for _, inputs in row], axis=0) for row in parts]
        return Recording(joined, exact=all(call.lengths is not None for call in self.calls))

    def _step(self, x: Tensor, hx: Any, output: Any) -> Call:
        """A cell was called: one step of every row."""
        index = 0 if self.choice.part == "h" else 1
        after = _tensors(output)[index]
        before = torch.zeros_like(after) if hx is None else _tensors(hx)[index]
        if x.dim() == 1:
            x, before, after = x[None], before.reshape(1, -1), after[None]
        return Call(torch.stack((before, after), 1), x[:, None].clone(), None)

    def _output(self, args: tuple[Any, ...], output: Any) -> Call:
        """Any other module was called: its output is the state sequence."""
        label, batch_first = self.choice.label, self.choice.batch_first
        x: Any = args[0] if args else None
        if not isinstance(output, Tensor | PackedSequence) and isinstance(output, tuple | list):
            output = next((one for one in output if isinstance(one, Tensor | PackedSequence)), None)
        if isinstance(x, PackedSequence) and isinstance(output, PackedSequence):
            layout, x, output, fits = Layout.of(x, batch_first), x.data, output.data, True
        else:
            fits = isinstance(x, Tensor) and isinstance(output, Tensor) and x.dim() == output.dim() == 3
            layout = Layout.of(x, batch_first) if fits else Layout(0, 0, batch_first)
        if not fits or x.shape[:-1] != output.shape[:-1]:
            wanted = "[batch, time, size]" if batch_first else "[time, batch, size]"
            raise InputError(
                f"'{label}' received {_shape(x)} and gave {_shape(output)}; to be the state, both must be {wanted} "
                "with the same batch and time"
            )
        states = layout.unfold(output, output.new_zeros(layout.rows, output.shape[-1]))
        return Call(states, layout.unfold(x), layout.lengths)

    def _check_continues(self, call: Call, hx: Any) -> None:
        """Several calls are one sequence only if each starts from the state that the one before it left."""
        rows, before = len(call.inputs), len(self.calls[-1].inputs)
        if rows != before:
            raise InputError(
                f"'{self.choice.label}' was called with a varying number of rows in one forward ({before}, then "
                f"{rows}), so no row is one sequence; run inputs of equal length together: batch='equal'"
            )
        given = [] if hx is None else _tensors(hx)
        handed_on = len(given) == len(self.left) and all(
            # The very tensor, unchanged, needs no comparison, for which a device would have to be waited for.
            _version(left) == version and (one is left or _same(one, left))
            for one, left, version in zip(given, self.left, self._versions, strict=True)
        )
        if not handed_on:
            count = len(self.calls)
            raise InputError(
                f"call {count + 1} of '{self.choice.label}' in one forward does not start from the state that call "
                f"{count} returned, so the calls are not one sequence; name a module that reads each input once"
            )


@contextmanager
def recording(net: nn.Module, choice: Choice, *, padded: bool) -> Iterator[Recorder]:
    """Listen to the chosen module while the network runs; `padded` says that the inputs' lengths differ."""
    recorder = Recorder(choice)
    handles = []
    try:
        handles.append(choice.module.register_forward_hook(recorder.hear, with_kwargs=True))
        for name, module in net.named_modules() if padded else ():
            if isinstance(module, nn.RNNBase) and module.bidirectional:
                refuse = partial(_refuse_padding, recorder, name or type(module).__name__)
                handles.append(module.register_forward_pre_hook(refuse, with_kwargs=True))
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def _refuse_padding(
    recorder: Recorder, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """A padded sequence read backwards starts with its padding; what comes after the recorded module is free to."""
    x = args[0] if args else kwargs.get("input")
    if not recorder.calls and not isinstance(x, PackedSequence):
        raise InputError(
            f"'{name}' reads in both directions and received padded inputs of different lengths, so padding would "
            "flow into its states; use batch='packed', pack them in the network, or use batch='equal'"
        )


def _cut(call: Call) -> list[tuple[Tensor, Tensor]]:
    rows, steps = call.inputs.shape[:2]
    lengths = [steps] * rows if call.lengths is None else call.lengths.tolist()
    return [(call.states[row, : n + 1], call.inputs[row, :n]) for row, n in enumerate(lengths)]


def _join(states: list[Tensor], inputs: list[Tensor], axis: int = 1) -> tuple[Tensor, Tensor]:
    """Calls in turn: s_0 of the first, then the steps of all."""
    if len(states) == 1:
        return states[0], inputs[0]
    later = [one.narrow(axis, 1, one.shape[axis] - 1) for one in states[1:]]
    return torch.cat([states[0], *later], axis), torch.cat(inputs, axis)


def _tensors(states: Any) -> list[Tensor]:
    return list(states) if isinstance(states, tuple | list) else [states]


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _version(tensor: Tensor) -> int | None:
    """Grows with every change in place; inference tensors do not count."""
    return None if tensor.is_inference() else tensor._version


def _shape(value: Any) -> str:
    if isinstance(value, PackedSequence):
        return "a PackedSequence"
    return str(list(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"
