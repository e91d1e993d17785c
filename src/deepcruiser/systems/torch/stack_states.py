"""The states of an nn.RNN, nn.LSTM or nn.GRU in one call, including those that PyTorch does not return.

The h of the last layer is the module's output. Inner layers are run again one by one, and c is computed from x and h,
both with the weights that the module has at the time of the call.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from deepcruiser.errors import InputError
from deepcruiser.systems.torch.module_choice import ModuleChoice

_LAYER: dict[str, Any] = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}


@dataclass(frozen=True)
class BatchLayout:
    """How the tensors of one call hold its sequences: padded side by side, or packed step by step."""

    rows: int
    steps: int
    batch_first: bool
    packed: PackedSequence | None = None

    @classmethod
    def of(cls, values: Tensor | PackedSequence, batch_first: bool) -> BatchLayout:
        """The layout of a module's input: [batch, time, size], [time, batch, size] or packed."""
        if isinstance(values, PackedSequence):
            return cls(int(values.batch_sizes[0]), len(values.batch_sizes), batch_first, values)
        rows, steps = values.shape[:2] if batch_first else (values.shape[1], values.shape[0])
        return cls(rows, steps, batch_first)

    def unfold(self, values: Tensor, initial: Tensor | None = None) -> Tensor:
        """A copy [rows, steps, size], batch first and in the batch's order; `initial` is put before it as s_0.

        This is the only copy on the way to a trace. It also protects the trace from networks that work in place.
        """
        first = 0 if initial is None else 1
        # After the end of a packed sequence nothing is written, and nothing reads it.
        unfolded = values.new_empty(self.rows, first + self.steps, values.shape[-1])
        if initial is not None:
            unfolded[:, 0] = initial
        if self.packed is None:
            unfolded[:, first:] = values if self.batch_first else values.transpose(0, 1)
        else:
            row, step = self._places
            unfolded[row, step + first] = values
        return unfolded

    def reverse(self, values: Tensor) -> Tensor:
        """Every sequence of [rows, steps, size] from its last step to its first."""
        if self.lengths is None:
            return values.flip(1)
        step = self.lengths[:, None] - 1 - torch.arange(self.steps, device=values.device)
        return values.take_along_dim(step.clamp_min(0)[:, :, None], 1)

    @cached_property
    def lengths(self) -> Tensor | None:
        """The steps of each packed sequence, in the batch's order; None for a padded tensor, where they are unknown."""
        if self.packed is None:
            return None
        lengths = (self.packed.batch_sizes > torch.arange(self.rows)[:, None]).sum(1).to(self.packed.data.device)
        order = self.packed.unsorted_indices
        return lengths if order is None else lengths[order]

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor]:
        """The row and the step of each vector of the packed data."""
        assert self.packed is not None
        sizes, order, device = self.packed.batch_sizes, self.packed.sorted_indices, self.packed.data.device
        step = torch.arange(self.steps).repeat_interleave(sizes)
        row = torch.arange(len(step)) - (sizes.cumsum(0) - sizes)[step]
        row, step = row.to(device), step.to(device)
        return row if order is None else order[row], step


