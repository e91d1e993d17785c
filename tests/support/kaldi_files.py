"""Files in Kaldi's formats, written value by value, independently of the readers."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: The ways in which a matrix can be stored.
FORMS = ("float", "double", "CM", "CM2", "CM3", "text")


def size(number: int) -> bytes:
    return b"\4" + struct.pack("<i", number)


def binary(array: Array, letter: str = "F") -> bytes:
    """A vector or matrix with the two bytes that begin a binary object."""
    kind = letter + ("M" if array.ndim == 2 else "V")
    values = array.astype("<f4" if letter == "F" else "<f8").tobytes()
    return b"\0B" + kind.encode() + b" " + b"".join(size(n) for n in array.shape) + values


def text(array: Array) -> bytes:
    rows = [" ".join(repr(float(value)) for value in row) for row in np.atleast_2d(array)]
    return (f" [ {rows[0]} ]\n" if array.ndim == 1 else " [\n  " + "\n  ".join(rows) + " ]\n").encode()


def compressed(rng: np.random.Generator, rows: int, columns: int, kind: str) -> tuple[bytes, Array]:
    """A compressed matrix of random codes, and its values by the rule of each code."""
    low, span = -3.0, 8.0
    header = b"\0B" + kind.encode() + b" " + struct.pack("<ffii", low, span, rows, columns)
    values = np.zeros((rows, columns))
    if kind != "CM":
        bits = 16 if kind == "CM2" else 8
        codes = rng.integers(0, 2**bits, (rows, columns))
        for row in range(rows):
            for column in range(columns):
                values[row, column] = low + span * int(codes[row, column]) / (2**bits - 1)
        return header + codes.astype(f"<u{bits // 8}").tobytes(), values
    marks = np.sort(rng.integers(0, 65536, (columns, 4)), axis=1)
    codes = rng.integers(0, 256, (columns, rows))
    codes[0, :4] = [0, 64, 192, 255]  # the marks themselves
    for column in range(columns):
        p0, p25, p75, p100 = (low + span * int(mark) / 65535 for mark in marks[column])
        for row in range(rows):
            code = int(codes[column, row])
            if code <= 64:
                value = p0 + (p25 - p0) * code / 64
            elif code <= 192:
                value = p25 + (p75 - p25) * (code - 64) / 128
            else:
                value = p75 + (p100 - p75) * (code - 192) / 63
            values[row, column] = value
    return header + marks.astype("<u2").tobytes() + codes.astype("u1").tobytes(), values


def stored(rng: np.random.Generator, form: str, rows: int, columns: int) -> tuple[bytes, Array]:
    """A random matrix in one of `FORMS`, and its values."""
    if form in ("CM", "CM2", "CM3"):
        return compressed(rng, rows, columns, form)
    values = rng.standard_normal((rows, columns)).astype(np.float32)
    return (text(values) if form == "text" else binary(values, form[0].upper())), values


def archive(path: Path, forms: tuple[str, ...] = FORMS, seed: int = 0) -> tuple[dict[str, Array], dict[str, int]]:
    """Write an archive with a matrix in each of the forms; its values, and the byte where each object begins."""
    rng = np.random.default_rng(seed)
    values, places, content = {}, {}, b""
    for number, form in enumerate(forms):
        data, values[f"utt-{form}"] = stored(rng, form, 5 + number, 4)
        content += f"utt-{form} ".encode()
        places[f"utt-{form}"] = len(content)
        content += data
    path.write_bytes(content)
    return values, places


@dataclass(frozen=True)
class NetLayer:
    """A layer as it stands in a file; `weights` are in the file's order, those of the backward direction last."""

    kind: str
    inputs: int
    outputs: int
    weights: tuple[Array, ...] = ()
    cells: int = 0
    clip: float = 0.0

    @property
    def ways(self) -> int:
        return 2 if self.kind.lower().startswith("bl") or self.kind.lower().startswith("bilstm") else 1


def layer(
    kind: str, inputs: int, outputs: int, rng: np.random.Generator, cells: int = 0, clip: float = 0.0
) -> NetLayer:
    """A layer with random weights, in single precision so that every form of a file can hold them."""
    ways = NetLayer(kind, inputs, outputs).ways
    size = outputs // ways
    cells = cells or size
    shapes: list[tuple[int, ...]] = []
    if "lstm" in kind.lower():
        one: list[tuple[int, ...]] = [
            (4 * cells, inputs),
            (4 * cells, size),
            (4 * cells,),
            (cells,),
            (cells,),
            (cells,),
        ]
        shapes = (one + ([(size, cells)] if "Projected" in kind else [])) * ways
    elif kind == "AffineTransform":
        shapes = [(outputs, inputs), (outputs,)]
    weights = tuple((rng.standard_normal(shape) * 0.6).astype(np.float32) for shape in shapes)
    return NetLayer(kind, inputs, outputs, weights, cells, clip)


def random_layers(rng: np.random.Generator, inputs: int = 6, outputs: int = 5) -> list[NetLayer]:
    """Every kind of layer that EESEN has."""
    return [
        layer("BiLstm", inputs, 8, rng),
        layer("AffineTransform", 8, 7, rng),
        layer("Tanh", 7, 7, rng),
        layer("Lstm", 7, 5, rng),
        layer("Sigmoid", 5, 5, rng),
        layer("BiLstm", 5, 6, rng),
        layer("AffineTransform", 6, outputs, rng),
        layer("Softmax", outputs, outputs, rng),
    ]


