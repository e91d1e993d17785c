"""The network's forward and backward passes as CUDA graphs.

An LSTM is thousands of small kernels, which take longer to launch than to run. For every shape of a batch they are
recorded once, and replayed as one. Batches must come in few shapes for that: see pool.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Forward = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Scores(nn.Module):
    """`net.scores` in half precision; without a cache of halved weights, which would outlive its recording."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(frames.device.type, torch.bfloat16, enabled=frames.is_cuda, cache_enabled=False):
            scores: tuple[Tensor, Tensor] = self.net.scores(frames, counts)
        return scores


class Graphs:
    """`graphs(frames, counts)` is `net.scores(frames, counts)`, recorded where there is a GPU."""

    def __init__(self, net: Any) -> None:
        self.net = net
        self.recorded: dict[tuple[Any, ...], Forward] = {}
        self.memory: Any = None

    def __call__(self, frames: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        if not frames.is_cuda:
            return Scores(self.net)(frames, counts)  # type: ignore[no-any-return]
        # What a module does when it drops out is recorded with it, so another rate is another graph.
        key = (*frames.shape, self.net.dropout.p, self.net.early_dropout.p)
        if key not in self.recorded:
            self.memory = self.memory or torch.cuda.graph_pool_handle()
            example = (torch.zeros_like(frames), counts.clone())
            made: Any = torch.cuda.make_graphed_callables(Scores(self.net), example, pool=self.memory)
            self.recorded[key] = made
        return self.recorded[key](frames, counts)
