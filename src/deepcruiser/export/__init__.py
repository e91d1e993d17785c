"""Abstract models and transducers for other programs: model checkers, graph viewers, OpenFst. One file per format.

    export(model, "asr.tra")        asr.tra, asr.sta and asr.lab:  prism -importmodel asr.tra,sta,lab -mdp -ex
    export(model, "asr.drn")        storm --explicit-drn asr.drn, or stormpy.build_model_from_drn
    export(model, "asr.dot")        dot -Tsvg asr.dot -o asr.svg, for up to 200 states
    export(model, "asr.graphml")    networkx, yEd, Gephi
    export(transducer, "asr.att")   asr.att, asr.isyms, asr.osyms and asr.ssyms: OpenFst and its kin

This file imports the formats only when a model is exported: `import deepcruiser` reads it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deepcruiser.errors import InputError

if TYPE_CHECKING:
    from deepcruiser.abstraction.model import AbstractModel
    from deepcruiser.abstraction.transducer import Transducer


def export(model: AbstractModel | Transducer, path: str | os.PathLike[str]) -> None:
    """Write the model or transducer to a file; the suffix of `path` selects the format."""
    from deepcruiser.abstraction.transducer import Transducer
    from deepcruiser.export import graphml, graphviz, openfst, prism, storm

    suffix = os.path.splitext(path)[1].lower()
    if isinstance(model, Transducer):
        if suffix != ".att":
            raise InputError(f"a transducer is written as .att, not as {os.fspath(path)!r}")
        openfst.write_openfst(model, path)
        return
    if suffix == ".att":
        raise InputError(
            ".att is for transducers, which have outputs: make one with dc.Transducer.of(traces, model) and export that"
        )
    # Each of PRISM's three suffixes writes all three files.
    writers = {
        ".tra": prism.write_prism,
        ".sta": prism.write_prism,
        ".lab": prism.write_prism,
        ".drn": storm.write_storm,
        ".dot": graphviz.write_dot,
        ".graphml": graphml.write_graphml,
    }
    writer = writers.get(suffix)
    if writer is None:
        raise InputError(f"cannot tell the format from the name {os.fspath(path)!r}: use one of {', '.join(writers)}")
    writer(model, path)