@dataclass(frozen=True)
class StackCall:
    """Input and output of one call of an nn.RNN, nn.LSTM or nn.GRU, with a batch axis; packed ones as their data."""

    module: nn.RNNBase
    layout: BatchLayout
    x: Tensor
    initial: tuple[Tensor, ...]
    out: Tensor

    @classmethod
    def of(cls, module: nn.RNNBase, x: Any, hx: Any, out: Any) -> StackCall:
        if not isinstance(x, PackedSequence | Tensor):
            raise InputError(f"{type(module).__name__} received a {type(x).__name__}, but needs a tensor")
        initial = () if hx is None else hx if isinstance(hx, tuple | list) else (hx,)
        if isinstance(x, Tensor) and x.dim() == 2:  # one sequence without a batch axis
            axis = 0 if module.batch_first else 1
            x, out, initial = x.unsqueeze(axis), out.unsqueeze(axis), [state.unsqueeze(1) for state in initial]
        layout = BatchLayout.of(x, module.batch_first)
        if isinstance(x, PackedSequence):
            x, out = x.data, out.data
        if hx is None:
            sizes = [module.proj_size or module.hidden_size]
            sizes += [module.hidden_size] if isinstance(module, nn.LSTM) else []
            depth = module.num_layers * (2 if module.bidirectional else 1)
            initial = [out.new_zeros(depth, layout.rows, size) for size in sizes]
        return cls(module, layout, x, tuple(initial), out)

    def states(self, choice: ModuleChoice) -> Tensor:
        """[rows, steps + 1, size]: the chosen layers side by side, s_0 first."""
        outputs = self._outputs(choice)
        read = self._h if choice.part == "h" else self._c
        states = [read(layer, outputs, choice.direction) for layer in choice.layers]
        return states[0] if len(states) == 1 else torch.cat(states, 2)

    def inputs(self, choice: ModuleChoice) -> Tensor:
        inputs = self.layout.unfold(self.x)
        return self.layout.reverse(inputs) if choice.direction == "backward" else inputs

    def _outputs(self, choice: ModuleChoice) -> dict[int, Tensor]:
        """The outputs of the layers that the choice needs; that of the last layer is the module's own."""
        last = self.module.num_layers - 1
        inner = [layer for layer in choice.layers if layer != last]
        if choice.part == "c" and last in choice.layers:
            inner.append(last - 1)  # the inputs of the last layer
        outputs = {last: self.out}
        for layer in range(max(inner, default=-1) + 1):
            outputs[layer] = self._run(layer, outputs[layer - 1] if layer else self.x)
        return outputs

    def _run(self, layer: int, x: Tensor) -> Tensor:
        """The output of one layer of the stack, run alone; dropout between layers is off in eval mode."""
        module, packed = self.module, self.layout.packed
        weights = [weight for one in self._weights(layer) for weight in one]
        hx: Any = [state[self._of(layer)] for state in self.initial]
        if packed is not None and packed.sorted_indices is not None:
            hx = [state.index_select(1, packed.sorted_indices) for state in hx]
        if not isinstance(module, nn.LSTM):
            (hx,) = hx
        options = (module.bias, 1, 0.0, False, module.bidirectional)
        run = _LAYER[module.mode]
        with warnings.catch_warnings():
            # cuDNN wants a layer's weights in one piece of memory; these are part of the stack's, and it copies them.
            warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
            out = (
                run(x, hx, weights, *options, module.batch_first)
                if packed is None
                else run(x, packed.batch_sizes, hx, weights, *options)
            )
        return cast(Tensor, out[0])

    def _h(self, layer: int, outputs: Mapping[int, Tensor], direction: str) -> Tensor:
        out, initial = outputs[layer], self.initial[0][self._of(layer)]
        if direction == "both":
            return self.layout.unfold(out, torch.cat(tuple(initial), 1))
        way, size = int(direction == "backward"), initial.shape[2]
        states = self.layout.unfold(out[..., way * size : (way + 1) * size], initial[way])
        if way:
            states[:, 1:] = self.layout.reverse(states[:, 1:])
        return states

    def _c(self, layer: int, outputs: Mapping[int, Tensor], direction: str) -> Tensor:
        if direction == "both":
            forward, backward = (self._c(layer, outputs, way) for way in ("forward", "backward"))
            backward[:, 1:] = self.layout.reverse(backward[:, 1:])  # like h: the row of time t from both directions
            return torch.cat((forward, backward), 2)
        way = int(direction == "backward")
        x = self.layout.unfold(outputs[layer - 1] if layer else self.x)
        return memory(
            self.layout.reverse(x) if way else x,
            self._h(layer, outputs, direction)[:, :-1],
            self.initial[1][self._of(layer)][way],
            self._weights(layer)[way],
            bias=self.module.bias,
        )

    def _of(self, layer: int) -> slice:
        ways = 2 if self.module.bidirectional else 1
        return slice(ways * layer, ways * (layer + 1))

    def _weights(self, layer: int) -> list[list[nn.Parameter]]:
        return self.module.all_weights[self._of(layer)]


def memory(x: Tensor, h: Tensor, c_0: Tensor, weights: Sequence[Tensor], *, bias: bool) -> Tensor:
    """c_0..c_N of one LSTM layer and direction, from its inputs x_0..x_{N-1} and its outputs h_0..h_{N-1}.

        i, f, g = sigmoid, sigmoid, tanh of (W_ih x_t + b_ih + W_hh h_t + b_hh)
        c_{t+1} = f * c_t + i * g

    PyTorch has the rows of its weights in the order i, f, g, o; c does not depend on o.
    """
    rows = 3 * c_0.shape[-1]
    w_ih, w_hh = weights[0][:rows], weights[1][:rows]
    b_ih, b_hh = (weights[2][:rows], weights[3][:rows]) if bias else (None, None)
    gates = functional.linear(x, w_ih, b_ih).add_(functional.linear(h, w_hh, b_hh))
    i, f, g = gates.chunk(3, dim=2)
    f.sigmoid_()
    c = torch.cat((c_0[:, None], i.sigmoid_() * g.tanh_()), 1)
    # The products above took all steps at once; only this sum is recurrent, and each of its steps is one small kernel.
    steps = c.unbind(1)
    for before, after, forget in zip(steps[:-1], steps[1:], f.unbind(1), strict=True):
        after.addcmul_(forget, before)
    return c
