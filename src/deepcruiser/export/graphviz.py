"""Pictures of small models for Graphviz (.dot).

A picture shows what profiling saw. The self-loops that model checkers need are left out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from math import log1p

import numpy as np

from deepcruiser.abstraction.grid import IntArray
from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.errors import InputError
from deepcruiser.export.mdp import cell_texts, mask, no_way_out, times_visited
from deepcruiser.files.atomic import atomic_write

#: The maximum number of states in a picture.
MAX_STATES = 200

#: Up to this many transitions, Graphviz places the states and edges carry their text. In larger pictures each state
#: lies where its cell does, and the text of an edge is a tooltip (in SVG).
_WRITTEN = 60
_INPUTS_PER_EDGE = 3

_FONT = 'fontname="Helvetica,Arial,sans-serif"'
_PALE, _DEEP, _GREY, _ACCENT = (0xEE, 0xF4, 0xFB), (0x1F, 0x5F, 0xA8), (0xB4, 0xBE, 0xC8), "#d9480f"


def write_dot(model: AbstractModel, path: str | os.PathLike[str]) -> None:
    """Write a picture of at most `MAX_STATES` states."""
    if len(model.states) > MAX_STATES:
        raise InputError(
            f"a picture of {len(model.states):,} states cannot be read (at most {MAX_STATES}): abstract with fewer "
            "partitions or components, or export to .graphml, which has no limit"
        )
    with atomic_write(path) as file:
        file.write("".join(_dot(model)).encode())


def _dot(model: AbstractModel) -> Iterator[str]:
    written = len(model.transitions) <= _WRITTEN
    layout = "rankdir=LR, nodesep=0.35, ranksep=0.7" if written else "layout=neato, splines=line"
    yield f'digraph "{model.name}" {{\n'
    yield f'  graph [{layout}, pad=0.3, outputorder=edgesfirst, label="{_caption(model, written)}", '
    yield f'labelloc=b, labeljust=l, {_FONT}, fontsize=11, fontcolor="#5c6670"];\n'
    yield f'  node [shape=box, style="rounded,filled", {_FONT}, fontsize=11, color="#5c6670", margin="0.12,0.06"];\n'
    yield f'  edge [{_FONT}, fontsize=9, fontcolor="#3d464f", arrowsize=0.7];\n'
    yield from _dot_nodes(model, written)
    yield from _dot_edges(model, written)
    yield "}\n"


def _caption(model: AbstractModel, written: bool) -> str:
    if written:
        edge = "edge: share and number of the steps out of its state; inputs, each with Pr_x(s, s')"
    else:
        edge = "edge: the darker, the more steps"
        edge += "; states lie by their indices in components 0 and 1" if len(model.grid.lower) > 1 else ""
    state = (
        "state: its cell, and how often it was visited; orange: traces begin here; double frame: traces end here; "
        "dashed: no way out"
    )
    return f"{model!r}\\l{state}\\l{edge}\\l"


def _dot_nodes(model: AbstractModel, written: bool) -> Iterator[str]:
    visits, cells = times_visited(model), model.grid.decode(model.states)
    depth = np.log1p(visits) / np.log1p(max(1, visits.max()))
    initial = set(model.initial.tolist())
    texts = cell_texts(cells)
    places = _places(cells, pitch=max(1.0, 0.3 + 0.08 * max(map(len, texts))))
    ends, stuck = mask(model, model.final), mask(model, no_way_out(model))
    columns = (texts, visits.tolist(), depth.tolist(), ends.tolist(), stuck.tolist(), places)
    for state, (cell, times, deep, end, last, (x, y)) in enumerate(zip(*columns, strict=True)):
        look = f'fillcolor="{_blend(_PALE, _DEEP, deep)}", fontcolor="{"white" if deep > 0.55 else "#1b2733"}"'
        look += "" if written else f', pos="{x:.2f},{y:.2f}!"'
        look += ", peripheries=2" if end else ""
        look += ', style="rounded,filled,dashed"' if last else ""
        look += f', color="{_ACCENT}", penwidth=2.5' if state in initial else ""
        yield f'  s{state} [label="{cell}\\n{times:,}×", {look}];\n'
        if state in initial:
            look = "" if written else f', pos="{x - 0.6:.2f},{y + 0.4:.2f}!"'
            yield f'  begin{state} [shape=point, width=0.1, label="", color="{_ACCENT}"{look}];\n'
            yield f'  begin{state} -> s{state} [color="{_ACCENT}", penwidth=2];\n'


def _places(cells: IntArray, pitch: float) -> list[tuple[float, float]]:
    """The positions of the states in inches: by their first two components, and side by side if those are equal."""
    if cells.shape[1] == 1:  # around a circle, because edges along a line would overlap
        around = max(1.0, len(cells) / 7) * np.exp(2j * np.pi * np.arange(len(cells)) / len(cells))
        return list(zip(around.real.tolist(), around.imag.tolist(), strict=True))
    # The cells are in ascending order, so those that share two indices are neighbours.
    _, first, number = np.unique(cells[:, :2], axis=0, return_index=True, return_counts=True)
    rank = np.arange(len(cells)) - np.repeat(first, number)
    columns = int(np.ceil(np.sqrt(number.max())))
    rows = -(-int(number.max()) // columns)
    x = pitch * (cells[:, 0] * (columns + 0.6) + rank % columns)
    y = 0.7 * (cells[:, 1] * (rows + 0.6) - rank // columns)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _dot_edges(model: AbstractModel, written: bool) -> Iterator[str]:
    counts = model.counts
    steps: dict[tuple[int, int], list[tuple[int, str, float]]] = defaultdict(list)
    left: dict[int, int] = defaultdict(int)
    inputs = cell_texts(model.input_grid.decode(counts.inputs))
    columns = (counts.source, counts.target, counts.count, counts.action, model.probabilities)
    for source, target, count, action, probability in zip(*(c.tolist() for c in columns), strict=True):
        steps[source, target].append((count, inputs[action], probability))
        left[source] += count
    totals = {pair: sum(count for count, _, _ in taken) for pair, taken in steps.items()}
    # Staying in a state is so common that all other steps would look rare.
    busiest = max((total for (source, target), total in totals.items() if source != target), default=1)
    writing = "label" if written else "tooltip"
    for (source, target), total in sorted(totals.items(), key=lambda item: item[1]):  # the most frequent ones on top
        taken = sorted(steps[source, target], reverse=True)
        lines = [f"{total / left[source]:.0%}, {total:,}×", *(f"{cell}: {share:.2f}" for _, cell, share in taken)]
        if len(taken) > _INPUTS_PER_EDGE:
            lines[1 + _INPUTS_PER_EDGE :] = [f"and {len(taken) - _INPUTS_PER_EDGE} more"]
        text, depth = "\\n".join(lines), min(1.0, log1p(total) / log1p(busiest)) ** 2
        look = f'color="{_blend(_GREY, _DEEP, depth)}", penwidth={0.7 + 1.5 * depth:.2f}'
        yield f'  s{source} -> s{target} [{writing}="{text}", {look}];\n'


def _blend(pale: tuple[int, int, int], deep: tuple[int, int, int], share: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(pale, deep, strict=True))
