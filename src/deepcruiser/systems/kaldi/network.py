"""Networks of LSTMs with peepholes, as EESEN and Kaldi's nnet1 train them, in PyTorch."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class Affine(nn.Module):
    """y = weight x + bias."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.outputs, self.inputs = weight.shape

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class PeepholeLstm(nn.Module):
    """An LSTM layer whose gates see the cell, in one direction or in both (`ways`).

        a = W_x x_t + W_m m_{t-1} + b        in four blocks of rows: g, i, f, o
        g = tanh(a_g)    i = sigmoid(a_i + p_i c_{t-1})    f = sigmoid(a_f + p_f c_{t-1})
        c_t = i g + f c_{t-1}    o = sigmoid(a_o + p_o c_t)    m_t = o tanh(c_t)

    Weights have the direction as their first axis: `w_x` [ways, 4 cells, inputs], `w_m` [ways, 4 cells, size], `bias`
    [ways, 4 cells], `peepholes` [ways, 3, cells] in the order p_i, p_f, p_o. With a `projection` [ways, size, cells],
    as in nnet1, the product with m_t takes its place, and c_t is kept between -clip and clip.
    """

    def __init__(
        self,
        w_x: Tensor,
        w_m: Tensor,
        bias: Tensor,
        peepholes: Tensor,
        projection: Tensor | None = None,
        clip: float | None = None,
    ) -> None:
        super().__init__()
        self.w_x, self.w_m, self.bias = nn.Parameter(w_x), nn.Parameter(w_m), nn.Parameter(bias)
        self.peepholes = nn.Parameter(peepholes)
        self.projection = None if projection is None else nn.Parameter(projection)
        self.clip = clip
        self.ways, rows, self.inputs = w_x.shape
        self.cells = rows // 4
        #: The size of h in one direction, and of the output.
        self.size = self.cells if projection is None else projection.shape[1]
        self.outputs = self.ways * self.size

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """h and c of every step of [batch, time, inputs], both [time, ways, batch, size].

        The backward direction comes in the order in which it reads, from the end of each input.
        """
        read = torch.stack([x, reverse(x, lengths)]) if self.ways == 2 else x[None]
        fixed = torch.matmul(read, self.w_x.transpose(1, 2)[:, None]) + self.bias[:, None, None]
        w_m = self.w_m.transpose(1, 2).contiguous()
        project = None if self.projection is None else self.projection.transpose(1, 2).contiguous()
        p_if = self.peepholes[:, :2].flatten(1)[:, None]
        p_o = self.peepholes[:, 2][:, None]
        h = x.new_zeros(self.ways, len(x), self.size)
        c = x.new_zeros(self.ways, len(x), self.cells)
        hs, cs = [], []
        for step in fixed.unbind(2):
            a = torch.baddbmm(step, h, w_m)
            gates = (a[..., self.cells : 3 * self.cells] + p_if * torch.cat((c, c), -1)).sigmoid()
            i, f = gates.chunk(2, -1)
            c = i * a[..., : self.cells].tanh() + f * c
            if self.clip is not None:
                c = c.clamp(-self.clip, self.clip)
            h = (a[..., 3 * self.cells :] + p_o * c).sigmoid() * c.tanh()
            if project is not None:
                h = torch.bmm(h, project)
            hs.append(h)
            cs.append(c)
        return torch.stack(hs), torch.stack(cs)


@dataclass(frozen=True, eq=False)
class LayerPass:
    """What one LSTM layer read, [batch, time, inputs], and its h and c, as `PeepholeLstm` returns them."""

    inputs: Tensor
    h: Tensor
    c: Tensor


class Network(nn.Module):
    """Layers one after the other. What stands after the end of a row of a batch does not change the row."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.lstms = [layer for layer in layers if isinstance(layer, PeepholeLstm)]
        sized = [layer for layer in layers if isinstance(layer, Affine | PeepholeLstm)]
        self.inputs, self.outputs = sized[0].inputs, sized[-1].outputs

    def forward(self, x: Tensor, lengths: Tensor, keep: Container[int] = ()) -> tuple[Tensor, dict[int, LayerPass]]:
        """The output [batch, time, outputs], and the passes of the LSTM layers with the numbers in `keep`."""
        passes: dict[int, LayerPass] = {}
        number = 0
        for layer in self.layers:
            if not isinstance(layer, PeepholeLstm):
                x = layer(x)
                continue
            h, c = layer(x, lengths)
            if number in keep:
                passes[number] = LayerPass(x, h, c)
            x = in_time(h, lengths)
            number += 1
        return x, passes


def in_time(states: Tensor, lengths: Tensor) -> Tensor:
    """[time, ways, batch, size] as [batch, time, ways * size], both directions in the order of time."""
    ways = [way.transpose(0, 1) for way in states.unbind(1)]
    if len(ways) == 2:
        ways[1] = reverse(ways[1], lengths)
    return torch.cat(ways, -1)


def reverse(rows: Tensor, lengths: Tensor) -> Tensor:
    """Every row of [batch, time, size] from its own end to its beginning; what stands after its end is undefined."""
    places = (lengths[:, None] - 1 - torch.arange(rows.shape[1], device=rows.device)).clamp_min(0)
    return rows.take_along_dim(places[:, :, None], 1)
