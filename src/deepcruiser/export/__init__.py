"""Abstract models for other programs: model checkers, Graphviz and graph viewers. One file per format.

    export(model, "asr.tra")        asr.tra, asr.sta and asr.lab:  prism -importmodel asr.tra,sta,lab -mdp -ex
    export(model, "asr.drn")        storm --explicit-drn asr.drn, or stormpy.build_model_from_drn
    export(model, "asr.dot")        dot -Tsvg asr.dot -o asr.svg, for up to 200 states
    export(model, "asr.graphml")    networkx, yEd, Gephi

This file imports the formats only when a model is exported: `import deepcruiser` reads it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from deepcruiser.errors import InputError

if TYPE_CHECKING:
    from deepcruiser.abstraction.model import AbstractModel


def export(model: AbstractModel, path: str | os.PathLike[str]) -> None:
    """Write the model in the format that the suffix of `path` names, whole or not at all."""
    from deepcruiser.export import graphml, graphviz, prism, storm

    # Each of PRISM's three suffixes writes all three files.
    writers = {
        ".tra": prism.write_prism,
        ".sta": prism.write_prism,
        ".lab": prism.write_prism,
        ".drn": storm.write_storm,
        ".dot": graphviz.write_dot,
        ".graphml": graphml.write_graphml,
    }
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise InputError(f"cannot tell the format from the name {os.fspath(path)!r}: use one of {', '.join(writers)}")
    writer(model, path)
