"""Recurrent networks in PyTorch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from deepcruiser.errors import InputError
from deepcruiser.systems.batching import Batch, Splitter, feed, groups, to_tensor
from deepcruiser.systems.torch.recording import Recording, recording
from deepcruiser.systems.torch.state_choice import Direction, Layer, Part, choose
from deepcruiser.trace import Run, Trace


class TorchSystem:
    """A PyTorch network under test: its answer to every input, and the way of one module's state.

        system = TorchSystem(net, state="encoder.lstm", transcribe=greedy)
        runs = system.run([audio, other])

    The network is borrowed: it must be in eval mode, runs without gradients, and is left as it was found.

    **Which state.** `state` names a module; without it the last recurrent one is taken. Of nn.RNN, nn.LSTM, nn.GRU and
    their cells, `part` is "h" or "c"; `layer` a number, or "all" for all layers side by side; `direction`, of a
    bidirectional module,

    * "both" (its default): s_0 is the two initial states side by side, s_{t+1} the layer's output at time t, in which
      the backward half has read the inputs from the end to t;
    * "forward": the states of that direction in the order of time;
    * "backward": in the order in which that direction reads: s_1 follows the last input, and the trace's inputs are
      reversed too, so that transition i still goes from s_i to s_{i+1} on x_i.

    s_0 is the `hx` that the network passes, or zeros. A module called piece by piece in one forward gives one trace if
    every call starts from the state that the call before it returned. Of any other module the output is the state:
    [batch, time, size] like its input, s_0 zeros. The h of the last layer costs nothing; inner layers and c are not
    shown by PyTorch and are computed again. The trace's inputs are what the module (the stack of layers) receives.

    **How inputs go in.** `features` makes a tensor or array [time, ...] of an input; without it `Audio` becomes its
    samples, and arrays and tensors go as they are. Audio is first resampled to `rate`. `batch` says how the network
    takes several inputs:

    * "equal": net(stacked), for inputs of equal length only, so nothing is ever padded; right for any network;
    * "padded": net(padded), zeros behind;
    * "lengths": net(padded, lengths), these as int64 on the CPU;
    * "packed": net(PackedSequence);
    * a function: batch(net, list of tensors) calls the network and returns its output.

    In the middle three the longest input comes first; `run` still answers in the order it was asked. The network takes
    and gives [batch, time, ...], or [time, batch, ...] with `batch_first=False`. No padding gets into a trace: each is
    cut to its own steps, of which `steps` tells the number from an input's length where the network subsamples.

    **What comes out.** `Run.output` is the input's part of the network's output in numpy arrays (see
    `batching.Splitter` for how it is found). With `transcribe` it is transcribe(part), where the part still consists of
    torch tensors on the network's device. The trace's tensors stay on that device as well.
    """

    def __init__(
        self,
        net: nn.Module,
        state: str | None = None,
        *,
        part: Part = "h",
        layer: Layer = -1,
        direction: Direction | None = None,
        features: Callable[[Any], Any] | None = None,
        rate: int | None = None,
        batch: Batch = "equal",
        steps: Callable[[int], int] | None = None,
        batch_first: bool = True,
        transcribe: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(net, nn.Module):
            raise InputError(f"net must be a torch.nn.Module, not a {type(net).__name__}")
        if not callable(batch) and batch not in ("equal", "padded", "lengths", "packed"):
            raise InputError(f"batch must be 'equal', 'padded', 'lengths', 'packed' or a function, not {batch!r}")
        for name, function in (("features", features), ("steps", steps), ("transcribe", transcribe)):
            if function is not None and not callable(function):
                raise InputError(f"{name} must be a function, not {function!r}")
        self.net = net
        self._choice = choose(net, state, part=part, layer=layer, direction=direction, batch_first=batch_first)
        if self._choice.module is net and self._choice.batch_first != batch_first and self._choice.kind == "stack":
            raise InputError(
                f"the network is an nn.{type(net).__name__} with batch_first={not batch_first}; "
                f"give batch_first={not batch_first} here too"
            )
        self._features = features
        self._rate = rate
        self._batch = batch
        self._steps = steps
        self._batch_first = batch_first
        self._transcribe = transcribe

    def __repr__(self) -> str:
        return f"TorchSystem({type(self.net).__name__}, {self.state_name})"

    @property
    def state_name(self) -> str:
        """Which vector is the state, in words."""
        return self._choice.words

    @cached_property
    def fingerprint(self) -> str:
        """A text that depends on the network's class, its weights when first asked, and the choice of state."""
        choice = self._choice
        sha = hashlib.sha256()
        named = (choice.name, choice.kind, choice.part, choice.layers, choice.direction)
        sha.update(repr((type(self.net).__qualname__, *named)).encode())
        for name, tensor in sorted(self.net.state_dict().items()):
            if isinstance(tensor, Tensor):  # the rest is what modules save beside weights, in no fixed form
                plain = tensor.dequantize() if tensor.is_quantized else tensor
                sha.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                sha.update(plain.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return sha.hexdigest()

    def run(self, batch: Sequence[Any]) -> list[Run]:
        """Run every input of the batch; the results are in the same order."""
        if len(batch) == 0:
            return []
        self._refuse_training()
        runs: dict[int, Run] = {}
        # Not inference_mode: a network that caches tensors could never train again.
        with torch.no_grad():
            dtype = self._dtype
            tensors = [to_tensor(self._make(value), position, dtype) for position, value in enumerate(batch)]
            for positions in groups(tensors, self._batch):
                runs.update(zip(positions, self._run([tensors[i] for i in positions], positions), strict=True))
        return [runs[position] for position in range(len(batch))]

    def _run(self, tensors: list[Tensor], positions: list[int]) -> list[Run]:
        """One group of inputs, all in one forward."""
        lengths = [len(tensor) for tensor in tensors]
        with recording(self.net, self._choice, padded=len(set(lengths)) > 1) as recorder:
            try:
                output = feed(self.net, tensors, self._batch, batch_first=self._batch_first, device=self._device)
            except Exception as error:  # the network's own, which stays what it is; what was fed is seldom in it
                shapes = ", ".join(sorted({str(tuple(tensor.shape)) for tensor in tensors}))
                error.add_note(f"while {self!r} ran inputs of {shapes}: does features= make what it reads?")
                raise
        heard = recorder.recording(len(tensors))
        steps = self._own_steps(heard, lengths, positions)
        split = Splitter(
            len(tensors),
            self._batch_first,
            # The recorded module's steps come last: they win where both are equally long.
            {max(lengths): lengths, max(len(inputs) for _, inputs in heard.rows): steps},
            recorder.left,
            to_numpy=self._transcribe is None,
        )
        # The traces first: they are ready while a device still works, and the output has to wait for it.
        traces = [Trace(states[: n + 1], inputs[:n]) for (states, inputs), n in zip(heard.rows, steps, strict=True)]
        outputs = split(output)
        if self._transcribe is not None:
            outputs = [self._transcribe(part) for part in outputs]
        return [Run(part, trace) for part, trace in zip(outputs, traces, strict=True)]

    def _own_steps(self, heard: Recording, lengths: list[int], positions: list[int]) -> list[int]:
        """How many steps of each row are the input's own and not padding."""
        recorded = [len(inputs) for _, inputs in heard.rows]
        if heard.exact:
            return recorded
        label, longest, made = self._choice.label, max(lengths), max(recorded)
        if self._steps is not None:
            steps = [int(self._steps(length)) for length in lengths]
            for own, length, position in zip(steps, lengths, positions, strict=True):
                if not 0 < own <= made or (length == longest and own != made):
                    raise InputError(
                        f"steps({length}) is {own} for input {position} of the batch, but '{label}' made {made} steps "
                        f"of a batch {longest} long; correct steps= or use batch='equal' without it"
                    )
            return steps
        if len(set(lengths)) == 1:
            return recorded
        if made != longest:
            raise InputError(
                f"'{label}' made {made} steps of inputs padded to {longest}, so where each one's padding begins is not "
                "known; give steps=, a function from an input's length to its steps there, or use batch='equal'"
            )
        return lengths

    def _make(self, value: Any) -> Any:
        """What the network reads of one input."""
        if self._rate is not None and hasattr(value, "rate") and value.rate != self._rate:
            value = value.resample(self._rate)
        if self._features is not None:
            return self._features(value)
        return value.samples if hasattr(value, "samples") and hasattr(value, "rate") else value

    def _refuse_training(self) -> None:
        for name, module in self.net.named_modules():
            if module.training:
                who = f"'{name}' of {type(self.net).__name__}" if name else type(self.net).__name__
                raise InputError(
                    f"{who} is in training mode, in which the same input may give other states; call net.eval() first"
                )

    @property
    def _device(self) -> torch.device:
        return next((weight.device for weight in self.net.parameters()), torch.device("cpu"))

    @property
    def _dtype(self) -> torch.dtype:
        floating = (weight.dtype for weight in self.net.parameters() if weight.is_floating_point())
        return next(floating, torch.get_default_dtype())
