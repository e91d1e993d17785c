"""Recurrent networks in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from deepcruiser.errors import InputError
from deepcruiser.systems.adapter import Adapter, Options, check_functions
from deepcruiser.systems.state_choice import Direction, Layer, Part
from deepcruiser.systems.torch.batching import Batch, Splitter, feed, groups, own_steps, to_tensor
from deepcruiser.systems.torch.module_choice import choose_module
from deepcruiser.systems.torch.recording import recording
from deepcruiser.trace import Trace


class TorchSystem(Adapter):
    """A PyTorch network under test: its answer to every input, and the states of one of its modules.

        system = TorchSystem(net, state="encoder.lstm", transcribe=greedy)
        runs = system.run([audio, other])

    The network is borrowed: it must be in eval mode, runs without gradients, and is left as it was.

    **Which state.** `state` names a module; the default is the last recurrent one. For nn.RNN, nn.LSTM, nn.GRU and
    their cells, `part` is "h" or "c", and `layer` is a number, or "all" for all layers side by side. For a
    bidirectional module, `direction` is

    * "both" (the default): s_0 is the two initial states side by side, and s_{t+1} is the layer's output at time t, in
      which the backward half has read the inputs from the end to t;
    * "forward": the states of the forward direction, in the order of time;
    * "backward": the states in the order in which the backward direction reads. s_1 follows the last input, and the
      inputs of the trace are reversed too, so that transition i still goes from s_i to s_{i+1} on x_i.

    s_0 is the `hx` that the network passes, or zeros. If one forward pass calls the module several times, and each call
    starts from the state that the previous call returned, the calls give one trace. For any other module, the output is
    the state: [batch, time, size] like its input, with zeros as s_0. The h of the last layer costs nothing. PyTorch
    does not return inner layers and c, so they are computed again. The inputs of the trace are what the module (the
    whole stack of layers) receives.

    **Input.** `features` makes a tensor or array [time, ...] from an input. Without it, `Audio` becomes its samples,
    and arrays and tensors are used as they are. Audio is first resampled to `rate`. `batch` says how the network takes
    several inputs:

    * "equal": net(stacked), with inputs of equal length only; works for any network, as nothing is padded;
    * "padded": net(padded), with zeros after the shorter inputs;
    * "lengths": net(padded, lengths), the lengths as int64 on the CPU;
    * "packed": net(PackedSequence);
    * a function: batch(net, list of tensors) calls the network and returns its output.

    With "padded", "lengths" and "packed" the longest input comes first; `run` still returns the original order. The
    network takes and returns [batch, time, ...], or [time, batch, ...] with `batch_first=False`. Padding is never part
    of a trace. If the network subsamples, `steps` is a function from the length of an input to its number of steps.

    **Output.** `Run.output` is the input's part of the network's output, as numpy arrays (`Splitter` in batching.py
    says how it is found). With `transcribe` it is transcribe(part), where the part is torch tensors on the network's
    device. The tensors of the trace stay on that device too. `doubt` is a function from the part to a number; without
    it, texts made from scores get the doubt of the scores (see `deepcruiser.systems.adapter`). `classes` are the
    symbols or labels of the scores, and `blank` the class that says nothing, as for `ctc_greedy`; with them, campaigns
    know how near an answer is to failing, and the part is on the CPU.
    """

    def __init__(
        self,
        net: nn.Module,
        state: str | None = None,
        *,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        batch: Batch = "equal",
        steps: Callable[[int], int] | None = None,
        batch_first: bool = True,
        **options: Unpack[Options],
    ) -> None:
        if not isinstance(net, nn.Module):
            raise InputError(f"net must be a torch.nn.Module, not a {type(net).__name__}")
        if isinstance(net, torch.jit.ScriptModule):
            raise InputError(
                "net is a TorchScript program, whose modules cannot be watched: give TorchScriptSystem the file that "
                "torch.jit.save writes"
            )
        if not callable(batch) and batch not in ("equal", "padded", "lengths", "packed"):
            raise InputError(f"batch must be 'equal', 'padded', 'lengths', 'packed' or a function, not {batch!r}")
        check_functions(steps=steps)
        self.net = net
        self._choice = choose_module(net, state, part=part, layer=layer, direction=direction, batch_first=batch_first)
        if self._choice.module is net and self._choice.batch_first != batch_first and self._choice.kind == "stack":
            raise InputError(
                f"the network is an nn.{type(net).__name__} with batch_first={not batch_first}; "
                f"give batch_first={not batch_first} here too"
            )
        self._batch = batch
        self._steps = steps
        self._batch_first = batch_first
        super().__init__(type(net).__name__, self._choice.words, **options)

    def _identity(self) -> Iterator[bytes | memoryview]:
        """The network's class, the choice of state, and the weights."""
        choice = self._choice
        named = (choice.name, choice.kind, choice.part, choice.layers, choice.direction)
        yield repr((type(self.net).__qualname__, *named)).encode()
        for name, tensor in sorted(self.net.state_dict().items()):
            if isinstance(tensor, Tensor):  # modules may also save other things, in any form
                plain = tensor.dequantize() if tensor.is_quantized else tensor
                yield f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()
                yield plain.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._refuse_training()
        with torch.no_grad():  # not inference_mode: a network that caches tensors could not be trained afterwards
            yield

    def _read(self, value: Any, position: int) -> Tensor:
        return to_tensor(value, position, self._dtype)

    def _groups(self, values: Sequence[Tensor]) -> Iterable[list[int]]:
        return groups(values, self._batch)

    def _forward(self, values: list[Tensor], positions: list[int]) -> list[tuple[Any, Trace]]:
        lengths = [len(tensor) for tensor in values]
        with recording(self.net, self._choice, padded=len(set(lengths)) > 1) as recorder:
            try:
                output = feed(self.net, values, self._batch, batch_first=self._batch_first, device=self._device)
            except Exception as error:  # raised by the network; a note names the inputs
                shapes = ", ".join(sorted({str(tuple(tensor.shape)) for tensor in values}))
                error.add_note(f"while {self!r} ran inputs of {shapes}: does features= return what the network reads?")
                raise
        recorded = recorder.recording(len(values))
        steps = [len(inputs) for _, inputs in recorded.rows]
        longest, made = max(lengths), max(steps)
        if not recorded.exact:
            label = f"'{self._choice.label}'"
            steps = own_steps(lengths, positions, made=made, padded_to=longest, steps=self._steps, label=label)
        split = Splitter(
            len(values),
            self._batch_first,
            # The recorded module's steps come last, so that they win where both are equally long.
            {longest: lengths, made: steps},
            recorder.last_states,
            to_numpy=self._transcribe is None,
        )
        # The traces first: they are ready while the device still computes, and the output has to wait.
        traces = [Trace(states[: n + 1], inputs[:n]) for (states, inputs), n in zip(recorded.rows, steps, strict=True)]
        if self._classes and isinstance(output, Tensor):  # all at once: they determine each answer and its doubt
            output = output.cpu()
        return list(zip(split(output), traces, strict=True))

    def _refuse_training(self) -> None:
        for name, module in self.net.named_modules():
            if module.training:
                who = f"'{name}' of {type(self.net).__name__}" if name else type(self.net).__name__
                raise InputError(
                    f"{who} is in training mode, where the same input may give different states; call net.eval() first"
                )

    @property
    def _device(self) -> torch.device:
        return next((weight.device for weight in self.net.parameters()), torch.device("cpu"))

    @property
    def _dtype(self) -> torch.dtype:
        floating = (weight.dtype for weight in self.net.parameters() if weight.is_floating_point())
        return next(floating, torch.get_default_dtype())
