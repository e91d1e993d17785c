"""Network files of EESEN, and of Kaldi's nnet1 as far as they have the same layers and projected LSTMs."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from deepcruiser.errors import FileError, InputError
from deepcruiser.files.atomic import atomic_write
from deepcruiser.files.kaldi_objects import BINARY, KaldiReader
from deepcruiser.files.reading import read_bytes
from deepcruiser.systems.kaldi.network import Affine, Network, PeepholeLstm

Array = npt.NDArray[np.floating]

#: The directions of each kind of LSTM layer; "Parallel" and "Streams" only say how it was trained.
LSTMS = {"<lstm>": 1, "<lstmparallel>": 1, "<bilstm>": 2, "<bilstmparallel>": 2}
PROJECTED = {"<lstmprojected>": 1, "<lstmprojectedstreams>": 1, "<blstmprojected>": 2, "<blstmprojectedstreams>": 2}
PLAIN: dict[str, type[nn.Module]] = {"<softmax>": nn.Softmax, "<sigmoid>": nn.Sigmoid, "<tanh>": nn.Tanh}
AFFINE = "<affinetransform>"

#: Fields that may come before the parameters of a layer. Only the clipping of the cell matters after training.
FLAGS = {
    "<forwardtimestepdropout>", "<forwardsequencedropout>", "<recurrenttimestepdropout>",
    "<recurrentsequencedropout>", "<rnndrop>", "<nomemlossdropout>", "<twiddleforward>",
}  # fmt: skip
NUMBERS = {
    "<learnratecoef>", "<biaslearnratecoef>", "<maxgrad>", "<maxnorm>", "<dropfactor>", "<forwarddropoutfactor>",
    "<recurrentdropoutfactor>", "<cellclip>", "<clipcell>", "<clipgradient>", "<gradclip>", "<diffclip>",
    "<celldiffclip>", "<dropoutrate>",
}  # fmt: skip
ACCUMULATORS = {"<bilstmaccus>": 12, "<lstmaccus>": 6, "<affineaccus>": 2}


def read_network(path: str | os.PathLike[str]) -> Network:
    """The network in a binary or text file, of any version of EESEN."""
    name = Path(path).name
    reader = KaldiReader(read_bytes(path), name)
    if reader.token("<Nnet>") != "<Nnet>":
        raise FileError(f"{name} is not a network of EESEN: such a file begins with <Nnet>")
    layers = list(_layers(reader))
    if not any(isinstance(layer, PeepholeLstm) for layer in layers):
        raise InputError(f"{name} has no recurrent layer: a network needs an LSTM layer to have states")
    return Network(layers).requires_grad_(False).eval()


def _layers(reader: KaldiReader) -> Iterator[nn.Module]:
    size: int | None = None  # the output of the layer before
    while (marker := reader.token("a layer or </Nnet>")) != "</Nnet>":
        kind = marker.lower()
        if kind == "<!endofcomponent>":
            continue
        if kind not in {*LSTMS, *PROJECTED, *PLAIN, AFFINE}:
            raise FileError(
                f"{reader.name}, byte {reader.position}: {marker[:40]!r} is not a layer that EESEN has; it has affine "
                "transforms, LSTMs, softmax, sigmoid and tanh"
            )
        inputs, outputs = _sizes(reader, kind)
        if size not in (None, inputs):
            raise FileError(f"{reader.name}: {marker} reads {inputs:,} values, but the layer before it gives {size:,}")
        if kind in PLAIN:
            if inputs != outputs:
                raise FileError(f"{reader.name}: {marker} cannot make {outputs:,} values of {inputs:,}")
            yield nn.Softmax(-1) if kind == "<softmax>" else PLAIN[kind]()
        elif kind == AFFINE:
            _options(reader)
            yield Affine(*_parameters(reader, [(outputs, inputs), (outputs,)]))
        else:
            yield _lstm(reader, kind, inputs, outputs)
        size = outputs


def _sizes(reader: KaldiReader, kind: str) -> tuple[int, int]:
    """The sizes of a layer's input and output; until October 2015, and in nnet1, they have no names."""
    if reader.peek() != b"<":
        outputs, inputs = reader.integer("the size of the output"), reader.integer("the size of the input")
    else:
        named = {}
        for _ in range(2):
            name = reader.token("<InputDim>, and <CellDim> or <OutputDim>").lower()
            named[name] = reader.integer("a size")
        second = "<CellDim>" if kind in LSTMS else "<OutputDim>"
        if named.keys() != {"<inputdim>", second.lower()}:
            raise FileError(f"{reader.name}, byte {reader.position}: a layer needs <InputDim> and {second} first")
        inputs, outputs = named["<inputdim>"], named[second.lower()]
    if min(inputs, outputs) < 1:
        raise FileError(f"{reader.name}, byte {reader.position}: a layer cannot make {outputs:,} values of {inputs:,}")
    return inputs, outputs