def network(layers: list[NetLayer], spelling: str = "new", *, as_text: bool = False, letter: str = "F") -> bytes:
    """A network file in one of the spellings that EESEN and nnet1 have had.

    "new", "parallel" (the names of layers), "training" (with accumulators and all options), "2015" (sizes without
    names), "nnet1" (the same, with an end after each layer).
    """
    content = b"" if as_text else b"\0B"

    def put(*items: Any) -> None:
        nonlocal content
        for item in items:
            if isinstance(item, np.ndarray):
                content += text(item) if as_text else binary(item, letter)[2:]
            elif isinstance(item, bool):
                content += b"T " if as_text and item else b"F " if as_text else b"T" if item else b"F"
            elif isinstance(item, str) or as_text:
                content += f"{item} ".encode()
            elif isinstance(item, int):
                content += size(item)
            else:  # EESEN writes single precision, and a reader takes both
                content += b"\4" + struct.pack("<f", item) if letter == "F" else b"\x08" + struct.pack("<d", item)

    put("<Nnet>")
    for each in layers:
        name = f"<{each.kind}>"
        lstm, plain = "lstm" in each.kind.lower(), not each.weights
        if spelling == "parallel" and lstm:
            name = f"<{each.kind.lower()}Parallel>"
        if spelling in ("2015", "nnet1"):
            put(name, each.outputs, each.inputs)
        else:
            put(name, "<InputDim>", each.inputs, "<CellDim>" if lstm else "<OutputDim>", each.outputs)
        if "Projected" in each.kind:
            put("<CellDim>", each.cells, "<LearnRateCoef>", 1.0, "<CellClip>", each.clip, "<DiffClip>", 1.0)
        elif spelling == "2015" and not plain:
            put("<LearnRateCoef>", 1.0, "<BiasLearnRateCoef>", 0.5, "<MaxGrad>" if lstm else "<MaxNorm>", 50.0)
        elif spelling == "training" and not plain:
            put("<MaxGrad>", 5.5, "<LearnRateCoef>", 0.25)
            if lstm:
                put("<ForwardDropoutFactor>", 0.2, "<RNNDrop>", True, "<TwiddleForward>", False, "<DropFactor>", 0.0)
            names = {"BiLstm": "<BiLstmAccus>", "Lstm": "<LstmAccus>", "AffineTransform": "<AffineAccus>"}
            put(names[each.kind], *(np.full_like(weight, 7) for weight in each.weights))
        put(*each.weights)
        if spelling == "nnet1":
            put("<!EndOfComponent>")
    put("</Nnet>")
    return content


def recogniser(folder: Path) -> None:
    """Write a small final.nnet with its units.txt, and features for it in data/test."""
    rng = np.random.default_rng(0)
    units = ["<SPACE>", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    layers = [layer("BiLstm", 120, 32, rng), layer("Lstm", 32, 16, rng), layer("BiLstm", 16, 24, rng)]
    layers += [layer("AffineTransform", 24, len(units) + 1, rng), layer("Softmax", len(units) + 1, len(units) + 1, rng)]
    (folder / "final.nnet").write_bytes(network(layers))
    (folder / "units.txt").write_text("".join(f"{unit} {number}\n" for number, unit in enumerate(units, 1)))
    (folder / "data" / "test").mkdir(parents=True)
    ark, scp = b"", ""
    for number in range(6):
        ark += f"utt{number} ".encode()
        scp += f"utt{number} feats.ark:{len(ark)}\n"
        ark += binary(rng.normal(10, 2, (30 + number, 40)))
    (folder / "data" / "test" / "feats.ark").write_bytes(ark)
    (folder / "data" / "test" / "feats.scp").write_text(scp)


def plain(layers: list[NetLayer], x: Array) -> tuple[Array, list[dict[str, Array]]]:
    """The network in numpy, step by step: its output, and what each LSTM layer reads, h and c of each direction.

    The backward direction comes in the order in which it reads.
    """
    x = x.astype(np.float64)
    passes = []
    for each in layers:
        if "lstm" in each.kind.lower():
            half = len(each.weights) // each.ways
            recorded = {"x": x}
            recorded["h"], recorded["c"] = _lstm(each, each.weights[:half], x)
            out = recorded["h"]
            if each.ways == 2:
                recorded["h back"], recorded["c back"] = _lstm(each, each.weights[half:], x[::-1])
                out = np.concatenate([out, recorded["h back"][::-1]], axis=1)
            passes.append(recorded)
            x = out
        elif each.kind == "AffineTransform":
            x = np.array([each.weights[0] @ row + each.weights[1] for row in x])
        elif each.kind == "Softmax":
            x = np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x])
        else:
            x = np.tanh(x) if each.kind == "Tanh" else 1 / (1 + np.exp(-x))
    return x, passes


def _lstm(each: NetLayer, weights: tuple[Array, ...], x: Array) -> tuple[Array, Array]:
    w_x, w_m, bias, p_i, p_f, p_o = (weight.astype(np.float64) for weight in weights[:6])
    m, c = np.zeros(w_m.shape[1]), np.zeros(each.cells)
    ms, cs = [], []
    for row in x:
        a_g, a_i, a_f, a_o = np.split(w_x @ row + w_m @ m + bias, 4)
        i, f = (1 / (1 + np.exp(-a)) for a in (a_i + p_i * c, a_f + p_f * c))
        c = i * np.tanh(a_g) + f * c
        if each.clip:
            c = np.clip(c, -each.clip, each.clip)
        m = np.tanh(c) / (1 + np.exp(-(a_o + p_o * c)))
        if len(weights) > 6:
            m = weights[6].astype(np.float64) @ m
        ms.append(m)
        cs.append(c)
    return np.array(ms), np.array(cs)
