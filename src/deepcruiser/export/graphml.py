"""GraphML, for viewers of large graphs: a node per state and an edge per (s, x, s').

The graph shows what profiling saw. The self-loops that model checkers need are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from deepcruiser.abstraction.model import AbstractModel
from deepcruiser.export.mdp import cell_texts, mask, no_way_out, times_visited
from deepcruiser.files.atomic import atomic_write

#: The attributes of nodes and edges: name and type.
_NODE = {"cell": "string", "initial": "boolean", "end": "boolean", "no_way_out": "boolean", "visits": "long"}
_EDGE = {"input": "string", "count": "long", "probability": "double"}


def write_graphml(model: AbstractModel, path: str | os.PathLike[str]) -> None:
    """Write the model as a graph; there is no limit of size."""
    with atomic_write(path) as file:
        file.write("".join(_graphml(model)).encode())


def _graphml(model: AbstractModel) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for domain, attributes in (("node", _NODE), ("edge", _EDGE)):
        for name, kind in attributes.items():
            yield f'  <key id="{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '  <graph id="model" edgedefault="directed">\n'
    marks = (mask(model, states).tolist() for states in (model.initial, model.final, no_way_out(model)))
    nodes = (*marks, times_visited(model).tolist())
    for state, values in enumerate(zip(cell_texts(model.grid.decode(model.states)), *nodes, strict=True)):
        yield f'    <node id="s{state}">{_data(_NODE, values)}</node>\n'
    counts = model.counts
    inputs = cell_texts(model.input_grid.decode(counts.inputs))
    columns = (counts.source, counts.target, counts.action, counts.count, model.probabilities)
    for source, target, action, *step in zip(*(c.tolist() for c in columns), strict=True):
        yield f'    <edge source="s{source}" target="s{target}">{_data(_EDGE, (inputs[action], *step))}</edge>\n'
    yield "  </graph>\n</graphml>\n"


def _data(attributes: dict[str, str], values: tuple[object, ...]) -> str:
    # No value needs escaping; repr keeps the probabilities exact, and booleans are in lower case in XML.
    return "".join(
        f'<data key="{name}">{value if kind == "string" else repr(value).lower()}</data>'
        for (name, kind), value in zip(attributes.items(), values, strict=True)
    )