def _options(reader: KaldiReader) -> dict[str, float]:
    """What stands before the parameters."""
    options: dict[str, float] = {}
    while reader.peek() == b"<":
        name = reader.token()
        kind = name.lower()
        if kind in FLAGS:
            reader.flag()
        elif kind == "<celldim>":
            options[kind] = reader.integer("a size")
        elif kind in NUMBERS:
            options[kind] = reader.number()
        elif kind in ACCUMULATORS:
            for _ in range(ACCUMULATORS[kind]):
                reader.skip_array()
        else:
            raise FileError(f"{reader.name}, byte {reader.position}: {name[:40]!r} is not an option of a layer")
    return options


def _lstm(reader: KaldiReader, kind: str, inputs: int, outputs: int) -> PeepholeLstm:
    ways = (LSTMS | PROJECTED)[kind]
    options = _options(reader)
    if outputs % ways:
        raise FileError(f"{reader.name}: {outputs:,} outputs do not divide into two directions")
    size = outputs // ways
    cells = int(options.get("<celldim>", size)) if kind in PROJECTED else size
    shapes: list[tuple[int, ...]] = [(4 * cells, inputs), (4 * cells, size), (4 * cells,), (cells,), (cells,), (cells,)]
    if kind in PROJECTED:
        shapes.append((size, cells))
    parts = [_parameters(reader, shapes) for _ in range(ways)]
    w_x, w_m, bias, p_i, p_f, p_o, *rest = (torch.stack(both) for both in zip(*parts, strict=True))
    clip = options.get("<cellclip>", options.get("<clipcell>", 0.0))
    return PeepholeLstm(
        w_x, w_m, bias, torch.stack([p_i, p_f, p_o], 1), rest[0] if rest else None, clip if clip > 0 else None
    )


def _parameters(reader: KaldiReader, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """The next arrays, in single precision, of these shapes."""
    arrays = []
    for shape in shapes:
        array = reader.array()
        if array.shape != shape and not (len(shape) == 1 and array.shape == (1, *shape)):
            shown, needed = (" x ".join(f"{n:,}" for n in sizes) for sizes in (array.shape, shape))
            raise FileError(
                f"{reader.name}, byte {reader.position}: an array of {shown}, but the sizes of its layer need {needed}"
            )
        with np.errstate(over="ignore"):
            array = array.astype(np.float32).reshape(shape)
        if not np.isfinite(array).all():
            raise FileError(f"{reader.name}, byte {reader.position}: there is NaN or infinity among the weights")
        arrays.append(torch.from_numpy(array))
    return arrays


def write_network(network: Network, path: str | os.PathLike[str], *, binary: bool = True) -> None:
    """Write a network as EESEN does; `read_network` gives the same weights again."""
    parts = [BINARY if binary else b"", b"<Nnet> "]
    size = network.inputs
    for layer in network.layers:
        if isinstance(layer, PeepholeLstm):
            if layer.projection is not None:
                raise InputError("EESEN has no projected LSTM, so this network cannot be written in its format")
            kind = "<BiLstm>" if layer.ways == 2 else "<Lstm>"
            parts += _layer(kind, "<CellDim>", layer.inputs, layer.outputs, binary)
            for way in range(layer.ways):
                weights = [layer.w_x, layer.w_m, layer.bias, *layer.peepholes.unbind(1)]
                parts += [_array(weight[way], binary) for weight in weights]
            size = layer.outputs
        elif isinstance(layer, Affine):
            parts += _layer("<AffineTransform>", "<OutputDim>", layer.inputs, layer.outputs, binary)
            parts += [_array(layer.weight, binary), _array(layer.bias, binary)]
            size = layer.outputs
        else:
            parts += _layer(f"<{type(layer).__name__}>", "<OutputDim>", size, size, binary, trained=False)
    with atomic_write(path) as file:
        file.write(b"".join([*parts, b"</Nnet> " if binary else b"</Nnet> \n"]))


def _layer(kind: str, second: str, inputs: int, outputs: int, binary: bool, *, trained: bool = True) -> list[bytes]:
    """What stands before the parameters of a layer."""
    items: list[Any] = [kind, "<InputDim>", inputs, second, outputs]
    items += ["<LearnRateCoef>", 1.0, "<MaxGrad>", 50.0] if trained else []
    if not binary:
        return [" ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items).encode() + b" \n"]
    forms: dict[type, Any] = {
        str: lambda text: f"{text} ".encode(),
        int: lambda n: struct.pack("<bi", 4, n),
        float: lambda n: struct.pack("<bf", 4, n),
    }
    return [forms[type(item)](item) for item in items]


def _array(weight: Tensor, binary: bool) -> bytes:
    array = weight.detach().cpu().numpy().astype("<f4")
    if binary:
        sizes = b"".join(struct.pack("<bi", 4, n) for n in array.shape)
        return (b"FM " if array.ndim == 2 else b"FV ") + sizes + array.tobytes()
    rows = [" ".join(row) for row in np.atleast_2d(array).astype(str)]  # the shortest texts that read as these values
    return (f" [ {rows[0]} ]\n" if array.ndim == 1 else " [\n  " + "\n  ".join(rows) + " ]\n").encode()
